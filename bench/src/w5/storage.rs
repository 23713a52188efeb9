//! What a fork takes on disk: a branch that ends at once shares nearly everything with its source.

use std::path::Path;

use anyhow::Result;

use super::{FORK_LIMIT, FORK_POLL, SCOPE, remember_something};
use crate::Sizes;
use crate::api;
use crate::footprint;
use crate::long_log;
use crate::report::Report;
use crate::server::Baton;

const SOURCE_EVENTS: usize = 1_000;

pub(super) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    let mut connection = server.connect().await?;
    remember_something(&mut connection).await?;
    let source = long_log::build(&mut connection, SOURCE_EVENTS, SCOPE).await?;
    let (server, before) = footprint::at_rest(server, baton, data.path()).await?;
    let mut connection = server.connect().await?;
    for _ in 0..sizes.kept_forks {
        let (fork, _) = api::fork(&mut connection, &source.run, "branch", source.last()).await?;
        api::await_end(&mut connection, &fork, FORK_LIMIT, FORK_POLL).await?;
    }
    let (server, after) = footprint::at_rest(server, baton, data.path()).await?;
    server.kill().await?;
    let each = after.saturating_sub(before) as f64 / sizes.kept_forks as f64;
    let mut section = report.section("W5");
    section.show("disk per branch that ends at once", each, "bytes");
    section.note(format!("growth of the files for {} forks of a log of {} events", sizes.kept_forks, source.events));
    Ok(())
}
