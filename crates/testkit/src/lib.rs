//! Shared test tools: time and chance in the test's hands, and short ways to say what a workflow looks like.

mod clock;
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot be set up must fail")]
mod collector;
mod flow;
mod ids;
#[allow(clippy::panic, clippy::unwrap_used, reason = "a test that cannot be set up must fail")]
pub mod postgres;
#[allow(clippy::unwrap_used, reason = "a test that cannot be set up must fail")]
pub mod proxy;

pub use clock::SimClock;
pub use collector::Collector;
pub use flow::Flow;
pub use ids::SeededIds;
