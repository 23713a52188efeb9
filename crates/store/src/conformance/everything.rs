//! One of everything, for tests of what rows look like in a database: every column is filled in one row at least, and empty
//! in another where it may be.

use baton_model::{
    Digest, ForkMode, NodeId, Origin, Overlay, Part, RunId, RunStatus, SideEffects, TenantId, Versions, WebhookId,
    WorkflowId,
};
use serde_json::json;

use super::sample::{at, delete, notes, put, record, row, sealed};
use crate::{
    AnnotationRow, Attempt, Change, Checkpoint, CheckpointChunk, CheckpointWrite, DeadLetter, DeadLetterWrite,
    DeathReason, Delivery, FailurePolicy, InterruptRow, Item, LogChain, Meta, Pruned, Quarantine, Reply, RunRow,
    RunnerRow, RunnerWrite, SpendingRow, StepRow, StepState, StoredRecord, TokenRow, VersionedStoreId, Webhook,
    WebhookStatus, WorkflowVersion, Write,
};

/// The tables that these fill.
pub const TABLES: [&str; 20] = [
    "runs",
    "events",
    "ledgers",
    "changes",
    "interrupts",
    "blobs",
    "workflows",
    "replies",
    "webhooks",
    "deliveries",
    "dead_letters",
    "quarantine",
    "annotations",
    "run_tags",
    "checkpoints",
    "checkpoint_chunks",
    "spending",
    "tokens",
    "runners",
    "runner_steps",
];

/// Commits, in their order. Those after the first change what is there.
pub fn commits() -> Vec<Vec<Write>> {
    let mut first = runs();
    first.extend(ledgers());
    first.extend(parts());
    first.extend(webhooks());
    first.extend(runners());
    vec![first, later()]
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A name that is too long for some indexes.
fn long(start: &str) -> String {
    format!("{start}{}", "ü".repeat(400))
}

fn full() -> RunRow {
    RunRow {
        status: RunStatus::Failed,
        wake_at: Some(at(7)),
        busy: false,
        parent: Some(RunId::new("run_parent")),
        root: Some(RunId::new("run_root")),
        scope: Some(long("chat")),
        tags: strings(&["a", "b\"c\\", "ü"]),
        current_node: Some(NodeId::new("node")),
        error_code: Some("oops".to_owned()),
        memory_scope: "mine".to_owned(),
        workspace_scope: "desk".to_owned(),
        workflow: WorkflowId::new(long("w")),
        summary: Some(r#"{"diverged":true,"usage":{"costUsd":0.5}}"#.into()),
        next_seq: 4,
        ..row("run_full")
    }
}

fn runs() -> Vec<Write> {
    let origin = Origin {
        source: RunId::new("run_full"),
        seq: 2,
        requested: Some(5),
        mode: ForkMode::Branch,
        at: at(50),
        moment: None,
        length: None,
        versions: Versions { memory: 3, workspace: 4 },
        overlay: Overlay { max_loop_iterations: Some(7), ..Overlay::default() },
        side_effects: SideEffects::Real,
        workers: None,
    };
    let log = first_log();
    let base = match &log {
        Write::Append { records, .. } => records.get(1).and_then(|record| record.sum),
        _ => None,
    };
    let fork = RunRow { origin: Some(origin), next_seq: 2, chain: LogChain::after(base), ..row("run_fork") };
    vec![
        Write::CreateRun(row("run_root")),
        Write::CreateRun(RunRow { next_seq: 0, ..full() }),
        log,
        Write::CreateRun(fork),
        Write::CreateRun(row("run_plain")),
    ]
}

/// The first records of the run that has everything.
fn first_log() -> Write {
    let parts = [None, Some((false, true)), Some((true, false)), Some((true, true))];
    let told = |(seq, part): (u64, Option<(bool, bool)>)| StoredRecord {
        part: part.map(|(outside, first)| Part { outside, first }),
        ..record(seq)
    };
    sealed(full(), 0, (0..).zip(parts).map(told).collect())
}

fn ledgers() -> Vec<Write> {
    let files = VersionedStoreId::workspace(&TenantId::new("acme"), long("desk"));
    let meta = Meta {
        tags: strings(&["x", "y\"z"]),
        version: Some(3),
        etag: Some("e".to_owned()),
        content_type: Some("text/plain".to_owned()),
    };
    let item = Item { content: "text\0\u{1}".to_owned(), expires_at: Some(at(99)), meta };
    let written = Change { run: Some(RunId::new("run_full")), item: Some(item), ..put(1, &long("path")) };
    let forked = VersionedStoreId::memory(&TenantId::new("acme"), "forked");
    vec![
        Write::Change { ledger: files, change: written },
        Write::Change { ledger: notes(), change: put(1, "k") },
        Write::Change { ledger: notes(), change: delete(2, "k") },
        Write::ForkVersionedStore { ledger: forked, base: notes(), version: 1 },
    ]
}

fn parts() -> Vec<Write> {
    let (run, tenant, workflow) = (RunId::new("run_full"), TenantId::new("acme"), WorkflowId::new("echo"));
    let open = |node: &str, expires_at| InterruptRow {
        run: run.clone(),
        tenant: tenant.clone(),
        workflow: workflow.clone(),
        node: NodeId::new(node),
        interrupt_id: "i".to_owned(),
        key: "k".to_owned(),
        kind: "approval".to_owned(),
        data: json!({"b": [1, null], "a": "ü\0"}),
        requested_at: at(3),
        expires_at,
    };
    let version = |id: String, version| WorkflowVersion {
        tenant: tenant.clone(),
        id: WorkflowId::new(id),
        version,
        digest: Digest::of_bytes("echo"),
        name: "Echo".to_owned(),
        created_at: at(4),
    };
    let reply = Reply {
        key: Digest::of_bytes("key"),
        request: Digest::of_bytes("request"),
        status: 201,
        body: "{}".to_owned(),
        expires_at: at(5),
    };
    let quarantine = Quarantine {
        root: RunId::new("run_root"),
        tenant: tenant.clone(),
        run: run.clone(),
        seq: 4,
        cause: "stuck".to_owned(),
        detail: "it is".to_owned(),
        at: at(6),
    };
    vec![
        Write::OpenInterrupt(open("gate", None)),
        Write::OpenInterrupt(open(&long("gate"), Some(at(8)))),
        Write::PutBlob { digest: Digest::of_bytes([0, 255]), bytes: vec![0, 255] },
        Write::PutWorkflow(version("echo".to_owned(), 1)),
        Write::PutWorkflow(version(long("echo"), 2)),
        Write::PutReply(reply),
        Write::Quarantine(quarantine),
        Write::Annotate(AnnotationRow {
            run: run.clone(),
            id: "a1".to_owned(),
            at: at(7),
            body: r#"{"a":1}"#.to_owned(),
        }),
        Write::Checkpoint(CheckpointWrite::Put {
            checkpoint: Checkpoint {
                run: run.clone(),
                seq: 3,
                key: "1/5/0/k".to_owned(),
                chunks: strings(&["c1", "c\"2"]),
                digest: Digest::of_bytes([1]),
                body: vec![0, 255],
            },
            chunks: vec![CheckpointChunk { run: run.clone(), name: "c1".to_owned(), bytes: vec![255, 0] }],
        }),
        Write::PutSpending(SpendingRow { run, root: RunId::new("run_root"), seq: 4, body: r#"{"a":1}"#.to_owned() }),
    ]
}

fn webhooks() -> Vec<Write> {
    let webhook = |id: &str, status| Webhook {
        id: WebhookId::new(id),
        tenant: TenantId::new("acme"),
        url: "https://example.com/hook".to_owned(),
        events: strings(&["*"]),
        tags: Vec::new(),
        secret: "secret".to_owned(),
        status,
        consecutive_failures: 2,
        failures: 3,
        window_start: at(1),
        open_until: None,
        created_at: at(2),
        last_failure: None,
        letters_dropped: 4,
    };
    let (open, delivery) = (WebhookId::new("hook_a"), |run: &str, seq| Delivery {
        webhook: WebhookId::new("hook_a"),
        run: RunId::new(run),
        seq,
        attempts: 1,
        due_at: at(3),
    });
    let letter = |seq, status| DeadLetter {
        webhook: open.clone(),
        run: RunId::new("run_full"),
        seq,
        kind: "node.started".to_owned(),
        attempts: 8,
        reason: DeathReason::RetriesExhausted,
        status,
        at: at(4),
    };
    vec![
        Write::PutWebhook(webhook("hook_a", WebhookStatus::Active)),
        Write::PutWebhook(webhook("hook_b", WebhookStatus::Failed)),
        Write::PutDelivery(delivery("run_full", 1)),
        Write::PutDelivery(delivery("run_plain", 0)),
        Write::DeadLetters(DeadLetterWrite::Put(letter(2, None))),
        Write::DeadLetters(DeadLetterWrite::Put(letter(3, Some(503)))),
    ]
}

fn runners() -> Vec<Write> {
    let token = |id: &str, expires_at| TokenRow {
        id: id.to_owned(),
        kind: "runner".to_owned(),
        tenant: TenantId::new("acme"),
        subject: "ann".to_owned(),
        name: "laptop".to_owned(),
        hash: format!("hash of {id}"),
        scopes: "[]".to_owned(),
        created_at: at(1),
        expires_at,
    };
    let runner = RunnerRow { key: "r".to_owned(), version: 2, epoch: 3, seen_at: at(2), body: "{}".to_owned() };
    let step = StepRow {
        key: "s".to_owned(),
        run: RunId::new("run_full"),
        owner: "o".to_owned(),
        state: StepState::Leased,
        version: 4,
        at: at(3),
        body: "{}".to_owned(),
    };
    let all = [
        RunnerWrite::PutToken(token("tok_a", None)),
        RunnerWrite::PutToken(token("tok_b", Some(at(9)))),
        RunnerWrite::PutRunner(runner),
        RunnerWrite::PutStep(step),
    ];
    all.map(Write::Runners).into()
}

fn later() -> Vec<Write> {
    let policy = FailurePolicy { opens_at: 3, open_ms: 1000, gives_up_at: 100, window_ms: 60_000 };
    let attempt = Attempt::Failed { at: at(9), status: Some(500), policy };
    let chain = match first_log() {
        Write::Append { row, .. } => row.chain,
        _ => LogChain::default(),
    };
    let row = RunRow { status: RunStatus::Completed, next_seq: 5, updated_at: at(11), chain, ..full() };
    vec![
        sealed(row, 4, vec![record(4)]),
        Write::NoteAttempt { webhook: WebhookId::new("hook_a"), attempt },
        Write::Prune { run: RunId::new("run_plain"), pruned: Pruned { at: at(9), log: true } },
    ]
}
