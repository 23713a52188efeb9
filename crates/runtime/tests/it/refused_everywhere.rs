//! Databases that refuse every row with one word in it, whatever table it is for. Three tenants do all that a host does, at
//! the same time and in an order that a seed draws. One of them uses the word now and then: nobody else notices, and
//! whoever waits is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use baton_model::workspace::DEFAULT_WORKSPACE;
use baton_model::{Anchor, Digest, NodeId, Principal, RunId, RunStatus, Scopes, Signal, TenantId};
use baton_runtime::{Error, ForkRun, Host, NewAnnotation, NewToken, NewWebhook, Options, StartRun, Via};
use baton_store::{Store, VersionedStoreId};
use baton_store_postgres::{PostgresStore, Settings};
use baton_store_sqlite::SqliteStore;
use baton_testkit::Flow;
use baton_testkit::postgres::Database;
use serde_json::json;

use crate::common::accept;
use crate::common::versioned_stores::{PUT, WRITE, new_file, new_memory};
use crate::forking::branch_at;

/// Nothing here takes this long; whatever does, hangs.
const PATIENCE: Duration = Duration::from_secs(120);
const WORD: &str = "poison";
const TENANTS: [&str; 3] = ["acme", "rival", "third"];
/// How many things each tenant does, on how many tasks.
const ACTS: usize = 40;
const TASKS: usize = 3;
/// The memory scope that all runs of a tenant share.
const SHARED: &str = "shared";

/// What a tenant does, and where the word ends up.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// In the first record of a run.
    Input,
    /// In the run's own row.
    Tag,
    /// In a record that is written while nobody waits.
    Computed,
    /// In a child, which its parent waits for.
    Child,
    /// In memory that other runs read, and in their records.
    Remembered,
    /// In a file.
    Written,
    /// In an open question.
    Asked,
    /// In the answer to a question.
    Answered,
    /// In the record of a cancellation.
    Cancelled,
    Memory,
    File,
    Definition,
    Reply,
    Subscription,
    Remark,
    /// In the overlay of a branch.
    Forked,
    /// In the mark and the records of a run that is pruned.
    Pruned,
    /// In what is owed to a subscriber, and kept for it once it is given up.
    Delivered,
    /// In the row of a token.
    Token,
}

const ALL: [Act; 19] = [
    Act::Input,
    Act::Tag,
    Act::Computed,
    Act::Child,
    Act::Remembered,
    Act::Written,
    Act::Asked,
    Act::Answered,
    Act::Cancelled,
    Act::Memory,
    Act::File,
    Act::Definition,
    Act::Reply,
    Act::Subscription,
    Act::Remark,
    Act::Forked,
    Act::Pruned,
    Act::Delivered,
    Act::Token,
];

/// `TEST_SEED` from the environment, or these.
fn seeds() -> Vec<u64> {
    let asked = std::env::var("TEST_SEED").ok().and_then(|text| text.parse().ok());
    asked.map_or_else(|| vec![7, 11, 23], |seed| vec![seed])
}

/// The same draws for the same seed.
struct Draws(u64);

impl Draws {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below
    }
}

struct Tenant {
    seed: u64,
    host: Host,
    who: Principal,
    done: AtomicUsize,
}

impl Tenant {
    fn id(&self) -> &TenantId {
        &self.who.tenant
    }

    async fn register(&self) {
        let wait = || ("wait", "core.delay", json!({"ms": 1}));
        let set = || ("set", "core.setVariable", json!({"name": "x", "expression": "variables.word + '!'"}));
        let note = json!({"contentExpression": "variables.word"});
        let file = json!({"path": "notes.txt", "contentExpression": "variables.word"});
        let child = json!({
            "workflowId": "computed", "waitForCompletion": true, "inputMapping": {"word": "word"}
        });
        // The word is only put together on the way, so that the run begins.
        let word = || ("word", "core.setVariable", json!({"name": "word", "expression": "inputs.half + inputs.rest"}));
        for flow in [
            Flow::chain("plain", &[wait(), ("after", "core.noop", json!({}))]),
            Flow::chain("computed", &[wait(), word(), set()]),
            Flow::chain("child", &[wait(), ("call", "core.subWorkflow", child)]),
            Flow::chain("remembered", &[wait(), word(), ("put", PUT, note)]),
            Flow::chain("written", &[wait(), word(), ("write", WRITE, file)]),
            Flow::chain("asked", &[wait(), word(), ("gate", "core.approvalGate", json!({"title": "Go on?"}))]),
            Flow::chain("gate", &[("gate", "core.approvalGate", json!({"title": "Go on?"}))]),
        ] {
            self.host.register_workflow(self.id(), flow.build()).await.unwrap();
        }
    }

    fn request(workflow: &str, word: &str) -> StartRun {
        let (half, rest) = word.split_at(3);
        let inputs = [("half".to_owned(), json!(half)), ("rest".to_owned(), json!(rest))].into_iter().collect();
        StartRun { workflow_id: workflow.to_owned(), inputs, scope_id: Some(SHARED.to_owned()), ..StartRun::default() }
    }

    async fn start(&self, request: StartRun) -> Result<RunId, Error> {
        Ok(self.host.start_run(&self.who, request, None).await?.run_id)
    }

    /// Does one thing, and says which run came of it.
    async fn act(&self, act: Act, word: &str) -> Result<Option<RunId>, Error> {
        let number = self.done.fetch_add(1, Ordering::Relaxed);
        let started = |workflow: &'static str| self.start(Self::request(workflow, word));
        Ok(match act {
            Act::Input => {
                let mut request = Self::request("plain", word);
                request.inputs.insert("whole".to_owned(), json!(word));
                Some(self.start(request).await?)
            }
            Act::Tag => {
                Some(self.start(StartRun { tags: vec![word.to_owned()], ..Self::request("plain", word) }).await?)
            }
            Act::Computed => Some(started("computed").await?),
            Act::Child => Some(started("child").await?),
            Act::Remembered => Some(started("remembered").await?),
            Act::Written => Some(started("written").await?),
            Act::Asked => Some(started("asked").await?),
            Act::Answered => {
                let run = started("gate").await?;
                let gate = NodeId::new("gate");
                while self.settled(&run).await == Settled::UnderWay {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let via = || Via::Bearer { subject: word.to_owned() };
                let value = json!({"action": "accept", "feedback": word});
                self.host.resolve(self.id(), &run, &gate, value, via()).await?;
                Some(run)
            }
            Act::Cancelled => {
                let run = started("gate").await?;
                self.host.cancel(&self.who, &run, Some(word.to_owned())).await?;
                Some(run)
            }
            Act::Memory => {
                self.host.put_memory(self.id(), SHARED, new_memory(word), None).await?;
                None
            }
            Act::File => {
                self.host.put_file(self.id(), DEFAULT_WORKSPACE, new_file(&format!("{word}.txt"), word)).await?;
                None
            }
            Act::Definition => {
                let flow = Flow::chain(&format!("{word}-{number}"), &[("a", "core.noop", json!({}))]);
                self.host.register_workflow(self.id(), flow.build()).await?;
                None
            }
            Act::Reply => {
                let key = Digest::of_bytes(format!("{}-{number}", self.id()).as_bytes());
                self.host.remember(self.id(), key.clone(), key, 200, word.to_owned()).await?;
                None
            }
            Act::Subscription => {
                let url = format!("https://hooks.example/{word}/{number}");
                let new = NewWebhook { url, events: vec!["never.sent".to_owned()], tags: Vec::new() };
                self.host.register_webhook(&self.who, new).await?;
                None
            }
            Act::Remark => {
                let run = started("plain").await?;
                let signal: Signal = serde_json::from_value(json!({"kind": "flag", "label": "odd"})).unwrap();
                let new = NewAnnotation { anchor: Anchor::default(), signal, note: Some(word.to_owned()) };
                self.host.annotate(&self.who, &run, new, None).await?;
                Some(run)
            }
            Act::Forked => {
                let run = self.ended("harmless").await?;
                let variables = [("word".to_owned(), json!(word))].into_iter().collect();
                let request = ForkRun { variables, ..branch_at(0) };
                Some(self.host.fork(&self.who, &run, request, None).await?.run_id)
            }
            Act::Pruned => {
                let run = self.ended("harmless").await?;
                let signal: Signal = serde_json::from_value(json!({"kind": "flag", "label": "odd"})).unwrap();
                let new = NewAnnotation { anchor: Anchor::default(), signal, note: Some(word.to_owned()) };
                // What is refused beside it does not keep it.
                let remark = self.host.annotate(&self.who, &run, new, None).await;
                self.host.prune(self.id(), &run, true).await?;
                remark.map(|_| None)?
            }
            Act::Delivered => {
                // Nobody listens there: what is sent comes back, is put off, and is buried when it is given up.
                let url = "http://127.0.0.1:9/nobody".to_owned();
                let new =
                    NewWebhook { url, events: vec!["run.started".to_owned()], tags: vec![format!("to-{number}")] };
                let webhook = self.host.register_webhook(&self.who, new).await?.id;
                let tags = vec![format!("to-{number}")];
                let mut request = Self::request("plain", word);
                request.inputs.insert("whole".to_owned(), json!(word));
                let started = self.start(StartRun { tags, ..request }).await;
                self.host.delete_webhook(&self.who, &webhook).await?;
                Some(started?)
            }
            Act::Token => {
                let new = NewToken { name: word.to_owned(), subject: None, expires_at: None };
                let (token, _) = self.host.new_runner_token(&self.who, new).await?;
                self.host.revoke_runner_token(&self.who, &token.id).await?;
                None
            }
        })
    }

    /// A run that has ended.
    async fn ended(&self, word: &str) -> Result<RunId, Error> {
        let run = self.start(Self::request("plain", word)).await?;
        while !matches!(self.settled(&run).await, Settled::Ended(_)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(run)
    }

    async fn settled(&self, run: &RunId) -> Settled {
        if self.host.quarantine(self.id(), run).await.unwrap().is_some() {
            return Settled::LeftAlone;
        }
        match self.host.snapshot(self.id(), run).await.unwrap().status {
            RunStatus::WaitingApproval => Settled::Asks,
            status if status.is_terminal() => Settled::Ended(status),
            _ => Settled::UnderWay,
        }
    }

    /// Looks again and again; none of the stores tells a test when it is done.
    async fn until(&self, what: &str, mut done: impl AsyncFnMut() -> bool) {
        let look = async {
            while !done().await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let id = self.id();
        tokio::time::timeout(PATIENCE, look)
            .await
            .unwrap_or_else(|_| panic!("{id}: {what} hangs (seed {})", self.seed));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Settled {
    UnderWay,
    Asks,
    Ended(RunStatus),
    LeftAlone,
}

/// One of a tenant's tasks: its acts, one after the other, every one of them answered. Says which runs there are of it, and
/// whether the word was in them.
async fn work(tenant: Arc<Tenant>, task: u64, uses_word: bool) -> Vec<(RunId, bool)> {
    let mut draws = Draws(tenant.seed ^ (task << 32));
    let mut runs = Vec::new();
    for _ in 0..ACTS / TASKS {
        let act = ALL[draws.next(ALL.len())];
        let with_word = uses_word && draws.next(2) == 0;
        let word = if with_word { WORD } else { "harmless" };
        let acted = tokio::time::timeout(PATIENCE, tenant.act(act, word)).await;
        let acted =
            acted.unwrap_or_else(|_| panic!("{act:?} of {} is not answered (seed {})", tenant.id(), tenant.seed));
        match acted {
            Ok(run) => runs.extend(run.map(|run| (run, with_word))),
            // A start that builds on memory which is lost with somebody's word is refused, too: by the same tenant's word.
            Err(error) => assert!(uses_word, "{act:?} of {}: {error} (seed {})", tenant.id(), tenant.seed),
        }
    }
    runs
}

async fn only_who_uses_the_word_notices(store: Arc<dyn Store>, seed: u64) {
    let options = Options { allow_private_webhooks: true, ..Options::default() };
    let host = Host::open(Arc::clone(&store), options).await.unwrap();
    let who = |tenant: &str| Principal {
        tenant: TenantId::new(tenant),
        subject: "key".to_owned(),
        acts_for: None,
        scopes: Scopes::all(),
        test: true,
    };
    let tenants =
        TENANTS.map(|name| Arc::new(Tenant { seed, host: host.clone(), who: who(name), done: AtomicUsize::new(0) }));
    for tenant in &tenants {
        tenant.register().await;
    }

    // A refused row is nobody's trouble but its tree's: the host never starts over for one.
    let (stop, starts_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let watch = tokio::spawn({
        let (host, stop, starts_over) = (host.clone(), Arc::clone(&stop), Arc::clone(&starts_over));
        async move {
            while !stop.load(Ordering::Acquire) {
                if host.readiness().reason.is_some_and(|reason| reason.contains("refused")) {
                    starts_over.fetch_add(1, Ordering::AcqRel);
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let mut tasks = Vec::new();
    for (place, tenant) in tenants.iter().enumerate() {
        for task in 0..TASKS {
            let number = (place * TASKS + task) as u64;
            tasks.push((place, tokio::spawn(work(Arc::clone(tenant), number, place == 0))));
        }
    }
    let mut runs = Vec::new();
    for (place, task) in tasks {
        runs.extend(task.await.unwrap().into_iter().map(|(run, with_word)| (place, run, with_word)));
    }

    // Of the random ones perhaps none got as far as being left alone; this one does, and all of them must not be in its way.
    // What the others are still tried for may break the memory that it builds on once or twice.
    let mut certain = None;
    let start = async || {
        certain = tenants[0].start(Tenant::request("computed", WORD)).await.ok();
        certain.is_some()
    };
    tenants[0].until("a start", start).await;
    runs.extend(certain.map(|run| (0, run, true)));
    let mut left_alone = 0;
    for (place, run, with_word) in &runs {
        let tenant = &tenants[*place];
        let settled = async {
            while tenant.settled(run).await == Settled::UnderWay {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, settled).await.is_err() {
            let snapshot = tenant.host.snapshot(tenant.id(), run).await.unwrap();
            panic!("a run of {} hangs, with the word: {with_word} (seed {seed}): {snapshot:?}", tenant.id());
        }
        match tenant.settled(run).await {
            Settled::LeftAlone => {
                left_alone += 1;
                assert!(*with_word, "{run} is left alone and never used the word (seed {})", seed);
                assert_eq!(tenant.host.quarantine(tenant.id(), run).await.unwrap().unwrap().cause, "commit_refused");
                // Its owner can end it.
                tenant.until("a cancel", async || tenant.host.cancel(&tenant.who, run, None).await.is_ok()).await;
            }
            Settled::Asks => {
                let via = Via::Bearer { subject: "key".to_owned() };
                tenant.host.resolve(tenant.id(), run, &NodeId::new("gate"), accept(), via).await.unwrap();
                tenant.until("an end", async || matches!(tenant.settled(run).await, Settled::Ended(_))).await;
            }
            Settled::Ended(_) | Settled::UnderWay => {}
        }
    }
    assert!(left_alone > 0, "the word was used where it counts (seed {})", seed);
    stop.store(true, Ordering::Release);
    watch.await.unwrap();
    assert_eq!(starts_over.load(Ordering::Acquire), 0, "the host started over (seed {})", seed);

    for tenant in &tenants {
        // What is on disk has no gap, whoever's word was refused in between, and the next one fits on.
        for store_id in
            [VersionedStoreId::memory(tenant.id(), SHARED), VersionedStoreId::workspace(tenant.id(), DEFAULT_WORKSPACE)]
        {
            let mut versions: Vec<u64> = store
                .versioned_changes(&store_id, None, None, 10_000)
                .await
                .unwrap()
                .into_iter()
                .map(|change| change.version)
                .collect();
            versions.reverse();
            assert_eq!(versions, (1..=versions.len() as u64).collect::<Vec<_>>(), "{store_id:?} (seed {})", seed);
        }
        tenant.host.put_memory(tenant.id(), SHARED, new_memory("after"), None).await.unwrap();
        let run = tenant.start(Tenant::request("plain", "harmless")).await.unwrap();
        tenant.until("a last run", async || matches!(tenant.settled(&run).await, Settled::Ended(_))).await;
    }
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_data_directory() {
    for seed in seeds() {
        with_a_rule_in_a_data_directory(seed).await;
    }
}

async fn with_a_rule_in_a_data_directory(seed: u64) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let vandal = rusqlite::Connection::open(dir.path().join("baton.db")).unwrap();
    let names = |sql: &str| -> Vec<String> {
        vandal.prepare(sql).unwrap().query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    for table in names("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
        let columns = names(&format!("SELECT name FROM pragma_table_info('{table}')"));
        let has_word: Vec<_> =
            columns.iter().map(|column| format!("CAST(NEW.\"{column}\" AS TEXT) LIKE '%{WORD}%'")).collect();
        for event in ["INSERT", "UPDATE"] {
            let rule = format!(
                "CREATE TRIGGER no_{event}_{table} BEFORE {event} ON \"{table}\" WHEN {}
                 BEGIN SELECT RAISE(ABORT, 'a word is forbidden'); END",
                has_word.join(" OR ")
            );
            vandal.execute_batch(&rule).unwrap();
        }
    }
    drop(vandal);
    only_who_uses_the_word_notices(Arc::new(store), seed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_a_shared_database() {
    for seed in seeds() {
        with_a_rule_in_a_shared_database(seed).await;
    }
}

async fn with_a_rule_in_a_shared_database(seed: u64) {
    let Some(database) = Database::fresh().await else { return };
    let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
    let rule = format!(
        "CREATE FUNCTION no_word() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           IF to_jsonb(NEW)::text LIKE '%{WORD}%' OR to_jsonb(NEW)::text LIKE '%{hex}%' THEN
             RAISE EXCEPTION 'a word is forbidden' USING ERRCODE = '23514';
           END IF;
           RETURN NEW; END $$;
         DO $$ DECLARE t text; BEGIN
           FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
             EXECUTE format('CREATE TRIGGER no_word BEFORE INSERT OR UPDATE ON %I FOR EACH ROW EXECUTE FUNCTION no_word()', t);
           END LOOP; END $$",
        hex = "706f69736f6e"
    );
    database.execute(&rule).await;
    only_who_uses_the_word_notices(Arc::new(store), seed).await;
}
