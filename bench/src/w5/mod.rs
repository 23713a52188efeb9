//! W5: forks. Making one is one commit, however long the log it comes from; replaying and verifying go through that
//! log again.

mod latency;
mod storage;
mod throughput;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::Sizes;
use crate::api;
use crate::http::Connection;
use crate::long_log;
use crate::report::Report;
use crate::server::Baton;

/// No fork takes nearly as long as this to end.
const FORK_LIMIT: Duration = Duration::from_secs(60);
const FORK_POLL: Duration = Duration::from_millis(1);
const SCOPE: &str = "bench-forked";

pub(crate) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    let mut connection = server.connect().await?;
    remember_something(&mut connection).await?;
    let mut logs = Vec::with_capacity(sizes.log_lengths.len());
    for &length in sizes.log_lengths {
        logs.push((length, long_log::build(&mut connection, length, SCOPE).await.context("build a long log")?));
    }
    latency::measure(report, &mut connection, folder, &logs, sizes).await?;
    if let Some((_, longest)) = logs.last() {
        throughput::measure(report, &mut connection, longest).await?;
    }
    server.kill().await?;
    storage::measure(report, baton, folder, sizes).await
}

/// A run that remembers something shares that with its branches as well.
async fn remember_something(connection: &mut Connection) -> Result<()> {
    api::remember(connection, SCOPE, r#"{"content":"shared by all forks"}"#).await?;
    Ok(())
}
