//! What a pack requires of its host, and what the operator lets it do without.

use std::collections::BTreeSet;

use baton_agent::{Pack, Problem};

use crate::context::Context;
use crate::hosting::offered::offered_in_general;

/// What a pack may do without, by whoever says so.
#[derive(Debug, clap::Args)]
pub(super) struct Waivers {
    /// Something the pack wants of its host and may do without; the host's `waive` must have it too
    #[arg(long, value_name = "KEY", env = "BATON_WAIVE", value_delimiter = ',')]
    waive: Vec<String>,
}

impl Waivers {
    pub(super) fn keys(&self) -> BTreeSet<String> {
        self.waive.iter().map(|key| key.trim().to_owned()).collect()
    }

    /// What a pack wants and no host of this version has, though it may be used all the same; or why it may not.
    pub(super) fn unmet(&self, pack: &Pack) -> Result<Vec<String>, Vec<Problem>> {
        let manifest = &pack.manifest;
        manifest.wishes(&manifest.name, &offered_in_general(), &self.keys()).map_err(|problem| vec![problem])
    }

    pub(super) fn tell(unmet: &[String], context: &Context) {
        if !unmet.is_empty() {
            let keys = unmet.join(", ");
            context.output.note(format_args!("no host of this version offers {keys}: its agents show as degraded"));
        }
    }
}
