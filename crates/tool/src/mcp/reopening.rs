//! How often the event stream of a server is opened. The library opens a stream that broke again at once, for as long as
//! the session lasts, and a server may ask to be asked again at once. So a stream that did not last makes the next one
//! wait, ever longer.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

/// How long the next stream waits after one that did not last. Doubles with each of them.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait. Some servers end their streams on purpose and want to be asked again for the answer to a call: this
/// is the most that such an answer comes too late.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A stream that lasted this long was a good one, and so is a server that needed no new one for this long. Longer than
/// the longest wait, so that waiting alone makes nobody good.
const STEADY: Duration = Duration::from_secs(10);

/// The streams of one connection. Cheap to clone; clones share them.
#[derive(Clone)]
pub(super) struct Reopening(Arc<Mutex<Streams>>);

struct Streams {
    /// How many in a row did not last.
    short: u32,
    /// When the wait became longer last. Of streams that break together, the first counts.
    longer: Instant,
    /// When a stream ended last.
    ended: Instant,
}

/// A stream, from before it is asked for until it ends.
pub(super) struct Opened {
    streams: Reopening,
    since: Instant,
}

impl Default for Reopening {
    fn default() -> Self {
        let now = Instant::now();
        Self(Arc::new(Mutex::new(Streams { short: 0, longer: now, ended: now })))
    }
}

impl Reopening {
    /// Waits until a stream may be opened.
    pub(super) async fn turn(&self) -> Opened {
        let wait = self.0.lock().wait();
        if !wait.is_zero() {
            sleep(wait).await;
        }
        Opened { streams: self.clone(), since: Instant::now() }
    }
}

impl Streams {
    fn wait(&mut self) -> Duration {
        if self.ended.elapsed() >= STEADY {
            self.short = 0;
        }
        match self.short.checked_sub(1) {
            None => Duration::ZERO,
            // Five doublings are already longer than the longest wait.
            Some(doublings) => (FIRST_WAIT * 2_u32.pow(doublings.min(5))).min(LONGEST_WAIT),
        }
    }

    fn ended(&mut self, since: Instant) {
        let now = Instant::now();
        if now - since >= STEADY {
            self.short = 0;
        } else if since >= self.longer {
            self.short = self.short.saturating_add(1);
            self.longer = now;
        }
        self.ended = now;
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.streams.0.lock().ended(self.since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens streams, each when the one before has ended, and says how long each had to wait.
    async fn waits(streams: &Reopening, lasting: &[Duration]) -> Vec<u128> {
        let mut waits = Vec::new();
        for lasts in lasting {
            let asked = Instant::now();
            let opened = streams.turn().await;
            waits.push(asked.elapsed().as_millis());
            sleep(*lasts).await;
            drop(opened);
        }
        waits
    }

    #[tokio::test(start_paused = true)]
    async fn streams_that_do_not_last_are_opened_ever_more_slowly() {
        let streams = Reopening::default();
        let waited = waits(&streams, &[Duration::ZERO; 9]).await;
        assert_eq!(waited, [0, 250, 500, 1000, 2000, 4000, 5000, 5000, 5000]);
        // One that lasts makes up for all of them, when it ends.
        assert_eq!(waits(&streams, &[STEADY, Duration::ZERO, Duration::ZERO]).await, [5000, 0, 250]);
        // So does a time without any.
        sleep(STEADY).await;
        assert_eq!(waits(&streams, &[Duration::ZERO]).await, [0]);
    }

    #[tokio::test(start_paused = true)]
    async fn streams_that_break_together_count_once() {
        let streams = Reopening::default();
        let mut many = Vec::new();
        for _ in 0..100 {
            many.push(streams.turn().await);
        }
        sleep(Duration::from_secs(1)).await;
        drop(many);
        assert_eq!(waits(&streams, &[Duration::ZERO; 2]).await, [250, 500]);
    }
}
