//! Live agents: who there is, which version a run works with, and what an agent is told before it begins. What it does
//! then is the engine's to say.

pub(crate) mod budget;
pub(crate) mod context;
pub(crate) mod pins;
pub(crate) mod prompts;
pub(crate) mod registry;
pub(crate) mod service;

pub(crate) use pins::{changes_models, check_require_tools, inherited, tool_grant};
pub use registry::{AgentRegistry, ModelTable};
