//! The way from a decided record to the disk, and what happens once it is there.

pub(crate) mod committed;
pub(crate) mod dependents;
pub(crate) mod durable;
pub(crate) mod ending;
pub(crate) mod failed_commit;
pub(crate) mod generation;
pub(crate) mod lane;
pub(crate) mod live_runs;
pub(crate) mod outbox;
pub(crate) mod storage;
pub(crate) mod written;
