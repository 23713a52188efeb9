//! One of everything, for tests of what rows look like in a database: every column is filled in one row at least, and empty
//! in another where it may be.

use baton_model::{
    Digest, ForkMode, NodeId, Origin, Overlay, Part, RunId, RunStatus, SideEffects, TenantId, Versions, WebhookId,
    WorkflowId,
};
use serde_json::json;

use super::sample::{at, delete, notes, put, record, row};
use crate::{
    AnnotationRow, Attempt, Change, DeadLetter, DeadLetterWrite, DeathReason, Delivery, FailurePolicy, InterruptRow,
    Item, Meta, Pruned, Quarantine, Reply, RunRow, StoredRecord, VersionedStoreId, Webhook, WebhookStatus,
    WorkflowVersion, Write,
};

/// The tables that these fill.
pub const TABLES: [&str; 13] = [
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
];

/// Commits, in their order. Those after the first change what is there.
pub fn commits() -> Vec<Vec<Write>> {
    let mut first = runs();
    first.extend(ledgers());
    first.extend(parts());
    first.extend(webhooks());
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
    let parts = [None, Some((false, true)), Some((true, false)), Some((true, true))];
    let told = |(seq, part): (u64, Option<(bool, bool)>)| StoredRecord {
        part: part.map(|(outside, first)| Part { outside, first }),
        ..record(seq)
    };
    let records = (0..).zip(parts).map(told).collect();
    vec![
        Write::CreateRun(row("run_root")),
        Write::CreateRun(RunRow { next_seq: 0, ..full() }),
        Write::Append { row: full(), expected: 0, records },
        Write::CreateRun(RunRow { origin: Some(origin), next_seq: 2, ..row("run_fork") }),
        Write::CreateRun(row("run_plain")),
    ]
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
        Write::Annotate(AnnotationRow { run, id: "a1".to_owned(), at: at(7), body: r#"{"a":1}"#.to_owned() }),
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

fn later() -> Vec<Write> {
    let policy = FailurePolicy { opens_at: 3, open_ms: 1000, gives_up_at: 100, window_ms: 60_000 };
    let attempt = Attempt::Failed { at: at(9), status: Some(500), policy };
    let row = RunRow { status: RunStatus::Completed, next_seq: 5, updated_at: at(11), ..full() };
    vec![
        Write::Append { row, expected: 4, records: vec![record(4)] },
        Write::NoteAttempt { webhook: WebhookId::new("hook_a"), attempt },
        Write::Prune { run: RunId::new("run_plain"), pruned: Pruned { at: at(9), log: true } },
    ]
}
