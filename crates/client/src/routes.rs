//! One method per route.

use baton_api::{
    Answer, CancelledRun, EventPage, Interrupts, PauseRun, PausedRun, QuarantineList, QuarantinedTree, Reason,
    ResolvedInterrupt, ResumedRun, RunList, StartRun, StartedRun, WorkflowList, WorkflowVersions,
};
use baton_model::RunSnapshot;
use reqwest::Url;
use serde_json::{Value, json};

use crate::{Client, Error, EventStream, Readiness, RegisteredWorkflow, RunFilter, StreamMode};

impl Client {
    pub async fn start_run(&self, run: &StartRun, idempotency_key: Option<&str>) -> Result<StartedRun, Error> {
        self.post(self.url(&["v1", "runs"]), run, idempotency_key).await
    }

    pub async fn run(&self, run: &str) -> Result<RunSnapshot, Error> {
        self.get(self.url(&["v1", "runs", run])).await
    }

    /// The snapshot exactly as the host sent it.
    pub async fn run_json(&self, run: &str) -> Result<Value, Error> {
        self.get(self.url(&["v1", "runs", run])).await
    }

    /// As many runs as asked for, if there are so many: a page of the host may be short, or empty, and not be the last.
    pub async fn runs_filled(&self, filter: &RunFilter) -> Result<RunList, Error> {
        let mut page = self.runs(filter).await?;
        while let (Some(cursor), Some(limit)) = (page.next_cursor.take(), filter.limit) {
            if page.runs.len() >= limit {
                page.next_cursor = Some(cursor);
                break;
            }
            let limit = Some(limit - page.runs.len());
            let next = self.runs(&RunFilter { cursor: Some(cursor), limit, ..filter.clone() }).await?;
            page.runs.extend(next.runs);
            page.next_cursor = next.next_cursor;
        }
        Ok(page)
    }

    /// One page as the host gives it.
    pub async fn runs(&self, filter: &RunFilter) -> Result<RunList, Error> {
        let mut url = self.url(&["v1", "runs"]);
        let status = filter.status.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(",");
        let pairs = [
            ("status", (!status.is_empty()).then_some(status)),
            ("workflowId", filter.workflow.clone()),
            ("tag", filter.tag.clone()),
            ("idPrefix", filter.id_prefix.clone()),
            ("parentRunId", filter.parent.clone()),
            ("rootRunId", filter.root.clone()),
            ("createdAfter", filter.created_from.map(|at| at.to_string())),
            ("createdBefore", filter.created_until.map(|at| at.to_string())),
            ("updatedBefore", filter.updated_until.map(|at| at.to_string())),
            ("waiting", filter.waiting.map(|flag| flag.to_string())),
            ("diverged", filter.diverged.map(|flag| flag.to_string())),
            ("overBudget", filter.over_budget.map(|flag| flag.to_string())),
            ("q", filter.text_prefix.clone()),
            ("cursor", filter.cursor.clone()),
            ("limit", filter.limit.map(|limit| limit.to_string())),
        ];
        append(&mut url, pairs);
        self.get(url).await
    }

    /// Events after sequence `after` (`None` = from the start). Waits up to `wait_seconds` for one if there is none.
    pub async fn events(&self, run: &str, after: Option<u64>, wait_seconds: u32) -> Result<EventPage, Error> {
        let mut url = self.url(&["v1", "runs", run, "events", "poll"]);
        append(
            &mut url,
            [
                ("lastSequence", after.map(|seq| seq.to_string())),
                ("timeout", Some(wait_seconds.clamp(1, 60).to_string())),
            ],
        );
        self.get(url).await
    }

    /// Follows a run from after sequence `after` (`None` = from the start) to its end.
    pub fn stream(&self, run: &str, after: Option<u64>, mode: StreamMode) -> EventStream {
        EventStream::new(self.clone(), run, after, mode)
    }

    pub async fn cancel(&self, run: &str, reason: Option<&str>) -> Result<CancelledRun, Error> {
        self.post(self.url(&["v1", "runs", run, "cancel"]), &because(reason), None).await
    }

    /// The trees of runs in quarantine, after the one named `cursor`.
    pub async fn quarantined(&self, limit: usize, cursor: Option<&str>) -> Result<QuarantineList, Error> {
        let mut url = self.url(&["v1", "host", "baton", "quarantine"]);
        append(&mut url, [("limit", Some(limit.to_string())), ("cursor", cursor.map(str::to_owned))]);
        self.get(url).await
    }

    /// Lets the tree of a run in quarantine go on.
    pub async fn release(&self, run: &str) -> Result<QuarantinedTree, Error> {
        self.post(self.url(&["v1", "host", "baton", "runs", run, "release"]), &json!({}), None).await
    }

    pub async fn pause(&self, run: &str, pause: &PauseRun) -> Result<PausedRun, Error> {
        self.post(self.url(&["v1", "runs", &format!("{run}:pause")]), pause, None).await
    }

    pub async fn resume(&self, run: &str, reason: Option<&str>) -> Result<ResumedRun, Error> {
        self.post(self.url(&["v1", "runs", &format!("{run}:resume")]), &because(reason), None).await
    }

    pub async fn interrupts(&self, run: Option<&str>) -> Result<Interrupts, Error> {
        let mut url = self.url(&["v1", "interrupts"]);
        append(&mut url, [("runId", run.map(str::to_owned))]);
        self.get(url).await
    }

    /// Answers what a node asks. `interrupt_id` says which question is meant: a node asks one after the other, and
    /// without it only the first of them is answered.
    pub async fn resolve_interrupt(
        &self,
        run: &str,
        node: &str,
        interrupt_id: Option<&str>,
        resume_value: &Value,
    ) -> Result<ResolvedInterrupt, Error> {
        let url = self.url(&["v1", "runs", run, "interrupts", node]);
        let answer = Answer { resume_value: resume_value.clone(), interrupt_id: interrupt_id.map(str::to_owned) };
        self.post(url, &answer, None).await
    }

    pub async fn register_workflow(&self, definition: &Value) -> Result<RegisteredWorkflow, Error> {
        let url = self.url(&["v1", "workflows"]);
        let (status, workflow) = self.post_for_status(url, definition, None).await?;
        Ok(RegisteredWorkflow { workflow, created: status == 201 })
    }

    pub async fn workflows(&self) -> Result<WorkflowList, Error> {
        self.get(self.url(&["v1", "workflows"])).await
    }

    /// The newest definition, verbatim.
    pub async fn workflow(&self, id: &str) -> Result<Value, Error> {
        self.get(self.url(&["v1", "workflows", id])).await
    }

    pub async fn workflow_versions(&self, id: &str) -> Result<WorkflowVersions, Error> {
        self.get(self.url(&["v1", "host", "baton", "workflows", id, "versions"])).await
    }

    pub async fn workflow_version(&self, id: &str, version: u32) -> Result<Value, Error> {
        let version = version.to_string();
        self.get(self.url(&["v1", "host", "baton", "workflows", id, "versions", &version])).await
    }

    pub async fn discovery(&self) -> Result<Value, Error> {
        self.get(self.url(&[".well-known", "openwop"])).await
    }

    /// The host about itself, exactly as it sent it.
    pub async fn system_json(&self) -> Result<Value, Error> {
        self.get(self.url(&["v1", "host", "baton", "system"])).await
    }

    /// Whether the host takes writes. A host that says no still answers.
    pub async fn readiness(&self) -> Result<Readiness, Error> {
        match self.get::<Value>(self.url(&["readiness"])).await {
            Ok(_) => Ok(Readiness { ready: true, reason: None }),
            Err(Error::Api { status: 503, message, .. }) => Ok(Readiness { ready: false, reason: Some(message) }),
            Err(error) => Err(error),
        }
    }
}

fn because(reason: Option<&str>) -> Reason {
    Reason { reason: reason.map(str::to_owned) }
}

/// Adds the pairs that have a value; with none, the address keeps no trailing `?`.
pub(crate) fn append<const N: usize>(url: &mut Url, pairs: [(&str, Option<String>); N]) {
    for (name, value) in pairs {
        if let Some(value) = value {
            url.query_pairs_mut().append_pair(name, &value);
        }
    }
}
