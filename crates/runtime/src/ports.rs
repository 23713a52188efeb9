//! What rooms below the runs ask of them. A room is made before those that use it, so what it has to tell them goes
//! through a port that is connected once all of them are there.

use std::sync::{Arc, OnceLock, Weak};

use baton_engine::{Command, RemoteChildTask};
use baton_model::RunId;
use baton_store::WriteChain;
use futures_util::future::BoxFuture;

use crate::Error;
use crate::services::models::Wanted;

pub(crate) struct Port<T: ?Sized>(OnceLock<Weak<T>>);

impl<T: ?Sized> Default for Port<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T: ?Sized> Port<T> {
    pub(crate) fn connect(&self, to: &Arc<T>) {
        let _ = self.0.set(Arc::downgrade(to));
    }

    /// Whoever is there: nobody before the host is open and after it is gone, and then nobody has to be told.
    pub(crate) fn get(&self) -> Option<Arc<T>> {
        self.0.get().and_then(Weak::upgrade)
    }
}

/// Lets the runs of a tree go on that have something to do.
pub(crate) trait WakeTrees: Send + Sync {
    fn wake_runs_of(self: Arc<Self>, root: RunId) -> BoxFuture<'static, ()>;
}

impl Port<dyn WakeTrees> {
    pub(crate) async fn wake_tree(&self, root: &RunId) {
        if let Some(runs) = self.get() {
            runs.wake_runs_of(root.clone()).await;
        }
    }
}

/// Gives a run a command, and waits until its outcome is durable.
pub(crate) trait TellRuns: Send + Sync {
    fn tell(self: Arc<Self>, run: RunId, command: Command) -> BoxFuture<'static, Result<(), Error>>;
}

/// Makes what a run wants of the world come true. Called under the run's lock: it starts tasks and waits for nothing.
pub(crate) trait EffectSink: Send + Sync {
    /// The calls in flight for a run become those that it wants. `count` records must be on disk before one is made.
    fn see_to_calls(&self, chain: &Arc<WriteChain>, run: &RunId, count: u64, wanted: Vec<Wanted>);
    /// The same for its children on other hosts.
    fn see_to_remote_children(
        &self,
        chain: &Arc<WriteChain>,
        run: &RunId,
        count: u64,
        paused: bool,
        wanted: Vec<RemoteChildTask>,
    );
}

impl Port<dyn EffectSink> {
    pub(crate) fn see_to_calls(&self, chain: &Arc<WriteChain>, run: &RunId, count: u64, wanted: Vec<Wanted>) {
        if let Some(sink) = self.get() {
            sink.see_to_calls(chain, run, count, wanted);
        }
    }

    pub(crate) fn see_to_remote_children(
        &self,
        chain: &Arc<WriteChain>,
        run: &RunId,
        count: u64,
        paused: bool,
        wanted: Vec<RemoteChildTask>,
    ) {
        if let Some(sink) = self.get() {
            sink.see_to_remote_children(chain, run, count, paused, wanted);
        }
    }
}
