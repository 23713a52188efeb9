//! Is this machine fit to hold the log? Each check says what it found and, where something is wrong, how to fix it.

mod clock;
mod configuration;
mod connections;
mod database;
mod disk;
mod finding;
mod permissions;
mod storage;

use self::finding::{DataLocation, State};
use super::serve;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::target::{DEFAULT_URL, Target};

/// The host that may be running: where `--listen` says, else the one that other commands talk to, else, when nothing names
/// one, where this configuration would listen.
fn target(args: &serve::Args, context: &Context) -> Target {
    let named = context.target.url != DEFAULT_URL;
    let listen = args.listen.or_else(|| if named { None } else { args.config().ok().map(|config| config.listen) });
    match listen.filter(|address| address.port() != 0) {
        Some(address) => Target::listening(address),
        None => context.target.clone(),
    }
}

/// Takes the flags of `serve`: it is that configuration which is judged.
pub(crate) async fn run(args: serve::Args, context: &Context) -> Result<Exit, Failure> {
    let (kept, mut findings) = configuration::check(&args);
    match &kept {
        DataLocation::Folder(data, access) => {
            findings.push(permissions::check(data, *access));
            findings.push(disk::free_space(data));
            findings.push(disk::fsync_latency(data));
            findings.push(clock::check(data));
            findings.push(storage::integrity(data));
        }
        DataLocation::Database(settings) => findings.push(database::check(settings).await),
    }
    let target = target(&args, context);
    findings.push(storage::host(&target).await);
    if let Ok(config) = args.config() {
        findings.extend(connections::check(&config, &target).await);
    }
    let wrong = findings.iter().any(|finding| finding.state == State::Wrong);
    let output = &context.output;
    if output.is_json() {
        output.json(&findings)?;
    } else {
        for finding in &findings {
            let mark = match finding.state {
                State::Ok => "ok",
                State::Warning => "warning",
                State::Wrong => "WRONG",
            };
            output.line(format_args!("{mark:<8} {:<14} {}", finding.name, finding.found))?;
            if let Some(fix) = &finding.fix {
                output.line(format_args!("{:<23} fix: {fix}", ""))?;
            }
        }
    }
    Ok(if wrong { Exit::Failed } else { Exit::Ok })
}
