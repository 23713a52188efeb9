//! Many cases at once: a thread each for as many as there are jobs. A case that panics, or computes without end, is that
//! case's failure; the others go on.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::case::Case;
use crate::check::check;
use crate::load::Loaded;
use crate::project::Project;
use crate::report::{CaseReport, Problem, SuiteReport};
use crate::run::run_case;

/// Enough for everything that is bounded in depth, as on the threads that a host steps its runs on.
const STACK_BYTES: usize = 16 * 1024 * 1024;
/// How long a case may take in real time that says nothing about it: most take milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A case is asked to stop at its timeout. One that computes and cannot hear it is given up this much later.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(2);
/// How often it is looked whether one must be given up.
const LOOK: Duration = Duration::from_millis(100);
/// Threads that were given up still compute. With this many, nothing more is begun.
const MOST_GIVEN_UP: usize = 64;
/// More threads than this only wait for each other.
const MOST_JOBS: usize = 256;

/// How cases are run.
#[derive(Clone, Debug)]
pub struct Suite {
    /// How many at once; 0 is one for each core.
    pub jobs: usize,
    /// For cases that do not say how long they may take.
    pub timeout: Duration,
    /// Only cases whose file and name contain this.
    pub filter: Option<String>,
}

impl Default for Suite {
    fn default() -> Self {
        Self { jobs: 0, timeout: TIMEOUT, filter: None }
    }
}

/// Runs all cases and returns when each has ended or was given up.
pub fn run_suite(project: Arc<Project>, files: Vec<Loaded>, suite: &Suite) -> SuiteReport {
    let began = Instant::now();
    let mut report = SuiteReport::default();
    // By file and place, so that the report has the order of the files whoever ends first.
    let mut done: BTreeMap<(usize, usize, usize), CaseReport> = BTreeMap::new();
    let mut cases = Vec::new();
    for (file, loaded) in files.into_iter().enumerate() {
        for problem in loaded.problems {
            let (line, column) = (problem.position.line, problem.position.column);
            let mut shown = Problem::new("file", problem.message);
            shown.hint = problem.hint;
            let path = loaded.path.clone();
            let wrong =
                CaseReport { file: path, name: None, line, column, passed: false, millis: 0, problems: vec![shown] };
            done.insert((file, line, column), wrong);
        }
        for case in loaded.cases {
            if suite.filter.as_deref().is_none_or(|wanted| is_wanted(&case, wanted)) {
                cases.push((file, case));
            } else {
                report.skipped += 1;
            }
        }
    }
    for (number, result) in run_all(&project, &cases, suite) {
        let (file, case) = &cases[number];
        done.insert((*file, case.position.line, case.position.column), result);
    }
    report.cases = done.into_values().collect();
    report.passed = report.cases.iter().filter(|case| case.passed).count();
    report.failed = report.cases.len() - report.passed;
    report.millis = millis(began);
    report
}

fn is_wanted(case: &Case, wanted: &str) -> bool {
    case.name.contains(wanted) || case.file.to_string_lossy().contains(wanted)
}

fn run_all(project: &Arc<Project>, cases: &[(usize, Case)], suite: &Suite) -> BTreeMap<usize, CaseReport> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = if suite.jobs == 0 { cores } else { suite.jobs.min(MOST_JOBS) };
    let work = Arc::new(Work {
        project: Arc::clone(project),
        cases: cases.iter().map(|(_, case)| case.clone()).collect(),
        next: AtomicUsize::new(0),
        under_way: Mutex::default(),
        timeout: suite.timeout,
    });
    // A report for each job: nobody waits to hand one in.
    let (sender, reports) = mpsc::sync_channel(jobs);
    for _ in 0..jobs.min(cases.len()) {
        work.start_thread(&sender);
    }
    let mut done = BTreeMap::new();
    let mut given_up = 0;
    while done.len() < cases.len() {
        match reports.recv_timeout(LOOK) {
            // Of one that was given up nothing more is wanted.
            Ok((number, report)) => drop(done.entry(number).or_insert(report)),
            Err(RecvTimeoutError::Timeout) => {}
            // Every thread has ended, and some case has no report: they could not be started.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        for number in work.overdue() {
            let message = "the case was given up: it computes without end";
            done.entry(number).or_insert_with(|| {
                work.report(number, work.timeout_of(number), vec![Problem::new("timeout", message)])
            });
            given_up += 1;
            if given_up < MOST_GIVEN_UP {
                work.start_thread(&sender);
            }
        }
        if given_up >= MOST_GIVEN_UP {
            break;
        }
    }
    for number in 0..cases.len() {
        let message = "the case was not run: too many others were given up, or no thread could be started";
        done.entry(number).or_insert_with(|| work.report(number, Duration::ZERO, vec![Problem::new("case", message)]));
    }
    done
}

struct Work {
    project: Arc<Project>,
    cases: Vec<Case>,
    next: AtomicUsize,
    /// When each case that runs began.
    under_way: Mutex<BTreeMap<usize, Instant>>,
    timeout: Duration,
}

impl Work {
    /// A thread that takes case after case. One that cannot be started leaves its cases to the others.
    fn start_thread(self: &Arc<Self>, sender: &SyncSender<(usize, CaseReport)>) {
        let (work, sender) = (Arc::clone(self), sender.clone());
        let thread = std::thread::Builder::new().name("baton-case".to_owned()).stack_size(STACK_BYTES);
        drop(thread.spawn(move || {
            loop {
                let number = work.next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = work.cases.get(number) else { return };
                let began = Instant::now();
                work.under_way.lock().insert(number, began);
                let ran = catch_unwind(AssertUnwindSafe(|| {
                    run_case(&work.project, case, work.timeout_of(number))
                        .map_or_else(|problems| problems, |observed| check(case, &observed))
                }));
                let problems = ran.unwrap_or_else(|panic| {
                    vec![Problem::new("case", format!("the case panicked: {}", said(&*panic)))]
                });
                let wanted = work.under_way.lock().remove(&number).is_some();
                let report = work.report(number, began.elapsed(), problems);
                // One that was given up has a thread in its place, and nobody may listen any more.
                if !wanted || sender.send((number, report)).is_err() {
                    return;
                }
            }
        }));
    }

    fn timeout_of(&self, number: usize) -> Duration {
        let own = self.cases.get(number).and_then(|case| case.timeout_seconds);
        own.map_or(self.timeout, Duration::from_secs)
    }

    /// Cases that should have stopped long ago. Each is named once.
    fn overdue(&self) -> Vec<usize> {
        let mut under_way = self.under_way.lock();
        let late = |(number, began): (&usize, &Instant)| {
            (began.elapsed() > self.timeout_of(*number) + GIVEN_UP_AFTER).then_some(*number)
        };
        let overdue: Vec<usize> = under_way.iter().filter_map(late).collect();
        under_way.retain(|number, _| !overdue.contains(number));
        overdue
    }

    fn report(&self, number: usize, took: Duration, problems: Vec<Problem>) -> CaseReport {
        let case = &self.cases[number];
        CaseReport {
            file: case.file.clone(),
            name: Some(case.name.clone()),
            line: case.position.line,
            column: case.position.column,
            passed: problems.is_empty(),
            millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            problems,
        }
    }
}

fn millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a word".to_owned())
}
