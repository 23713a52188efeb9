//! What a run's first record, and where it was forked from, say for all of its spans.

use baton_model::event::{ParentLink, RunSettings, RunStarted};
use baton_model::{ForeignCause, NodeId, Origin, RunId, Timestamp, WorkflowId};

use super::detail::Detail;
use crate::PROTOCOL_VERSION;
use crate::ids::{Lineage, Parent, Place, SpanId};
use crate::span::{Kind, Link, Span, Status};

/// The node that a child was started by, here or on another host, as far as that one says.
#[derive(Debug)]
struct Above {
    run: RunId,
    workflow: Option<WorkflowId>,
    node: Option<NodeId>,
}

impl Above {
    fn of(facts: &RunSettings) -> Option<Self> {
        if let Some(ParentLink { run, node, workflow, .. }) = &facts.parent {
            return Some(Self { run: run.clone(), workflow: workflow.as_deref().cloned(), node: Some(node.clone()) });
        }
        let ForeignCause { run_id, node_id, workflow_id, .. } = facts.cause.as_deref()?;
        Some(Self { run: run_id.clone(), workflow: workflow_id.clone(), node: node_id.clone() })
    }
}

#[derive(Debug)]
pub(super) struct Known {
    pub(super) run: RunId,
    pub(super) lineage: Lineage,
    /// What the run itself hangs below.
    pub(super) above: Option<Parent>,
    workflow: String,
    tenant: String,
    scope: Option<String>,
    tags: Vec<String>,
    parent: Option<Above>,
    origin: Option<Origin>,
    /// Where a fork's source is: not a parent, for it goes its own way.
    pub(super) source: Option<Link>,
}

impl Known {
    pub(super) fn new(run: &RunId, started: &RunStarted, origin: Option<&Origin>, detail: Detail) -> Self {
        let facts = &started.private;
        // A source that was itself forked off a child without a trace of its own is not told apart; the link then
        // names a trace that nobody has, and nothing else depends on it.
        let source = origin.map(|origin| Link {
            trace: Lineage::of(&origin.source, started, false).trace,
            span: Place::Run { segment: 0 }.of(&origin.source),
        });
        Self {
            run: run.clone(),
            lineage: Lineage::of(run, started, origin.is_some()),
            above: Parent::of(run, started, origin.is_some()),
            workflow: started.workflow_id.to_string(),
            tenant: origin.and_then(|o| o.overlay.owner.as_ref()).unwrap_or(&started.owner).tenant.to_string(),
            scope: facts.scope_id.clone().filter(|_| detail.labels && origin.is_none()),
            tags: if detail.labels { started.tags.clone() } else { Vec::new() },
            parent: Above::of(facts).filter(|_| origin.is_none()),
            origin: origin.cloned(),
            source,
        }
    }

    pub(super) fn span(&self, id: SpanId, parent: Option<Parent>, name: String, start: Timestamp) -> Span {
        let span = Span {
            trace: self.lineage.trace,
            id,
            parent,
            name,
            kind: Kind::Internal,
            start,
            end: None,
            attributes: Vec::with_capacity(8),
            links: Vec::new(),
            status: Status::Unset,
            sampled: self.lineage.sampled,
            state: self.lineage.state.clone(),
        };
        span.with("openwop.run_id", self.run.as_str()).with("openwop.workflow_id", self.workflow.as_str())
    }

    /// What is said of the run as a whole.
    pub(super) fn describe(&self, span: &mut Span) {
        span.set("openwop.protocol_version", PROTOCOL_VERSION);
        span.set("openwop.tenant_id", self.tenant.as_str());
        if let Some(scope) = &self.scope {
            span.set("openwop.scope_id", scope.as_str());
        }
        if !self.tags.is_empty() {
            span.set("openwop.run.tags", self.tags.as_slice());
        }
        if let Some(parent) = &self.parent {
            span.set("openwop.parent.run_id", parent.run.as_str());
            if let Some(workflow) = &parent.workflow {
                span.set("openwop.parent.workflow_id", workflow.as_str());
            }
            if let Some(node) = &parent.node {
                span.set("openwop.parent.node_id", node.as_str());
            }
        }
        if let Some(origin) = &self.origin {
            span.set("openwop.replay.source_run_id", origin.source.as_str());
            span.set("openwop.replay.from_seq", origin.seq);
            span.set("openwop.replay.mode", origin.mode.as_str());
        }
    }
}
