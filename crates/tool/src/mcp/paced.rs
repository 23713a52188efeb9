//! What one server may cost the host by talking: so many messages and bytes a second, then it waits.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

const PERIOD: Duration = Duration::from_secs(1);
/// Messages in one period. Reading this many costs a few percent of one core; no server has that much to say.
const LINES_PER_PERIOD: usize = 10_000;
/// Bytes in one period: four of the largest messages.
const BYTES_PER_PERIOD: usize = 32 * 1024 * 1024;

/// Counts what arrives in a period. Cheap to clone; clones count together: a server that is read over several streams, or
/// over one that is made again and again, says no more in a second than one with a single stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace(Arc<Mutex<Counted>>);

#[derive(Debug)]
struct Counted {
    began: Instant,
    lines: usize,
    bytes: usize,
}

impl Default for Counted {
    fn default() -> Self {
        Self { began: Instant::now(), lines: 0, bytes: 0 }
    }
}

impl Pace {
    /// Until when nothing more is to be read, if this was too much.
    pub(super) fn observe(&self, read: &[u8]) -> Option<Instant> {
        self.count(read.len(), read.iter().filter(|byte| **byte == b'\n').count())
    }

    /// The same for a part of one long message, whose lines say nothing.
    pub(super) fn observe_part(&self, read: &[u8]) -> Option<Instant> {
        self.count(read.len(), 0)
    }

    fn count(&self, bytes: usize, lines: usize) -> Option<Instant> {
        let mut counted = self.0.lock();
        let now = Instant::now();
        if now >= counted.began + PERIOD {
            *counted = Counted { began: now, lines: 0, bytes: 0 };
        }
        counted.bytes += bytes;
        counted.lines += lines;
        let over = counted.lines > LINES_PER_PERIOD || counted.bytes > BYTES_PER_PERIOD;
        over.then(|| counted.began + PERIOD)
    }
}
