//! Rows as columns, once for all databases: which columns a table has, what is written to them, and what they mean when they
//! are read back.
//!
//! An adapter only says how a value is fetched from a row of its driver ([`Source`]), how one is bound ([`Values`]), and what
//! it keeps beside these columns. Whatever does not read back is [`Unreadable`], by column and value: nothing is guessed.

mod checkpoints;
mod column;
mod existing;
mod fields;
mod log;
mod parts;
mod prefix;
mod runners;
mod runs;
mod stored;
mod sum_columns;
mod sums;
mod values;
mod versioned;
mod webhooks;

pub use column::{Column, Kind, names};
pub use existing::{Existing, Inserts};
pub use fields::{Fields, Source, Unreadable};
pub use prefix::after_prefix;
pub use runs::{NewRun, kept_tree, moved_sum, new_run_sums, pruned_sum};
pub use stored::{Stored, read};
pub use sum_columns::Sum;
pub(crate) use sums::feed;
pub use sums::{check_sums, sum, sum_apart, sum_names, whose};
pub use values::{Value, Values, integer};
pub use versioned::{CHANGE_WITH_TAGS, versioned_id, versioned_row, write_versioned_id, write_versioned_store};
pub use webhooks::webhook_load;
