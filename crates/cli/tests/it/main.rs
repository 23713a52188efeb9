//! The whole product, as a process, from outside. One binary for all of it: a test more costs no link more.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::unwrap_used, dead_code, unreachable_pub)]

mod agents;
mod budgets_cli;
#[path = "../../../telemetry/tests/it/support/mod.rs"]
mod collecting;
mod connections;
mod end_to_end;
mod forks_cli;
mod host_id;
mod isolation_campaign;
mod journals;
mod journals_library;
mod kill;
mod kill_forks;
mod kill_ledgers;
mod looking_back;
mod loop_cli;
mod memory_cli;
mod offline;
mod packs_cli;
mod poison;
mod postgres_cli;
mod postgres_faults;
#[path = "../../../remote/tests/support/proxy.rs"]
mod proxy;
mod remote_workers;
mod scenarios_agent_fixtures;
mod scenarios_agents;
mod scenarios_bounds;
mod scenarios_discovery;
mod scenarios_fixtures;
mod scenarios_forks;
mod scenarios_interrupts;
mod scenarios_lifecycle;
mod scenarios_loop;
mod scenarios_loop_workers;
mod scenarios_memory;
mod scenarios_models;
mod scenarios_overload;
mod scenarios_pause;
mod scenarios_streams;
mod scenarios_webhooks;
mod scenarios_workspace;
mod secrets;
mod streams;
mod support;
mod support_itself;
mod telemetry;
mod transfer_cli;
mod webhook_commands;
mod webhook_crowd;
mod workspace_cli;
