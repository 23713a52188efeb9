//! What was being stepped when the process died.
//!
//! While a run is stepped or loaded, its name stands in a small file beside the data, in the place of its turn. It is
//! written without waiting for the disk: the operating system keeps it when the process is killed or aborts, and that is
//! what it is for. Whoever starts next reads it. A tree whose runs were there at two deaths, without having made progress
//! in between, is what the process dies of.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use baton_model::RunId;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

const NOTES: &str = "baton.steps";
const SUSPECTS: &str = "baton.suspects";
/// Room for one note: two ids and a number. Ids that need more are noted by nobody, and none that we make does.
const NOTE_BYTES: usize = 512;
/// How many notes are remembered, the newest. A process steps a few runs at a time, and notes of runs that made progress
/// are forgotten.
const MOST_NOTES: usize = 1024;

/// A run that was being stepped when the process died, and has made no progress since.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Noted {
    /// Which death it was, counted from 1.
    pub death: u64,
    pub root: RunId,
    pub run: RunId,
    /// How many of its records were on disk.
    pub durable: u64,
}

/// The file that says what is being stepped, and the one that says what was.
#[derive(Debug)]
pub struct StepNotes {
    file: File,
    dir: PathBuf,
    known: Mutex<Known>,
    /// Which trees were being stepped when the last process died. None if it did not die at work.
    last: Option<BTreeSet<RunId>>,
}

/// What the file of suspects holds.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Known {
    /// Oldest first.
    noted: Vec<Noted>,
    /// Trees that were let go on once because the process died without them too.
    #[serde(default)]
    pardoned: BTreeSet<RunId>,
}

impl StepNotes {
    /// What it writes into the directory.
    pub const FILES: [&str; 3] = [NOTES, SUSPECTS, "baton.suspects.new"];

    /// Reads what the last process left in this directory and begins anew. One process at a time: whoever opens it has
    /// the directory's lock.
    pub fn open(dir: &Path) -> io::Result<Self> {
        let mut file = open_private(&dir.join(NOTES))?;
        let mut left = Vec::new();
        file.read_to_end(&mut left)?;
        let mut known = read_known(&dir.join(SUSPECTS));
        let death = known.noted.last().map_or(0, |last| last.death) + 1;
        let new = notes_in(&left, death);
        let last = (!new.is_empty()).then(|| new.iter().map(|noted| noted.root.clone()).collect());
        known.noted.extend(new);
        let excess = known.noted.len().saturating_sub(MOST_NOTES);
        known.noted.drain(..excess);
        while known.pardoned.len() > MOST_NOTES {
            known.pardoned.pop_first();
        }
        write_known(dir, &known)?;
        // After they are written down: a death in between counts the same notes again and harms nobody but the guilty.
        file.set_len(0)?;
        Ok(Self { file, dir: dir.to_owned(), known: Mutex::new(known), last })
    }

    /// Whether the last process died at work, and this tree was not what it was at: then it is not what it died of.
    pub(crate) fn died_without(&self, root: &RunId) -> bool {
        self.last.as_ref().is_some_and(|trees| !trees.contains(root))
    }

    pub(crate) fn is_pardoned(&self, root: &RunId) -> bool {
        self.known.lock().pardoned.contains(root)
    }

    /// Lets a tree go on that was held for deaths, with a clean record, once. Says whether it may.
    pub(crate) fn pardon(&self, root: &RunId) -> bool {
        let mut known = self.known.lock();
        if !known.pardoned.insert(root.clone()) {
            return false;
        }
        known.noted.retain(|noted| noted.root != *root);
        self.write_down(&known);
        true
    }

    /// The trees that were being stepped at a death, each with its notes.
    pub fn suspects(&self) -> BTreeMap<RunId, Vec<Noted>> {
        let mut trees: BTreeMap<RunId, Vec<Noted>> = BTreeMap::new();
        for noted in &self.known.lock().noted {
            trees.entry(noted.root.clone()).or_default().push(noted.clone());
        }
        trees
    }

    /// Forgets what is no longer held against a run: it has so many records on disk now. Says whether its tree is still a
    /// suspect.
    pub(crate) fn progressed(&self, root: &RunId, run: &RunId, durable: u64) -> bool {
        let mut known = self.known.lock();
        let before = known.noted.len();
        known.noted.retain(|noted| noted.run != *run || noted.durable >= durable);
        if known.noted.len() < before {
            self.write_down(&known);
        }
        known.noted.iter().any(|noted| noted.root == *root)
    }

    /// Forgets everything about a tree.
    pub(crate) fn forget(&self, root: &RunId) {
        let mut known = self.known.lock();
        let before = known.noted.len();
        known.noted.retain(|noted| noted.root != *root);
        if known.pardoned.remove(root) || known.noted.len() < before {
            self.write_down(&known);
        }
    }

    fn write_down(&self, known: &Known) {
        if let Err(error) = write_known(&self.dir, known) {
            tracing::warn!(%error, "could not write down which runs are no longer suspected");
        }
    }

    /// Says what is being stepped in this place.
    pub(super) fn begin(&self, place: usize, root: &RunId, run: &RunId, durable: u64) {
        let mut note = [0; NOTE_BYTES];
        // A zero ends it, whatever stood there before.
        let (text, _) = note.split_at_mut(NOTE_BYTES - 1);
        let mut rest = &mut *text;
        let written = match writeln!(rest, "{root}\n{run}\n{durable}") {
            Ok(()) => NOTE_BYTES - 1 - rest.len(),
            // Too long: whoever stood there is gone all the same.
            Err(_) => {
                note[0] = 0;
                0
            }
        };
        self.write(place, &note[..=written]);
    }

    /// Says that nothing is.
    pub(super) fn end(&self, place: usize) {
        self.write(place, &[0]);
    }

    fn write(&self, place: usize, bytes: &[u8]) {
        let at = (place * NOTE_BYTES) as u64;
        #[cfg(unix)]
        let written = std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, at);
        #[cfg(windows)]
        let written = std::os::windows::fs::FileExt::seek_write(&self.file, bytes, at).map(drop);
        if let Err(error) = written {
            // A full disk must not stop runs that need no room on it.
            tracing::debug!(%error, "what is being stepped could not be noted");
        }
    }
}

/// At how many deaths runs of a tree were being stepped.
pub(crate) fn deaths(noted: &[Noted]) -> usize {
    noted.iter().map(|noted| noted.death).collect::<BTreeSet<_>>().len()
}

fn open_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn notes_in(bytes: &[u8], death: u64) -> Vec<Noted> {
    let note = |place: &[u8]| {
        // One that has ended begins with a zero byte, and so does a place that was never used.
        let text = std::str::from_utf8(place.split(|byte| *byte == 0).next()?).ok()?;
        let mut lines = text.lines();
        let (root, run) = (lines.next().filter(|root| !root.is_empty())?, lines.next()?);
        let durable = lines.next()?.parse().ok()?;
        Some(Noted { death, root: RunId::new(root), run: RunId::new(run), durable })
    };
    bytes.chunks(NOTE_BYTES).filter_map(note).collect()
}

fn read_known(path: &Path) -> Known {
    let Ok(bytes) = std::fs::read(path) else { return Known::default() };
    // Damaged: then nothing is known of earlier deaths.
    let mut known: Known = serde_json::from_slice(&bytes).unwrap_or_default();
    known.noted.sort();
    known
}

/// Written beside and renamed, so that a death in between leaves one of the two. It need not survive a power cut.
fn write_known(dir: &Path, known: &Known) -> io::Result<()> {
    let path = dir.join(SUSPECTS);
    if known.noted.is_empty() && known.pardoned.is_empty() {
        return match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
    }
    let new = dir.join(format!("{SUSPECTS}.new"));
    drop(open_private(&new)?);
    std::fs::write(&new, serde_json::to_vec(known)?)?;
    std::fs::rename(new, path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn run(name: &str) -> RunId {
        RunId::new(name)
    }

    /// A process that dies while it steps these runs of one tree each.
    fn dies_at(dir: &Path, stepping: &[(&str, &str, u64)]) -> StepNotes {
        let notes = StepNotes::open(dir).unwrap();
        notes.begin(7, &run("harmless"), &run("harmless"), 1);
        notes.end(7);
        for (place, (root, name, durable)) in stepping.iter().enumerate() {
            notes.begin(place, &run(root), &run(name), *durable);
        }
        notes
    }

    fn counted(dir: &Path) -> Vec<(String, usize)> {
        let suspects = StepNotes::open(dir).unwrap().suspects();
        suspects.into_iter().map(|(root, noted)| (root.to_string(), deaths(&noted))).collect()
    }

    #[test]
    fn deaths_of_a_tree_are_counted_whichever_of_its_runs_was_stepped() {
        let dir = tempfile::tempdir().unwrap();
        dies_at(dir.path(), &[("poison", "child-1", 0), ("bystander", "bystander", 9)]);
        dies_at(dir.path(), &[("poison", "child-2", 0), ("poison", "poison", 4)]);
        assert_eq!(counted(dir.path()), [("bystander".to_owned(), 1), ("poison".to_owned(), 2)]);
        assert_eq!(counted(dir.path())[1].1, 2, "a clean stop forgets nothing and adds nothing");
    }

    #[test]
    fn progress_and_release_are_remembered() {
        let dir = tempfile::tempdir().unwrap();
        dies_at(dir.path(), &[("busy", "busy", 3), ("poison", "poison", 4)]);
        let notes = dies_at(dir.path(), &[]);
        assert!(notes.progressed(&run("poison"), &run("poison"), 4), "nothing new");
        assert!(!notes.progressed(&run("busy"), &run("busy"), 5));
        dies_at(dir.path(), &[("busy", "busy", 5), ("poison", "poison", 4)]);
        assert_eq!(counted(dir.path()), [("busy".to_owned(), 1), ("poison".to_owned(), 2)]);
        StepNotes::open(dir.path()).unwrap().forget(&run("poison"));
        assert_eq!(counted(dir.path()), [("busy".to_owned(), 1)]);
        StepNotes::open(dir.path()).unwrap().forget(&run("busy"));
        assert!(!dir.path().join(SUSPECTS).exists());
    }

    /// Somebody kills the process again and again; whoever was there by chance is let go on, once.
    #[test]
    fn a_death_without_a_tree_speaks_for_it_once() {
        let dir = tempfile::tempdir().unwrap();
        let (held, other) = (run("held"), run("other"));
        dies_at(dir.path(), &[("held", "held", 1)]);
        dies_at(dir.path(), &[("held", "held", 1)]);
        let notes = dies_at(dir.path(), &[("other", "other", 5)]);
        assert!(!notes.died_without(&held), "it was there");
        let notes = StepNotes::open(dir.path()).unwrap();
        assert!(notes.died_without(&held) && !notes.died_without(&other));
        assert!(notes.pardon(&held), "with a clean record");
        assert!(!notes.suspects().contains_key(&held));
        let notes = StepNotes::open(dir.path()).unwrap();
        assert!(!notes.died_without(&held), "nobody died at work");
        assert!(!notes.pardon(&held), "once");
        notes.forget(&held);
        assert!(notes.pardon(&held), "somebody released it meanwhile");
    }

    #[test]
    fn the_newest_notes_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let many: Vec<Noted> = (1..=MOST_NOTES as u64 + 5)
            .map(|death| Noted { death, root: run(&format!("z{death}")), run: run("x"), durable: 1 })
            .collect();
        write_known(dir.path(), &Known { noted: many, ..Known::default() }).unwrap();
        dies_at(dir.path(), &[("a", "a", 1)]);
        let suspects = StepNotes::open(dir.path()).unwrap().suspects();
        assert_eq!(suspects.len(), MOST_NOTES);
        assert!(suspects.contains_key(&run("a")) && !suspects.contains_key(&run("z1")));
    }

    #[test]
    fn what_is_damaged_or_too_long_is_nobodys_fault() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(NOTES), vec![0xff; 3000]).unwrap();
        std::fs::write(dir.path().join(SUSPECTS), b"[{").unwrap();
        assert_eq!(counted(dir.path()), []);
        let long = "x".repeat(4000);
        dies_at(dir.path(), &[(&long, &long, 1)]);
        assert_eq!(counted(dir.path()), []);
    }
}
