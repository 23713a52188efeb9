//! Test endpoints, served in conformance mode only. They drive the real engine and report what its log says; they fake
//! nothing. What a test only wants judged, without a run, is kept apart; see [`Journal`](crate::journal::Journal).

mod agent_dispatch;
mod agent_loop;
mod attest;
mod budget;
mod cache_key;
mod claim;
mod effects;
mod emit;
mod envelope;
mod fan_out;
mod live_invoke;
mod log;
mod mock_ai;
mod model_gate;
mod node_catalog;
mod per_item;
mod prompt;
mod reset;
mod routes;
mod runner;
mod spans;
mod stage;
mod toggle;
mod tool_hooks;
mod transcript_window;
mod variables;
mod workflow;
mod workspace;

pub use routes::routes;
