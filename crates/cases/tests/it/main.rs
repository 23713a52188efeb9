#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod hostile;
mod support;
mod workflows;
