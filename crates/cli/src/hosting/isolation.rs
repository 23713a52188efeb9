//! What keeps one run from being everybody's trouble: threads to step on, notes that survive a crash, and a watchdog
//! that ends a process which no longer gets on.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_runtime::{BeforeStep, BeforeWork, Options, StepNotes, StepThreads, Watchdog, WorkKind};

use crate::config::Config;
use crate::exit::Exit;
use crate::failure::Failure;

/// In conformance mode, and only if this is set: runs tagged `fault:abort`, `fault:panic` or `fault:spin` do that when
/// they go on by themselves, replays of runs tagged `fault-replay:abort` and so on do it, and runs of the workflow
/// [`FAULTY_CHILD`] end the process in their first step. Without a way to misbehave, nothing here could be tested.
const FAULTS_BY_TAG: &str = "TEST_FAULTS_BY_TAG";
const FAULTY_CHILD: &str = "fault-abort-at-start";

/// A step that computes as much as it may takes some milliseconds, most take far less than one: whoever waits for a turn
/// waits for this, and for one step more.
const LONGEST_BURST: Duration = Duration::from_millis(10);

pub(crate) fn isolate(options: Options, config: &Config) -> Result<Options, Failure> {
    let threads = StepThreads::new().map_err(|error| {
        Failure::new(Exit::Failed, format!("the threads that run steps cannot be started: {error}"))
    })?;
    let faults = config.conformance && std::env::var_os(FAULTS_BY_TAG).is_some();
    Ok(Options {
        step_threads: Some(threads),
        longest_burst: Some(LONGEST_BURST),
        // A database that hosts share keeps its own notes.
        step_notes: if config.database.is_none() { notes(&config.data) } else { None },
        watchdog: Some(watchdog(config.stuck_after_seconds)),
        before_step: faults.then(|| {
            BeforeStep(Arc::new(|row, goes_on| {
                if row.workflow.as_str() == FAULTY_CHILD {
                    std::process::abort();
                }
                if goes_on {
                    misbehave(&row.tags, "fault:");
                }
            }))
        }),
        before_work: faults.then(|| {
            BeforeWork(Arc::new(|work| {
                if work.kind == WorkKind::Replay {
                    misbehave(work.tags, "fault-replay:");
                }
            }))
        }),
        ..options
    })
}

fn watchdog(stuck_after_seconds: u64) -> Watchdog {
    let end = Arc::new(|why: &str| {
        eprintln_last(why);
        std::process::exit(Exit::Stuck as i32);
    });
    let dog = Watchdog::new(end);
    // In whole seconds, and looks are closer together.
    let stuck_after = stuck_after_seconds.max(1).saturating_mul(Watchdog::LOOKS_PER_SECOND);
    Watchdog { stuck_after, end_after: stuck_after.saturating_mul(2), ..dog }
}

fn notes(data: &Path) -> Option<Arc<StepNotes>> {
    match StepNotes::open(data) {
        Ok(notes) => Some(Arc::new(notes)),
        Err(error) => {
            // A full or read-only disk still lets people look at what is there.
            tracing::warn!(%error, "what is being stepped cannot be noted, so a run that ends the process is not found out");
            None
        }
    }
}

#[expect(clippy::print_stderr, reason = "the last words of a process whose log may not get written any more")]
fn eprintln_last(why: &str) {
    eprintln!("baton: stuck: {why}");
}

fn misbehave(tags: &[String], prefix: &str) {
    for fault in tags.iter().filter_map(|tag| tag.strip_prefix(prefix)) {
        match fault {
            "abort" => std::process::abort(),
            "spin" => loop {
                std::hint::spin_loop();
            },
            #[expect(clippy::panic, reason = "this is what was asked for")]
            "panic" => panic!("a run tagged {prefix}panic went on"),
            _ => {}
        }
    }
}
