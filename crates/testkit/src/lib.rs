//! Shared test tools: time and chance in the test's hands, and short ways to say what a workflow looks like.

mod clock;
mod flow;
mod ids;

pub use clock::SimClock;
pub use flow::Flow;
pub use ids::SeededIds;
