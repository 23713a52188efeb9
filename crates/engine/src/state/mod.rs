//! What a run is at one point of its log. Only [`crate::fold`] changes it.

mod agents;
mod children;
mod node_run;
mod parts;
mod room;
mod run_state;
mod settings;

pub(crate) use node_run::{EdgeState, NodeRun, Ready, Verdict};
pub(crate) use parts::{Child, Planned, Started, Writer};
pub use parts::{Interrupt, Phase};
pub(crate) use room::size_of_all;
pub use run_state::RunState;
