//! Rows as columns, once for all databases: which columns a table has, what is written to them, and what they mean when they
//! are read back.
//!
//! An adapter only says how a value is fetched from a row of its driver ([`Source`]), how one is bound ([`Values`]), and what
//! it keeps beside these columns. Whatever does not read back is [`Unreadable`], by column and value: nothing is guessed.

mod column;
mod existing;
mod fields;
mod ledgers;
mod log;
mod parts;
mod prefix;
mod runs;
mod stored;
mod values;
mod webhooks;

pub use column::{Column, Kind, names};
pub use existing::{Existing, Inserts};
pub use fields::{Fields, Source, Unreadable};
pub use ledgers::{CHANGE_WITH_TAGS, ledger_id, ledger_row, write_ledger, write_ledger_id};
pub use prefix::after_prefix;
pub use runs::NewRun;
pub use stored::{Stored, read};
pub use values::{Value, Values, integer};
pub use webhooks::webhook_load;
