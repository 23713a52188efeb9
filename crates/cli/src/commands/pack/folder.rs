//! The folder that packs are in.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Where packs are when nobody says.
pub(super) const PACKS: &str = "packs";

/// The folder of packs of one tenant, or of all.
pub(super) fn folder(packs: &Path, tenant: Option<&str>) -> Result<PathBuf, Failure> {
    match tenant {
        None => Ok(packs.to_owned()),
        Some(tenant) => baton_agent::tenant_folder(packs, tenant).map_err(|problem| Failure::usage(problem.message)),
    }
}
