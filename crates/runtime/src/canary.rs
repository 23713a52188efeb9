//! Whether work moves. A small write goes the whole way every few seconds: a step thread, a turn, the writer, the disk,
//! and back through a reader. The host is ready while that works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_model::TenantId;
use baton_store::Store;
use parking_lot::Mutex;

use crate::Options;
use crate::steps::StepPool;
use crate::tasks::Tasks;

/// How often the way is tried. Each time costs one small commit.
const EVERY: Duration = Duration::from_secs(5);
/// After how long a try counts as lost. It goes on being waited for: a second one behind it would not come back sooner.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Nobody's tenant: it takes its turn like anybody.
const TENANT: &str = "*canary";

#[derive(Default)]
pub(crate) struct Canary {
    /// Whether it has ever come back.
    lived: AtomicBool,
    trouble: Mutex<Option<String>>,
}

impl Canary {
    fn came_back(&self) {
        self.lived.store(true, Ordering::Release);
        *self.trouble.lock() = None;
    }

    fn missing(&self, why: String) {
        let mut trouble = self.trouble.lock();
        if trouble.is_none() {
            tracing::warn!(%why, "work does not get through");
        }
        *trouble = Some(why);
    }
}

/// Tries every few seconds whether a write gets through.
pub(crate) struct CanaryWatch {
    pub(crate) canary: Arc<Canary>,
    pub(crate) options: Arc<Options>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) pool: Arc<StepPool>,
    pub(crate) tasks: Arc<Tasks>,
}

impl CanaryWatch {
    /// Why no work gets through, if none does, or none has yet.
    pub(crate) fn canary_trouble(&self) -> Option<String> {
        self.options.watchdog.as_ref()?;
        let trouble = self.canary.trouble.lock().clone();
        trouble.or_else(|| {
            let lived = self.canary.lived.load(Ordering::Acquire);
            (!lived).then(|| "starting: no write has gone through yet".to_owned())
        })
    }

    pub(crate) async fn keep_canary(self: &Arc<Self>) {
        while !self.tasks.stop.is_cancelled() {
            let probe = self.pool.on_step_threads(self, |room| async move {
                drop(room.pool.turn(&TenantId::new(TENANT)).await);
                Ok(room.store.probe().await?)
            });
            tokio::pin!(probe);
            let outcome = tokio::select! {
                biased;
                outcome = &mut probe => outcome,
                () = self.tasks.stop.cancelled() => return,
                () = tokio::time::sleep(TIMEOUT) => {
                    self.canary.missing(format!("a write has not gone through for {} seconds", TIMEOUT.as_secs()));
                    tokio::select! {
                        biased;
                        outcome = &mut probe => outcome,
                        () = self.tasks.stop.cancelled() => return,
                    }
                }
            };
            match outcome {
                Ok(()) => self.canary.came_back(),
                Err(error) => {
                    self.canary.missing(error.source.as_ref().map_or(error.message.clone(), ToString::to_string))
                }
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep(EVERY) => {}
                () = self.tasks.stop.cancelled() => {}
            }
        }
    }
}
