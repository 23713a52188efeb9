//! States of runs, written beside their logs now and then, so that a long log is not folded from its beginning again.
//!
//! ```text
//!  step, eviction, a long fold ──offer──▶ queue (bounded) ──▶ writer: once the records are on disk ──▶ store
//!                                                                      thins out what is there
//!  fold: newest usable checkpoint ──▶ records behind it ──▶ state
//! ```
//!
//! They are never authoritative: one is used only if its key, its digest and the record before it are what they must be, and
//! without any the same states come out of the logs, later. See ADR 0016.

mod body;
mod key;
pub(crate) mod queue;
mod read;
mod thin;
pub(crate) mod used;
pub(crate) mod writer;
