//! Which signatures count: as the host is told, or as the command is.

use std::path::Path;

use baton_agent::{Checks, Provenance};

use crate::config::{CONFIG_FILE_ENV, Layered, checks};
use crate::context::Context;
use crate::failure::Failure;

/// Whose packs are taken for what they say they are: as the host is told, or as the command is.
#[derive(Debug, clap::Args)]
pub(super) struct Trust {
    /// Trusted signing key: ID=KEY or ID=file:PATH; may be repeated [default: the setting trusted_keys]
    #[arg(long, value_name = "KEY")]
    trusted_key: Vec<String>,
    /// Reject packs that no trusted key signed [default: the setting require_signed]
    #[arg(long)]
    require_signed: bool,
    /// Configuration file to read trusted_keys and require_signed from
    #[arg(long, value_name = "FILE", env = CONFIG_FILE_ENV)]
    config: Option<String>,
}

impl Trust {
    pub(super) fn checks(&self) -> Result<Checks, Failure> {
        let wrong = |error: crate::config::Error| Failure::usage(error.to_string());
        let mut layered = Layered::defaults();
        if let Some(path) = self.config.as_ref().filter(|path| !path.is_empty()) {
            layered.file(Path::new(path)).map_err(wrong)?;
        }
        for key in ["trusted_keys", "require_signed"] {
            layered.env_below(key, |name| std::env::var(name).ok()).map_err(wrong)?;
        }
        layered.key_flags(&self.trusted_key).map_err(wrong)?;
        let (keys, required) = (layered.list("trusted_keys"), layered.bool("require_signed"));
        checks(&keys, required || self.require_signed).map_err(Failure::usage)
    }

    pub(super) fn print(provenance: &Provenance, context: &Context) {
        match (provenance.key(), provenance.note()) {
            (Some(key), _) => context.output.note(format_args!("signed with {key}")),
            (None, note) => context.output.note(note.unwrap_or_default()),
        }
    }
}
