//! The embedded store on a real disk. One binary for all of it: a test more costs no link more.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;
mod conformance;
mod durability;
mod forks;
mod group_commit;
mod layout;
mod lock;
mod read_view;
mod readers;
mod refusals;
