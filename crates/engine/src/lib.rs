//! The pure core: three total functions over data, and the compiler that turns a definition into a [`Plan`].
//!
//! - [`evolve`] folds one record into a [`RunState`];
//! - [`decide`] says what happened because of a [`Command`];
//! - [`outstanding`] says what must still be done in the world.
//!
//! Live execution, recovery, fork and replay all go through the same `evolve`. Time, ids and randomness are
//! arguments; there is no IO, no async and no clock in here (see `clippy.toml`).

pub mod acceptor;
mod apply;
mod branch;
mod budget;
mod channel;
mod checkpoint;
mod command;
mod conceal;
mod conversation;
mod decide;
mod depth;
mod described;
mod effect;
mod envelope;
mod eval_context;
mod expr;
mod fold;
mod gate;
mod invocation;
mod list_view;
mod native;
mod node_request;
mod nodes;
mod orchestration;
mod pause_hook;
mod plan;
mod provenance;
mod recover;
mod remote;
mod replay;
mod run_options;
mod schema;
mod size;
mod state;
mod step_work;
mod transcript;
mod view;

pub use apply::apply;
pub use budget::{Shortage, Spent, Unaffordable};
pub use checkpoint::{CHECKPOINT_FORMAT, Checkpoint, CheckpointChunk, Unusable};
pub use command::{Actor, ChildOutcome, Command, Made, Refusal, RefusalKind, Returned, Start};
pub use decide::{UNKNOWN_EFFECT, bounded_reply, check_overlay, decide, wanted};
pub use effect::{Effect, ToolCall, outstanding, outstanding_besides_requests};
pub use fold::{IllegalRecord, evolve};
pub use list_view::{ListView, list_view};
pub use node_request::{
    Answer, Found, InvokeRequest, NewEntry, NodeRequest, Probe, ReadVersion, Request, ToolLookup, TurnContext, Written,
    covers,
};
pub use pause_hook::{on_pause, on_use};
pub use plan::{Features, NamedAgent, Plan, Problem, node_types};
pub use remote::{RemoteChildAction, RemoteChildSpec, RemoteChildTask};
pub use replay::{Difference, Next, Question, Replay, step_length};
pub use run_options::{MAX_TOKENS, TEMPERATURE};
pub use state::{Interrupt, Phase, RunState};
pub use step_work::{MOST_MEMO_BYTES, StepAsked, StepWork};
pub use transcript::Transcript;
pub use view::{EVENT_LOG_SCHEMA_VERSION, snapshot};

/// The version of the engine as the protocol counts it.
pub const ENGINE_VERSION: u32 = 1;
/// The newest numbered behaviour; see [`baton_model::event::RunSettings::engine_rule`].
///
/// | rule | since then |
/// |---|---|
/// | 2 | an agent whose model gave no reasons says so once, with its decision, and not after every answer |
/// | 3 | it says so with its first round of calls, if it has one; an agent hands over in its own bracket, where its answer is what starts the next one; a supervisor's own return schema counts, and only a schema that counted is said to; memory is bound for whoever may read it; `temperature` and `maxTokens` of a run reach its models; what a provider will never take is not tried again; a budget that a human would not extend is told as it stood |
/// | 4 | an answer that breaks off is asked for again, as the same call |
/// | 4 | another attempt of a node goes on with the conversation, and its calls of tools and models keep their keys |
/// | 4 | a child's `run.started` names the event of its parent that asked for it |
/// | 4 | names that public packs have for tools stand for ours |
/// | 4 | an agent that lacks tools says so when it begins, or does not begin where all are required |
/// | 4 | what others wrote stands in a fence that says where it is from, wherever a model reads it |
/// | 4 | memory comes after what stays the same |
/// | 4 | what models, tools and people say is marked untrusted |
/// | 4 | `interrupt.requested` names its question, a question about a held decision shows the decision whatever kind it is, and a node's second question is answered by its name only |
/// | 4 | a pause that is still draining can be called off |
/// | 4 | a replay goes on where its source was cancelled while only time was waited for, and fails where it needs what the source never got |
/// | 4 | an answer that was cut off says whether anything of it is there |
/// | 4 | `providerOptions` of a run reach its models |
/// | 4 | a supervisor's turn is told, and records, what happened in the turns before it, and what a worker failed of |
/// | 4 | a decision counts only where it is the whole answer, and how sure anybody is must be a number from 0 to 1 |
/// | 4 | an agent has as many rounds of tool calls as its node, its run or the host says, and is told before it is stopped |
/// | 4 | an agent that takes over from one further back says so before its bracket opens; a call that is refused unannounced names the answer that asked for it |
/// | 5 | an answer that must have a shape does not count where it holds several that would do, or a member twice |
pub const ENGINE_RULE: u32 = 5;
