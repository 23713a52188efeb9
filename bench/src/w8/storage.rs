//! What an entry takes on disk.

use std::path::Path;

use anyhow::Result;

use super::{ENTRY_BYTES, fill};
use crate::Sizes;
use crate::footprint;
use crate::report::Report;
use crate::server::Baton;

/// Entries before the first look, so that new tables are not what is measured.
const BEFORE: usize = 100;

pub(super) async fn measure(report: &mut Report, baton: &Baton, folder: &Path, sizes: &Sizes) -> Result<()> {
    let data = tempfile::tempdir_in(folder)?;
    let server = baton.start(data.path()).await?;
    fill(&server, "bench-before", BEFORE).await?;
    let (server, before) = footprint::at_rest(server, baton, data.path()).await?;
    fill(&server, "bench-kept", sizes.read_entries).await?;
    let (server, after) = footprint::at_rest(server, baton, data.path()).await?;
    server.kill().await?;
    let each = after.saturating_sub(before) as f64 / sizes.read_entries as f64;
    let mut section = report.section("W8");
    section.show(format!("disk per entry of {ENTRY_BYTES} bytes"), each, "bytes");
    section.note(format!("growth of the files for {} entries", sizes.read_entries));
    Ok(())
}
