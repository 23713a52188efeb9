//! The pure core: three total functions over data, and the compiler that turns a definition into a [`Plan`].
//!
//! - [`evolve`] folds one record into a [`RunState`];
//! - [`decide`] says what happened because of a [`Command`];
//! - [`outstanding`] says what must still be done in the world.
//!
//! Live execution, recovery, fork and replay all go through the same `evolve`. Time, ids and randomness are
//! arguments; there is no IO, no async and no clock in here (see `clippy.toml`).

pub mod acceptor;
mod access;
mod apply;
mod branch;
mod breather;
mod budget;
mod channel;
mod command;
mod conceal;
mod consult;
mod conversation;
mod decide;
mod depth;
mod effect;
mod envelope;
mod evolve;
mod expr;
mod gate;
mod glance;
mod invocation;
mod native;
mod node_run;
mod nodes;
mod orchestration;
mod plan;
mod recover;
mod remote;
mod replay;
mod run_options;
mod scene;
mod schema;
mod size;
mod state;
mod view;

pub use apply::apply;
pub use breather::on_breather;
pub use budget::{Shortage, Spent, Unaffordable};
pub use command::{Actor, ChildOutcome, Command, Refusal, RefusalKind, Returned, Start};
pub use consult::{Answer, Consult, Found, Frame, InvokeRequest, NewEntry, Probe, Request, Sight, Written, covers};
pub use decide::{UNKNOWN_EFFECT, check_overlay, decide, wanted};
pub use effect::{Effect, ToolCall, outstanding};
pub use evolve::{IllegalRecord, evolve};
pub use glance::{Glance, glance};
pub use nodes::NamedAgent;
pub use plan::{Features, Plan, Problem};
pub use remote::{Mandate, Order, Wish};
pub use replay::{Difference, Next, Question, Replay, step_length};
pub use run_options::{MAX_TOKENS, TEMPERATURE};
pub use state::{Interrupt, Phase, RunState};
pub use view::{EVENT_LOG_SCHEMA_VERSION, snapshot};

/// The version of the engine as the protocol counts it.
pub const ENGINE_VERSION: u32 = 1;
/// The newest numbered behaviour; see [`baton_model::event::StartFacts::engine_rule`].
///
/// | rule | since then |
/// |---|---|
/// | 2 | an agent whose model gave no reasons says so once, with its decision, and not after every answer |
/// | 3 | it says so with its first round of calls, if it has one; an agent hands over in its own bracket, where its answer is what starts the next one; a supervisor's own return schema counts, and only a schema that counted is said to; memory is bound for whoever may read it; `temperature` and `maxTokens` of a run reach its models; what a provider will never take is not tried again; a budget that a human would not extend is told as it stood |
/// | 4 | a child's `run.started` names the event of its parent that asked for it |
pub const ENGINE_RULE: u32 = 4;
