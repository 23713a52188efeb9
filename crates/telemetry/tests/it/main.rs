//! Spans, folded and sent. One binary for all of it: a test more costs no link more.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, unreachable_pub)]

mod journals;
mod wire;
