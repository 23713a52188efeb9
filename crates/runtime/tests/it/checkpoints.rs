//! Checkpoints: the same run comes back, and less is read for it. Reads are counted, never timed.

use crate::budget::{self, Meter, asks, fans_out, start, used};
use crate::common;
use crate::forking::{branch_at, next_life};
use crate::sharing::{Company, settle};

use std::sync::Arc;

use baton_model::event::VariableChanged;
use baton_model::{Event, Record, RunId, RunStatus, Timestamp, Versions};
use baton_runtime::Options;
use baton_store::{Commit, Disk, Journal as _, LogChain, MemoryStore, StoredRecord, Write};
use common::scenario::{call, delayed, gate, parent, pipeline};
use common::{World, accept, options, tenant};
use serde_json::{Value, json};

const EVERY: u64 = 256;
/// Between two looks at what was read: less than this many records' bytes.
const FEW: u64 = 2 * EVERY;

fn every(records: u64) -> Options {
    Options { checkpoint_every: records, ..options(512) }
}

async fn open(disk: Disk, options: Options) -> World {
    World::open(disk, Arc::default(), options).await
}

/// A later process, which gives out other names.
async fn open_as(disk: Disk, options: Options, life: u64) -> World {
    let store = Arc::new(MemoryStore::from_disk(disk));
    World::seeded(Arc::clone(&store) as _, store, Arc::default(), options, life).await
}

fn change(seq: u64, at: Timestamp) -> Record {
    let event = VariableChanged {
        name: "n".to_owned(),
        previous: None,
        next: json!(seq),
        node_id: None,
        private: Default::default(),
    };
    Record { seq, at, event: Event::from(event), causation: None, versions: Versions::default(), part: None }
}

/// What a failing disk does to the checkpoints of a run.
type Spoil = fn(&mut Disk, &RunId);

/// A run that waits for an answer behind this many records, most of which the test wrote.
async fn long(records: u64) -> (Disk, RunId) {
    let world = open(Disk::default(), every(0)).await;
    world.register(gate("gate")).await;
    let run = world.start("gate").await;
    world.waiting(&run).await;
    world.settle().await;
    grow(&world, &run, records).await;
    (world.stop().await, run)
}

/// Writes to a run that is not in memory, as another host would.
async fn grow(world: &World, run: &RunId, records: u64) {
    const AT_ONCE: u64 = 10_000;
    loop {
        let row = world.reader.run(run).await.unwrap().unwrap();
        if row.next_seq >= records {
            return;
        }
        let end = records.min(row.next_seq + AT_ONCE);
        let mut new: Vec<_> =
            (row.next_seq..end).map(|seq| StoredRecord::encode(run, &change(seq, row.updated_at))).collect();
        let (expected, mut row) = (row.next_seq, baton_store::RunRow { next_seq: end, ..row });
        row.seal(&mut new);
        let append = Write::Append { row, expected, records: new };
        world.store.submit(Commit::new(world.store.generation(), vec![append])).await.unwrap();
    }
}

/// How many bytes of records are read for something.
async fn read_for<T>(world: &World, work: impl Future<Output = T>) -> (T, u64) {
    world.settle().await;
    let before = world.store.record_bytes_read();
    let done = work.await;
    (done, world.store.record_bytes_read() - before)
}

/// What one record of these logs weighs at most.
async fn weight(world: &World, run: &RunId) -> u64 {
    let row = world.reader.run(run).await.unwrap().unwrap();
    let last = world.reader.records(run, row.next_seq - 1, 1).await.unwrap();
    last[0].weight() as u64
}

async fn state_at(world: &World, run: &RunId, seq: Option<u64>) -> Value {
    let state = world.host.state_at(&tenant(), run, seq).await.unwrap();
    serde_json::to_value(&state.view).unwrap()
}

/// All that can be seen of a run, at its end and on the way there.
async fn looks(world: &World, run: &RunId, at: &[u64]) -> Vec<Value> {
    let mut all = vec![serde_json::to_value(world.snapshot(run).await).unwrap()];
    for seq in at {
        all.push(state_at(world, run, Some(*seq)).await);
    }
    all
}

#[tokio::test]
async fn a_hundred_thousand_records_are_not_read_again() {
    const RECORDS: u64 = 100_000;
    let (disk, run) = long(RECORDS).await;
    let world = open(disk, every(EVERY)).await;
    let one = weight(&world, &run).await;
    let (first, all) = read_for(&world, world.snapshot(&run)).await;
    assert!(all > RECORDS / 2 * one, "the first look goes through the log: {all}");
    world.settle().await;
    assert_eq!(world.store.disk().checkpoints_of(&run), [RECORDS], "and leaves a checkpoint");

    let (second, some) = read_for(&world, world.snapshot(&run)).await;
    assert_eq!(second, first);
    assert!(some <= 4 * one, "a waiting run is read from its checkpoint: {some}");

    // In memory, on to the end, and out again.
    let (resolved, some) = read_for(&world, world.resolve(&run, "gate", accept())).await;
    resolved.unwrap();
    assert!(some <= FEW * one, "it is loaded from there: {some}");
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);

    let again = next_life(world, 1).await;
    let (ended, some) = read_for(&again, again.snapshot(&run)).await;
    assert_eq!(ended.status, RunStatus::Completed);
    assert!(some <= FEW * one, "so does the next process: {some}");
}

/// A run that grows under our eyes leaves a series, by which any place in its middle is near.
#[tokio::test]
async fn any_place_of_a_long_log_is_near() {
    // Each look at a log that has grown leaves a checkpoint.
    let fresh = open(Disk::default(), every(EVERY)).await;
    fresh.register(gate("gate")).await;
    let run = fresh.start("gate").await;
    fresh.waiting(&run).await;
    for part in 1..=100 {
        fresh.settle().await;
        grow(&fresh, &run, part * EVERY).await;
        fresh.snapshot(&run).await;
    }
    fresh.settle().await;
    let kept = fresh.store.disk().checkpoints_of(&run);
    assert!(kept.len() <= 64 && kept.last() == Some(&(100 * EVERY)), "{kept:?}");
    let one = weight(&fresh, &run).await;
    let bare = {
        let mut disk = fresh.store.disk();
        disk.forget_checkpoints();
        open(disk, every(0)).await
    };
    for seq in [0, 1, EVERY - 1, EVERY, 31 * EVERY + 7, 50 * EVERY, 99 * EVERY + 255] {
        let (state, some) = read_for(&fresh, state_at(&fresh, &run, Some(seq))).await;
        assert_eq!(state, state_at(&bare, &run, Some(seq)).await, "{seq}");
        assert!(some <= (100 * EVERY / 8) * one, "{seq}: {some}");
    }
}

/// Whatever became of the checkpoints, everything looks the same; only more is read.
#[tokio::test]
async fn deleting_all_checkpoints_changes_nothing_but_reads() {
    let (disk, run) = long(3_000).await;
    let world = open(disk, every(EVERY)).await;
    let at = [3, 700, 2_999];
    looks(&world, &run, &at).await;
    world.settle().await;
    let expected = looks(&world, &run, &at).await;
    let disk = world.stop().await;
    assert!(!disk.checkpoints_of(&run).is_empty());
    let spoilt: [(&str, Spoil); 6] = [
        ("all are gone", |disk, _| disk.forget_checkpoints()),
        ("a byte is another", |disk, run| {
            disk.change_checkpoints(run, |one| {
                let middle = one.body.len() / 2;
                one.body[middle] ^= 1;
            });
        }),
        ("the digest is another", |disk, run| {
            disk.change_checkpoints(run, |one| one.digest = baton_model::Digest::of_bytes("other"));
        }),
        ("another rule made them", |disk, run| {
            disk.change_checkpoints(run, |one| one.key = one.key.replacen("/5/", "/4/", 1));
        }),
        ("they are cut short", |disk, run| {
            disk.change_checkpoints(run, |one| {
                one.body.truncate(one.body.len() / 2);
                one.digest = baton_model::Digest::of_bytes(&one.body);
            });
        }),
        ("they say that they are older", |disk, run| disk.change_checkpoints(run, |one| one.seq -= 1)),
    ];
    for (what, spoil) in spoilt {
        let mut disk = disk.clone();
        spoil(&mut disk, &run);
        let world = open(disk, every(EVERY)).await;
        let one = weight(&world, &run).await;
        let (found, read) = read_for(&world, looks(&world, &run, &at)).await;
        assert_eq!(found, expected, "{what}");
        assert!(read > 2_500 * one, "{what}: nothing of them is used: {read}");
        world.settle().await;
        assert_eq!(world.store.disk().checkpoints_of(&run), [3_000], "{what}: replaced by one that is in order");
        let (found, read) = read_for(&world, world.snapshot(&run)).await;
        assert_eq!(serde_json::to_value(found).unwrap(), expected[0], "{what}");
        assert!(read <= 4 * one, "{what}: {read}");
    }
}

/// A log that lost its end, as none should, and has grown another one since.
#[tokio::test]
async fn a_checkpoint_of_records_that_are_not_there_is_not_used() {
    let (disk, run) = long(1_000).await;
    let world = open(disk, every(EVERY)).await;
    world.snapshot(&run).await;
    world.settle().await;
    let mut disk = world.stop().await;
    assert_eq!(disk.checkpoints_of(&run), [1_000]);
    disk.cut_log(&run, 900);
    let world = open(disk, every(EVERY)).await;
    assert_eq!(world.snapshot(&run).await.variables["n"], json!(899), "it is ahead of the log");
    world.settle().await;
    // The same place again, with another record before it.
    let row = world.reader.run(&run).await.unwrap().unwrap();
    let later = row.updated_at.plus_millis(7);
    let new = (900..1_000).map(|seq| StoredRecord::encode(&run, &change(2 * seq, later))).enumerate();
    let mut new: Vec<_> = new.map(|(place, record)| StoredRecord { seq: 900 + place as u64, ..record }).collect();
    let mut row = baton_store::RunRow { next_seq: 1_000, ..row };
    row.seal(&mut new);
    let append = Write::Append { row, expected: 900, records: new };
    world.store.submit(Commit::new(world.store.generation(), vec![append])).await.unwrap();
    assert_eq!(world.snapshot(&run).await.variables["n"], json!(1_998), "it is of another log");
}

/// A branch begins with its source's checkpoint, has its own from then on, and is what it is without any.
#[tokio::test]
async fn a_branch_goes_on_from_a_checkpoint_of_its_source() {
    let (disk, run) = long(2_000).await;
    // Not the names that the first process gave out.
    let bare = open_as(disk.clone(), every(0), 21).await;
    let plain = bare.fork(&run, branch_at(1_990)).await;
    bare.settle().await;
    let expected = bare.snapshot(&plain).await;

    let world = open(disk, every(EVERY)).await;
    let one = weight(&world, &run).await;
    world.snapshot(&run).await;
    world.settle().await;
    // One of the source's that is before the fork, and one that is behind it.
    let mut disk = world.stop().await;
    assert_eq!(disk.checkpoints_of(&run), [2_000]);
    disk.cut_log(&run, 1_900);
    let world = open_as(disk, every(EVERY), 22).await;
    world.snapshot(&run).await;
    world.settle().await;
    grow(&world, &run, 2_000).await;
    world.snapshot(&run).await;
    world.settle().await;
    assert_eq!(world.store.disk().checkpoints_of(&run).first(), Some(&1_900));

    let branch = world.fork(&run, branch_at(1_990)).await;
    world.settle().await;
    let (found, read) = read_for(&world, world.snapshot(&branch)).await;
    assert!(read <= FEW * one, "{read}");
    assert_eq!((found.variables.clone(), found.status), (expected.variables, expected.status));
    assert_eq!(found.at_seq, expected.at_seq);

    // Its own, behind the place where it began.
    grow(&world, &branch, 2_600).await;
    let grown = world.snapshot(&branch).await;
    world.settle().await;
    assert_eq!(world.store.disk().checkpoints_of(&branch).last(), Some(&2_600));
    let again = next_life(world, 3).await;
    let (look, read) = read_for(&again, again.snapshot(&branch)).await;
    assert_eq!(look, grown);
    assert!(read <= FEW * one, "{read}");
    let mut disk = again.store.disk();
    disk.forget_checkpoints();
    assert_eq!(open(disk, every(0)).await.snapshot(&branch).await, grown);
}

/// Nobody waits for a checkpoint: while the store takes nothing, it is as if there were none.
#[tokio::test]
async fn what_is_not_on_disk_is_not_written_down() {
    let world = open(Disk::default(), every(1)).await;
    world.register(pipeline("pipeline")).await;
    world.register(gate("gate")).await;
    let waiting = world.start("gate").await;
    world.settle().await;
    world.store.hold();
    let answered = world.resolve(&waiting, "gate", accept());
    tokio::pin!(answered);
    for _ in 0..1_000 {
        tokio::select! {
            biased;
            _ = &mut answered => panic!("nothing is durable"),
            () = tokio::task::yield_now() => {}
        }
    }
    let disk = world.store.disk();
    let row = world.reader.run(&waiting).await.unwrap().unwrap();
    assert!(disk.checkpoints_of(&waiting).iter().all(|seq| *seq <= row.next_seq));
    world.store.release();
    answered.await.unwrap();
    world.settle().await;
    let row = world.reader.run(&waiting).await.unwrap().unwrap();
    assert_eq!(world.store.disk().checkpoints_of(&waiting).last(), Some(&row.next_seq));
}

/// What one host has written down, another one goes on from; both have written down the same.
#[tokio::test]
async fn another_host_goes_on_from_a_checkpoint() {
    let company = Company::new();
    let a = company.join(7, every(EVERY)).await;
    a.register(gate("gate")).await;
    let run = a.start("gate").await;
    a.waiting(&run).await;
    settle(&[&a]).await;
    grow(&a, &run, 2_000).await;
    a.snapshot(&run).await;
    settle(&[&a]).await;
    let b = company.join(8, every(EVERY)).await;
    settle(&[&a, &b]).await;
    let one = weight(&b, &run).await;
    let (seen, read) = read_for(&b, b.snapshot(&run)).await;
    assert_eq!(seen, a.snapshot(&run).await);
    assert!(read <= 4 * one, "{read}");
    a.store.die();
    company.past_lease(&[&b]).await;
    let (resolved, read) = read_for(&b, b.resolve(&run, "gate", accept())).await;
    resolved.unwrap();
    assert!(read <= FEW * one, "the run moves without its past: {read}");
    settle(&[&b]).await;
    assert_eq!(b.ended(&run).await.status, RunStatus::Completed);
}

/// An account is added up from what is noted of the tree's runs. Without the notes it is the same, from their logs.
#[tokio::test]
async fn an_account_is_the_same_with_notes_and_without() {
    let meter = Meter::gated(common::seed());
    let world = World::open(Disk::default(), Arc::default(), budget::options(&meter, 512)).await;
    world.register(asks("worker", 5)).await;
    world.register(fans_out("team", "worker", 32)).await;
    start(&world, "team", json!({"maxTokens": 1_000_000})).await;
    world.settle().await;
    // Some of the workers are done, some are in the middle.
    for _ in 0..100 {
        let next = meter.in_flight().into_iter().next().expect("somebody asks");
        meter.answer(&next, true);
        world.settle().await;
    }
    let noted = world.stop().await;
    let mut bare = noted.clone();
    bare.forget_checkpoints();
    let mut found = Vec::new();
    for disk in [noted, bare] {
        let meter = Meter::gated(common::seed());
        let world = World::open(disk, Arc::default(), budget::options(&meter, 512)).await;
        world.settle().await;
        let read = world.store.record_bytes_read();
        let key = meter.in_flight().into_iter().min().expect("they go on");
        meter.answer(&key, true);
        world.settle().await;
        let consumed = used(&world).await.last().map(|last| last.consumed);
        found.push((consumed, read));
        world.stop().await;
    }
    assert!(found[0].0.is_some_and(|consumed| consumed > 0));
    assert_eq!(found[0].0, found[1].0, "the same is spent");
    assert!(found[0].1 < found[1].1, "ended runs are not read again: {found:?}");
}

/// However long a run becomes, what is written for its checkpoints is so much for each record, and few stay.
#[tokio::test]
async fn what_checkpoints_write_grows_with_the_log() {
    let world = open(Disk::default(), every(EVERY)).await;
    world.register(gate("gate")).await;
    let run = world.start("gate").await;
    world.waiting(&run).await;
    let mut written = Vec::new();
    for part in 1..=120 {
        world.settle().await;
        grow(&world, &run, part * EVERY).await;
        world.snapshot(&run).await;
        world.settle().await;
        written.push(world.store.disk().checkpoint_bytes_written());
    }
    let costs: Vec<u64> = written.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(costs.iter().all(|cost| *cost > 0), "one each time: {costs:?}");
    let (early, late) = (costs[..20].iter().max().unwrap(), costs[100..].iter().max().unwrap());
    assert!(late <= &(early * 2), "a late one costs what an early one does: {costs:?}");
    assert!(world.store.disk().checkpoints_of(&run).len() <= 64);
}

/// The same run twice, killed again and again; the second time, its checkpoints are gone at some of the deaths.
#[tokio::test]
async fn checkpoints_that_vanish_at_any_moment_change_no_log() {
    let flow = || delayed("slow", 1_000);
    let begin = async || {
        let world = open(Disk::default(), every(1)).await;
        world.register(flow()).await;
        world.register(parent("team", call("slow"))).await;
        world.start("team").await;
        world
    };
    let mut expected = None;
    for turn in 0..16_u32 {
        let mut world = begin().await;
        for life in 0..4 {
            // More is done in one life than in another, but the same each time.
            for _ in 0..(3 * life) {
                tokio::task::yield_now().await;
            }
            world.settle().await;
            world.clock.advance(400);
            let clock = Arc::clone(&world.clock);
            let mut disk = world.stop().await;
            if turn >> life & 1 == 1 {
                disk.forget_checkpoints();
            }
            let store = Arc::new(MemoryStore::from_disk(disk));
            world = World::seeded(Arc::clone(&store) as _, store, clock, every(1), 30 + life).await;
        }
        world.drive(5).await;
        let mut logs = Vec::new();
        for row in world.rows().await {
            logs.push(world.reader.records(&row.id, 0, usize::MAX).await.unwrap());
        }
        assert_eq!(logs.len(), 2);
        let logs = format!("{logs:?}");
        assert_eq!(&logs, expected.get_or_insert_with(|| logs.clone()), "{turn:04b}");
    }
}

/// A disk that has no room for checkpoints has room for everything else: nobody notices.
#[tokio::test]
async fn a_checkpoint_that_cannot_be_written_hurts_nobody() {
    let world = open(Disk::default(), every(1)).await;
    world.register(pipeline("pipeline")).await;
    world.store.refuse_checkpoints();
    let generation = world.store.generation();
    let run = world.start("pipeline").await;
    assert_eq!(world.ended(&run).await.status, RunStatus::Completed);
    world.settle().await;
    assert_eq!(world.store.disk().checkpoints_of(&run), [0_u64; 0]);
    assert_eq!(world.store.generation(), generation);
    assert!(world.host.readiness().ready);
}

/// A host that was given up wakes with a checkpoint in its hands: it comes too late, and changes nothing.
#[tokio::test]
async fn a_late_checkpoint_of_a_fenced_host_is_not_written() {
    let company = Company::new();
    let a = company.join(7, every(EVERY)).await;
    a.register(gate("gate")).await;
    let run = a.start("gate").await;
    a.waiting(&run).await;
    settle(&[&a]).await;
    grow(&a, &run, 2_000).await;
    // It has one in its hands, and nothing of it arrives.
    a.store.hold();
    a.snapshot(&run).await;
    settle(&[&a]).await;
    assert!(a.store.waiting() > 0);
    a.store.freeze();
    let b = company.join(8, every(EVERY)).await;
    company.past_lease(&[&b]).await;
    b.resolve(&run, "gate", accept()).await.unwrap();
    settle(&[&b]).await;
    let ended = b.ended(&run).await;
    let kept = company.cluster.disk().checkpoints_of(&run);
    assert!(!kept.is_empty());
    a.store.thaw();
    settle(&[&b]).await;
    assert_eq!(company.cluster.disk().checkpoints_of(&run), kept);
    assert_eq!(b.ended(&run).await, ended);
}

/// A tree with a thousand runs that have ended: their logs stay unread.
#[tokio::test]
async fn an_account_reads_no_log_of_a_run_that_has_ended() {
    const RUNS: u64 = 1_000;
    const RECORDS: u64 = 20;
    let meter = Meter::gated(common::seed());
    let world = World::open(Disk::default(), Arc::default(), budget::options(&meter, 512)).await;
    world.register(asks("worker", 1)).await;
    world.register(fans_out("team", "worker", 2)).await;
    let root = start(&world, "team", json!({"maxTokens": 1_000_000})).await;
    world.settle().await;
    let next = meter.in_flight().into_iter().next().expect("somebody asks");
    meter.answer(&next, true);
    world.settle().await;
    // One of its workers has ended: a thousand others have, like it.
    let rows = world.rows().await;
    let ended = rows.iter().find(|row| row.status.is_terminal()).expect("one has ended").clone();
    let note = world.reader.run_spending(&ended.id).await.unwrap().expect("it is noted");
    let first = world.reader.records(&ended.id, 0, 1).await.unwrap().remove(0);
    for n in 0..RUNS {
        let id = RunId::new(format!("{}-{n}", ended.id));
        let mut records: Vec<_> = (0..RECORDS).map(|seq| StoredRecord { seq, ..first.clone() }).collect();
        let begins = LogChain::default();
        let mut row = baton_store::RunRow { id: id.clone(), next_seq: RECORDS, chain: begins, ..ended.clone() };
        row.seal(&mut records);
        let writes = vec![
            Write::CreateRun(baton_store::RunRow { next_seq: 0, chain: begins, ..row.clone() }),
            Write::Append { row, expected: 0, records },
            Write::PutSpending(baton_store::SpendingRow { run: id, seq: RECORDS, ..note.clone() }),
        ];
        world.store.submit(Commit::new(world.store.generation(), writes)).await.unwrap();
    }
    let disk = world.stop().await;
    let mut read = Vec::new();
    let mut bare = disk.clone();
    bare.forget_checkpoints();
    for disk in [disk, bare] {
        let meter = Meter::gated(common::seed());
        let world = World::open(disk, Arc::default(), budget::options(&meter, 512)).await;
        world.settle().await;
        assert!(!meter.in_flight().is_empty(), "{root} goes on");
        read.push(world.store.record_bytes_read());
        world.stop().await;
    }
    let one = first.weight() as u64;
    assert!(read[1] > RUNS * RECORDS * one, "without notes all is read: {read:?}");
    assert!(read[0] < 200 * one, "with them next to nothing is: {read:?}, {one}");
}

/// What is pruned takes its checkpoints along.
#[tokio::test]
async fn checkpoints_go_with_the_log() {
    let (disk, run) = long(1_000).await;
    let world = open(disk, every(EVERY)).await;
    world.resolve(&run, "gate", accept()).await.unwrap();
    world.ended(&run).await;
    world.settle().await;
    assert!(!world.store.disk().checkpoints_of(&run).is_empty());
    world.host.prune(&tenant(), &run, true).await.unwrap();
    world.settle().await;
    assert_eq!(world.store.disk().checkpoints_of(&run), [0_u64; 0]);
}
