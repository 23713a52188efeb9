//! How many programs are started at the same time. A host with many of them, or with many that die at once, would
//! otherwise start all of them together, and none would get far.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Programs that are starting at the same time: starting one takes about one core.
const STARTS: usize = 8;
/// How long a program counts as starting, at most. Most are up by then; one that is mute holds up the others no longer.
const STARTING: Duration = Duration::from_secs(1);

/// The places of this host.
static PLACES: Semaphore = Semaphore::const_new(STARTS);

/// Starts when there is a place.
pub(super) async fn in_turn<T>(start: impl Future<Output = T>) -> T {
    in_turn_of(&PLACES, start).await
}

async fn in_turn_of<T>(places: &Semaphore, start: impl Future<Output = T>) -> T {
    // An error would mean that there are no places any more, and nobody takes them away.
    let place = places.acquire().await;
    let mut start = pin!(start);
    match timeout(STARTING, &mut start).await {
        Ok(started) => started,
        Err(_) => {
            drop(place);
            start.await
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::JoinSet;
    use tokio::time::{Instant, sleep};

    use super::*;

    /// Time stands still but for whoever sleeps.
    #[tokio::test(start_paused = true)]
    async fn few_start_at_the_same_time_and_mute_ones_make_room() {
        let (places, begun) = (Arc::new(Semaphore::new(STARTS)), Arc::new(AtomicUsize::new(0)));
        let mut starting = JoinSet::new();
        let start = |lasts: Duration, starting: &mut JoinSet<()>| {
            let (places, begun) = (Arc::clone(&places), Arc::clone(&begun));
            starting.spawn(async move {
                let program = async {
                    begun.fetch_add(1, Ordering::SeqCst);
                    sleep(lasts).await;
                };
                in_turn_of(&places, program).await;
            });
        };
        for _ in 0..10 * STARTS {
            start(Duration::from_secs(3600), &mut starting);
        }
        for round in 1..=10 {
            sleep(STARTING / 2).await;
            assert_eq!(begun.load(Ordering::SeqCst), round * STARTS);
            sleep(STARTING / 2).await;
        }
        // One that is up makes room at once.
        let before = Instant::now();
        let mut quick = JoinSet::new();
        for _ in 0..10 * STARTS {
            start(Duration::from_millis(1), &mut quick);
        }
        quick.join_all().await;
        assert_eq!(before.elapsed(), Duration::from_millis(10));
        // One that is given up while it waits or starts holds no place.
        starting.abort_all();
        while starting.join_next().await.is_some() {}
        assert_eq!(places.available_permits(), STARTS);
    }
}
