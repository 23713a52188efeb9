//! Runs and their records.

use baton_model::{Digest, NodeId, RunId, RunStatus, TenantId, WorkflowId};

use super::sample::{append, at, attempt, listen, next_seq, record, row, seqs, start, write};
use crate::{Commit, CommitError, CommitReceipt, Committed, Pruned, RunRow, Store, StoredRecord, Write};

pub(super) async fn append_then_read(store: impl Store) {
    let full = RunRow {
        parent: Some(RunId::new("run_parent")),
        root: Some(RunId::new("run_root")),
        scope: Some("chat:ü".to_owned()),
        tags: vec!["red".to_owned(), "ünï".to_owned()],
        memory_scope: "notes of ü".to_owned(),
        ..row("run_a")
    };
    start(&store, full.clone(), 3).await;
    let later = RunRow {
        status: RunStatus::Failed,
        next_seq: 4,
        updated_at: at(99),
        wake_at: Some(at(7)),
        busy: false,
        current_node: Some(NodeId::new("a node")),
        error_code: Some("node_failed".to_owned()),
        ..full
    };
    write(&store, vec![Write::Append { row: later.clone(), expected: 3, records: vec![record(3)] }]).await;

    assert_eq!(store.run(&RunId::new("run_a")).await.expect("readable"), Some(later), "the row reads back as written");
    let records = store.records(&RunId::new("run_a"), 0, 10).await.expect("readable");
    assert_eq!(records, (0..4).map(record).collect::<Vec<_>>(), "records read back as written, in order");
    assert_eq!(next_seq(&store, "run_b").await, None, "an unknown run is not there");
    assert_eq!(seqs(&store, "run_b").await, [0; 0], "an unknown run has no records");
    store.ping().await.expect("reads work");
}

pub(super) async fn records_from_and_limit(store: impl Store) {
    start(&store, row("run_a"), 10).await;
    start(&store, row("run_b"), 2).await;
    let seqs = async |from, limit| {
        let records = store.records(&RunId::new("run_a"), from, limit).await.expect("readable");
        records.into_iter().map(|record| record.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(0, 3).await, [0, 1, 2]);
    assert_eq!(seqs(4, 3).await, [4, 5, 6]);
    assert_eq!(seqs(8, 100).await, [8, 9], "no records of another run follow");
    assert_eq!(seqs(10, 100).await, [0; 0]);
    assert_eq!(seqs(u64::MAX, 100).await, [0; 0], "far beyond the end is empty, not an error");
}

pub(super) async fn records_within_bytes(store: impl Store) {
    let sized = |seq: u64, size: usize| {
        let sample = record(seq);
        // Public and private weigh alike; one letter of two bytes shows that bytes are counted.
        let (body, private) = ("ü".repeat(size / 4), "x".repeat(size / 2));
        StoredRecord { body, private: Some(private), ..sample }
    };
    let sizes = [400, 400, 400, 100_000, 400, 400];
    let records: Vec<_> = (0u64..).zip(sizes).map(|(seq, size)| sized(seq, size)).collect();
    let after = RunRow { next_seq: records.len() as u64, ..row("run_a") };
    let first = Write::Append { row: after, expected: 0, records: records.clone() };
    write(&store, vec![Write::CreateRun(row("run_a")), first]).await;
    let read = async |from, limit, bytes| {
        store.records_within(&RunId::new("run_a"), from, limit, bytes).await.expect("readable")
    };
    let seqs = async |from, limit, bytes| {
        read(from, limit, bytes).await.into_iter().map(|record| record.seq).collect::<Vec<_>>()
    };
    assert_eq!(read(0, 3, 1200).await, records[..3], "a page that is full to the last byte is whole");
    assert_eq!(seqs(0, 9, 1199).await, [0, 1], "a byte less, and the last one waits");
    assert_eq!(seqs(0, 2, 1200).await, [0, 1], "the number still counts");
    assert_eq!(seqs(0, 9, 0).await, [0], "the first comes whatever it weighs");
    assert_eq!(seqs(2, 9, 1200).await, [2], "what follows is too heavy for the same page");
    assert_eq!(seqs(3, 9, 1200).await, [3], "and comes alone");
    assert_eq!(seqs(4, 9, usize::MAX).await, [4, 5]);
    assert_eq!(seqs(6, 9, 1200).await, [0; 0]);
    assert_eq!(seqs(0, 0, 1200).await, [0; 0], "none were asked for");
}

pub(super) async fn a_commit_is_all_or_nothing(store: impl Store) {
    start(&store, row("run_a"), 1).await;
    let writes = |expected| {
        vec![
            Write::CreateRun(row("run_b")),
            append(row("run_b"), 0, 2),
            append(row("run_b"), 2, 1),
            Write::PutBlob { digest: Digest::of_bytes("x"), bytes: b"x".to_vec() },
            append(row("run_a"), expected, 1),
            Write::CreateRun(row("run_c")),
        ]
    };
    attempt(&store, writes(9)).await.expect_err("one bad write refuses the commit");
    assert_eq!(next_seq(&store, "run_b").await, None, "a refused commit creates nothing");
    assert_eq!(store.blob(&Digest::of_bytes("x")).await.expect("readable"), None, "a refused commit stores nothing");
    assert_eq!(next_seq(&store, "run_a").await, Some(1));

    write(&store, writes(1)).await;
    assert_eq!(seqs(&store, "run_b").await, [0, 1, 2]);
    assert_eq!(next_seq(&store, "run_b").await, Some(3));
    assert_eq!(next_seq(&store, "run_a").await, Some(2));
    assert_eq!(next_seq(&store, "run_c").await, Some(0));
    assert_eq!(store.blob(&Digest::of_bytes("x")).await.expect("readable"), Some(b"x".to_vec()));
}

pub(super) async fn commits_happen_in_submit_order(store: impl Store) {
    let generation = store.generation();
    let submit = |writes| store.submit(Commit::new(generation, writes));
    let mut tickets: Vec<CommitReceipt> = vec![submit(vec![Write::CreateRun(row("run_a"))])];
    tickets.extend((0..600).map(|seq| submit(vec![append(row("run_a"), seq, 1)])));
    for (place, ticket) in tickets.into_iter().enumerate() {
        ticket.await.unwrap_or_else(|error| panic!("commit {place} depends only on earlier ones: {error}"));
    }
    assert_eq!(seqs(&store, "run_a").await, (0..600).collect::<Vec<_>>());
    assert_eq!(next_seq(&store, "run_a").await, Some(600));
}

pub(super) async fn what_a_run_is_does_not_change(store: impl Store) {
    let created = RunRow { scope: Some("s".to_owned()), tags: vec!["t".to_owned()], ..row("run_a") };
    let boast = RunRow { next_seq: 7, pruned: Some(Pruned { at: at(1), log: true }), ..created.clone() };
    write(&store, vec![Write::CreateRun(boast)]).await;
    assert_eq!(next_seq(&store, "run_a").await, Some(0), "a new log is empty");
    let other = RunRow {
        tenant: TenantId::new("other"),
        workflow: WorkflowId::new("other"),
        digest: Digest::of_bytes("other"),
        created_at: at(50),
        updated_at: at(51),
        parent: Some(RunId::new("run_other")),
        scope: None,
        tags: Vec::new(),
        memory_scope: "other".to_owned(),
        pruned: Some(Pruned { at: at(52), log: true }),
        next_seq: 1,
        ..created.clone()
    };
    write(&store, vec![Write::Append { row: other, expected: 0, records: vec![record(0)] }]).await;
    let expected = RunRow { next_seq: 1, updated_at: at(51), ..created };
    assert_eq!(store.run(&RunId::new("run_a")).await.expect("readable"), Some(expected));
}

pub(super) async fn large_and_odd_text_survives(store: impl Store) {
    let texts = [
        "x".repeat(256 * 1024),
        "日本語 🦀 e\u{301} \u{10FFFF}".to_owned(),
        "a\0b\u{1}\u{7f}'\";--".to_owned(),
        String::new(),
    ];
    let records: Vec<_> = (0u64..)
        .zip(&texts)
        .map(|(seq, text)| StoredRecord {
            body: serde_json::json!({ "payload": { "text": text } }).to_string(),
            private: Some(serde_json::json!(text).to_string()),
            ..record(seq)
        })
        .collect();
    let run = RunRow { next_seq: texts.len() as u64, ..row("run_a") };
    write(
        &store,
        vec![Write::CreateRun(run.clone()), Write::Append { row: run, expected: 0, records: records.clone() }],
    )
    .await;
    assert_eq!(store.records(&RunId::new("run_a"), 0, 10).await.expect("readable"), records);
}

pub(super) async fn the_observer_hears_of_every_commit(store: impl Store) {
    let heard = listen(&store);
    let last = |id: &str| heard.committed.lock().iter().rev().find(|told| told.run.as_str() == id).cloned();
    let told = |id: &str, next_seq, terminal| Some(Committed { run: RunId::new(id), next_seq, terminal });

    start(&store, row("run_a"), 2).await;
    assert_eq!(last("run_a"), told("run_a", 2, false), "told before the ticket resolves");
    let done = RunRow { status: RunStatus::Completed, ..row("run_a") };
    write(&store, vec![append(done, 2, 1), Write::CreateRun(row("run_b"))]).await;
    assert_eq!(last("run_a"), told("run_a", 3, true), "told that the run ended");
    assert_eq!(last("run_b"), told("run_b", 0, false));
    let count = heard.committed.lock().len();
    write(&store, vec![Write::PutBlob { digest: Digest::of_bytes("x"), bytes: b"x".to_vec() }]).await;
    assert_eq!(heard.committed.lock().len(), count, "a commit without runs tells of none");
    assert!(heard.failed.lock().is_empty());
}

pub(super) async fn close_makes_what_was_queued_durable(store: impl Store) {
    let generation = store.generation();
    let submit = |writes| store.submit(Commit::new(generation, writes));
    let mut tickets = vec![submit(vec![Write::CreateRun(row("run_a"))])];
    tickets.extend((0..50).map(|seq| submit(vec![append(row("run_a"), seq, 1)])));
    store.close().await;
    for ticket in tickets {
        ticket.await.expect("queued before the close");
    }
    let late = submit(vec![append(row("run_a"), 50, 1)]).await;
    assert_eq!(late, Err(CommitError::Stale), "a closed store takes no more");
    store.close().await;
}
