//! The storage port on PostgreSQL: several hosts, one truth.
//!
//! ```text
//!   submit ──queue──▶ writer ──BEGIN, all statements, COMMIT──▶ database
//!                        │   whatever is queued becomes one transaction of a few statements, sent without waiting
//!                        └──▶ observer, then news to other hosts, then tickets
//!   reads  ──▶ a pool of connections; what many ask at the same time is asked once
//! ```
//!
//! A host holds a *session*. Every transaction it writes locks the session's row and finds its runs only if they are its
//! own, so a host that was taken for dead can come back and change nothing. See [`baton_store::Shared`].
//!
//! Only what PostgreSQL shares with the databases that speak its protocol is used: no advisory locks, no triggers, no
//! counters without gaps; LISTEN/NOTIFY is optional; whatever the database asks to repeat is repeated.

mod archive;
mod check;
mod check_contents;
mod common;
mod conditions;
mod connect;
mod culprit;
mod error;
mod gather;
mod hosts;
mod insert;
mod known;
mod lists;
mod log;
mod look;
mod lookups;
mod news;
mod plan;
mod post;
#[cfg(test)]
mod prune_cost;
mod questions;
mod read_view;
mod reader;
mod restore;
mod rows;
mod run_counts;
mod run_list;
mod runs;
#[cfg(test)]
mod search_tests;
mod session;
mod settings;
mod statement;
mod store;
mod summary;
mod text;
mod tls;
mod transact;
mod usage;
mod versioned;
mod writer;

pub use check::Report;
pub use post::Posted;
pub use settings::Settings;
pub use store::PostgresStore;
