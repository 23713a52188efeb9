//! A game that models and tools play with a run of agents.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod game;
pub mod generate;
