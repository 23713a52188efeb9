//! Loops for property tests: generated, driven and judged record by record.
#![allow(unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod audit;
pub mod generate;
pub mod insight;
pub mod rules;
pub mod sim;
