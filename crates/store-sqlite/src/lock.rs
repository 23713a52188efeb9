//! One process per data directory.
//!
//! The directory itself is locked, so it does not matter what becomes of the files in it. The file `baton.lock` is locked
//! too: it tells people whom to look for, and it keeps out older versions, which look at nothing else.
//!
//! The database file is opened by SQLite and by nobody else in this process: its locks on that file are lost as soon as
//! any descriptor of it is closed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use baton_store::Error;

use crate::error::io_error;
use crate::files;

/// Held as long as it lives. The operating system lets go when the process ends, however it ends, so a file left by a
/// killed process locks nobody out.
#[derive(Debug)]
pub(crate) struct DirLock {
    place: Place,
    _directory: Option<File>,
    _file: File,
}

impl DirLock {
    pub(crate) fn acquire(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(files::LOCK);
        let failed = |error| io_error(&format!("cannot lock {}", path.display()), error);
        let taken = |pid: &str| {
            let pid = if pid.trim().is_empty() { "unknown" } else { pid.trim() }.to_owned();
            Error::Locked { path: dir.display().to_string(), pid }
        };
        let directory = match lock_directory(dir) {
            Ok(directory) => directory,
            // The file may be gone, or be another one by now; then nobody knows who it is.
            Err(TryLockError::WouldBlock) => return Err(taken(&std::fs::read_to_string(&path).unwrap_or_default())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // The owner may be writing it just now; the refusal stands either way.
                let _ = file.read_to_string(&mut pid);
                return Err(taken(&pid));
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let write_pid = |file: &mut File| {
            file.rewind()?;
            file.set_len(0)?;
            writeln!(file, "{}", std::process::id())
        };
        // A full disk must not keep the data from being read: the lock counts, the pid is a courtesy.
        if let Err(error) = write_pid(&mut file) {
            tracing::warn!(path = %path.display(), %error, "the lock file does not name this process");
        }
        Ok(Self { place: Place::of(dir), _directory: directory, _file: file })
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }
}

/// `None` where directories cannot be locked: then the file has to do.
#[cfg(unix)]
fn lock_directory(dir: &Path) -> Result<Option<File>, TryLockError> {
    let directory = File::open(dir).map_err(TryLockError::Error)?;
    match directory.try_lock() {
        Ok(()) => Ok(Some(directory)),
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        Err(TryLockError::Error(error)) => {
            tracing::warn!(path = %dir.display(), %error, "the directory cannot be locked, only a file in it");
            Ok(None)
        }
    }
}

#[cfg(not(unix))]
fn lock_directory(_: &Path) -> Result<Option<File>, TryLockError> {
    Ok(None)
}

/// Which directory a path stood for when it was locked. Files in it are opened by their path later on, and by then the path
/// may stand for another one, which another process may own.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    dir: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Place {
    fn of(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), identity: identity(dir) }
    }

    /// Refuses to open anything in a directory that is not the one that was locked.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.identity.is_none() || identity(&self.dir) == self.identity {
            return Ok(());
        }
        let reason = format!("{} was moved or replaced while it was in use; restart the host", self.dir.display());
        Err(Error::Unavailable { reason, source: None })
    }
}

#[cfg(unix)]
fn identity(dir: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(dir).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> Option<(u64, u64)> {
    None
}
