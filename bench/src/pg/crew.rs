//! Several hosts on one database.

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;
use tokio::task::JoinSet;

use crate::load::Load;
use crate::server::{Baton, Server};
use crate::stats::Samples;

pub(super) struct Crew {
    pub(super) servers: Vec<Server>,
    folders: Vec<TempDir>,
}

impl Crew {
    pub(super) async fn start(
        baton: &Baton,
        folder: &Path,
        database: &str,
        hosts: usize,
        lease: Duration,
    ) -> Result<Self> {
        let mut crew = Self { servers: Vec::new(), folders: Vec::new() };
        for _ in 0..hosts {
            let own = tempfile::tempdir_in(folder)?;
            crew.servers.push(baton.start_on(own.path(), database, lease).await?);
            crew.folders.push(own);
        }
        Ok(crew)
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(Server::address).collect()
    }

    pub(super) async fn kill(self) -> Result<()> {
        for server in self.servers {
            server.kill().await?;
        }
        Ok(())
    }
}

/// A load that several hosts carried together.
pub(super) struct Carried {
    pub(super) rate: f64,
    pub(super) samples: Samples,
}

/// Puts clients on all hosts at the same time, as many on each.
pub(super) async fn share<F>(addresses: &[SocketAddr], clients: usize, load: F) -> Result<Carried>
where
    F: AsyncFn(SocketAddr, usize) -> Result<Load> + 'static,
{
    let load = Rc::new(load);
    let mut tasks = JoinSet::new();
    for (at, address) in addresses.iter().copied().enumerate() {
        // Whoever comes first takes what does not divide.
        let each = clients / addresses.len() + usize::from(at < clients % addresses.len());
        let load = Rc::clone(&load);
        tasks.spawn_local(async move { load(address, each).await });
    }
    let (mut rate, mut durations) = (0.0, Vec::new());
    while let Some(finished) = tasks.join_next().await {
        let load = finished??;
        rate += load.rate();
        durations.extend(load.samples.into_durations());
    }
    Ok(Carried { rate, samples: Samples::new(durations) })
}
