//! The words of Baton: ids, time, workflow definitions, events, errors and views.
//!
//! Everything here is plain data. No clock, no IO, no async: whatever depends on the world enters as an argument in
//! the rings around this crate.

mod agent;
mod amount;
mod annotation;
pub mod budget;
pub mod cache_key;
mod capability;
mod cause;
mod connection;
mod context;
mod decision;
mod entrance;
pub mod event;
mod fault;
mod fork;
pub mod id;
pub mod json;
mod limits;
mod locate;
mod map_progress;
mod memory;
pub mod model_call;
mod model_reply;
pub mod native;
mod owner;
mod principal;
pub mod provider_options;
mod record;
mod secret;
mod secret_shape;
mod snapshot;
mod status;
mod summary;
mod time;
pub mod tool;
mod trace;
mod trust;
mod versions;
pub mod workflow;
pub mod workspace;

pub use agent::{
    AgentCard, AgentPin, ConversationTurn, InvocationContext, InvocationSource, MemoryShape, ModelChoice, ModelClass,
    Origins, PromptLayer, Prompted, Spoken, TurnBounds,
};
pub use amount::Amount;
pub use annotation::{
    Anchor, Annotation, AnnotationActor, AnnotationTarget, MAX_ANNOTATION_BYTES, MAX_ANNOTATIONS, MAX_LABEL_CHARS,
    Signal, SignalKind,
};
pub use budget::{Budget, BudgetPolicy};
pub use cache_key::SemanticRequest;
pub use capability::{GateRoute, MODEL_CAPABILITIES, MOST_NEEDS, ModelNeeds, ModelPins, is_capability};
pub use cause::ForeignCause;
pub use connection::{Connection, ConnectionKind, ConnectionState};
pub use context::ContextBounds;
pub use decision::Decision;
pub use entrance::Entrance;
pub use event::Event;
pub use fault::{Fault, code};
pub use fork::{ForkMode, Origin, Overlay, SideEffects, WorkerVersions};
pub use id::{EventId, NodeId, RunId, TenantId, WebhookId, WorkflowId};
pub use json::Digest;
pub use limits::{Limits, ValueBounds};
pub use locate::{Position, locate};
pub use map_progress::MapProgress;
pub use memory::{MAX_TAG_CHARS, MemoryEntry, memory_ref};
pub use model_call::ModelRequest;
pub use model_reply::{ModelReply, StopReason, Usage};
pub use owner::Owner;
pub use principal::{Principal, Scope, Scopes, tenant_subject};
pub use record::{Draft, Part, Record};
pub use secret::{MIN_SECRET_BYTES, Secret, redact, redact_counted, redact_value, redact_value_counted, settled};
pub use secret_shape::{SHAPE_MARK, mask_shapes, mask_shapes_in_json};
pub use snapshot::{
    AgentRef, ChildRun, Cost, ForkedFrom, InterruptView, Metrics, NodeStateView, QuarantineView, Retention,
    RunSnapshot, Tokens, TreeCost,
};
pub use status::{NodeStatus, RunStatus};
pub use summary::{BudgetLine, Iteration, RunSummary, UsageSummary, WaitingOn};
pub use time::Timestamp;
pub use tool::{OutcomePolicy, ToolOutcome, ToolSpec, ToolUse};
pub use trace::TraceContext;
pub use trust::{Provenance, Trust, defuse, fence, fence_from, wrap};
pub use versions::{TurnSnapshot, Versions};
pub use workspace::{FileMeta, WorkspaceFile};
