//! What nodes do, one file for each kind. A node is pure: given its resolved inputs and the run's state it says how its
//! visit goes on. Whatever takes time or touches the world comes back as an [`Outcome`] that the engine records first.
//! How a node is configured is in `plan/nodes`.

mod approval_gate;
mod channel_write;
mod child;
mod clarification_gate;
mod conditional;
#[cfg(feature = "conformance")]
pub(crate) mod conformance;
#[cfg(not(feature = "conformance"))]
#[path = "no_conformance.rs"]
pub(crate) mod conformance;
mod delay;
mod dispatch;
mod http;
mod interrupt;
mod loop_head;
mod map;
mod memory;
mod outcome;
mod run;
mod structured_output;
mod supervisor;
mod tool_step;
mod variables;
mod workspace;

pub(crate) use channel_write::written;
pub(crate) use clarification_gate::read_answers;
pub(crate) use outcome::{Ask, Done, LowConfidence, Outcome, Writing, wrong_answer};
pub(crate) use supervisor::read_agent_decision;
