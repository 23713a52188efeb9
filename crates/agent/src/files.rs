//! The files of a pack, wherever they are kept. A path never leads out of its pack.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest `pack.json`, and the largest file that one refers to.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// A path within a pack, `prompts/editor.md`: relative, forward slashes, nothing that climbs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inside(String);

impl Inside {
    /// Reads a path, or says which rule it breaks.
    pub(crate) fn read(text: &str) -> Result<Self, &'static str> {
        let text = text.strip_prefix("./").unwrap_or(text);
        if text.is_empty() {
            return Err("is empty");
        }
        if text.len() > 512 {
            return Err("has more than 512 bytes");
        }
        if text.starts_with('/') {
            return Err("is absolute; write it from the root of the pack");
        }
        if text.chars().any(|c| c == '\\' || c == ':' || c.is_control()) {
            return Err("has a backslash, a colon or a control character in it");
        }
        if text.split('/').any(|segment| segment == "..") {
            return Err("leads out of the pack");
        }
        if text.split('/').any(|segment| segment.is_empty() || segment == ".") {
            return Err("has an empty segment");
        }
        Ok(Self(text.to_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a file of a pack cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("is not in the pack")]
    Missing,
    #[error("leads out of the pack")]
    Outside,
    #[error("is not a file")]
    NotAFile,
    #[error("has more than {MAX_FILE_BYTES} bytes")]
    TooLarge,
    #[error("is not UTF-8")]
    NotText,
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
}

/// Where the files of one pack are.
#[derive(Clone, Debug)]
pub(crate) enum Files {
    Folder(PathBuf),
    Memory(BTreeMap<String, Vec<u8>>),
}

impl Files {
    pub(crate) fn bytes(&self, path: &Inside) -> Result<Vec<u8>, Unreadable> {
        match self {
            Self::Folder(root) => from_folder(root, path),
            Self::Memory(files) => {
                let bytes = files.get(path.as_str()).ok_or(Unreadable::Missing)?;
                if bytes.len() as u64 > MAX_FILE_BYTES {
                    return Err(Unreadable::TooLarge);
                }
                Ok(bytes.clone())
            }
        }
    }

    pub(crate) fn text(&self, path: &Inside) -> Result<String, Unreadable> {
        String::from_utf8(self.bytes(path)?).map_err(|_| Unreadable::NotText)
    }
}

/// A symbolic link may point around within its pack, but not out of it.
fn from_folder(root: &Path, path: &Inside) -> Result<Vec<u8>, Unreadable> {
    let missing = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => Unreadable::Missing,
        _ => Unreadable::Io(error),
    };
    let root = root.canonicalize()?;
    let place = root.join(path.as_str()).canonicalize().map_err(missing)?;
    if !place.starts_with(&root) {
        return Err(Unreadable::Outside);
    }
    // Not opened before it is known to be a file: opening a pipe waits for whoever writes to it.
    let facts = place.metadata().map_err(missing)?;
    if !facts.is_file() {
        return Err(Unreadable::NotAFile);
    }
    let mut bytes = Vec::new();
    File::open(&place).map_err(missing)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(Unreadable::TooLarge);
    }
    Ok(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_inside() {
        for good in ["pack.json", "./prompts/a.md", "a/b/c.json", "..a/b..", ".hidden"] {
            assert!(Inside::read(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "./",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "a/..",
            "a//b",
            "a/./b",
            "a\\b",
            "C:/x",
            "https://x/y",
            "a\0b",
            "a/",
        ] {
            assert!(Inside::read(bad).is_err(), "{bad:?}");
        }
        assert!(Inside::read(&"a".repeat(513)).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_may_not_lead_out() {
        use std::os::unix::fs::symlink;
        let outside = tempfile::tempdir().unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        std::fs::write(folder.path().join("real"), "r").unwrap();
        symlink(outside.path().join("secret"), folder.path().join("out")).unwrap();
        symlink(outside.path(), folder.path().join("dir")).unwrap();
        symlink("real", folder.path().join("within")).unwrap();
        let files = Files::Folder(folder.path().to_owned());
        let read = |path| files.text(&Inside::read(path).unwrap());
        assert_eq!(read("within").unwrap(), "r");
        assert!(matches!(read("out"), Err(Unreadable::Outside)));
        assert!(matches!(read("dir/secret"), Err(Unreadable::Outside)));
        assert!(matches!(read("nothing"), Err(Unreadable::Missing)));
    }

    #[test]
    fn files_have_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = vec![b'x'; MAX_FILE_BYTES as usize + 1];
        std::fs::write(folder.path().join("large"), &bytes).unwrap();
        std::fs::write(folder.path().join("binary"), [0xff, 0xfe]).unwrap();
        std::fs::create_dir(folder.path().join("folder")).unwrap();
        let memory = Files::Memory(BTreeMap::from([("large".to_owned(), bytes), ("binary".to_owned(), vec![0xff])]));
        for files in [Files::Folder(folder.path().to_owned()), memory] {
            assert!(matches!(files.bytes(&Inside::read("large").unwrap()), Err(Unreadable::TooLarge)));
            assert!(matches!(files.text(&Inside::read("binary").unwrap()), Err(Unreadable::NotText)));
        }
        let files = Files::Folder(folder.path().to_owned());
        assert!(matches!(files.bytes(&Inside::read("folder").unwrap()), Err(Unreadable::NotAFile)));
    }
}
