//! What the edges may ask of a host: a thin face over its rooms, one file a subject. Every answer is about committed
//! state: what cannot be lost any more.

mod for_tests;
mod history;
mod interrupts;
mod lifecycle;
mod memory;
mod open;
mod operations;
mod reads;
pub(crate) mod rooms;
mod runners;
mod runs;
mod webhooks;
mod workflows;

pub use open::Host;
pub use workflows::ModelRoute;
