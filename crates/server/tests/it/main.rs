//! The HTTP surface, in process. One binary for all of it: a test more costs no link more.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod http_activity;
mod http_agent_claims;
mod http_agent_seams;
mod http_agents;
mod http_ancestry;
mod http_budgets;
mod http_capabilities;
mod http_client;
mod http_console;
mod http_debug_bundle;
mod http_diff;
mod http_diverged;
mod http_effective;
mod http_entrance;
mod http_events;
mod http_fork;
mod http_handed_over;
mod http_history;
mod http_hostile;
mod http_isolation;
mod http_links;
mod http_loop_seams;
mod http_memory;
mod http_models;
mod http_prompts;
mod http_run_summaries;
mod http_runs;
mod http_secrets;
mod http_surface;
mod http_system;
mod http_transfer;
mod http_webhooks;
mod http_workflow_versions;
mod http_workspace;
mod support;
