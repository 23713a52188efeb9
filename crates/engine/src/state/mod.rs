//! What a run is at one point of its log. Only [`crate::fold`] changes it.

mod agents;
mod children;
mod chunked;
mod map_run;
mod maybe;
mod node_run;
mod parts;
mod run_state;
mod settings;
mod sizes;

pub(crate) use chunked::{Chunk, ChunkedList};
pub(crate) use map_run::{ItemEnd, ItemError, ItemRun, ItemWork, MapRun};
pub(crate) use node_run::{EdgeState, NodeRun, Ready, Verdict};
pub(crate) use parts::{Child, Planned, Started, Writer};
pub use parts::{Interrupt, Phase};
pub use run_state::RunState;
pub(crate) use sizes::size_of_all;
