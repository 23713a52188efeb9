//! Starts what the case is about, answers its questions and lets time pass, until it has ended or nothing more will come.

use std::collections::BTreeMap;

use baton_model::{InvocationSource, RunId, RunStatus, Timestamp};
use baton_runtime::{Answer, Clock as _, StartRun, Via};
use baton_store::{InterruptFilter, InterruptRow, RunReads as _};

use super::host::{self, CaseHost};
use super::idle::Idle;
use super::observed::{self, Observed};
use crate::case::{AnswerDef, Asked, Case, Subject};
use crate::project::Project;
use crate::report::Problem;

/// A run that waits longer in all was not meant to end in a test.
const LONGEST_MS: u64 = 10 * 366 * 24 * 60 * 60 * 1000;
/// How often time may jump: a run that waits for a minute again and again does so for months.
const MOST_JUMPS: u64 = 200_000;
/// Questions that are looked at at a time. Others are, once these are answered.
const OPEN_AT_ONCE: usize = 1_000;

pub(super) async fn drive(project: &Project, case: &Case, idle: &Idle) -> Result<Observed, Vec<Problem>> {
    let host = host::open(project, case).await?;
    let run = start(&host, case).await?;
    let mut driver = Driver { host: &host, case, run: &run, given: BTreeMap::new() };
    let ended = driver.drive_on(idle).await;
    let mut problems = host.notes.take_problems();
    match ended {
        Ok(()) => {}
        Err(problem) => problems.push(problem),
    }
    let left: Vec<usize> = (0..case.answers.len()).filter(|number| !driver.is_given(*number)).collect();
    let observed = observed::observe(&host, run, problems, &left).await;
    baton_store::Journal::close(&*host.store).await;
    observed
        .map_err(|error| vec![Problem::new("case", format!("what came of the run cannot be read: {}", error.message))])
}

async fn start(host: &CaseHost, case: &Case) -> Result<RunId, Vec<Problem>> {
    let request =
        StartRun { inputs: case.inputs.clone(), configurable: case.configurable.clone(), ..StartRun::default() };
    let started = match (&case.subject, &host.workflow) {
        (Subject::Agent(agent), _) => {
            host.host.start_agent(&host.who, agent, InvocationSource::RunApi, request, None).await
        }
        (_, workflow) => {
            let workflow_id = workflow.clone().unwrap_or_default();
            host.host.start_run(&host.who, StartRun { workflow_id, ..request }, None).await
        }
    };
    let started = started.map_err(|error| {
        let problem = Problem::new("start", format!("the run was not started: {} [{}]", error.message, error.code));
        let agents = || host.host.agents(&host.who.tenant).iter().map(|card| card.agent_id.clone()).collect::<Vec<_>>();
        vec![match &case.subject {
            Subject::Agent(id) if host.host.agent(&host.who.tenant, id).is_none() => {
                problem.hint(format!("there are the agents {}", agents().join(", ")))
            }
            _ => problem,
        }]
    })?;
    Ok(started.run_id)
}

struct Driver<'a> {
    host: &'a CaseHost,
    case: &'a Case,
    run: &'a RunId,
    /// Which answer is for which question, by run and id: also one that comes late, or never.
    given: BTreeMap<(RunId, String), usize>,
}

/// What there is to be done about the open questions.
#[derive(Default)]
struct Questions {
    /// One was answered: there is something to do again.
    progress: bool,
    /// The first that the case does not answer.
    unanswered: Option<Box<InterruptRow>>,
    /// When the next answer is due.
    next: Option<Timestamp>,
}

impl Driver<'_> {
    async fn drive_on(&mut self, idle: &Idle) -> Result<(), Problem> {
        for _ in 0..MOST_JUMPS {
            idle.wait().await;
            let status = self.status().await?;
            if status.is_terminal() {
                return Ok(());
            }
            let questions = self.answer().await?;
            if questions.progress {
                continue;
            }
            if let Some(open) = questions.unanswered {
                return if self.is_expected(status) { Ok(()) } else { Err(unanswered(&open)) };
            }
            let next = [questions.next, self.due().await?, self.host.clock.earliest()].into_iter().flatten().min();
            match next {
                Some(next) if next.millis_since(self.host.started) <= LONGEST_MS => self.host.clock.advance_to(next),
                _ if self.is_expected(status) => return Ok(()),
                Some(_) => {
                    let hint =
                        "does it wait for something that never comes? Events from outside are answered under `answers`";
                    return Err(Problem::new("time", "the run still waits after ten years").hint(hint));
                }
                None => {
                    let message = format!("the run is `{status}`, and nothing will ever wake it");
                    return Err(Problem::new("time", message));
                }
            }
        }
        let message = format!("the run still waits after {MOST_JUMPS} timers");
        Err(Problem::new("time", message).hint("a loop that waits again and again needs a bound"))
    }

    fn is_expected(&self, status: RunStatus) -> bool {
        self.case.expect.status.as_deref() == Some(status.as_str())
    }

    async fn status(&self) -> Result<RunStatus, Problem> {
        let snapshot =
            self.host.host.snapshot(&self.host.who.tenant, self.run).await.map_err(|error| internal(&error))?;
        if let Some(quarantine) = snapshot.quarantine {
            let message = format!("the run was put in quarantine ({}): {}", quarantine.cause, quarantine.detail);
            return Err(Problem::new("case", message));
        }
        Ok(snapshot.status)
    }

    /// When the next run wants to be woken.
    async fn due(&self) -> Result<Option<Timestamp>, Problem> {
        let far = self.host.started.plus_millis(2 * LONGEST_MS);
        let due = self.host.store.due(far, 1).await.map_err(|error| Problem::new("case", error.to_string()))?;
        let now = self.host.clock.now();
        // One that is due already was woken, and waits for something else now.
        Ok(due.into_iter().map(|(_, at)| at).next().filter(|at| *at > now))
    }

    async fn answer(&mut self) -> Result<Questions, Problem> {
        let tenant = &self.host.who.tenant;
        let filter =
            InterruptFilter { tenant: Some(tenant.clone()), limit: OPEN_AT_ONCE, ..InterruptFilter::default() };
        let open = self.host.host.interrupts(&filter).await.map_err(|error| internal(&error))?;
        let mut questions = Questions::default();
        for row in open {
            let asked = Asked { node: row.node.as_str(), key: &row.key, kind: &row.kind, data: &row.data };
            let Some(number) = self.answer_for(&row, &asked) else {
                questions.unanswered.get_or_insert(Box::new(row));
                continue;
            };
            let answer = &self.case.answers[number];
            let at = match answer.nobody {
                true => row.expires_at,
                false => Some(row.requested_at.plus_millis(answer.after_ms)),
            };
            if answer.nobody || at.is_some_and(|at| at > self.host.clock.now()) {
                questions.next = questions.next.into_iter().chain(at).min();
                continue;
            }
            let value = Answer::to(row.interrupt_id.clone(), answer.value_for(&asked));
            let via = Via::Bearer { subject: self.host.who.subject.clone() };
            let resolved = self.host.host.resolve(tenant, &row.run, &row.node, value, via).await;
            resolved.map_err(|error| {
                let message = format!("the answer to `{}` was refused: {} [{}]", row.node, error.message, error.code);
                Problem::new("answers", message)
            })?;
            questions.progress = true;
        }
        Ok(questions)
    }

    /// The answer that is for this question: the one it had before, or the first that no other question has.
    fn answer_for(&mut self, row: &InterruptRow, asked: &Asked<'_>) -> Option<usize> {
        let question = (row.run.clone(), row.interrupt_id.clone());
        if let Some(number) = self.given.get(&question) {
            return Some(*number);
        }
        let free = |(number, answer): &(usize, &AnswerDef)| !self.is_given(*number) && answer.is_for(asked);
        let (number, _) = self.case.answers.iter().enumerate().find(free)?;
        self.given.insert(question, number);
        Some(number)
    }

    fn is_given(&self, number: usize) -> bool {
        self.given.values().any(|given| *given == number)
    }
}

fn unanswered(row: &InterruptRow) -> Problem {
    let message = format!("`{}` asks a question ({}) that the case does not answer", row.node, row.kind);
    let way = match row.kind.as_str() {
        "approval" | "low-confidence" => "accept: true".to_owned(),
        "clarification" => "answers: {…}".to_owned(),
        _ => "value: {…}".to_owned(),
    };
    let hint = format!(
        "add to `answers`: `- {{node: {}, {way}}}`, or expect the status `waiting-…`; `nobody: true` lets it time out",
        row.node
    );
    Problem::new("answers", message).hint(hint)
}

fn internal(error: &baton_runtime::Error) -> Problem {
    Problem::new("case", format!("the run cannot be read: {}", error.message))
}
