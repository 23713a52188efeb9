//! One process per data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use baton_store::Error;

use crate::error::io_error;

const FILE_NAME: &str = "baton.lock";

/// Held as long as it lives. The operating system lets go when the process ends, however it ends, so a file left by a
/// killed process locks nobody out; the pid inside only tells people whom to look for.
#[derive(Debug)]
pub(crate) struct DirLock {
    _file: File,
}

impl DirLock {
    pub(crate) fn acquire(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(FILE_NAME);
        let failed = |error| io_error(&format!("cannot lock {}", path.display()), error);
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // The owner may be writing it just now; the refusal stands either way.
                let _ = file.read_to_string(&mut pid);
                let pid = if pid.trim().is_empty() { "unknown" } else { pid.trim() }.to_owned();
                return Err(Error::Locked { path: dir.display().to_string(), pid });
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
        Ok(Self { _file: file })
    }
}
