//! A store without a disk, for tests: the same contract, applied at once on the caller's thread so that tests with a
//! paused clock stay deterministic. It can also fail and die on demand, which real disks do only on bad days.

mod checkpoints;
mod cluster;
mod dead_letters;
mod disk;
mod disk_checkpoints;
mod faults;
mod line;
mod members;
mod ownership;
mod reader;
mod runners;
mod shared;
mod store;
mod versioned;

pub use cluster::Cluster;
pub use disk::Disk;
pub use line::{Courier, Line};
pub use store::MemoryStore;
