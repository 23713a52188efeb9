//! The shared store on a real PostgreSQL. Without one, every test here says so and passes.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

mod blame;
mod conformance;
mod damage;
mod damage_campaign;
mod differential;
mod errors;
mod layout;
mod million;
mod moving;
mod refusals;
mod strange;
mod tls;
mod trouble;
