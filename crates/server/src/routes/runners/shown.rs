//! Between the words of the wire and those of the runtime.

use baton_api as api;
use baton_model::RunId;
use baton_runtime as host;
use baton_runtime::ErrorKind;

/// What a runner does at a time if it does not say.
const DEFAULT_CONCURRENCY: usize = 4;

pub(super) fn read_tools(tools: api::RunnerTools) -> host::RunnerTools {
    let api::RunnerTools { pool, version, max_concurrency, tools } = tools;
    let listed = |tool: api::RunnerToolEntry| {
        let api::RunnerToolEntry { name, title, description, input_schema, output_schema } = tool;
        host::RunnerToolListing { name, title, description, input_schema, output_schema }
    };
    let tools = tools.into_iter().map(listed).collect();
    host::RunnerTools { pool, version, max_concurrency: max_concurrency.unwrap_or(DEFAULT_CONCURRENCY), tools }
}

pub(super) fn read_result(frame: api::StepResult) -> host::ResultFrame {
    let api::StepResult { run_id, step_id, seq, output } = frame;
    host::ResultFrame { run_id: RunId::new(run_id), step_id, seq, output }
}

pub(super) fn outcome(taken: Result<bool, host::Error>) -> api::StepResultOutcome {
    match taken {
        Ok(duplicate) => api::StepResultOutcome { accepted: true, duplicate, error: None },
        Err(error) => {
            let retriable = matches!(error.kind, ErrorKind::Unavailable | ErrorKind::TooMany | ErrorKind::Internal);
            let (code, message) = (error.code.to_owned(), error.message);
            let error = api::StepResultError { code, message, retriable };
            api::StepResultOutcome { accepted: false, duplicate: false, error: Some(error) }
        }
    }
}

pub(super) fn read_report(reports: api::RunnerReports) -> host::RunnerReports {
    let one = |report: api::StepReport| {
        let api::StepReport { run_id, step_id, seq, state, progress, total, message, reason } = report;
        let state = match state {
            api::StepReportState::Started => host::ReportedState::Started,
            api::StepReportState::Progress => host::ReportedState::Progress,
            api::StepReportState::Released => host::ReportedState::Released,
            api::StepReportState::Unknown => host::ReportedState::Unknown,
        };
        host::RunnerReport { run_id: RunId::new(run_id), step_id, seq, state, progress, total, message, reason }
    };
    let api::RunnerReports { draining, reports } = reports;
    host::RunnerReports { draining, reports: reports.into_iter().map(one).collect() }
}

pub(super) fn work(work: host::RunnerWork) -> api::RunnerWork {
    let name = |(name, seq): (host::StepName, u64)| api::StepName {
        run_id: name.run_id.to_string(),
        step_id: name.step_id,
        seq: Some(seq),
    };
    let lease = |lease: host::StepLease| api::StepLease {
        run_id: lease.step.run_id.to_string(),
        step_id: lease.step.step_id,
        seq: Some(lease.seq),
        expires_at: lease.expires_at,
    };
    api::RunnerWork {
        leases: work.leases.into_iter().map(lease).collect(),
        cancel: work.cancel.into_iter().map(name).collect(),
        drain: work.drain,
    }
}

pub(super) fn runner(view: host::RunnerView) -> api::Runner {
    let host::RunnerView { runner_id, subject, pool, version, tools, max_concurrency, in_flight, .. } = view;
    let (connected, draining) = (view.connected, view.draining);
    let (registered_at, last_seen_at) = (view.registered_at, view.last_seen_at);
    api::Runner {
        runner_id,
        subject,
        pool,
        version,
        tools,
        max_concurrency,
        in_flight,
        connected,
        draining,
        registered_at,
        last_seen_at,
    }
}
