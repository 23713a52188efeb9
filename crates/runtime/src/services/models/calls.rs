//! The model and tool calls that are under way.

use std::sync::Arc;

use baton_engine::ToolCall;
use baton_model::{ModelRequest, NodeId, RunId, Timestamp};
use baton_store::WriteChain;

use crate::services::in_flight::{InFlight, InFlightToken};
use crate::services::tools::invocation::ToolInvocation;

/// A call that a run wants made.
pub(crate) enum Wanted {
    /// `reasoning_chars`: how much of what the model thinks the run wants to be told meanwhile.
    Model {
        node: NodeId,
        visit: u32,
        attempt: u32,
        call: u32,
        request: Box<ModelRequest>,
        reasoning_chars: usize,
        /// How often it has been made before, and when it is made this time.
        again: u32,
        not_before: Option<Timestamp>,
    },
    Tool(ToolInvocation),
}

impl Wanted {
    /// Names this try of this call.
    fn key(&self) -> String {
        match self {
            // An attempt that goes on where the last one stopped makes the same call, and is another try of it.
            Self::Model { request, attempt, again, .. } => format!("{}#{attempt}.{again}", request.key),
            Self::Tool(invocation) => try_key(&invocation.call),
        }
    }

    pub(crate) fn node(&self) -> &NodeId {
        match self {
            Self::Model { node, .. } => node,
            Self::Tool(invocation) => &invocation.call.node,
        }
    }
}

/// One try of a tool call: the same call taken up again is another one.
fn try_key(call: &ToolCall) -> String {
    format!("{}#{}", call.key, call.again)
}

/// Who may have made a call before.
pub(crate) enum Whose {
    /// Nobody: whoever asks is the first.
    Ours,
    /// This process, before it lost what it knew, or another one.
    Anybodys,
}

/// The calls that are under way, by the try they are.
#[derive(Default)]
pub(crate) struct Calls(InFlight<String>);

impl Calls {
    pub(super) fn reconcile(
        &self,
        run: &RunId,
        chain: &Arc<WriteChain>,
        wanted: Vec<Wanted>,
    ) -> Vec<(Wanted, InFlightToken)> {
        self.0.reconcile(run, chain, false, wanted, Wanted::key)
    }

    /// This process has just recorded that it is going to make this call.
    pub(crate) fn intend(&self, run: &RunId, chain: &Arc<WriteChain>, call: &ToolCall) {
        self.0.intend(run, chain, try_key(call));
    }

    /// Whether anything is under way for a run, or about to be.
    pub(crate) fn any(&self, run: &RunId) -> bool {
        self.0.any(run)
    }

    /// Somebody else may have made the calls that were intended here.
    pub(crate) fn forget_intentions(&self) {
        self.0.forget_intentions();
    }

    /// The call is about to be made, unless it is not wanted any more.
    pub(super) fn calling(&self, run: &RunId, wanted: &Wanted, token: &InFlightToken) -> Option<Whose> {
        let intended = self.0.begin(run, &wanted.key(), token)?;
        Some(match wanted {
            Wanted::Model { .. } => Whose::Ours,
            Wanted::Tool(invocation) if invocation.simulated || intended => Whose::Ours,
            Wanted::Tool(_) => Whose::Anybodys,
        })
    }

    /// The answer is there. Says whether it is still wanted.
    pub(super) fn answering(&self, run: &RunId, wanted: &Wanted, token: &InFlightToken) -> bool {
        self.0.answering(run, &wanted.key(), token)
    }

    pub(super) fn finished(&self, run: &RunId, wanted: &Wanted, token: &InFlightToken) {
        self.0.finished(run, &wanted.key(), token);
    }
}
