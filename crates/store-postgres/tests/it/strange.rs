//! Whatever people choose, every kind of write takes it, and every store shows it again as it was.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use baton_model::{Digest, NodeId, Part, RunId, RunStatus, TenantId, Timestamp, Versions, WebhookId, WorkflowId};
use baton_store::conformance::sample::row;
use baton_store::{
    AnnotationRow, Attempt, Change, Checkpoint, CheckpointChunk, CheckpointWrite, Cluster, Commit, CommitError,
    DeadLetter, DeadLetterWrite, DeathReason, Delivery, FailurePolicy, ForwardedCommand, InterruptFilter, InterruptRow,
    Item, Journal as _, LastFailure, Meta, Pruned, Quarantine, ReadView, Recipient, Reply, RunFilter, RunRow,
    RunnerRow, RunnerWrite, SpendingRow, StepRow, StepState, Store, StoredRecord, TokenRow, VersionedStoreId,
    VersionedStoreKind, Webhook, WebhookChange, WebhookStatus, WorkflowVersion, Write,
};
use baton_store_postgres::{PostgresStore, Settings};
use baton_store_sqlite::SqliteStore;
use baton_testkit::postgres::Database;
use serde_json::{Value, json};

/// How many letters a name may have that is the host's to choose, or its operator's: of a run, a letter, an annotation,
/// a subscriber, a tenant. Everything else is as long as people like.
const OWN_NAME: usize = 100;
const LEASE: Duration = Duration::from_secs(600);

/// What has broken something somewhere.
fn texts() -> Vec<String> {
    let mut number = 9_u32;
    let noise = std::iter::repeat_with(|| {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_u32(number >> 11)
    });
    let noise: String = noise.flatten().take(4_000).collect();
    let mut all: Vec<String> = [
        "",
        " ",
        "\0",
        "a\0b\u{1}c\u{2}\u{3}",
        "\u{7f}\u{80}\u{9f}\u{feff}\u{fffe}\u{ffff}\u{10ffff}",
        "👩‍👩‍👧‍👦 🏳️‍🌈 é e\u{301}",
        "\u{202e}שלום مرحبا\u{200f}\u{2066}",
        "'; DROP TABLE runs; --",
        r#"{a,"b\",NULL}"#,
        r"\ \\ \x00 \u0000 \ud800 \udfff %_*?",
        r#"{"lone":"\ud800","nul":"\u0000"}"#,
        "NULL",
        "../../etc/passwd",
        "line\r\nline\ttab\u{b}\u{c}",
    ]
    .map(str::to_owned)
    .to_vec();
    assert!(noise.len() > 10_000);
    all.push(format!("{noise}x"));
    all.push(format!("{noise}y"));
    all.push("n".repeat(10_000));
    all
}

/// Numbers at the edges of what they may be.
fn numbers() -> Value {
    json!([i64::MIN, i64::MAX, u64::MAX, 0, -1, f64::MAX, f64::MIN, f64::MIN_POSITIVE, -0.0, 1e-300, 5e-324, 0.1])
}

fn edge(round: usize) -> Timestamp {
    Timestamp::from_micros([0, i64::MAX, i64::MIN, -1, 1_700_000_000_000_000][round % 5])
}

/// Everything of one round is named after one text.
struct Names {
    round: usize,
    text: String,
    run: RunId,
    child: RunId,
    tenant: TenantId,
    webhook: WebhookId,
    memory: VersionedStoreId,
    fork: VersionedStoreId,
}

impl Names {
    fn new(round: usize, text: &str) -> Self {
        let own: String = format!("{round} {text}").chars().take(OWN_NAME).collect();
        let tenant = TenantId::new(own.clone());
        Self {
            round,
            text: text.to_owned(),
            run: RunId::new(own.clone()),
            child: RunId::new(format!("child {own}")),
            webhook: WebhookId::new(own),
            memory: VersionedStoreId::memory(&tenant, text),
            fork: VersionedStoreId::memory(&tenant, format!("fork {text}")),
            tenant,
        }
    }

    fn row(&self, id: &RunId) -> RunRow {
        let text = || self.text.clone();
        let summary =
            json!({"waitingOn": {"kind": text(), "nodeId": text(), "question": text(), "open": 1}, "n": numbers()});
        RunRow {
            tenant: self.tenant.clone(),
            workflow: WorkflowId::new(text()),
            created_at: edge(self.round),
            updated_at: edge(self.round + 1),
            wake_at: Some(edge(self.round + 2)),
            root: (*id != self.run).then(|| self.run.clone()),
            parent: (*id != self.run).then(|| self.run.clone()),
            scope: Some(text()),
            tags: vec![text(), text(), "plain".to_owned()],
            memory_scope: text(),
            // The host's to choose, and never empty.
            workspace_scope: format!("of {}", self.text),
            current_node: Some(NodeId::new(text())),
            error_code: Some(text()),
            status: RunStatus::Running,
            summary: Some(summary.to_string().into()),
            ..row(id.as_str())
        }
    }

    fn record(&self, seq: u64) -> StoredRecord {
        StoredRecord {
            seq,
            at: edge(self.round),
            kind: self.text.clone(),
            body: json!({"text": self.text, "numbers": numbers()}).to_string() + &self.text,
            private: Some(self.text.clone()),
            versions: Versions { memory: i64::MAX.unsigned_abs(), workspace: 0 },
            part: Some(Part { outside: true, first: false }),
            sum: None,
        }
    }

    fn append(&self, id: &RunId, expected: u64) -> Write {
        let records = vec![self.record(expected), self.record(expected + 1)];
        Write::Append { row: RunRow { next_seq: expected + 2, ..self.row(id) }, expected, records }
    }

    fn change(&self, ledger: &VersionedStoreId, version: u64, gone: bool) -> Write {
        let text = || self.text.clone();
        let meta = Meta { tags: vec![text()], version: Some(u64::MAX), etag: Some(text()), content_type: Some(text()) };
        let item = Item { content: text(), expires_at: Some(edge(self.round)), meta };
        let (at, run) = (edge(self.round), Some(self.run.clone()));
        let change = Change { version, key: text(), at, run, item: (!gone).then_some(item) };
        Write::Change { ledger: ledger.clone(), change }
    }

    fn hook(&self) -> Webhook {
        let text = || self.text.clone();
        Webhook {
            id: self.webhook.clone(),
            tenant: self.tenant.clone(),
            url: text(),
            events: vec![text(), "*".to_owned()],
            tags: vec![text()],
            secret: text(),
            status: WebhookStatus::Active,
            consecutive_failures: u32::MAX,
            failures: u32::MAX,
            // The host's own clock: it is reckoned with.
            window_start: Timestamp::from_micros(1),
            open_until: Some(edge(self.round)),
            created_at: edge(self.round),
            last_failure: Some(LastFailure { at: edge(self.round), status: Some(u16::MAX) }),
            letters_dropped: 0,
        }
    }

    fn dead_letter(&self, seq: u64) -> DeadLetter {
        DeadLetter {
            webhook: self.webhook.clone(),
            run: self.run.clone(),
            seq,
            kind: self.text.clone(),
            attempts: u32::MAX,
            reason: DeathReason::EventGone,
            status: Some(u16::MAX),
            at: edge(self.round),
        }
    }

    fn delivery(&self, seq: u64) -> Delivery {
        let (webhook, run) = (self.webhook.clone(), self.run.clone());
        Delivery { webhook, run, seq, attempts: u32::MAX, due_at: edge(self.round) }
    }

    /// One of each kind that adds something.
    fn makes(&self) -> Vec<Write> {
        let text = || self.text.clone();
        vec![
            Write::CreateRun(self.row(&self.run)),
            self.append(&self.run, 0),
            Write::CreateRun(self.row(&self.child)),
            self.append(&self.child, 0),
            Write::OpenInterrupt(InterruptRow {
                run: self.run.clone(),
                tenant: self.tenant.clone(),
                workflow: WorkflowId::new(text()),
                node: NodeId::new(text()),
                interrupt_id: text(),
                key: text(),
                kind: text(),
                data: json!({text(): [text(), numbers()]}),
                requested_at: edge(self.round),
                expires_at: Some(edge(self.round)),
            }),
            Write::PutBlob { digest: self.digest(), bytes: self.blob() },
            self.change(&self.memory, 1, false),
            self.change(&self.memory, 2, self.round.is_multiple_of(2)),
            Write::ForkVersionedStore { ledger: self.fork.clone(), base: self.memory.clone(), version: 1 },
            Write::Annotate(AnnotationRow {
                run: self.run.clone(),
                id: self.run.to_string(),
                at: edge(self.round),
                body: text(),
            }),
            Write::Checkpoint(CheckpointWrite::Put {
                checkpoint: Checkpoint {
                    run: self.run.clone(),
                    seq: i64::MAX.unsigned_abs(),
                    key: text(),
                    chunks: vec![text(), self.digest().to_string()],
                    digest: self.digest(),
                    body: text().into_bytes(),
                },
                chunks: vec![CheckpointChunk {
                    run: self.run.clone(),
                    name: self.digest().to_string(),
                    bytes: text().into_bytes(),
                }],
            }),
            Write::PutSpending(SpendingRow {
                run: self.child.clone(),
                root: self.run.clone(),
                seq: i64::MAX.unsigned_abs(),
                body: text(),
            }),
            Write::Quarantine(Quarantine {
                root: self.run.clone(),
                tenant: self.tenant.clone(),
                run: self.child.clone(),
                seq: i64::MAX.unsigned_abs(),
                cause: text(),
                detail: text(),
                at: edge(self.round),
            }),
            Write::Probe { number: u64::MAX - self.round as u64 },
            Write::PutWorkflow(WorkflowVersion {
                tenant: self.tenant.clone(),
                id: WorkflowId::new(text()),
                version: 1,
                digest: self.digest(),
                name: text(),
                created_at: edge(self.round),
            }),
            Write::PutReply(Reply {
                key: self.digest(),
                request: self.digest(),
                status: u16::MAX,
                body: text(),
                expires_at: edge(self.round),
            }),
            Write::PutWebhook(self.hook()),
            Write::PutDelivery(self.delivery(0)),
            Write::PutDelivery(self.delivery(i64::MAX.unsigned_abs())),
            Write::DeadLetters(DeadLetterWrite::Put(self.dead_letter(0))),
            Write::DeadLetters(DeadLetterWrite::Put(self.dead_letter(i64::MAX.unsigned_abs()))),
            Write::Runners(RunnerWrite::PutToken(TokenRow {
                id: self.letter(),
                kind: text(),
                tenant: self.tenant.clone(),
                subject: text(),
                name: text(),
                hash: self.letter(),
                scopes: text(),
                created_at: edge(self.round),
                expires_at: Some(edge(self.round + 1)),
            })),
            Write::Runners(RunnerWrite::PutRunner(RunnerRow {
                key: self.letter(),
                version: i64::MAX.unsigned_abs(),
                epoch: 0,
                seen_at: edge(self.round),
                body: text(),
            })),
            Write::Runners(RunnerWrite::PutStep(StepRow {
                key: self.letter(),
                run: self.run.clone(),
                owner: self.letter(),
                state: StepState::Queued,
                version: i64::MAX.unsigned_abs(),
                at: edge(self.round),
                body: text(),
            })),
        ]
    }

    /// One of each kind that takes something away, or notes something.
    fn unmakes(&self, shared: Option<u64>) -> Vec<Write> {
        let policy = FailurePolicy { opens_at: 1, open_ms: 7, gives_up_at: u32::MAX, window_ms: u64::MAX };
        let mut writes = vec![
            Write::NoteAttempt {
                webhook: self.webhook.clone(),
                attempt: Attempt::Failed { at: Timestamp::from_micros(7), status: None, policy },
            },
            Write::NoteAttempt { webhook: self.webhook.clone(), attempt: Attempt::Succeeded },
            Write::DeleteDelivery { webhook: self.webhook.clone(), run: self.run.clone(), seq: 0 },
            Write::ChangeWebhook { webhook: self.webhook.clone(), change: WebhookChange::Secret(self.text.clone()) },
            Write::DeadLetters(DeadLetterWrite::Trim { webhook: self.webhook.clone(), keep: 1 }),
            Write::DeleteWebhook(self.webhook.clone()),
            Write::CloseInterrupt { run: self.run.clone(), node: NodeId::new(self.text.clone()) },
            Write::ForgetHistory { ledger: self.memory.clone(), below: 2 },
            Write::DropVersionedStore(self.fork.clone()),
            Write::EndQuarantine { root: self.run.clone() },
            Write::Runners(RunnerWrite::DeleteToken { id: self.letter() }),
            Write::Runners(RunnerWrite::DeleteRunner { key: self.letter() }),
            Write::Runners(RunnerWrite::DeleteStep { key: self.letter() }),
            Write::PruneReplies { before: Timestamp::from_micros(i64::MAX) },
            Write::Prune { run: self.child.clone(), pruned: Pruned { at: edge(self.round), log: true } },
        ];
        if let Some(to) = shared {
            writes.push(Write::ReleaseClaim { name: self.text.clone() });
            writes.push(Write::AnswerForwarded { id: self.letter(), body: self.text.clone() });
            writes.push(Write::HandOver { root: self.run.clone(), to });
        }
        writes
    }

    /// The host's to choose, too.
    fn letter(&self) -> String {
        self.run.to_string()
    }

    fn digest(&self) -> Digest {
        Digest::of_bytes(self.blob())
    }

    fn blob(&self) -> Vec<u8> {
        format!("{}{}", self.round, self.text).into_bytes()
    }
}

/// A new kind of write has no arm here, and does not compile: it wants a case above as well.
fn kind(write: &Write) -> &'static str {
    match write {
        Write::CreateRun(_) => "CreateRun",
        Write::Append { .. } => "Append",
        Write::OpenInterrupt(_) => "OpenInterrupt",
        Write::CloseInterrupt { .. } => "CloseInterrupt",
        Write::PutBlob { .. } => "PutBlob",
        Write::Change { .. } => "Change",
        Write::ForkVersionedStore { .. } => "ForkLedger",
        Write::ForgetHistory { .. } => "ForgetHistory",
        Write::DropVersionedStore(_) => "DropLedger",
        Write::Prune { .. } => "Prune",
        Write::Annotate(_) => "Annotate",
        Write::Checkpoint(_) => "Checkpoint",
        Write::PutSpending(_) => "PutSpending",
        Write::Quarantine(_) => "Quarantine",
        Write::EndQuarantine { .. } => "EndQuarantine",
        Write::Probe { .. } => "Probe",
        Write::PutWorkflow(_) => "PutWorkflow",
        Write::PutReply(_) => "PutReply",
        Write::PruneReplies { .. } => "PruneReplies",
        Write::PutWebhook(_) => "PutWebhook",
        Write::NoteAttempt { .. } => "NoteAttempt",
        Write::ChangeWebhook { .. } => "ChangeWebhook",
        Write::DeleteWebhook(_) => "DeleteWebhook",
        Write::DeadLetters(_) => "DeadLetters",
        Write::PutDelivery(_) => "PutDelivery",
        Write::DeleteDelivery { .. } => "DeleteDelivery",
        Write::HandOver { .. } => "HandOver",
        Write::ReleaseClaim { .. } => "ReleaseClaim",
        Write::AnswerForwarded { .. } => "AnswerLetter",
        Write::Runners(_) => "Runners",
    }
}

/// How many arms there are above.
const KINDS: usize = 30;

#[derive(Default)]
struct Answers(Vec<(&'static str, String)>);

impl Answers {
    fn add(&mut self, question: &'static str, answer: impl Debug) {
        self.0.push((question, format!("{answer:?}")));
    }
}

/// What a store says of everything that is named like this.
async fn ask(store: &dyn Store, names: &Names) -> Answers {
    let mut answers = Answers::default();
    let (tenant, text) = (&names.tenant, names.text.as_str());
    for run in [&names.run, &names.child] {
        answers.add("run", store.run(run).await.unwrap());
        answers.add("records", store.records(run, 0, 9).await.unwrap());
        answers.add("quarantine", store.quarantine(run).await.unwrap());
        answers.add("checkpoint", store.checkpoint(run, text, 0, u64::MAX).await.unwrap());
        answers.add("marks", store.checkpoint_marks(run).await.unwrap());
        answers.add("chunks", store.checkpoint_chunks(run, &[names.digest().to_string()]).await.unwrap());
        answers.add("spending", store.spending(run, None, 9).await.unwrap());
    }
    let all = RunFilter { tenant: Some(tenant.clone()), limit: 9, ..RunFilter::default() };
    let filters = [
        RunFilter { tag: Some(text.to_owned()), ..all.clone() },
        RunFilter { workflow: Some(WorkflowId::new(text)), ..all.clone() },
        RunFilter { root: Some(names.run.clone()), ..all.clone() },
        RunFilter { text_prefix: Some(text.chars().take(300).collect()), ..all.clone() },
        RunFilter { ids: vec![names.run.clone()], ..all.clone() },
    ];
    for filter in filters {
        answers.add("runs", store.runs(&filter).await.unwrap().items);
    }
    answers.add("active run", store.active_run(tenant, Some(text)).await.unwrap());
    let open = InterruptFilter { tenant: Some(tenant.clone()), kind: Some(text.to_owned()), limit: 9, run: None };
    answers.add("interrupts", store.interrupts(&open).await.unwrap());
    answers.add("interrupt", store.interrupt(&names.run, &NodeId::new(text)).await.unwrap());
    answers.add("blob", store.blob(&names.digest()).await.unwrap());
    for ledger in [&names.memory, &names.fork] {
        answers.add("version", store.versioned_head(ledger).await.unwrap());
        answers.add("base", store.versioned_base(ledger).await.unwrap());
        answers.add("changes", store.versioned_changes(ledger, Some(text), None, 9).await.unwrap());
        let lenses = [
            ReadView { version: 1, tag: Some(text.to_owned()), ..ReadView::default() },
            ReadView { version: 9, prefix: Some(text.chars().take(300).collect()), ..ReadView::default() },
            ReadView { own: Some((names.run.clone(), 9)), ..ReadView::default() },
        ];
        for lens in lenses {
            answers.add("items", store.versioned_items(ledger, &lens).await.unwrap());
            answers.add("item", store.versioned_item(ledger, text, &lens).await.unwrap());
        }
    }
    answers.add("ledgers", store.ledgers(tenant, VersionedStoreKind::Memory).await.unwrap());
    answers.add("workflow", store.workflow(tenant, &WorkflowId::new(text)).await.unwrap());
    answers.add("workflows", store.workflows(tenant).await.unwrap());
    answers.add("reply", store.reply(&names.digest()).await.unwrap());
    answers.add("webhook", store.webhook(tenant, &names.webhook).await.unwrap());
    answers.add("deliveries", store.deliveries_of(&names.webhook, 9).await.unwrap());
    answers.add("dead letters", store.dead_letters(&names.webhook, None, 9).await.unwrap());
    answers.add("quarantined", store.quarantined(Some(tenant), None, 9).await.unwrap());
    answers.add("tokens", store.tokens(99).await.unwrap());
    answers.add("token", store.token(&names.letter()).await.unwrap());
    answers.add("runners", store.runners(99).await.unwrap());
    answers.add("step", store.step(&names.letter()).await.unwrap());
    answers.add("steps", store.steps_of(&names.letter(), StepState::Queued, None, 9).await.unwrap());
    answers.add("probe", store.last_probe().await.unwrap());
    answers
}

async fn write(store: &dyn Store, writes: Vec<Write>) -> Result<(), CommitError> {
    store.submit(Commit::new(store.generation(), writes)).await
}

/// What hosts say to each other, where several share a store.
async fn speak(store: &dyn Store, names: &Names, answers: &mut Answers) {
    let Some(shared) = store.shared() else { return };
    let text = || names.text.clone();
    answers.add("claim", shared.claim(&names.text).await.unwrap());
    let letter = ForwardedCommand { id: names.letter(), to: Recipient::Run(names.run.clone()), body: text() };
    shared.send(letter.clone()).await.unwrap();
    shared.send(ForwardedCommand { body: "again".to_owned(), ..letter }).await.unwrap();
    answers.add("letters", shared.forwarded_commands(9).await.unwrap());
    answers.add("letter", shared.forwarded(&names.letter()).await.unwrap());
    shared.mark_suspect(&names.run).await.unwrap();
    answers.add("suspects", shared.suspects().await.unwrap());
    shared.unmark_suspect(&names.run).await.unwrap();
    shared.clear_suspect(&names.run).await.unwrap();
    answers.add("owned", shared.owner(&names.run).await.unwrap() == Some(shared.epoch()));
    answers.add("epochs", shared.epochs(&names.run, 0, 9).await.unwrap().len());
}

struct Place {
    name: &'static str,
    store: Arc<dyn Store>,
    /// To whom trees are given, where several share a store.
    other: Option<u64>,
}

#[tokio::test]
async fn every_kind_of_write_takes_whatever_people_choose() {
    let Some(database) = Database::fresh().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::new(LEASE, || Timestamp::from_micros(1));
    let (memory, memory_other) = (cluster.join("a"), cluster.join("b"));
    let settings = |host: &str| Settings { host: host.to_owned(), lease: LEASE, ..Settings::new(database.url.clone()) };
    let postgres = PostgresStore::open(&settings("a")).await.unwrap();
    let postgres_other = PostgresStore::open(&settings("b")).await.unwrap();
    let epoch = |store: &dyn Store| store.shared().map(baton_store::Shared::epoch);
    let places = [
        Place { name: "memory", other: epoch(&memory_other), store: Arc::new(memory) },
        Place { name: "SQLite", other: None, store: Arc::new(SqliteStore::open(folder.path()).unwrap()) },
        Place { name: "PostgreSQL", other: epoch(&postgres_other), store: Arc::new(postgres) },
    ];
    let mut written = BTreeSet::new();
    for (round, text) in texts().into_iter().enumerate() {
        let names = Names::new(round, &text);
        let (mut expected, mut spoken) = (None, None);
        for Place { name, store, other } in &places {
            let context = format!("{name}, round {round}, {:?}", text.chars().take(40).collect::<String>());
            let (makes, unmakes) = (names.makes(), names.unmakes(*other));
            written.extend(makes.iter().chain(&unmakes).map(kind));
            assert_eq!(write(&**store, makes).await, Ok(()), "{context}");
            let mut answers = ask(&**store, &names).await;
            let mut said = Answers::default();
            speak(&**store, &names, &mut said).await;
            assert_eq!(write(&**store, unmakes).await, Ok(()), "{context}");
            answers.0.extend(ask(&**store, &names).await.0);
            if let Some(shared) = store.shared() {
                said.add("answered", shared.forwarded(&names.letter()).await.unwrap());
                said.add("given", shared.owner(&names.run).await.unwrap() == *other);
                shared.forget_forwarded(&names.letter(), &names.text).await.unwrap();
                said.add("forgotten", shared.forwarded(&names.letter()).await.unwrap());
                agree(&context, &mut spoken, said);
            }
            agree(&context, &mut expected, answers);
        }
    }
    assert_eq!(written.len(), KINDS, "a case for each: {written:?}");
    for Place { store, .. } in &places {
        store.close().await;
    }
    postgres_other.close().await;
}

fn agree(context: &str, expected: &mut Option<Answers>, answers: Answers) {
    let expected = expected.get_or_insert_with(|| Answers(answers.0.clone()));
    for ((question, expected), (_, answer)) in expected.0.iter().zip(&answers.0) {
        assert!(expected == answer, "{question}, {context}:\n{expected}\n{answer}");
    }
    assert_eq!(expected.0.len(), answers.0.len());
}
