//! What the store calls its files in the data folder.

pub(crate) const DATABASE: &str = "baton.db";
/// What SQLite adds to it for files of its own beside it.
pub(crate) const BESIDE_DATABASE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// The number of the last commit; see `note.rs`.
pub(crate) const NOTE: &str = "baton.commits";
pub(crate) const LOCK: &str = "baton.lock";
