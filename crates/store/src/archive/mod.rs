//! Everything that is stored, table by table: for moving it from one kind of store to another.
//!
//! Not the way to write anything else. What is restored here is taken as it is; the rules of the journal, which keep logs
//! free of gaps, were applied when it was first written.

mod entry;
mod place;
mod port;
mod table;

pub use entry::Entry;
pub use place::KeyPart;
pub use port::Archive;
pub use table::Table;

pub use crate::versioned::VersionedStoreState;
