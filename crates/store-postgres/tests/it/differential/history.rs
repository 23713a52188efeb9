//! Random histories. Numbers choose what happens; most of it makes sense at that point, some of it does not.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::OnceLock;

use baton_model::{
    Digest, ForkMode, NodeId, Origin, Overlay, Part, RunId, RunStatus, SideEffects, TenantId, Timestamp, Versions,
    WebhookId, WorkflowId,
};
use baton_store::{
    AnnotationRow, Attempt, Change, Checkpoint, CheckpointChunk, CheckpointWrite, DeadLetter, DeadLetterWrite,
    DeathReason, Delivery, FailurePolicy, InterruptRow, Item, LastFailure, Letters, LogChain, Meta, Pruned, Quarantine,
    Reply, RunRow, RunnerRow, RunnerWrite, SpendingRow, StepRow, StepState, Store, StoredRecord, TokenRow,
    VersionedStoreId, Webhook, WebhookChange, WebhookStatus, WorkflowVersion, Write,
};
use proptest::prelude::*;

/// Those that the host or its operator chooses are bounded.
pub(crate) static RUNS: Names = bounded(&["run_a", "run_b", "run_c", "run_\0\u{1}", "run_\u{202e}שלום"], 6);
pub(crate) static TENANTS: Names = bounded(&["acme"], 7);
pub(crate) static NOTES: Names = bounded(&["ann_1", "ann_2", "ann_\0\u{1}"], 9);
pub(crate) static HOOKS: Names = bounded(&["wh_1"], 8);
/// Names are whatever people choose: short, long, alike for long, and of every letter there is.
pub(crate) static SCOPES: Names = names(&["notes", "run_a", "ü \0 scope", "default"], 1);
pub(crate) static KEYS: Names = names(&["a", "a/1", "a/\u{10FFFF}z", "B", "", "a\0b", "a\u{1}b"], 2);
pub(crate) static TAGS: Names = names(&["red", "n\0l", "\"{a,b}\\", ""], 3);
pub(crate) static NODES: Names = names(&["first", "second"], 4);
pub(crate) static WORKFLOWS: Names = names(&["echo", "other"], 5);

pub(crate) struct Names {
    short: &'static [&'static str],
    seed: u32,
    /// How many letters the longest have.
    letters: usize,
    all: OnceLock<Vec<&'static str>>,
}

const fn names(short: &'static [&'static str], seed: u32) -> Names {
    Names { short, seed, letters: 1000, all: OnceLock::new() }
}

const fn bounded(short: &'static [&'static str], seed: u32) -> Names {
    Names { short, seed, letters: 100, all: OnceLock::new() }
}

impl Deref for Names {
    type Target = [&'static str];

    /// The short ones, and two that fit into no index and differ at the very end.
    fn deref(&self) -> &[&'static str] {
        self.all.get_or_init(|| {
            let long = strange(self.seed, self.letters);
            let alike: &'static str = Box::leak(format!("{long}x").into_boxed_str());
            self.short.iter().copied().chain([long, alike]).collect()
        })
    }
}

/// Nothing that could be compressed, of letters from all planes, the first ones among them.
fn strange(seed: u32, letters: usize) -> &'static str {
    let mut number = seed;
    let any = std::iter::repeat_with(|| {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if number.is_multiple_of(16) {
            Some(['\0', '\u{1}', '"', '\\'][(number >> 8) as usize % 4])
        } else {
            char::from_u32(number >> 11)
        }
    });
    let text: String = any.flatten().take(letters).collect();
    Box::leak(text.into_boxed_str())
}

/// What happens, and three numbers that say how.
pub(crate) type Op = (u8, u8, u8, u8);

/// How many kinds of things may happen.
pub(crate) const OPS: u8 = 39;

/// Batches of commits of writes.
#[derive(Clone, Debug)]
pub(crate) struct History(pub(super) Vec<Vec<(bool, Vec<Op>)>>);

pub(crate) fn any() -> impl Strategy<Value = History> {
    let op = (0..OPS, any_number(), any_number(), any_number());
    let commit = (prop::bool::weighted(0.2), prop::collection::vec(op, 1..5));
    prop::collection::vec(prop::collection::vec(commit, 1..12), 1..5).prop_map(History)
}

fn any_number() -> impl Strategy<Value = u8> {
    0..=u8::MAX
}

pub(crate) fn at(number: u8) -> Timestamp {
    Timestamp::from_micros(i64::from(number % 8))
}

fn pick(from: &[&'static str], number: u8) -> &'static str {
    from[usize::from(number) % from.len()]
}

pub(crate) fn ledger(number: u8) -> VersionedStoreId {
    let tenant = TenantId::new(pick(&TENANTS, number));
    let scope = pick(&SCOPES, number / 2);
    if number.is_multiple_of(3) {
        VersionedStoreId::workspace(&tenant, scope)
    } else {
        VersionedStoreId::memory(&tenant, scope)
    }
}

/// A part of a commit.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) writes: Vec<Write>,
    pub(crate) link: usize,
    pub(crate) builds_on: usize,
}

/// Writes what the numbers say, knowing where everything stands.
pub(crate) struct Pen {
    runs: BTreeMap<&'static str, RunRow>,
    ledgers: BTreeMap<VersionedStoreId, u64>,
}

impl Pen {
    pub(crate) async fn new(store: &dyn Store) -> Self {
        let mut pen = Self { runs: BTreeMap::new(), ledgers: BTreeMap::new() };
        for id in RUNS.iter().copied() {
            if let Some(row) = store.run(&RunId::new(id)).await.unwrap() {
                pen.runs.insert(id, row);
            }
        }
        for number in 0..=u8::MAX {
            let version = store.versioned_head(&ledger(number)).await.unwrap();
            let held = store.versioned_base(&ledger(number)).await.unwrap().is_some();
            if version > 0 || held {
                pen.ledgers.insert(ledger(number), version);
            }
        }
        pen
    }

    /// The parts of some commits, with the number of the chain that each is a link of and builds on; 0 for none.
    pub(crate) fn write(&mut self, batch: &[(bool, Vec<Op>)]) -> Vec<Vec<Draft>> {
        let mut commits: Vec<Vec<Draft>> = Vec::new();
        for (apart, ops) in batch {
            let (_, a, b, _) = ops.first().copied().unwrap_or_default();
            let writes = ops.iter().filter_map(|op| self.one(*op)).collect();
            let draft = Draft { writes, link: usize::from(a % 3), builds_on: usize::from(b % 5) % 3 };
            match commits.last_mut().filter(|_| !apart) {
                Some(commit) => commit.push(draft),
                None => commits.push(vec![draft]),
            }
        }
        commits
    }

    fn one(&mut self, (what, a, b, c): Op) -> Option<Write> {
        let run = RunId::new(pick(&RUNS, a));
        let node = NodeId::new(pick(&NODES, b));
        let webhook = WebhookId::new(pick(&HOOKS, a));
        Some(match what {
            0..=5 => Write::CreateRun(self.create(a, b, c)?),
            6..=12 => self.append(a, b, c)?,
            13..=17 => self.change(a, b, c),
            18 => self.fork_versioned_store(a, b, c)?,
            19 => Write::ForgetHistory { ledger: ledger(a), below: u64::from(b % 12) },
            20 if c.is_multiple_of(4) => Write::DropVersionedStore(ledger(a)),
            20 | 21 => Write::Prune { run, pruned: self.prune(a, b, c)? },
            22 => Write::OpenInterrupt(interrupt(&run, &node, a, c)),
            23 => Write::CloseInterrupt { run, node },
            24 => Write::PutBlob { digest: Digest::of_bytes([a % 4]), bytes: vec![a % 4] },
            25 => Write::PutWorkflow(WorkflowVersion {
                tenant: TenantId::new(pick(&TENANTS, a)),
                id: WorkflowId::new(pick(&WORKFLOWS, b)),
                version: u32::from(c % 3) + 1,
                digest: Digest::of_bytes([b]),
                name: format!("{b} {}", pick(&KEYS, b)),
                created_at: at(c),
            }),
            26 => Write::PutReply(Reply {
                key: Digest::of_bytes([a % 3]),
                request: Digest::of_bytes([b]),
                status: u16::from(c),
                body: pick(&KEYS, b).to_owned(),
                expires_at: at(c),
            }),
            27 if c.is_multiple_of(3) => Write::PruneReplies { before: at(a) },
            27 if c % 3 == 1 => Write::PutWebhook(hook(&webhook, b, c)),
            27 => Write::NoteAttempt { webhook, attempt: attempt(b, c) },
            28 if c.is_multiple_of(5) => Write::DeleteWebhook(webhook),
            29 if c.is_multiple_of(3) => letters(&webhook, &run, a, b, c),
            29 if c % 3 == 1 => mail(a, b, c),
            29 if b.is_multiple_of(2) => Write::ChangeWebhook { webhook, change: WebhookChange::Resumed { at: at(c) } },
            29 => Write::ChangeWebhook { webhook, change: WebhookChange::Secret(pick(&KEYS, c).to_owned()) },
            28 => {
                Write::PutDelivery(Delivery { webhook, run, seq: u64::from(b % 3), attempts: b.into(), due_at: at(c) })
            }
            30 => Write::Quarantine(Quarantine {
                root: run,
                tenant: TenantId::new(pick(&TENANTS, b)),
                run: RunId::new(pick(&RUNS, b)),
                seq: u64::from(c),
                cause: "stuck".to_owned(),
                detail: pick(&KEYS, c).to_owned(),
                at: at(c),
            }),
            31 => Write::EndQuarantine { root: run },
            32 => Write::Probe { number: u64::from(a) },
            33 => Write::Annotate(AnnotationRow {
                run,
                id: pick(&NOTES, b).to_owned(),
                at: at(c),
                body: pick(&KEYS, c).to_owned(),
            }),
            // Nobody has a state of a run, or knows what it spent, before there is that run.
            34 | 36 if !self.runs.contains_key(run.as_str()) => return None,
            34 => Write::Checkpoint(CheckpointWrite::Put {
                checkpoint: Checkpoint {
                    run: run.clone(),
                    seq: u64::from(b % 4),
                    key: pick(&KEYS, c).to_owned(),
                    chunks: vec![pick(&NOTES, c).to_owned()],
                    digest: Digest::of_bytes([c]),
                    body: vec![c],
                },
                // A name stands for the same bytes for ever.
                chunks: [pick(&NOTES, b), pick(&NOTES, c)]
                    .map(|name| CheckpointChunk { run: run.clone(), name: name.to_owned(), bytes: name.into() })
                    .to_vec(),
            }),
            35 => Write::Checkpoint(CheckpointWrite::Drop {
                run,
                seqs: vec![u64::from(b % 4)],
                chunks: vec![pick(&NOTES, c).to_owned()],
            }),
            36 => Write::PutSpending(SpendingRow {
                run,
                root: RunId::new(pick(&RUNS, b)),
                seq: u64::from(c),
                body: pick(&KEYS, c).to_owned(),
            }),
            37 => Write::Runners(runners(run, a, b, c)),
            _ => Write::DeleteDelivery { webhook, run, seq: u64::from(b % 3) },
        })
    }

    fn create(&mut self, a: u8, b: u8, c: u8) -> Option<RunRow> {
        let id = pick(&RUNS, a);
        // Now and then one that is there already.
        if self.runs.contains_key(id) && !c.is_multiple_of(32) {
            return None;
        }
        let root =
            self.runs.keys().next().filter(|root| **root != id && b.is_multiple_of(3)).map(|root| RunId::new(*root));
        let source = self.runs.values().find(|row| row.id.as_str() != id && c.is_multiple_of(5) && row.next_seq > 0);
        let origin = source.map(|row| Origin {
            source: row.id.clone(),
            seq: row.next_seq - 1,
            requested: None,
            mode: ForkMode::Branch,
            at: at(b),
            moment: None,
            length: Some(3),
            versions: Versions { memory: 1, workspace: 2 },
            overlay: Overlay::default(),
            side_effects: SideEffects::default(),
            workers: None,
        });
        let scope = b.is_multiple_of(2).then(|| pick(&SCOPES, c).to_owned());
        let inherited = scope.clone().or(root.as_ref().map(|root| root.as_str().to_owned())).unwrap_or(id.to_owned());
        let row = RunRow {
            id: RunId::new(id),
            tenant: TenantId::new(pick(&TENANTS, b)),
            workflow: WorkflowId::new(pick(&WORKFLOWS, c)),
            digest: Digest::of_bytes([a]),
            status: RunStatus::ALL[usize::from(c) % RunStatus::ALL.len()],
            created_at: at(a),
            updated_at: at(b),
            next_seq: origin.as_ref().map_or(0, |origin| origin.seq),
            wake_at: c.is_multiple_of(3).then(|| at(c)),
            busy: b % 2 == 1,
            parent: root.clone(),
            root,
            scope,
            tags: TAGS
                .iter()
                .filter(|tag| (usize::from(a) + tag.len()).is_multiple_of(2))
                .map(|tag| (*tag).to_owned())
                .collect(),
            current_node: None,
            error_code: None,
            memory_scope: if c % 4 == 1 { pick(&SCOPES, a).to_owned() } else { inherited },
            workspace_scope: if c % 4 == 2 { pick(&SCOPES, b).to_owned() } else { "default".to_owned() },
            origin,
            pruned: None,
            summary: summary(c),
            chain: LogChain::default(),
        };
        self.runs.insert(id, row.clone());
        Some(row)
    }

    fn append(&mut self, a: u8, b: u8, c: u8) -> Option<Write> {
        let row = self.runs.get_mut(pick(&RUNS, a))?;
        if row.pruned.is_some_and(|pruned| pruned.log) {
            return None;
        }
        let (expected, count) = (row.next_seq, u64::from(b % 4));
        row.next_seq += count;
        row.status = RunStatus::ALL[usize::from(c) % RunStatus::ALL.len()];
        row.updated_at = at(c);
        row.wake_at = b.is_multiple_of(3).then(|| at(b));
        row.busy = c.is_multiple_of(2);
        row.summary = summary(b);
        row.current_node = b.is_multiple_of(2).then(|| NodeId::new(pick(&NODES, b)));
        row.error_code = c.is_multiple_of(7).then(|| "node_failed".to_owned());
        // Now and then from the wrong place.
        let wrong = u64::from(c.is_multiple_of(61));
        let mut records: Vec<_> = (expected..expected + count).map(|seq| record(seq + wrong, a, c)).collect();
        row.seal(&mut records);
        Some(Write::Append { row: row.clone(), expected: expected + wrong, records })
    }

    fn change(&mut self, a: u8, b: u8, c: u8) -> Write {
        let ledger = ledger(a);
        let version = self.ledgers.entry(ledger.clone()).or_default();
        *version += 1;
        let meta = Meta {
            tags: TAGS.iter().take(usize::from(c % 5)).map(|tag| (*tag).to_owned()).collect(),
            version: c.is_multiple_of(2).then_some(u64::from(c)),
            ..Meta::default()
        };
        let content = format!("{c}\0{b}");
        let item = Item { content, expires_at: b.is_multiple_of(3).then(|| at(c)), meta };
        let change = Change {
            version: *version + u64::from(c.is_multiple_of(61)),
            key: pick(&KEYS, b).to_owned(),
            at: at(c),
            run: c.is_multiple_of(2).then(|| RunId::new(pick(&RUNS, c))),
            item: (!b.is_multiple_of(5)).then_some(item),
        };
        Write::Change { ledger, change }
    }

    fn fork_versioned_store(&mut self, a: u8, b: u8, c: u8) -> Option<Write> {
        let base = ledger(a);
        let version = u64::from(c) % (self.ledgers.get(&base).filter(|version| **version > 0)? + 1);
        let fork = VersionedStoreId { scope: format!("fork {}", b % 3), ..base.clone() };
        if self.ledgers.contains_key(&fork) || version == 0 {
            return None;
        }
        self.ledgers.insert(fork.clone(), version);
        Some(Write::ForkVersionedStore { ledger: fork, base, version })
    }

    fn prune(&mut self, a: u8, b: u8, c: u8) -> Option<Pruned> {
        let row = self.runs.get_mut(pick(&RUNS, a))?;
        let before = row.pruned.is_some_and(|pruned| pruned.log);
        let pruned = Pruned { at: at(b), log: before || c.is_multiple_of(3) };
        row.pruned = Some(pruned);
        Some(pruned)
    }
}

fn record(seq: u64, a: u8, c: u8) -> StoredRecord {
    StoredRecord {
        seq,
        at: at(c),
        kind: "log.appended".to_owned(),
        body: format!("{{\"n\":{seq},\"of\":{a}}}"),
        private: c.is_multiple_of(2).then(|| format!("{c}")),
        versions: Versions { memory: u64::from(a % 5), workspace: u64::from(c % 5) },
        part: (c.is_multiple_of(3)).then(|| Part { outside: c.is_multiple_of(2), first: a.is_multiple_of(2) }),
        sum: None,
    }
}

/// Names of tokens, runners and steps, which are the host's own digests.
pub(crate) const DIGESTS: [&str; 3] = ["d0", "d1", "d2"];

fn runners(run: RunId, a: u8, b: u8, c: u8) -> RunnerWrite {
    let key = pick(&DIGESTS, b).to_owned();
    match a % 6 {
        0 => RunnerWrite::PutToken(TokenRow {
            hash: key.clone(),
            id: key,
            kind: "runner".to_owned(),
            tenant: TenantId::new(pick(&TENANTS, c)),
            subject: pick(&KEYS, c).to_owned(),
            name: pick(&KEYS, a).to_owned(),
            scopes: "[]".to_owned(),
            created_at: at(c),
            expires_at: c.is_multiple_of(2).then(|| at(a)),
        }),
        1 => RunnerWrite::PutRunner(RunnerRow {
            key,
            version: u64::from(c % 4),
            epoch: u64::from(c),
            seen_at: at(c),
            body: pick(&KEYS, c).to_owned(),
        }),
        2 => RunnerWrite::PutStep(StepRow {
            key,
            run,
            owner: pick(&DIGESTS, c).to_owned(),
            state: StepState::ALL[usize::from(c % 4)],
            version: u64::from(c % 5),
            at: at(c),
            body: pick(&KEYS, c).to_owned(),
        }),
        3 => RunnerWrite::DeleteToken { id: key },
        4 => RunnerWrite::DeleteRunner { key },
        _ => RunnerWrite::DeleteStep { key },
    }
}

fn interrupt(run: &RunId, node: &NodeId, a: u8, c: u8) -> InterruptRow {
    InterruptRow {
        run: run.clone(),
        tenant: TenantId::new(pick(&TENANTS, a)),
        workflow: WorkflowId::new("echo"),
        node: node.clone(),
        interrupt_id: format!("int_{c}"),
        key: pick(&KEYS, c).to_owned(),
        kind: pick(&["approval", "clarification"], c).to_owned(),
        data: serde_json::json!({ "text": pick(&KEYS, c) }),
        requested_at: at(c),
        expires_at: c.is_multiple_of(2).then(|| at(a)),
    }
}

fn hook(id: &WebhookId, b: u8, c: u8) -> Webhook {
    Webhook {
        id: id.clone(),
        tenant: TenantId::new(pick(&TENANTS, b)),
        url: format!("https://example.com/{b}"),
        events: vec!["*".to_owned()],
        tags: TAGS.iter().take(usize::from(c % 5)).map(|tag| (*tag).to_owned()).collect(),
        secret: pick(&KEYS, c).to_owned(),
        status: [WebhookStatus::Active, WebhookStatus::Open, WebhookStatus::Failed][usize::from(b % 3)],
        consecutive_failures: b.into(),
        failures: c.into(),
        window_start: at(b),
        open_until: c.is_multiple_of(2).then(|| at(c)),
        created_at: at(c),
        last_failure: b
            .is_multiple_of(2)
            .then(|| LastFailure { at: at(c), status: Some(u16::from(c)).filter(|_| c > 9) }),
        letters_dropped: u64::from(b),
    }
}

/// A subscriber whose events are of a run that nobody has: what is said of it must not depend on whether a log is written
/// before or after it in a transaction.
pub(crate) const MAIL: &str = "wh_mail";

fn mail(a: u8, b: u8, c: u8) -> Write {
    let (webhook, run, seq) = (WebhookId::new(MAIL), RunId::new("run_nobody"), u64::from(b % 3));
    let reason = DeathReason::ALL[usize::from(b % 4)];
    let which = if b.is_multiple_of(3) { Letters::All } else { Letters::One { run: run.clone(), seq } };
    match a % 6 {
        0 => Write::DeadLetters(DeadLetterWrite::Bury { webhook, keep: u64::from(c % 3), reason, at: at(c) }),
        1 => Write::DeadLetters(DeadLetterWrite::Redeliver { webhook, which, due_at: at(c) }),
        2 if c.is_multiple_of(2) => Write::PutWebhook(hook(&webhook, b, c)),
        2 => letters(&webhook, &run, a, b, c),
        _ => Write::PutDelivery(Delivery { webhook, run, seq, attempts: b.into(), due_at: at(c) }),
    }
}

fn letters(webhook: &WebhookId, run: &RunId, a: u8, b: u8, c: u8) -> Write {
    let (webhook, run, seq) = (webhook.clone(), run.clone(), u64::from(b % 3));
    let which = if b.is_multiple_of(3) { Letters::All } else { Letters::One { run: run.clone(), seq } };
    Write::DeadLetters(match a % 5 {
        0 => DeadLetterWrite::Forget { webhook, which },
        1 => DeadLetterWrite::Trim { webhook, keep: u64::from(c % 3) },
        _ => DeadLetterWrite::Put(DeadLetter {
            webhook,
            run,
            seq,
            kind: pick(&KEYS, c).to_owned(),
            attempts: b.into(),
            reason: DeathReason::ALL[usize::from(b % 4)],
            status: c.is_multiple_of(2).then(|| c.into()),
            at: at(c),
        }),
    })
}

fn attempt(b: u8, c: u8) -> Attempt {
    if b.is_multiple_of(4) {
        return Attempt::Succeeded;
    }
    let (window_ms, gives_up_at) = (u64::from(c / 2), u32::from(c));
    let policy = FailurePolicy { opens_at: u32::from(b), open_ms: 7, gives_up_at, window_ms };
    Attempt::Failed { at: at(b), status: c.is_multiple_of(2).then(|| c.into()), policy }
}

/// What lists say of a run, with a character in it that not every database has a place for.
fn summary(dice: u8) -> Option<std::sync::Arc<str>> {
    let says = match dice % 5 {
        0 => r#"{"diverged":true,"waitingOn":{"kind":"approval","nodeId":"n","question":"\u0000?","open":1}}"#,
        1 => r#"{"overBudget":true,"usage":{"inputTokens":3,"outputTokens":4,"costUsd":0.75}}"#,
        2 => r#"{"usage":{"inputTokens":1,"outputTokens":1,"costUsd":0.25}}"#,
        3 => r#"{"iteration":{"turn":2}}"#,
        _ => return None,
    };
    Some(says.into())
}
