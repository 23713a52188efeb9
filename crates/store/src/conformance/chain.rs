//! Checksums of logs: kept as they were given, compared on every read, and no trouble for logs that have none.

use baton_model::{ForkMode, Origin, Overlay, RunId, SideEffects, Versions};

use super::sample::{append, at, attempt, record, row, sealed, write};
use crate::{CommitError, LogChain, Pruned, RunRow, Store, Write};

pub(super) async fn sealed_logs_read_back_from_anywhere(store: impl Store) {
    let run = RunId::new("run_a");
    write(&store, vec![Write::CreateRun(row("run_a"))]).await;
    let mut now = row("run_a");
    for (expected, count) in [(0, 1), (1, 4), (5, 2)] {
        now.next_seq = expected + count;
        let commit = sealed(now.clone(), expected, (expected..expected + count).map(record).collect());
        if let Write::Append { row, .. } = &commit {
            now = row.clone();
        }
        write(&store, vec![commit]).await;
        let kept = store.run(&run).await.expect("a run reads back").expect("there is one");
        assert_eq!(kept.chain, now.chain, "the row has the last checksum");
    }
    let all = store.records(&run, 0, 100).await.expect("a whole log reads back");
    assert!(all.iter().all(|record| record.sum.is_some()) && all.last().and_then(|last| last.sum) == now.chain.head);
    for from in 0..9 {
        for limit in 0..9 {
            let page = store.records(&run, from, limit).await.expect("any page reads back");
            let expected: Vec<_> = all.iter().filter(|record| record.seq >= from).take(limit).cloned().collect();
            assert_eq!(page, expected, "from {from}, at most {limit}");
            let bounded = store.records_within(&run, from, limit, 30).await.expect("and bounded by bytes");
            assert!(expected.starts_with(&bounded), "from {from}, at most {limit}, within 30 bytes");
        }
    }
}

pub(super) async fn a_chain_begins_where_checksums_do(store: impl Store) {
    let run = RunId::new("run_old");
    write(&store, vec![Write::CreateRun(row("run_old")), append(row("run_old"), 0, 3)]).await;
    let old = store.run(&run).await.expect("a run reads back").expect("there is one");
    assert_eq!(old.chain, LogChain::default(), "it is from before there were any");
    write(&store, vec![sealed(RunRow { next_seq: 5, ..old }, 3, vec![record(3), record(4)])]).await;
    for from in 0..6 {
        let page = store.records(&run, from, 9).await.expect("old and new read back");
        assert_eq!(page.len() as u64, 5_u64.saturating_sub(from));
        assert!(page.iter().all(|record| record.sum.is_some() == (record.seq > 2)), "{page:?}");
    }
}

pub(super) async fn records_that_end_elsewhere_are_refused(store: impl Store) {
    write(&store, vec![Write::CreateRun(row("run_a"))]).await;
    let first = sealed(RunRow { next_seq: 1, ..row("run_a") }, 0, vec![record(0)]);
    let Write::Append { row: now, .. } = &first else { return };
    let now = now.clone();
    write(&store, vec![first]).await;
    // Without a checksum behind one that has it.
    let refused = attempt(&store, vec![append(now, 1, 1)]).await;
    assert!(matches!(refused, Err(CommitError::Refused { .. })), "{refused:?}");
    let log = store.records(&RunId::new("run_a"), 0, 9).await.expect("nothing was written");
    assert_eq!(log.len(), 1);
}

pub(super) async fn a_fork_goes_on_from_its_sources_chain(store: impl Store) {
    let source = sealed(RunRow { next_seq: 4, ..row("run_source") }, 0, (0..4).map(record).collect());
    write(&store, vec![Write::CreateRun(row("run_source")), source]).await;
    let before = store.records(&RunId::new("run_source"), 1, 1).await.expect("it reads back").pop();
    let origin = Origin {
        source: RunId::new("run_source"),
        seq: 2,
        requested: None,
        mode: ForkMode::Branch,
        at: at(9),
        moment: None,
        length: None,
        versions: Versions::default(),
        overlay: Overlay::default(),
        side_effects: SideEffects::default(),
        workers: None,
    };
    let chain = LogChain::after(before.and_then(|before| before.sum));
    assert!(chain.base.is_some());
    let fork = RunRow { origin: Some(origin), next_seq: 2, chain, ..row("run_fork") };
    write(&store, vec![Write::CreateRun(fork.clone())]).await;
    let run = RunId::new("run_fork");
    assert_eq!(store.records(&run, 0, 9).await.expect("it has none of its own yet"), []);
    write(&store, vec![sealed(RunRow { next_seq: 4, ..fork }, 2, vec![record(2), record(3)])]).await;
    let own = store.records(&run, 0, 9).await.expect("its own records read back");
    assert_eq!(own.len(), 2);
    assert_eq!(own, store.records(&run, 2, 9).await.expect("from its beginning"));
    let kept = store.run(&run).await.expect("a run reads back").expect("there is one");
    assert_eq!((kept.chain.base, kept.chain.head), (chain.base, own[1].sum));
    let theirs = store.records(&RunId::new("run_source"), 2, 1).await.expect("the source reads back");
    assert_ne!(own[0].sum, theirs[0].sum, "the same record of another run");

    let pruned = Pruned { at: at(20), log: true };
    write(&store, vec![Write::Prune { run: run.clone(), pruned }]).await;
    assert_eq!(store.records(&run, 0, 9).await.expect("a dropped log is no damage"), []);
}
