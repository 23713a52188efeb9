//! Small files that hold secrets: mode 0600 from the first byte, replaced in one step.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use crate::exit::Exit;
use crate::failure::Failure;

pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    // A leftover of a crash could have other permissions.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

/// Opens a file to be written from its beginning. What it held is gone, and if it is a file (it may be a terminal or a
/// pipe) nobody else can read what comes now.
pub(crate) fn rewrite(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    let found = file.metadata()?;
    if found.is_file() && found.permissions().mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// `count` random bytes from the operating system.
pub(crate) fn random(count: usize) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![0; count];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::new(Exit::Failed, format!("the system cannot generate random bytes: {error}")))?;
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_over_an_open_file_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.jsonl");
        fs::write(&path, "longer than what comes now").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        rewrite(&path).unwrap().write_all(b"short").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"short");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        rewrite(Path::new("/dev/null")).unwrap().write_all(b"gone").unwrap();
        assert_ne!(fs::metadata("/dev/null").unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn only_the_owner_reads_it_even_after_a_crash_left_a_stray() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        fs::write(dir.path().join("secret.new"), "stray").unwrap();
        replace(&path, b"one").unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
