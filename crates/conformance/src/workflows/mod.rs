//! The workflows of conformance mode: small, each showing one behaviour, driven by the ordinary engine.

mod agents;
mod all;
mod children;
mod draft;
mod interrupts;
mod memory;
mod models;
mod orchestration;
mod plain;

pub(crate) use all::all;
