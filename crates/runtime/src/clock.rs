//! Time and chance as ports, so that tests own both.

use async_trait::async_trait;
use baton_model::{RunId, Timestamp};

/// How long a run, or the store, is left alone after it could not be reached.
pub(crate) const RETRY_MS: u64 = 1000;

#[async_trait]
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
    /// Resolves once `now()` has reached `at`.
    async fn until(&self, at: Timestamp);
}

/// Names for what has no place to be derived from.
pub trait Ids: Send + Sync {
    fn run(&self) -> RunId;
    /// Lowercase hexadecimal, `bytes` bytes long, unguessable.
    fn secret(&self, bytes: usize) -> String;
}

pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }

    async fn until(&self, at: Timestamp) {
        loop {
            let micros = at.as_micros() - self.now().as_micros();
            if micros <= 0 {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_micros(micros.unsigned_abs())).await;
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
