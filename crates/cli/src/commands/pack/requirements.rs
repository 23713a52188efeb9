//! What a pack requires of its host, and what the operator lets it do without.

use std::collections::BTreeSet;

use baton_agent::{Pack, Problem};

use crate::context::Context;
use crate::hosting::offered::offered_in_general;

/// Requirements that may be missing, by whoever says so.
#[derive(Debug, clap::Args)]
pub(super) struct IgnoredRequirements {
    /// Accept a pack even if the host lacks this requirement; may be repeated. The host needs it in `ignore_requirements`
    #[arg(long = "ignore-requirement", value_name = "KEY", env = "BATON_IGNORE_REQUIREMENTS", value_delimiter = ',')]
    keys: Vec<String>,
    /// The old name of --ignore-requirement
    #[arg(long, value_name = "KEY", env = "BATON_WAIVE", value_delimiter = ',', hide = true)]
    waive: Vec<String>,
}

impl IgnoredRequirements {
    pub(super) fn keys(&self, context: &Context) -> BTreeSet<String> {
        if !self.waive.is_empty() {
            context.output.note(
                "warning: --waive and BATON_WAIVE are called --ignore-requirement and BATON_IGNORE_REQUIREMENTS now; \
                 the old names stop working in the next version",
            );
        }
        self.keys.iter().chain(&self.waive).map(|key| key.trim().to_owned()).collect()
    }

    /// What a pack requires and no host of this version has, though it may be used all the same; or why it may not.
    pub(super) fn unmet(&self, pack: &Pack, context: &Context) -> Result<Vec<String>, Vec<Problem>> {
        let manifest = &pack.manifest;
        let unmet = manifest.unmet_requirements(&manifest.name, &offered_in_general(), &self.keys(context));
        unmet.map_err(|problem| vec![problem])
    }

    pub(super) fn print(unmet: &[String], context: &Context) {
        if !unmet.is_empty() {
            let keys = unmet.join(", ");
            context.output.note(format_args!("no host of this version offers {keys}: its agents show as degraded"));
        }
    }
}
