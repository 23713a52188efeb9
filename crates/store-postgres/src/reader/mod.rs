//! The read side, by role.

mod definitions;
mod health;
mod questions;
mod remarks;
mod runs;
mod versioned;
mod webhooks;
