//! Packs as `.tgz`. An archive is read as if somebody had made it to hurt: everything is bounded, and nothing in it
//! can name a place outside itself.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use crate::files::{Inside, MAX_FILE_BYTES};

/// The largest archive, packed.
pub const MAX_ARCHIVE_BYTES: u64 = 8 * 1024 * 1024;
/// The most it may unpack to, file headers and padding included.
pub const MAX_UNPACKED_BYTES: u64 = 16 * 1024 * 1024;
/// The most files and folders in it.
pub const MAX_ENTRIES: usize = 1024;

/// Why an archive is not taken.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    #[error("the archive has more than {MAX_ARCHIVE_BYTES} bytes")]
    TooLarge,
    #[error("the archive unpacks to more than {MAX_UNPACKED_BYTES} bytes")]
    Bomb,
    #[error("the archive has more than {MAX_ENTRIES} entries")]
    TooManyEntries,
    #[error("`{0}` has more than {MAX_FILE_BYTES} bytes")]
    FileTooLarge(String),
    #[error("the path `{path}` {why}")]
    Path { path: String, why: &'static str },
    #[error("`{0}` is neither a file nor a folder; links and devices have no place in a pack")]
    Kind(String),
    #[error("`{0}` is in the archive twice")]
    Twice(String),
    #[error("`{0}` is both a file and a folder")]
    FileAndFolder(String),
    #[error("the archive is damaged: {0}")]
    Damaged(std::io::Error),
}

/// The files of an archive, by their paths.
pub type Contents = BTreeMap<String, Vec<u8>>;

/// Reads a gzipped tar file.
pub fn read(packed: &[u8]) -> Result<Contents, ArchiveError> {
    if packed.len() as u64 > MAX_ARCHIVE_BYTES {
        return Err(ArchiveError::TooLarge);
    }
    // Whatever the headers claim, no more than this comes out of the decoder.
    let mut stream = GzDecoder::new(packed).take(MAX_UNPACKED_BYTES + 1);
    let contents = unpack(&mut stream);
    if stream.limit() == 0 { Err(ArchiveError::Bomb) } else { contents }
}

fn unpack(stream: &mut impl Read) -> Result<Contents, ArchiveError> {
    let mut archive = Archive::new(stream);
    let (mut contents, mut folded) = (Contents::new(), BTreeSet::new());
    let mut count = 0;
    for entry in archive.entries().map_err(ArchiveError::Damaged)? {
        let mut entry = entry.map_err(ArchiveError::Damaged)?;
        count += 1;
        if count > MAX_ENTRIES {
            return Err(ArchiveError::TooManyEntries);
        }
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if kind == EntryType::Directory {
            folder(&path)?;
            continue;
        }
        if kind != EntryType::Regular {
            return Err(ArchiveError::Kind(path));
        }
        let inside = Inside::read(&path).map_err(|why| ArchiveError::Path { path: path.clone(), why })?;
        // Some disks do not tell `A` from `a`: what differs only in that would overwrite itself there.
        if !folded.insert(inside.as_str().to_lowercase()) {
            return Err(ArchiveError::Twice(path));
        }
        let mut bytes = Vec::new();
        entry.by_ref().take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(ArchiveError::Damaged)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(ArchiveError::FileTooLarge(path));
        }
        if bytes.len() as u64 != entry.size() {
            return Err(ArchiveError::Damaged(std::io::ErrorKind::UnexpectedEof.into()));
        }
        contents.insert(inside.as_str().to_owned(), bytes);
    }
    no_file_is_a_folder(&contents)?;
    Ok(contents)
}

/// Folders come into being with their files; here only their names matter.
fn folder(path: &str) -> Result<(), ArchiveError> {
    let name = path.trim_end_matches('/');
    if matches!(name, "." | "") && !path.starts_with('/') {
        return Ok(());
    }
    Inside::read(name).map(drop).map_err(|why| ArchiveError::Path { path: path.to_owned(), why })
}

fn no_file_is_a_folder(contents: &Contents) -> Result<(), ArchiveError> {
    for path in contents.keys() {
        let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        if let Some(parent) = parents.into_iter().find(|parent| contents.contains_key(*parent)) {
            return Err(ArchiveError::FileAndFolder(parent.to_owned()));
        }
    }
    Ok(())
}
