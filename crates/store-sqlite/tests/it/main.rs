//! The embedded store on a real disk. One binary for all of it: a test more costs no link more.
#![allow(clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod common;
mod conformance;
mod damage;
mod disk_faults;
mod durability;
mod forks;
mod group_commit;
mod layout;
mod lock;
mod million;
mod read_view;
mod readers;
mod refusals;
mod shrinking;
