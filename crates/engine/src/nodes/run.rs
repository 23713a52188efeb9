//! A visit's first step, whatever the kind of node.

use baton_model::Fault;

use super::conformance;
use super::outcome::{Done, Outcome, wrong_answer};
use crate::eval_context::EvalContext;
use crate::node_request::{Found, Request};
use crate::plan::Kind;

impl Kind {
    /// What a memory or workspace node asks the shell.
    pub(crate) fn request(&self, context: &EvalContext<'_>) -> Result<Request, Fault> {
        match self {
            Self::Memory(memory) => memory.request(context),
            Self::Workspace(workspace) => workspace.request(context),
            Self::Test(test) => conformance::request(test),
            _ => Err(wrong_answer()),
        }
    }

    /// What such a node makes of the answer.
    pub(crate) fn finish(&self, found: Found, context: &EvalContext<'_>) -> Result<Done, Fault> {
        match self {
            Self::Memory(memory) => memory.finish(found, context),
            Self::Workspace(workspace) => workspace.finish(found),
            Self::Test(test) => conformance::finish(test, found),
            _ => Err(wrong_answer()),
        }
    }

    /// Runs a visit's first step.
    pub(crate) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        match self {
            Self::Pass => Outcome::Done(Done::default()),
            Self::Merge | Self::End => Outcome::Done(Done::with(context.inputs.clone())),
            Self::Identity => Outcome::Done(Done {
                outputs: context.inputs.clone(),
                variables: context.inputs.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
                ..Done::default()
            }),
            Self::Delay(delay) => delay.run(context),
            Self::Fail(fail) => Outcome::Failed(fail.fault.clone()),
            Self::Conditional(conditional) => conditional.run(context),
            Self::SetVariable(set) => set.run(context),
            Self::GetVariable(get) => get.run(context),
            Self::Loop(head) => head.run(context),
            Self::ChannelWrite(write) => write.run(context),
            Self::ApprovalGate(gate) => gate.run(context),
            Self::ClarificationGate(gate) => gate.run(),
            Self::Interrupt(interrupt) => interrupt.run(context),
            Self::SubWorkflow(call) => call.run(context),
            // These are state machines of their own: see `decide::turn` and `decide::worker_batch`.
            Self::Supervisor(_) | Self::Dispatch(_) => Outcome::Done(Done::default()),
            // These have asked before they start: see `decide::node_request`.
            Self::Memory(_) | Self::Workspace(_) | Self::Agent(_) => Outcome::Done(Done::default()),
            Self::Http(http) => http.run(context),
            Self::Tool(_) => Outcome::Seek,
            Self::Map(map) if map.tool().is_some() => Outcome::Seek,
            Self::Map(_) => Outcome::Items,
            Self::StructuredOutput(call) => call.run(context),
            Self::Test(test) => conformance::run(test, context),
        }
    }
}
