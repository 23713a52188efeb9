//! A disk that fails, for tests: a file system for SQLite that passes everything on to the real one, and on the way does
//! what disks do. It writes half of something, has no room left, cannot sync, says it has synced and has not, reads
//! another bit than was written, or takes its time. And it knows what a power loss would leave.
//!
//! ```text
//!   store ──open(vfs = VFS)──▶ vfs.rs ──▶ Disk: is a fault due?  ──▶ SQLite's own file system
//!                                          │
//!                                          └ image.rs: what is in the cache, what is on the platter
//! ```
//!
//! A [`Disk`] stands for a folder; SQLite finds it by the path of the file that it opens. Locks and shared memory are those
//! of the real file system. Nothing is really synced, so tests are fast.

mod chance;
mod disk;
mod fault;
mod image;
mod stall;
mod state;
mod vfs;

pub use chance::Chance;
pub use disk::Disk;
pub use fault::{Fault, Op, Part, What};
pub use stall::Stall;
pub use vfs::NAME as VFS;
