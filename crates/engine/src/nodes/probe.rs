//! The conformance suite's memory checks, which it drives through a setting of `core.identity`. They go through the
//! same service as every other write; see [`crate::node_request::Probe`].

use baton_model::Fault;

use super::Done;
use super::config::Config;
use super::memory::wrong_answer;
use crate::node_request::{Found, Probe};
use crate::plan::Problem;

pub(super) fn compile(config: &Config<'_>) -> Result<Probe, Vec<Problem>> {
    config.only(&["memoryAction", "probeMemoryRef", "byokSecretId"])?;
    match config.required_text("memoryAction")?.as_str() {
        "write-then-read" => Ok(Probe::WriteThenRead),
        "ttl-probe" => Ok(Probe::Ttl),
        "cross-tenant-probe" => Ok(Probe::CrossTenant { memory_ref: config.required_text("probeMemoryRef")? }),
        "redaction-probe" => Ok(Probe::Redaction { secret: config.required_text("byokSecretId")? }),
        other => Err(config.problem("memoryAction", format!("There is no memory action `{other}`."))),
    }
}

pub(super) fn finish(found: Found) -> Result<Done, Fault> {
    match found {
        Found::Variables(variables) => {
            Ok(Done { outputs: variables.clone(), variables: variables.into_iter().collect(), ..Done::default() })
        }
        _ => Err(wrong_answer()),
    }
}
