//! The disk that every seed begins with: the workflows are registered on it. Made once for each process.

use std::sync::{Arc, OnceLock};

use baton_runtime::{AgentRegistry, Host, Options};
use baton_store::{Disk, MemoryStore};
use baton_testkit::{SeededIds, SimClock};

use crate::workflows::{self, tenants};

pub(crate) fn prepared_disk() -> Disk {
    static DISK: OnceLock<Disk> = OnceLock::new();
    DISK.get_or_init(|| std::thread::scope(|scope| scope.spawn(prepare).join().expect("the disk is prepared"))).clone()
}

fn prepare() -> Disk {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a scheduler").block_on(async {
        let store = Arc::new(MemoryStore::new());
        let options =
            Options { agent_registry: AgentRegistry::default().with(None, workflows::card()), ..Options::default() };
        let clock = Arc::new(SimClock::at(baton_model::Timestamp::from_millis(1_799_999_000_000)));
        let host = Host::open_with(Arc::clone(&store) as _, options, clock, Arc::new(SeededIds::new(0)));
        let host = host.await.expect("a host opens");
        for definition in workflows::all() {
            for tenant in tenants() {
                let registered = host.register_workflow(&tenant, definition.clone()).await;
                registered.unwrap_or_else(|error| panic!("{}: {error:?}", definition["id"]));
            }
        }
        let disk = store.disk();
        host.shutdown().await;
        disk
    })
}
