//! Packs, prompts and envelopes. One binary for all of it: a test more costs no link more.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod archives;
mod bundled;
mod chain;
mod manifests;
mod prompts;
mod published;
mod registry;
mod support;
