//! The shell over the in-memory store: crashes, races, forks, budgets. One binary for all of it: a test more costs no link more.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod agents;
mod agents_crash;
mod agents_forks;
mod agents_halted;
mod agents_live;
mod agents_pins;
mod agents_reveal;
mod agents_team;
mod agents_unknown;
mod budget;
mod budget_limits;
mod budgets;
mod common;
mod crash;
mod disk_full;
mod faults;
mod fork_branches;
mod fork_crash;
mod fork_families;
mod fork_retention;
mod forking;
mod host;
mod interrupts;
mod memory;
mod memory_conformance;
mod memory_crash;
mod memory_history;
mod memory_model;
mod memory_races;
mod memory_scopes;
mod memory_turns;
mod model_calls;
mod observe;
mod races;
#[path = "support/receiver.rs"]
mod receiver;
mod remote_workers;
mod remotes;
mod replay_everything;
mod reveal;
#[path = "models/scripted.rs"]
mod scripted;
mod transfer_crash;
mod transfer_refusals;
mod transfer_round_trip;
mod transferring;
mod webhooks;
mod workspace_files;
