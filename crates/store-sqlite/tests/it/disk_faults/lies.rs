//! A disk that says it has synced and has not.

use baton_faulty_disk::{Fault, Op, Part, What};

use baton_store::Journal as _;

use super::world::{World, after_power_loss, seeds, whole_commits};

/// Nobody can keep what such a disk was given. But what is lost is the end, and nothing in the middle.
#[tokio::test]
async fn what_a_lying_disk_loses_is_the_end() {
    let mut lost = 0;
    for seed in seeds(6) {
        let mut world = World::new(seed).await;
        for _ in 0..5 {
            world.commit(2000).await.unwrap();
        }
        let honest = world.acknowledged;
        world.disk.inject(Fault::lasting(Op::Sync, Part::Wal, What::Lie));
        for _ in 0..5 {
            world.commit(2000).await.unwrap();
        }
        let (count, _left) = after_power_loss(&world.disk, seed).await.unwrap();
        assert!((honest..=world.acknowledged).contains(&count), "seed {seed}: {count}");
        // A loss that stands for itself is silent: what is left looks like what a crash leaves. A note of the last commit,
        // kept outside of this file, is what would tell.
        lost += world.acknowledged - count;
        world.disk.heal();
        world.commit(100).await.unwrap();
        let (count, _left) = after_power_loss(&world.disk, seed).await.unwrap();
        assert_eq!(count, world.acknowledged, "a disk that stops lying has everything");
    }
    assert!(lost > 0, "the disk lost nothing");
}

/// It lies about everything while the log is folded back and written over. Then the file can be in pieces: what the store
/// owes is that it says so, or has whole commits from the beginning on.
#[tokio::test]
async fn a_disk_that_lies_while_the_log_is_folded_back_leaves_a_beginning_or_is_noticed() {
    let (mut noticed, mut whole) = (0, 0);
    for seed in seeds(6) {
        let mut world = World::new(seed).await;
        for part in [Part::Wal, Part::Database] {
            world.disk.inject(Fault::lasting(Op::Sync, part, What::Lie));
        }
        for _ in 0..10 {
            world.commit(6000).await.unwrap();
        }
        world.store.close().await;
        match after_power_loss(&world.disk, seed).await {
            Ok((count, _left)) => {
                assert!(count <= world.acknowledged);
                whole += 1;
            }
            Err(_) => noticed += 1,
        }
        let store = super::world::open(world.dir.path()).unwrap();
        assert_eq!(whole_commits(&store).await, Ok(world.acknowledged), "as long as the power stays on");
    }
    eprintln!("{noticed} noticed, {whole} a beginning");
}
