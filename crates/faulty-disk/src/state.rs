//! What is on a disk, what goes wrong on it, and what is left of it after a power loss.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::chance::Chance;
use crate::fault::{Fault, Op, Part, What};
use crate::image::Image;
use crate::stall::Gate;

/// All disks of the process, by their folder.
static DISKS: Mutex<BTreeMap<PathBuf, Arc<Shared>>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    gates: Mutex<Vec<Arc<Gate>>>,
}

#[derive(Debug)]
struct State {
    files: BTreeMap<PathBuf, Image>,
    faults: Vec<Fault>,
    /// How many bytes all files may have together.
    room: Option<usize>,
    chance: Chance,
    injected: u64,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    All,
    /// So many bytes, and then an error.
    Part(usize, What),
}

/// The disk that a file is on.
pub(crate) fn disk_of(path: &Path) -> Option<Arc<Shared>> {
    DISKS.lock().get(path.parent()?).cloned()
}

pub(crate) fn add(folder: &Path, seed: u64) -> Arc<Shared> {
    let state =
        State { files: BTreeMap::new(), faults: Vec::new(), room: None, chance: Chance::new(seed), injected: 0 };
    let shared = Arc::new(Shared { state: Mutex::new(state), gates: Mutex::default() });
    DISKS.lock().insert(folder.to_owned(), Arc::clone(&shared));
    shared
}

pub(crate) fn remove(folder: &Path) {
    DISKS.lock().remove(folder);
}

impl Shared {
    pub(crate) fn inject(&self, fault: Fault) {
        self.state.lock().faults.push(fault);
    }

    pub(crate) fn fill_up(&self, room: usize) {
        let mut state = self.state.lock();
        state.room = Some(state.used() + room);
    }

    pub(crate) fn heal(&self) {
        let mut state = self.state.lock();
        state.faults.clear();
        state.room = None;
        drop(state);
        self.gates.lock().clear();
    }

    pub(crate) fn hold(&self, gate: Arc<Gate>) {
        self.gates.lock().push(gate);
    }

    pub(crate) fn injected(&self) -> u64 {
        self.state.lock().injected
    }

    pub(crate) fn power_loss(&self, seed: u64, left: &Path) -> io::Result<()> {
        let (state, mut chance) = (self.state.lock(), Chance::new(seed));
        for (path, image) in &state.files {
            if let Some(name) = path.file_name() {
                fs::write(left.join(name), image.after_power_loss(&mut chance))?;
            }
        }
        Ok(())
    }

    /// Waits while such operations are held up.
    pub(crate) fn wait(&self, op: Op, part: Part) {
        let held = self.gates.lock().iter().find(|gate| gate.holds(op, part)).cloned();
        if let Some(gate) = held {
            gate.pass();
        }
    }

    pub(crate) fn opened(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        if !state.files.contains_key(path) {
            state.files.insert(path.to_owned(), Image::of(fs::read(path)?));
        }
        Ok(())
    }

    pub(crate) fn deleted(&self, path: &Path) {
        self.state.lock().files.remove(path);
    }

    /// What goes wrong with this operation, if anything does.
    pub(crate) fn fault(&self, op: Op, part: Part) -> Option<What> {
        self.state.lock().due(op, part)
    }

    /// `write` writes so many bytes to the real file.
    pub(crate) fn write<E>(
        &self,
        path: &Path,
        part: Part,
        at: usize,
        bytes: &[u8],
        write: impl FnOnce(usize) -> Result<(), E>,
    ) -> Result<Written, E> {
        let mut state = self.state.lock();
        let length = state.files.get(path).map_or(0, Image::len);
        let fits = state.room.map_or(bytes.len(), |room| {
            let free = room.saturating_sub(state.used());
            // What lies within the file needs no room.
            (length + free).saturating_sub(at).min(bytes.len())
        });
        let written = match state.due(Op::Write, part) {
            Some(What::Short | What::Full) => Written::Part(bytes.len() / 2, What::Full),
            Some(what) => Written::Part(0, what),
            None if fits < bytes.len() => {
                state.injected += 1;
                Written::Part(fits, What::Full)
            }
            None => Written::All,
        };
        let count = match written {
            Written::All => bytes.len(),
            Written::Part(count, _) => count,
        };
        if count > 0 {
            write(count)?;
            state.files.entry(path.to_owned()).or_default().write(at, &bytes[..count]);
        }
        Ok(written)
    }

    pub(crate) fn truncated(&self, path: &Path, length: usize) {
        self.state.lock().files.entry(path.to_owned()).or_default().truncate(length);
    }

    /// Whether it said that it was synced.
    pub(crate) fn sync(&self, path: &Path, part: Part) -> bool {
        let state = &mut *self.state.lock();
        let what = state.due(Op::Sync, part);
        let image = state.files.entry(path.to_owned()).or_default();
        match what {
            None => image.sync(),
            Some(What::Lie) => {}
            Some(_) => {
                image.fail_to_sync(&mut state.chance);
                return false;
            }
        }
        true
    }

    /// Changes one bit of what was read.
    pub(crate) fn flip(&self, bytes: &mut [u8]) {
        let mut state = self.state.lock();
        let bit = state.chance.below(bytes.len() as u64 * 8) as usize;
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

impl State {
    fn used(&self) -> usize {
        self.files.values().map(Image::len).sum()
    }

    fn due(&mut self, op: Op, part: Part) -> Option<What> {
        let what = self.faults.iter_mut().find_map(|fault| fault.is_due(op, part).then_some(fault.what))?;
        self.injected += 1;
        Some(what)
    }
}
