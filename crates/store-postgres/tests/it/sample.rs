//! Small, plain writes.

use baton_model::{Digest, RunId, RunStatus, Timestamp, Versions};
use baton_store::{Commit, Journal, RunRow, StoredRecord, Ticket, Write};

pub(crate) fn row(id: &str) -> RunRow {
    RunRow {
        id: RunId::new(id),
        tenant: "acme".into(),
        workflow: "echo".into(),
        digest: Digest::of_bytes("echo"),
        status: RunStatus::Running,
        created_at: Timestamp::from_micros(1),
        updated_at: Timestamp::from_micros(1),
        next_seq: 0,
        wake_at: None,
        busy: true,
        parent: None,
        root: None,
        scope: None,
        tags: Vec::new(),
        current_node: None,
        error_code: None,
        memory_scope: id.to_owned(),
        workspace_scope: "default".to_owned(),
        origin: None,
        pruned: None,
        summary: None,
    }
}

pub(crate) fn append(id: &str, expected: u64, count: u64) -> Write {
    let record = |seq| StoredRecord {
        seq,
        at: Timestamp::from_micros(2),
        kind: "log.appended".to_owned(),
        body: format!("{{\"sequence\":{seq}}}"),
        private: None,
        versions: Versions::default(),
        part: None,
    };
    let records = (expected..expected + count).map(record).collect();
    Write::Append { row: RunRow { next_seq: expected + count, ..row(id) }, expected, records }
}

pub(crate) fn submit(store: &impl Journal, writes: Vec<Write>) -> Ticket {
    store.submit(Commit::new(store.generation(), writes))
}
