//! The read side, by role.

mod annotations;
mod definitions;
mod health;
mod interrupts;
mod runs;
mod versioned;
mod webhooks;
