//! The read side, by role.

mod definitions;
mod health;
mod ledgers;
mod questions;
mod remarks;
mod runs;
mod webhooks;
