//! Time and chance as ports, so that tests own both.

use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use baton_model::{RunId, Timestamp};

use crate::steady_clock::{Machine, SteadyClock};

/// How long a run, or the store, is left alone after it could not be reached.
pub(crate) const RETRY_MS: u64 = 1000;

#[async_trait]
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
    /// Resolves once `now()` has reached `at`.
    async fn until(&self, at: Timestamp);
    /// The same for housekeeping, which no run waits for: a clock that jumps from one moment to the next need not stop
    /// there.
    async fn until_housekeeping(&self, at: Timestamp) {
        self.until(at).await;
    }
}

/// Names for what has no place to be derived from.
pub trait Ids: Send + Sync {
    fn run(&self) -> RunId;
    /// Lowercase hexadecimal, `bytes` bytes long, unguessable.
    fn secret(&self, bytes: usize) -> String;
}

/// The longest sleep before the time is asked for again: the timers of the operating system may stand still while the
/// machine sleeps, and time does not.
const LONGEST_SLEEP: Duration = Duration::from_secs(2);

/// The time of this process; see [`crate::steady_clock`].
pub struct SystemClock;

static STEADY: LazyLock<SteadyClock<Machine>> = LazyLock::new(|| SteadyClock::new(Machine));

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(STEADY.now())
    }

    async fn until(&self, at: Timestamp) {
        loop {
            let micros = at.as_micros() - self.now().as_micros();
            if micros <= 0 {
                return;
            }
            tokio::time::sleep(Duration::from_micros(micros.unsigned_abs()).min(LONGEST_SLEEP)).await;
        }
    }
}

pub struct RandomIds;

impl Ids for RandomIds {
    fn run(&self) -> RunId {
        RunId::from_uuid(uuid::Uuid::now_v7())
    }

    fn secret(&self, bytes: usize) -> String {
        let mut buffer = vec![0; bytes];
        // Without randomness no secret can be made; a UUID is the best that is left and still unique.
        if getrandom::fill(&mut buffer).is_err() {
            return baton_model::Digest::of_bytes(uuid::Uuid::now_v7().as_bytes()).as_str().to_owned();
        }
        baton_model::json::hex(&buffer)
    }
}
