//! Model vendors, spoken to over loopback. One binary for all of it: a test more costs no link more.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod guide;
mod recordings;
mod secrets;
mod support;
mod trouble;
mod vendors;
