//! How fast a thread computes for a tenant that uses much while others work: in short segments with rests in between. A
//! thread that was just woken for somebody else waits for the end of a segment at most, whatever the operating system
//! thinks of whose turn it is. Nothing but the run itself is held during a rest.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long others wait for a core at most: less than a write to the disk takes.
const STRETCH: Duration = Duration::from_micros(200);
/// How much longer than a segment the rest after it is. All those who rest have half of the step threads, one for each
/// core: together they use a sixth of the machine while others work.
const RESTS: u32 = 5;
/// The longest rest. What cannot be interrupted may compute longer than a segment, and is not made up for in full.
const LONGEST_REST: Duration = Duration::from_millis(10);

thread_local! {
    /// Since when this thread computes for somebody who is to rest; none if it does not.
    static COMPUTING_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
    /// What it has computed for such tenants since its last rest, before that.
    static UNRESTED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Does work with rests. Only the outermost call counts.
pub(crate) fn paced<R>(rests: bool, work: impl FnOnce() -> R) -> R {
    if !rests || COMPUTING_SINCE.get().is_some() {
        return work();
    }
    let _ended = Ended;
    COMPUTING_SINCE.set(Some(Instant::now()));
    work()
}

/// The same for work that waits in between.
pub(crate) async fn paced_polls<F: Future>(rests: bool, work: F) -> F::Output {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|context| paced(rests, || work.as_mut().poll(context))).await
}

/// Also after a panic.
struct Ended;

impl Drop for Ended {
    fn drop(&mut self) {
        if let Some(since) = COMPUTING_SINCE.take() {
            UNRESTED.set(UNRESTED.get() + since.elapsed());
        }
    }
}

/// Rests, if this thread computes for somebody who is to and it is time.
pub(crate) fn breather() {
    let Some(since) = COMPUTING_SINCE.get() else { return };
    let computed = UNRESTED.get() + since.elapsed();
    if computed >= STRETCH {
        std::thread::sleep((computed * RESTS).min(LONGEST_REST));
        UNRESTED.set(Duration::ZERO);
        COMPUTING_SINCE.set(Some(Instant::now()));
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;

    /// Computes for so long, and says how often it rested.
    fn rests_in(time: Duration) -> usize {
        let (mut computed, mut rests) = (Duration::ZERO, 0);
        while computed < time {
            let before = Instant::now();
            while before.elapsed() < STRETCH / 4 {
                std::hint::spin_loop();
            }
            computed += before.elapsed();
            let since = COMPUTING_SINCE.get();
            breather();
            rests += usize::from(COMPUTING_SINCE.get() != since);
        }
        rests
    }

    #[test]
    fn who_computes_for_long_rests_and_nobody_else_does() {
        assert_eq!(rests_in(3 * STRETCH), 0);
        assert_eq!(paced(false, || rests_in(3 * STRETCH)), 0);
        assert!(paced(true, || rests_in(3 * STRETCH)) >= 1);
        // What was computed in the one before counts in the next.
        let rests: usize = (0..40).map(|_| paced(true, || rests_in(Duration::from_nanos(1)))).sum();
        assert!(rests >= 1);
        assert!(catch_unwind(|| paced(true, || panic!("as tests do"))).is_err());
        assert_eq!(rests_in(3 * STRETCH), 0, "it is over, however it ended");
    }
}
