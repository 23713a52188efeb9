//! Who may read the data folder. It holds webhook secrets and the key that signs links, so by default only its owner may:
//! the folder is 0700 and every file that we write into it 0600. What was more open is closed. What cannot be closed, or
//! belongs to somebody else, is refused.
//!
//! The folder is closed first. From then on nobody else can exchange a file between a look at it and its change.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use baton_store::Error;

/// Whom the data folder may be open to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataAccess {
    /// Only the user that the process runs as.
    #[default]
    Owner,
    /// The folder's group too, and the folder may belong to somebody else: a volume that is shared by group.
    Group,
    /// Whoever can read it now. Nothing is looked at and nothing is changed: for file systems without permissions.
    Any,
}

impl DataAccess {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "owner" => Some(Self::Owner),
            "group" => Some(Self::Group),
            "any" => Some(Self::Any),
            _ => None,
        }
    }
}

/// Why a folder is not used, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderRefusal {
    pub message: String,
    pub advice: String,
}

impl fmt::Display for FolderRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.advice)
    }
}

impl From<FolderRefusal> for Error {
    fn from(refusal: FolderRefusal) -> Self {
        Self::Unavailable { reason: refusal.to_string(), source: None }
    }
}

/// Makes the folder if it is not there, and closes it and the files in it: those of the store and these.
pub fn prepare_folder(dir: &Path, access: DataAccess, names: &[&str]) -> Result<(), FolderRefusal> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| FolderRefusal {
        message: format!("the data folder {} cannot be created: {error}", dir.display()),
        advice: "choose another with --data".to_owned(),
    })?;
    for path in unix::close(dir, access, names, unix::change_mode)? {
        tracing::warn!(path = %path.display(), "others could read this; now they cannot");
    }
    Ok(())
}

/// The folder and files that `prepare_folder` would close, without closing them.
pub fn inspect_folder(dir: &Path, access: DataAccess, names: &[&str]) -> Result<Vec<PathBuf>, FolderRefusal> {
    unix::close(dir, access, names, |_, _| Ok(()))
}

/// Makes the database file for its owner only: SQLite would let everybody read it, and gives the files beside it the mode
/// that it has. One that exists is not opened: SQLite's locks on it would be lost when it is closed again.
pub(crate) fn create_private(path: &Path) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
mod unix {
    use super::*;

    pub(super) fn close(
        _: &Path,
        _: DataAccess,
        _: &[&str],
        _: impl FnMut(&Path, u32) -> io::Result<()>,
    ) -> Result<Vec<PathBuf>, FolderRefusal> {
        Ok(Vec::new())
    }

    pub(super) fn change_mode(_: &Path, _: u32) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::{self, Metadata, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    use super::*;
    use crate::files::{BESIDE_DATABASE, DATABASE, LOCK, NOTE};

    /// Anybody may put files into a folder with this bit, and it is no one's own.
    const STICKY: u32 = 0o1000;

    /// What there is to be said about one folder or file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Verdict {
        Fine,
        /// To this mode.
        Close(u32),
        /// It belongs to somebody else, who can read it or open it to others.
        Foreign,
        /// It belongs to somebody else and is open to everybody.
        ForeignAndOpen,
    }

    pub(super) fn judge(owner: u32, mode: u32, is_folder: bool, me: u32, access: DataAccess) -> Verdict {
        let close = |bits: u32| if mode & bits == 0 { Verdict::Fine } else { Verdict::Close(mode & 0o7777 & !bits) };
        match access {
            DataAccess::Any => Verdict::Fine,
            DataAccess::Owner if owner != me => Verdict::Foreign,
            DataAccess::Owner => close(0o077),
            DataAccess::Group if owner == me => close(0o007),
            // Whoever may write a folder may exchange what is in it. To read it shows no more than names.
            DataAccess::Group if mode & if is_folder { 0o002 } else { 0o007 } != 0 => Verdict::ForeignAndOpen,
            DataAccess::Group => Verdict::Fine,
        }
    }

    pub(super) fn change_mode(path: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(path, Permissions::from_mode(mode))
    }

    /// Closes what is open, with `change`. Says what that was.
    pub(super) fn close(
        dir: &Path,
        access: DataAccess,
        names: &[&str],
        mut change: impl FnMut(&Path, u32) -> io::Result<()>,
    ) -> Result<Vec<PathBuf>, FolderRefusal> {
        if access == DataAccess::Any {
            return Ok(Vec::new());
        }
        let mut closed = Vec::new();
        let me = rustix::process::geteuid().as_raw();
        let mut one = |path: &Path, found: &Metadata| {
            match judge(found.uid(), found.mode(), found.is_dir(), me, access) {
                Verdict::Fine => {}
                Verdict::Close(mode) => {
                    if found.is_dir() {
                        is_our_own(path, found.mode())?;
                    }
                    change(path, mode).map_err(|error| unchangeable(path, mode, &error))?;
                    closed.push(path.to_owned());
                }
                verdict => return Err(foreign(path, found, me, verdict)),
            }
            Ok(())
        };
        // Through a link: the folder may be one, and what it leads to counts.
        one(dir, &fs::metadata(dir).map_err(|error| unreadable(dir, &error))?)?;
        let beside = BESIDE_DATABASE.iter().map(|end| format!("{DATABASE}{end}"));
        let own = [DATABASE.to_owned(), LOCK.to_owned(), NOTE.to_owned()].into_iter().chain(beside);
        for path in own.chain(names.iter().map(|&name| name.to_owned())).map(|name| dir.join(name)) {
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => return Err(link(&path)),
                Ok(found) => one(&path, &found)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(unreadable(&path, &error)),
            }
        }
        Ok(closed)
    }

    /// Refuses to close a folder to others that they use for something else.
    fn is_our_own(dir: &Path, mode: u32) -> Result<(), FolderRefusal> {
        let whole = fs::canonicalize(dir).map_err(|error| unreadable(dir, &error))?;
        let others = mode & STICKY != 0 || whole.parent().is_none();
        let message = if others {
            format!("{} is a folder of the system, and the data needs one that nobody else can read", dir.display())
        } else if fs::symlink_metadata(dir.join(DATABASE)).is_ok() || is_empty(dir)? {
            return Ok(());
        } else {
            format!("others can read {}, and it holds other files", dir.display())
        };
        let advice = if others {
            "name a folder in it with --data".to_owned()
        } else {
            format!("name an empty folder with --data, or close this one (chmod 700 {})", dir.display())
        };
        Err(FolderRefusal { message, advice })
    }

    fn is_empty(dir: &Path) -> Result<bool, FolderRefusal> {
        let entries = fs::read_dir(dir).map_err(|error| unreadable(dir, &error))?;
        // The root of a new volume has the first. A host that died before it made a database leaves the second.
        let nobodys = |entry: fs::DirEntry| entry.file_name() == "lost+found" || entry.file_name() == LOCK;
        Ok(entries.flatten().all(nobodys))
    }

    fn foreign(path: &Path, found: &Metadata, me: u32, verdict: Verdict) -> FolderRefusal {
        let (place, owner) = (path.display(), found.uid());
        let open = if verdict == Verdict::ForeignAndOpen { " and is open to everybody" } else { "" };
        FolderRefusal {
            message: format!("{place} belongs to user {owner}{open}, and this process runs as user {me}"),
            advice: if verdict == Verdict::ForeignAndOpen {
                format!("close it to others (chmod o-rwx {place}), or allow it with data_access = \"any\"")
            } else {
                format!(
                    "give it to this user (chown {me} {place}), name a folder below it with --data, or allow it with \
                     data_access = \"group\""
                )
            },
        }
    }

    fn unchangeable(path: &Path, mode: u32, error: &io::Error) -> FolderRefusal {
        let place = path.display();
        FolderRefusal {
            message: format!("others can read {place}, and it cannot be closed to them: {error}"),
            advice: format!(
                "make the disk writable and run chmod {mode:o} {place}, or allow it with data_access = \"any\" if its \
                 file system has no permissions"
            ),
        }
    }

    fn link(path: &Path) -> FolderRefusal {
        let place = path.display();
        FolderRefusal {
            message: format!("{place} is a symbolic link, and may lead anywhere"),
            advice: "put the file itself there; the folder as a whole may be a link".to_owned(),
        }
    }

    fn unreadable(path: &Path, error: &io::Error) -> FolderRefusal {
        FolderRefusal {
            message: format!("{} cannot be read: {error}", path.display()),
            advice: "make it readable for this user, or choose another folder with --data".to_owned(),
        }
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
#[path = "permissions_tests.rs"]
mod tests;
