//! Putting a pack from an archive into a folder of packs.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use baton_model::{Digest, code};

use crate::archive;
use crate::files::Files;
use crate::names;
use crate::pack_reader::{Pack, read_pack};
use crate::problem::Problem;
use crate::signature::{Checks, Provenance};

/// What was put where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    pub name: String,
    pub version: String,
    /// Of the archive.
    pub sha256: Digest,
    pub folder: PathBuf,
    pub provenance: Provenance,
    /// The same pack was there already, file by file.
    pub unchanged: bool,
}

/// Unpacks an archive as `<packs>/<name>-<version>/`: whole or not at all. A pack that would not load, or that has an
/// agent that would not, is refused here.
pub fn install(packed: &[u8], packs: &Path, checks: &Checks) -> Result<Installed, Vec<Problem>> {
    let (contents, pack) = unpacked(packed, checks)?;
    let Pack { manifest, provenance, .. } = pack;
    let (name, version) = (manifest.name, manifest.version.to_string());
    let folder = packs.join(format!("{name}-{version}"));
    let failed = |error: io::Error| {
        let message = format!("The pack could not be written: {error}.");
        vec![Problem::new(code::PACK_INTEGRITY_FAILURE, folder.display().to_string(), message)]
    };
    let unchanged = match folder.symlink_metadata() {
        Err(_) => {
            place(&contents, packs, &folder).map_err(failed)?;
            false
        }
        Ok(_) if holds(&folder, &contents) => true,
        Ok(_) => {
            let message = format!("Another pack is there already. Remove it first, or raise the version of {name}.");
            return Err(vec![Problem::new(code::PACK_INTEGRITY_FAILURE, folder.display().to_string(), message)]);
        }
    };
    Ok(Installed { name, version, sha256: Digest::of_bytes(packed), folder, provenance, unchanged })
}

/// The folder of one tenant's packs within the folder of packs.
pub fn tenant_folder(packs: &Path, tenant: &str) -> Result<PathBuf, Problem> {
    if names::is_tenant_folder(tenant) {
        return Ok(packs.join(format!("@{tenant}")));
    }
    let message = format!("`{}` cannot name a tenant here: its name {}.", tenant.escape_debug(), names::TENANT_FOLDER);
    Err(Problem::new(code::VALIDATION_ERROR, "tenant", message))
}

/// Reads an archive that is not installed yet. One with a problem is refused whole, as it would be then.
pub fn inspect_archive(packed: &[u8], checks: &Checks) -> Result<Pack, Vec<Problem>> {
    unpacked(packed, checks).map(|(_, pack)| pack)
}

fn unpacked(packed: &[u8], checks: &Checks) -> Result<(archive::Contents, Pack), Vec<Problem>> {
    let contents = archive::read(packed).map_err(|error| {
        let message = format!("The archive is not taken: {error}.");
        vec![Problem::new(code::PACK_INTEGRITY_FAILURE, "archive", message)]
    })?;
    let pack = read_pack(&Files::Memory(contents.clone()), checks)?;
    if pack.problems.is_empty() { Ok((contents, pack)) } else { Err(pack.problems) }
}

/// Writes everything beside its place and moves it there in one step.
fn place(contents: &archive::Contents, packs: &Path, folder: &Path) -> io::Result<()> {
    private_folder(true).create(packs)?;
    let draft = draft(packs)?;
    let written = write(contents, &draft).and_then(|()| fs::rename(&draft, folder)).and_then(|()| sync(packs));
    if written.is_err() {
        // Nothing that starts with a dot is loaded, so what cannot be removed does no harm.
        let _ = fs::remove_dir_all(&draft);
    }
    written
}

/// A folder that nobody else has.
fn draft(packs: &Path) -> io::Result<PathBuf> {
    for number in 0..1000 {
        let draft = packs.join(format!(".installing-{}-{number}", std::process::id()));
        match private_folder(false).create(&draft) {
            Ok(()) => return Ok(draft),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many unfinished installations; remove the `.installing-…` folders"))
}

fn write(contents: &archive::Contents, draft: &Path) -> io::Result<()> {
    let mut folders = BTreeSet::from([draft.to_owned()]);
    for (path, bytes) in contents {
        let place = draft.join(path);
        if let Some(parent) = place.parent() {
            private_folder(true).create(parent)?;
            let above = parent.ancestors().take_while(|folder| *folder != draft);
            folders.extend(above.map(Path::to_owned));
        }
        let mut file = private_file(&place)?;
        file.write_all(bytes)?;
        file.sync_all()?;
    }
    folders.iter().try_for_each(|folder| sync(folder))
}

/// Prompts and settings of agents are their owner's business.
fn private_folder(recursive: bool) -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(recursive);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

fn private_file(place: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(place)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Whether a folder has exactly these files.
fn holds(folder: &Path, contents: &archive::Contents) -> bool {
    let mut found = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else { return false };
        for entry in entries {
            let Ok((entry, kind)) = entry.and_then(|entry| entry.file_type().map(|kind| (entry, kind))) else {
                return false;
            };
            if kind.is_dir() {
                folders.push(entry.path());
                continue;
            }
            let path = entry.path();
            let name = path.strip_prefix(folder).ok().and_then(|path| path.to_str());
            let expected = name.and_then(|name| contents.get(name));
            if !kind.is_file() || expected.is_none_or(|bytes| fs::read(&path).ok().as_ref() != Some(bytes)) {
                return false;
            }
            found += 1;
        }
    }
    found == contents.len()
}
