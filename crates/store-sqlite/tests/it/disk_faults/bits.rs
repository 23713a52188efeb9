//! Bits that are not what was written.

use std::path::Path;

use baton_faulty_disk::{Chance, Disk, Fault, Op, Part, What};
use baton_model::RunId;
use baton_store::Journal as _;
use baton_store::reads::*;
use baton_store_sqlite::SqliteStore;

use super::world::{World, open, run, whole_commits};

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Harmless,
    Noticed,
    /// Something reads, and is not what was written.
    Silent,
}

/// What becomes of whoever opens and reads this folder. Nothing panics, whatever is in it.
async fn look(dir: &Path, expected: u64) -> Seen {
    match SqliteStore::check(dir) {
        Ok(report) if report.is_sound() => {}
        _ => return Seen::Noticed,
    }
    let Ok(store) = SqliteStore::open(dir) else { return Seen::Noticed };
    let seen = match whole_commits(&store).await {
        Ok(count) if count == expected => Seen::Harmless,
        Ok(_) => Seen::Silent,
        Err(told) if told.starts_with("it does not read") => Seen::Noticed,
        Err(_) => Seen::Silent,
    };
    store.close().await;
    seen
}

fn flip(path: &Path, chance: &mut Chance) {
    let mut bytes = std::fs::read(path).unwrap();
    let bit = chance.below(bytes.len() as u64 * 8) as usize;
    bytes[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(path, bytes).unwrap();
}

async fn written(commits: usize) -> World {
    let mut world = World::new(11).await;
    for _ in 0..commits {
        world.commit(3000).await.unwrap();
    }
    world
}

#[tokio::test]
async fn a_bit_at_rest_is_noticed_or_harmless_as_far_as_it_can_be() {
    let world = written(30).await;
    world.store.close().await;
    let mut chance = Chance::new(12);
    let mut seen = Vec::new();
    for _ in 0..40 {
        let copy = tempfile::tempdir().unwrap();
        std::fs::copy(world.dir.path().join("baton.db"), copy.path().join("baton.db")).unwrap();
        flip(&copy.path().join("baton.db"), &mut chance);
        seen.push(look(copy.path(), world.acknowledged).await);
    }
    let count = |what: Seen| seen.iter().filter(|seen| **seen == what).count();
    let (noticed, silent) = (count(Seen::Noticed), count(Seen::Silent));
    eprintln!("at rest: {noticed} noticed, {silent} silent of {}", seen.len());
    assert!(noticed + silent > 0, "no bit mattered");
    assert_eq!(silent, 0, "bits went unnoticed");
}

/// The write-ahead log has checksums: at the first that is wrong it ends. What is left is a beginning, and the note of the
/// last commit tells that it is one.
#[tokio::test]
async fn a_bit_in_the_log_cuts_it_off_and_is_noticed_by_the_note() {
    let world = written(20).await;
    let mut chance = Chance::new(13);
    let (mut noticed, mut shorter) = (0, 0);
    for _ in 0..30 {
        let copy = tempfile::tempdir().unwrap();
        for name in ["baton.db", "baton.db-wal", "baton.commits"] {
            std::fs::copy(world.dir.path().join(name), copy.path().join(name)).unwrap();
        }
        flip(&copy.path().join("baton.db-wal"), &mut chance);
        match look(copy.path(), world.acknowledged).await {
            Seen::Noticed => noticed += 1,
            Seen::Harmless => {}
            Seen::Silent => panic!("a cut log went unnoticed"),
        }
        // Without the note it looks like what a crash leaves. Not even the tables may be there; then it is a new one.
        std::fs::remove_file(copy.path().join("baton.commits")).unwrap();
        let count = super::world::reopened_or_empty(copy.path()).await.unwrap();
        assert!(count <= world.acknowledged);
        shorter += u64::from(count < world.acknowledged);
    }
    assert!(shorter > 0, "no bit mattered");
    assert!(noticed >= shorter, "{noticed} of {shorter} were noticed");
}

/// The disk is well, and what comes over the cable is not. The next look sees it right.
#[tokio::test]
async fn a_bit_that_was_read_wrong_is_noticed_or_gone_at_the_next_look() {
    let world = written(30).await;
    let expected = world.acknowledged;
    world.store.close().await;
    let (mut silent, mut noticed) = (0, 0);
    for after in 0..30 {
        let copy = tempfile::tempdir().unwrap();
        std::fs::copy(world.dir.path().join("baton.db"), copy.path().join("baton.db")).unwrap();
        let disk = Disk::of(copy.path(), u64::from(after));
        let store = open(copy.path()).unwrap();
        disk.inject(Fault::once(Op::Read, Part::Database, What::Flip).after(after));
        let first = store.records(&RunId::new(run(0)), 0, usize::MAX).await;
        let second = whole_commits(&store).await;
        noticed += u32::from(first.is_err() || second.is_err());
        disk.heal();
        drop(store);
        let store = open(copy.path()).unwrap();
        assert_eq!(whole_commits(&store).await, Ok(expected), "nothing wrong was written back");
        if let Err(told) = second
            && !told.starts_with("it does not read")
        {
            eprintln!("a bit after {after} reads: {told:.200}");
            silent += 1;
        }
    }
    eprintln!("read wrong: {noticed} noticed, {silent} of them only by this test");
    assert!(noticed > 0, "no bit mattered");
    assert_eq!(silent, 0, "bits went unnoticed");
}
