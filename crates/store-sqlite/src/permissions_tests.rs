use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use baton_store::Journal as _;

use super::unix::{Verdict, close, judge};
use super::*;
use crate::{SqliteOptions, SqliteStore};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A folder in a folder, both made here.
fn folder(mode: u32) -> (tempfile::TempDir, PathBuf) {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("data");
    fs::create_dir(&dir).unwrap();
    set(&dir, mode);
    (outer, dir)
}

#[tokio::test]
async fn every_file_of_the_store_is_for_its_owner_only() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("deep/data");
    let store = SqliteStore::open(&dir).unwrap();
    assert_eq!((mode(&dir), mode(&outer.path().join("deep"))), (0o700, 0o700));
    let found: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(found.len() >= 4, "the database, what is beside it and the lock: {found:?}");
    for path in found {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    store.close().await;
}

#[tokio::test]
async fn what_was_open_to_others_is_closed() {
    let (_outer, dir) = folder(0o755);
    drop(SqliteStore::open(&dir).unwrap());
    set(&dir, 0o2777);
    for name in ["baton.db", "baton.lock"] {
        set(&dir.join(name), 0o666);
    }
    for name in ["baton.db-wal", "baton.db-shm", "link-secret", "notes.txt"] {
        fs::write(dir.join(name), "").unwrap();
        set(&dir.join(name), 0o644);
    }
    let open = inspect_folder(&dir, DataAccess::Owner, &["link-secret"]).unwrap();
    assert_eq!(open.len(), 6, "{open:?}");
    assert_eq!(mode(&dir), 0o2777, "looking changes nothing");
    prepare_folder(&dir, DataAccess::Owner, &["link-secret", "absent"]).unwrap();
    let store = SqliteStore::open(&dir).unwrap();
    assert_eq!(mode(&dir), 0o2700, "other bits stay");
    for name in ["baton.db", "baton.db-wal", "baton.db-shm", "baton.lock", "link-secret"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&dir.join("notes.txt")), 0o644, "not ours");
    assert_eq!(inspect_folder(&dir, DataAccess::Owner, &["link-secret"]), Ok(Vec::new()));
    store.close().await;
}

#[test]
fn whose_it_is_and_how_open_it_is_decides() {
    use DataAccess::{Any, Group, Owner};
    let (folder, file) = (true, false);
    for (owner, mode, kind, access, verdict) in [
        (7, 0o700, folder, Owner, Verdict::Fine),
        (7, 0o600, file, Owner, Verdict::Fine),
        (7, 0o640, file, Owner, Verdict::Close(0o600)),
        (7, 0o604, file, Owner, Verdict::Close(0o600)),
        (7, 0o602, file, Owner, Verdict::Close(0o600)),
        (7, 0o2775, folder, Owner, Verdict::Close(0o2700)),
        (0, 0o700, folder, Owner, Verdict::Foreign),
        (9, 0o600, file, Owner, Verdict::Foreign),
        (7, 0o2770, folder, Group, Verdict::Fine),
        (7, 0o2775, folder, Group, Verdict::Close(0o2770)),
        (7, 0o664, file, Group, Verdict::Close(0o660)),
        (0, 0o2770, folder, Group, Verdict::Fine),
        (0, 0o2775, folder, Group, Verdict::Fine),
        (0, 0o2777, folder, Group, Verdict::ForeignAndOpen),
        (0, 0o660, file, Group, Verdict::Fine),
        (0, 0o664, file, Group, Verdict::ForeignAndOpen),
        (0, 0o777, folder, Any, Verdict::Fine),
        (7, 0o666, file, Any, Verdict::Fine),
    ] {
        assert_eq!(judge(owner, 0o100_000 | mode, kind, 7, access), verdict, "{owner} {mode:o} {access:?}");
    }
    // Root can read everything; what belongs to somebody else is still that person's to open.
    assert_eq!(judge(7, 0o700, folder, 0, Owner), Verdict::Foreign);
}

#[test]
fn what_cannot_be_closed_is_refused_with_the_remedy() {
    let (_outer, dir) = folder(0o755);
    let failing = |_: &Path, _: u32| Err(io::Error::from(io::ErrorKind::ReadOnlyFilesystem));
    let refusal = close(&dir, DataAccess::Owner, &[], failing).unwrap_err();
    assert!(refusal.message.contains("read-only") && refusal.advice.contains("chmod 700"), "{refusal}");
    assert!(refusal.advice.contains("data_access"), "{refusal}");
    assert_eq!(close(&dir, DataAccess::Any, &[], failing), Ok(Vec::new()), "whoever says so is believed");
    // One that is closed already needs no change, so a read-only disk is no reason.
    set(&dir, 0o700);
    assert_eq!(close(&dir, DataAccess::Owner, &[], failing), Ok(Vec::new()));
}

#[test]
fn a_folder_that_others_use_is_not_taken_from_them() {
    let (_outer, dir) = folder(0o1777);
    let refusal = prepare_folder(&dir, DataAccess::Owner, &[]).unwrap_err();
    assert!(refusal.message.contains("of the system"), "{refusal}");
    assert!(prepare_folder(&dir.join("below"), DataAccess::Owner, &[]).is_ok());
    assert_eq!((mode(&dir), mode(&dir.join("below"))), (0o1777, 0o700));

    let (_outer, dir) = folder(0o755);
    fs::write(dir.join("thesis.tex"), "").unwrap();
    let refusal = prepare_folder(&dir, DataAccess::Owner, &[]).unwrap_err();
    assert!(refusal.message.contains("holds other files") && refusal.advice.contains("chmod 700"), "{refusal}");
    assert_eq!(mode(&dir), 0o755);
    set(&dir, 0o700);
    prepare_folder(&dir, DataAccess::Owner, &[]).unwrap();

    let (_outer, dir) = folder(0o755);
    fs::create_dir(dir.join("lost+found")).unwrap();
    prepare_folder(&dir, DataAccess::Owner, &[]).unwrap();
    assert_eq!(mode(&dir), 0o700, "a new volume is empty");
}

#[test]
fn the_folder_may_be_a_link_and_no_file_in_it() {
    let (outer, dir) = folder(0o755);
    let link = outer.path().join("link");
    symlink(&dir, &link).unwrap();
    drop(SqliteStore::open(&link).unwrap());
    assert_eq!((mode(&dir), mode(&dir.join("baton.db"))), (0o700, 0o600));
    let elsewhere = outer.path().join("elsewhere");
    fs::rename(dir.join("baton.lock"), &elsewhere).unwrap();
    set(&elsewhere, 0o644);
    symlink(&elsewhere, dir.join("baton.lock")).unwrap();
    let refused = SqliteStore::open(&link).unwrap_err().to_string();
    assert!(refused.contains("symbolic link"), "{refused}");
    assert_eq!(mode(&elsewhere), 0o644, "nothing was changed through it");
    symlink(outer.path().join("nowhere"), outer.path().join("dangling")).unwrap();
    assert!(prepare_folder(&outer.path().join("dangling"), DataAccess::Owner, &[]).is_err());
}

#[test]
fn a_file_system_without_permissions_can_be_allowed() {
    let (_outer, dir) = folder(0o777);
    fs::write(dir.join("other"), "").unwrap();
    let options = SqliteOptions { access: DataAccess::Any, ..SqliteOptions::default() };
    drop(SqliteStore::open_with(&dir, options).unwrap());
    assert_eq!(mode(&dir), 0o777);
    assert_eq!(mode(&dir.join("baton.db")), 0o600, "what is new is private all the same");
}

#[test]
fn the_disk_is_measured_in_no_file_of_anybody_else() {
    let outer = tempfile::tempdir().unwrap();
    let victim = outer.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, outer.path().join(format!("fsync-probe-{}", std::process::id()))).unwrap();
    SqliteStore::fsync_probe(outer.path(), 1).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}
