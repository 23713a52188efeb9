//! One disk, as a test uses it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fault::{Fault, Op, Part};
use crate::stall::{Gate, Stall};
use crate::state::{self, Shared};
use crate::vfs;

/// The disk of a folder. Healthy until a fault is injected.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    shared: Arc<Shared>,
}

impl Disk {
    /// Open databases in this folder with the file system [`crate::VFS`].
    ///
    /// # Panics
    /// If there is no such folder.
    pub fn of(folder: &Path, seed: u64) -> Self {
        vfs::register();
        let folder = fs::canonicalize(folder).unwrap();
        let shared = state::add(&folder, seed);
        Self { folder, shared }
    }

    pub fn inject(&self, fault: Fault) {
        self.shared.inject(fault);
    }

    /// The files may grow by so many bytes from now on.
    pub fn fill_up(&self, room: usize) {
        self.shared.fill_up(room);
    }

    /// Nothing goes wrong from now on. What went wrong stays so.
    pub fn heal(&self) {
        self.shared.heal();
    }

    /// Such operations wait from now on.
    pub fn stall(&self, op: Op, part: Part) -> Stall {
        let gate = Arc::new(Gate::new(op, part));
        self.shared.hold(Arc::clone(&gate));
        Stall(gate)
    }

    /// How often something has gone wrong.
    pub fn injected(&self) -> u64 {
        self.shared.injected()
    }

    /// Puts what would be left if the power went now into another folder. Whoever uses this one can go on.
    pub fn power_loss(&self, seed: u64, left: &Path) -> io::Result<()> {
        self.shared.power_loss(seed, left)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        state::remove(&self.folder);
        // Whoever still waits is let go when the stall is dropped.
    }
}
