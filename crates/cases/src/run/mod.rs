//! One case on one host.

mod clock;
mod drive;
mod host;
mod idle;
mod ids;
mod model;
mod notes;
mod observed;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use crate::case::Case;
use crate::project::Project;
use crate::report::Problem;
use crate::run::idle::Idle;

pub(crate) use observed::{Child, Observed};

/// Runs a case to its end on this thread. An error says why nothing came of it.
pub(crate) fn run_case(project: &Project, case: &Case, timeout: Duration) -> Result<Observed, Vec<Problem>> {
    let idle = Arc::new(Idle::default());
    let told = Arc::clone(&idle);
    // One thread for everything: when it has nothing to do, nobody has.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().on_thread_park(move || told.nothing_to_do()).build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Err(vec![Problem::new("case", format!("the case cannot be run here: {error}"))]),
    };
    let ran = runtime.block_on(async { tokio::time::timeout(timeout, drive::drive(project, case, &idle)).await });
    ran.unwrap_or_else(|_| {
        let problem = Problem::new("timeout", format!("the case did not end within {} s", timeout.as_secs()));
        Err(vec![problem.hint(
            "does something in it repeat without end? `timeoutSeconds` of the case, or --timeout, gives it longer",
        )])
    })
}
