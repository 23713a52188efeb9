//! Many at once, on threads that really meet.

use std::sync::Arc;

use baton_store_sqlite::SqliteStore;
use baton_testkit::Flow;

use super::{World, options};

pub fn spawn<T: Send + 'static>(
    world: &Arc<World>,
    work: impl AsyncFnOnce(Arc<World>) -> T + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    let world = Arc::clone(world);
    // Each racer on a thread of its own, so that they really meet.
    tokio::task::spawn_blocking(move || tokio::runtime::Handle::current().block_on(work(world)))
}

/// Each race on a disk that is there at once, and on a real one whose commits come later and from another thread.
pub async fn on_every_store<const N: usize>(flows: [Flow; N], race: impl AsyncFn(Arc<World>)) {
    let folder = tempfile::tempdir().unwrap();
    let sqlite = Arc::new(SqliteStore::open(folder.path()).unwrap());
    let worlds = [World::new().await, World::over(sqlite, Arc::default(), Arc::default(), options(512)).await];
    for world in worlds.map(Arc::new) {
        for flow in &flows {
            world.register(flow.clone()).await;
        }
        race(Arc::clone(&world)).await;
        world.host.shutdown().await;
    }
}
