//! Everything that can happen to a run.
//!
//! One log, two faces: each payload struct serialises to exactly the public payload, and carries what the engine
//! needs but the wire must not show in a `private` part that is stored beside it. Wire names are never reused.
//! Public payloads carry no clock reading, duration or random id, so that two replays of one point are equal byte
//! for byte (`channel.written.writtenAt`, which the protocol demands, is the record's own instant).

mod agent;
mod bound;
mod budget;
mod data;
mod envelope;
mod fork;
mod interrupt;
mod map;
mod model_call;
mod node;
mod orchestration;
mod replay;
mod run;
mod step;
mod versioned;

pub use agent::{
    AgentDecided, AgentHandoff, AgentInvocationCompleted, AgentInvocationStarted, AgentPromptResolved, AgentReasoned,
    AgentReasoningDelta, AgentToolCalled, AgentToolReturned, EffectRetried, EffectUnknown, InvocationFacts,
    InvocationOutcome, PromptComposed, RunnerWaiting, ToolFacts, ToolProgress, ToolsMissing, Verbosity,
};
pub use bound::{CapBreached, CapKind, LoopbackLimit};
pub use budget::{BudgetConsumed, BudgetExhausted, BudgetHeld, BudgetReserved, BudgetThresholdCrossed, HeldRetry};
pub use data::{ChannelWritten, ChannelWrittenFacts, OutputChunk, VariableChanged, VariableChangedFacts};
pub use envelope::{
    EnvelopeNlToFormat, EnvelopeRecoveryApplied, EnvelopeRetryAttempted, EnvelopeRetryExhausted, EnvelopeTruncated,
    LogAppended, RecoveryPath, RetryReason,
};
pub use fork::{ForkApproved, ForkChanges, RestsOn};
pub use interrupt::{
    ApprovalAction, ApprovalAsked, ApprovalReceived, ApprovalRequested, ClarificationRequested, ClarificationResolved,
    InterruptRequested, InterruptRequestedFacts, InterruptResolved, InterruptResolvedFacts, Outcome, Words,
};
pub use map::{
    MapItemCompleted, MapItemCompletedFacts, MapItemFailed, MapItemRetried, MapItemRetriedFacts, MapItemStarted,
    MapItemStartedFacts, MapStarted, MapStartedFacts, MapStopping,
};
pub use model_call::{
    EnvelopeRefusal, ModelCapabilityInsufficient, ModelCapabilitySubstituted, ModelRetried, ModelRetriedFacts,
    ProviderUsage, ProviderUsageFacts, StepAnswer,
};
pub use node::{
    ChildPlan, NodeCancelled, NodeCompleted, NodeCompletedFacts, NodeDispatched, NodeDispatchedFacts, NodeFailed,
    NodeResumed, NodeRetried, NodeRetriedFacts, NodeSkipped, NodeStarted, NodeStartedFacts, NodeSuspended,
    NodeSuspendedFacts, RemoteRun, TranscriptEntry, TurnTranscript,
};
pub use orchestration::{
    Attestation, ChainEvent, ChainFacts, ChainPhase, ConfidenceEscalated, EscalationKind, FanOut, Join, JoinMode,
    JoinOutcome, NodePlace, OrchestratorDecided,
};
pub use replay::{DivergenceKind, EnvelopeKind, ReplayDiverged, ReplayDivergedAtRefusal};
pub use run::{
    DrainPolicy, Ending, Escalation, EscalationInterrupt, ParentLink, RunCancelled, RunCompleted, RunEnding, RunFailed,
    RunPaused, RunResumed, RunSettings, RunStarted,
};
pub use step::{StepMemo, StepMemoFacts};
pub use versioned::{MemoryDeleted, MemoryWritten, VersionedStoreFacts, WorkspaceUpdated};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{EventId, ForeignCause, NodeId, Trust};

/// Under this an event of the host's own says how far its content is to be trusted.
pub const CONTENT_TRUST: &str = "contentTrust";

/// A public payload, borrowed from its event.
#[derive(Serialize)]
#[serde(untagged)]
pub enum PublicPayload<'a> {
    RunStarted(&'a RunStarted),
    RunCompleted(&'a RunCompleted),
    RunFailed(&'a RunFailed),
    RunCancelled(&'a RunCancelled),
    RunPaused(&'a RunPaused),
    RunResumed(&'a RunResumed),
    RunEnding(&'a RunEnding),
    NodeStarted(&'a NodeStarted),
    NodeCompleted(&'a NodeCompleted),
    NodeFailed(&'a NodeFailed),
    NodeRetried(&'a NodeRetried),
    NodeSkipped(&'a NodeSkipped),
    NodeCancelled(&'a NodeCancelled),
    NodeSuspended(&'a NodeSuspended),
    NodeResumed(&'a NodeResumed),
    NodeDispatched(&'a NodeDispatched),
    InterruptRequested(&'a InterruptRequested),
    InterruptResolved(&'a InterruptResolved),
    ApprovalRequested(&'a ApprovalRequested),
    ApprovalReceived(&'a ApprovalReceived),
    ClarificationRequested(&'a ClarificationRequested),
    ClarificationResolved(&'a ClarificationResolved),
    ChannelWritten(&'a ChannelWritten),
    VariableChanged(&'a VariableChanged),
    OutputChunk(&'a OutputChunk),
    CapBreached(&'a CapBreached),
    LoopbackLimit(&'a LoopbackLimit),
    ApprovalAsked(&'a ApprovalAsked),
    OrchestratorDecided(&'a OrchestratorDecided),
    ChainEvent(&'a ChainEvent),
    ConfidenceEscalated(&'a ConfidenceEscalated),
    FanOut(&'a FanOut),
    Join(&'a Join),
    MemoryWritten(&'a MemoryWritten),
    MemoryDeleted(&'a MemoryDeleted),
    WorkspaceUpdated(&'a WorkspaceUpdated),
    ReplayDiverged(&'a ReplayDiverged),
    ProviderUsage(&'a ProviderUsage),
    EnvelopeRefusal(&'a EnvelopeRefusal),
    ReplayDivergedAtRefusal(&'a ReplayDivergedAtRefusal),
    AgentInvocationStarted(&'a AgentInvocationStarted),
    AgentInvocationCompleted(&'a AgentInvocationCompleted),
    AgentPromptResolved(&'a AgentPromptResolved),
    PromptComposed(&'a PromptComposed),
    AgentReasoningDelta(&'a AgentReasoningDelta),
    AgentReasoned(&'a AgentReasoned),
    AgentToolCalled(&'a AgentToolCalled),
    AgentToolReturned(&'a AgentToolReturned),
    AgentHandoff(&'a AgentHandoff),
    AgentDecided(&'a AgentDecided),
    EffectUnknown(&'a EffectUnknown),
    EffectRetried(&'a EffectRetried),
    EnvelopeRetryAttempted(&'a EnvelopeRetryAttempted),
    EnvelopeRetryExhausted(&'a EnvelopeRetryExhausted),
    EnvelopeTruncated(&'a EnvelopeTruncated),
    EnvelopeRecoveryApplied(&'a EnvelopeRecoveryApplied),
    EnvelopeNlToFormat(&'a EnvelopeNlToFormat),
    BudgetReserved(&'a BudgetReserved),
    BudgetConsumed(&'a BudgetConsumed),
    BudgetThresholdCrossed(&'a BudgetThresholdCrossed),
    BudgetExhausted(&'a BudgetExhausted),
    ModelCapabilitySubstituted(&'a ModelCapabilitySubstituted),
    ModelCapabilityInsufficient(&'a ModelCapabilityInsufficient),
    LogAppended(&'a LogAppended),
    ForkApproved(&'a ForkApproved),
    ModelRetried(&'a ModelRetried),
    ToolsMissing(&'a ToolsMissing),
    MapStarted(&'a MapStarted),
    MapItemStarted(&'a MapItemStarted),
    MapItemCompleted(&'a MapItemCompleted),
    MapItemFailed(&'a MapItemFailed),
    MapItemRetried(&'a MapItemRetried),
    MapStopping(&'a MapStopping),
    RunnerWaiting(&'a RunnerWaiting),
    ToolProgress(&'a ToolProgress),
    StepMemo(&'a StepMemo),
    Other(&'a Value),
}

/// Could not read an event back from storage.
#[derive(Debug, thiserror::Error)]
#[error("record of type {kind} does not decode: {source}")]
pub struct DecodeError {
    kind: String,
    #[source]
    source: serde_json::Error,
}

macro_rules! events {
    ($($variant:ident => $wire:literal $(, private $facts:ty)?;)*) => {
        /// One thing that happened. Append at the end, never rename.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Event {
            $($variant($variant),)*
            /// A type this build does not know: kept and shown, folded as a no-op.
            Other { kind: String, payload: Value },
        }

        impl Event {
            /// Every type name this build can write.
            pub const TYPE_NAMES: &'static [&'static str] = &[$($wire),*];

            pub fn type_name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $wire,)*
                    Self::Other { kind, .. } => kind,
                }
            }

            pub fn payload(&self) -> PublicPayload<'_> {
                match self {
                    $(Self::$variant(payload) => PublicPayload::$variant(payload),)*
                    Self::Other { payload, .. } => PublicPayload::Other(payload),
                }
            }

            /// The private part as JSON, if this event has one worth storing.
            pub fn private_json(&self) -> Option<String> {
                match self {
                    $($(Self::$variant(payload) => {
                        let facts: &$facts = &payload.private;
                        (*facts != <$facts>::default()).then(|| serde_json::to_string(facts).unwrap_or_default())
                    })?)*
                    _ => None,
                }
            }

            /// Reads back what [`Event::payload`] and [`Event::private_json`] wrote.
            pub fn decode(kind: &str, payload: &str, private: Option<&str>) -> Result<Self, DecodeError> {
                fn read<T: DeserializeOwned>(kind: &str, text: &str) -> Result<T, DecodeError> {
                    serde_json::from_str(text).map_err(|source| DecodeError { kind: kind.to_owned(), source })
                }
                Ok(match kind {
                    $($wire => {
                        #[allow(unused_mut)]
                        let mut payload: $variant = read(kind, payload)?;
                        $(if let Some(text) = private {
                            let facts: $facts = read(kind, text)?;
                            payload.private = facts;
                        })?
                        Self::$variant(payload)
                    })*
                    _ => Self::Other { kind: kind.to_owned(), payload: read(kind, payload)? },
                })
            }
        }

        /// The JSON Schema of a type's public payload. A type without one does not compile.
        pub fn schema(type_name: &str) -> Option<&'static str> {
            match type_name {
                $($wire => Some(include_str!(concat!("../../schemas/events/", $wire, ".json"))),)*
                _ => None,
            }
        }

        $(impl From<$variant> for Event {
            fn from(payload: $variant) -> Self {
                Self::$variant(payload)
            }
        })*
    };
}

events! {
    RunStarted => "run.started", private RunSettings;
    RunCompleted => "run.completed";
    RunFailed => "run.failed";
    RunCancelled => "run.cancelled";
    RunPaused => "run.paused";
    RunResumed => "run.resumed";
    RunEnding => "baton.run.ending";
    NodeStarted => "node.started", private NodeStartedFacts;
    NodeCompleted => "node.completed", private NodeCompletedFacts;
    NodeFailed => "node.failed";
    NodeRetried => "node.retried", private NodeRetriedFacts;
    NodeSkipped => "node.skipped";
    NodeCancelled => "node.cancelled";
    NodeSuspended => "node.suspended", private NodeSuspendedFacts;
    NodeResumed => "node.resumed", private Words;
    NodeDispatched => "node.dispatched", private NodeDispatchedFacts;
    InterruptRequested => "interrupt.requested", private InterruptRequestedFacts;
    InterruptResolved => "interrupt.resolved", private InterruptResolvedFacts;
    ApprovalRequested => "approval.requested";
    ApprovalReceived => "approval.received", private Words;
    ClarificationRequested => "clarification.requested", private Words;
    ClarificationResolved => "clarification.resolved", private Words;
    ChannelWritten => "channel.written", private ChannelWrittenFacts;
    VariableChanged => "variable.changed", private VariableChangedFacts;
    OutputChunk => "output.chunk";
    CapBreached => "cap.breached";
    LoopbackLimit => "workflow.loopback-limit";
    ApprovalAsked => "baton.approval.asked", private Words;
    OrchestratorDecided => "runOrchestrator.decided", private NodePlace;
    ChainEvent => "core.workflowChain.event", private ChainFacts;
    ConfidenceEscalated => "core.workflowChain.confidence-escalated", private NodePlace;
    FanOut => "core.dispatch.fanOut", private NodePlace;
    Join => "core.dispatch.join", private NodePlace;
    MemoryWritten => "memory.written", private VersionedStoreFacts;
    MemoryDeleted => "baton.memory.deleted", private VersionedStoreFacts;
    WorkspaceUpdated => "workspace.updated", private VersionedStoreFacts;
    ReplayDiverged => "replay.diverged";
    ProviderUsage => "provider.usage", private ProviderUsageFacts;
    EnvelopeRefusal => "envelope.refusal";
    ReplayDivergedAtRefusal => "replay.divergedAtRefusal";
    AgentInvocationStarted => "agent.invocation.started", private InvocationFacts;
    AgentInvocationCompleted => "agent.invocation.completed", private NodePlace;
    AgentPromptResolved => "agent.promptResolved";
    PromptComposed => "prompt.composed";
    AgentReasoningDelta => "agent.reasoning.delta", private NodePlace;
    AgentReasoned => "agent.reasoned", private NodePlace;
    AgentToolCalled => "agent.toolCalled", private ToolFacts;
    AgentToolReturned => "agent.toolReturned", private ToolFacts;
    AgentHandoff => "agent.handoff", private NodePlace;
    AgentDecided => "agent.decided", private NodePlace;
    EffectUnknown => "baton.effect.unknown";
    EffectRetried => "baton.effect.retried";
    EnvelopeRetryAttempted => "envelope.retry.attempted";
    EnvelopeRetryExhausted => "envelope.retry.exhausted";
    EnvelopeTruncated => "envelope.truncated";
    EnvelopeRecoveryApplied => "envelope.recovery.applied";
    EnvelopeNlToFormat => "envelope.nlToFormat.engaged";
    BudgetReserved => "budget.reserved";
    BudgetConsumed => "budget.consumed", private NodePlace;
    BudgetThresholdCrossed => "budget.threshold.crossed", private NodePlace;
    BudgetExhausted => "budget.exhausted", private BudgetHeld;
    ModelCapabilitySubstituted => "model.capability.substituted";
    ModelCapabilityInsufficient => "model.capability.insufficient";
    LogAppended => "log.appended";
    ForkApproved => "baton.fork.approved";
    ModelRetried => "baton.model.retried", private ModelRetriedFacts;
    ToolsMissing => "baton.tools.missing";
    MapStarted => "baton.map.started", private MapStartedFacts;
    MapItemStarted => "baton.map.itemStarted", private MapItemStartedFacts;
    MapItemCompleted => "baton.map.itemCompleted", private MapItemCompletedFacts;
    MapItemFailed => "baton.map.itemFailed", private NodePlace;
    MapItemRetried => "baton.map.itemRetried", private MapItemRetriedFacts;
    MapStopping => "baton.map.stopping", private NodePlace;
    RunnerWaiting => "baton.runner.waiting";
    ToolProgress => "baton.tool.progress";
    StepMemo => "baton.step.memo", private StepMemoFacts;
}

impl Event {
    /// Whether its payload says what a model, a tool or somebody outside said, where the log knows.
    pub fn content_trust(&self) -> Option<Trust> {
        let untrusted = match self {
            Self::AgentReasoningDelta(e) => e.private.untrusted,
            Self::AgentReasoned(e) => e.private.untrusted,
            Self::AgentDecided(e) => e.private.untrusted,
            Self::AgentToolCalled(e) => e.private.place.untrusted,
            Self::AgentToolReturned(e) => e.private.place.untrusted,
            Self::OrchestratorDecided(e) => e.private.untrusted,
            Self::ConfidenceEscalated(e) => e.private.untrusted,
            Self::InterruptRequested(e) => e.private.untrusted,
            Self::InterruptResolved(e) => e.private.untrusted,
            Self::NodeResumed(e) => e.private.untrusted,
            Self::ApprovalReceived(e) => e.private.untrusted,
            Self::ApprovalAsked(e) => e.private.untrusted,
            Self::ClarificationRequested(e) => e.private.untrusted,
            Self::ClarificationResolved(e) => e.private.untrusted,
            Self::MapItemFailed(e) => e.private.untrusted,
            Self::MapItemRetried(e) => e.private.place.untrusted,
            Self::MapStopping(e) => e.private.untrusted,
            Self::LogAppended(e) => {
                return e.fields.get(CONTENT_TRUST).and_then(Value::as_str).and_then(Trust::read);
            }
            _ => false,
        };
        untrusted.then_some(Trust::Untrusted)
    }

    /// The node the envelope names.
    pub fn node_id(&self) -> Option<&NodeId> {
        match self {
            Self::NodeStarted(e) => Some(&e.node_id),
            Self::NodeCompleted(e) => Some(&e.node_id),
            Self::NodeFailed(e) => Some(&e.node_id),
            Self::NodeRetried(e) => Some(&e.node_id),
            Self::NodeSkipped(e) => Some(&e.node_id),
            Self::NodeCancelled(e) => Some(&e.node_id),
            Self::NodeSuspended(e) => Some(&e.node_id),
            Self::NodeResumed(e) => Some(&e.node_id),
            Self::NodeDispatched(e) => Some(&e.private.node_id),
            Self::InterruptRequested(e) => Some(&e.private.node_id),
            Self::InterruptResolved(e) => Some(&e.node_id),
            Self::ApprovalRequested(e) => Some(&e.node_id),
            Self::ApprovalReceived(e) => Some(&e.node_id),
            Self::ClarificationRequested(e) => Some(&e.node_id),
            Self::ClarificationResolved(e) => Some(&e.node_id),
            Self::ChannelWritten(e) => e.node_id.as_ref(),
            Self::VariableChanged(e) => e.node_id.as_ref(),
            Self::OutputChunk(e) => Some(&e.node_id),
            Self::CapBreached(e) => e.node_id.as_ref(),
            Self::LoopbackLimit(e) => Some(&e.node_id),
            Self::ApprovalAsked(e) => Some(&e.node_id),
            Self::OrchestratorDecided(e) => Some(&e.private.node_id),
            Self::ChainEvent(e) => Some(&e.private.node_id),
            Self::ConfidenceEscalated(e) => Some(&e.private.node_id),
            Self::FanOut(e) => Some(&e.private.node_id),
            Self::Join(e) => Some(&e.private.node_id),
            Self::MemoryWritten(e) => e.node_id.as_ref(),
            Self::MemoryDeleted(e) => e.node_id.as_ref(),
            Self::WorkspaceUpdated(e) => e.private.node_id.as_ref(),
            Self::ProviderUsage(e) => Some(&e.node_id),
            Self::EnvelopeRefusal(e) => Some(&e.node_id),
            Self::ReplayDivergedAtRefusal(e) => Some(&e.node_id),
            Self::AgentInvocationStarted(e) => Some(&e.private.place.node_id),
            Self::AgentInvocationCompleted(e) => Some(&e.private.node_id),
            Self::AgentPromptResolved(e) => Some(&e.node_id),
            Self::PromptComposed(e) => Some(&e.node_id),
            Self::AgentReasoningDelta(e) => Some(&e.private.node_id),
            Self::AgentReasoned(e) => Some(&e.private.node_id),
            Self::AgentToolCalled(e) => Some(&e.private.place.node_id),
            Self::AgentToolReturned(e) => Some(&e.private.place.node_id),
            Self::AgentHandoff(e) => Some(&e.private.node_id),
            Self::AgentDecided(e) => Some(&e.private.node_id),
            Self::EffectUnknown(e) => Some(&e.node_id),
            Self::ToolsMissing(e) => Some(&e.node_id),
            Self::MapStarted(e) => Some(&e.node_id),
            Self::MapItemStarted(e) => Some(&e.node_id),
            Self::MapItemCompleted(e) => Some(&e.node_id),
            Self::MapItemFailed(e) => Some(&e.node_id),
            Self::MapItemRetried(e) => Some(&e.node_id),
            Self::MapStopping(e) => Some(&e.node_id),
            Self::EffectRetried(e) => Some(&e.node_id),
            Self::RunnerWaiting(e) => Some(&e.node_id),
            Self::ToolProgress(e) => Some(&e.node_id),
            Self::StepMemo(e) => Some(&e.node_id),
            Self::EnvelopeRetryAttempted(e) => Some(&e.node_id),
            Self::LogAppended(e) => Some(&e.node_id),
            Self::EnvelopeRetryExhausted(e) => Some(&e.node_id),
            Self::EnvelopeTruncated(e) => Some(&e.node_id),
            Self::EnvelopeRecoveryApplied(e) => Some(&e.node_id),
            Self::EnvelopeNlToFormat(e) => Some(&e.node_id),
            Self::ModelCapabilitySubstituted(e) => Some(&e.node_id),
            Self::ModelRetried(e) => Some(&e.node_id),
            Self::ModelCapabilityInsufficient(e) => Some(&e.node_id),
            Self::BudgetConsumed(e) => Some(&e.private.node_id),
            Self::BudgetThresholdCrossed(e) => Some(&e.private.node_id),
            Self::BudgetExhausted(e) => Some(&e.private.node_id),
            Self::RunStarted(_)
            | Self::RunCompleted(_)
            | Self::RunFailed(_)
            | Self::RunCancelled(_)
            | Self::RunPaused(_)
            | Self::RunResumed(_)
            | Self::RunEnding(_)
            | Self::ReplayDiverged(_)
            | Self::BudgetReserved(_)
            | Self::ForkApproved(_)
            | Self::Other { .. } => None,
        }
    }

    /// The event of another run that this one follows from: the parent's, here or on another host.
    pub fn outer_cause(&self) -> Option<&EventId> {
        let Self::RunStarted(started) = self else { return None };
        let RunSettings { cause, parent, .. } = &started.private;
        let foreign = cause.as_ref().map(|cause| &cause.event_id);
        foreign.or_else(|| parent.as_ref()?.event.as_deref())
    }

    /// The event on another host that this one follows from.
    pub fn foreign_cause(&self) -> Option<&ForeignCause> {
        match self {
            Self::RunStarted(started) => started.private.cause.as_deref(),
            _ => None,
        }
    }

    /// Whether this is one of the three events that end a log.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::RunCompleted(_) | Self::RunFailed(_) | Self::RunCancelled(_))
    }
}

/// The JSON Schema of the envelope every public event travels in.
pub const ENVELOPE_SCHEMA: &str = include_str!("../../schemas/run-event.json");

/// How a value reads when its variable or channel is declared sensitive.
pub const REDACTED: &str = "[REDACTED]";

/// Reads a value that may be null where its absence means something else: a plain `Option` would take both for `None`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
