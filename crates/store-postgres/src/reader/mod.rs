//! The read side, by role.

mod annotations;
mod checkpoints;
mod definitions;
mod health;
mod interrupts;
mod runners;
mod runs;
mod versioned;
mod webhooks;
