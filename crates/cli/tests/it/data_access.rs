//! The data folder holds secrets: nobody else reads it, however it was left, and a folder that cannot be closed is refused.

use crate::support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use serde_json::json;
use support::web::Web;
use support::{Running, baton, baton_with};

const KEYS: (&str, &str) = ("BATON_API_KEYS", "data-access-key:acme");
const SERVE: [&str; 3] = ["serve", "--data", "data"];

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn nothing_is_open(dir: &Path, expected: &[&str]) {
    let found = files(dir);
    for name in expected {
        assert!(found.contains(&dir.join(name)), "{name} is missing: {found:?}");
    }
    assert_eq!(mode(dir), 0o700);
    for path in found {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

/// Whatever the umask says.
#[test]
fn everything_that_a_host_writes_is_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let host = Running::start_after(folder.path(), "umask 000", &SERVE, &[KEYS]);
    let web = Web::new(&host.url, Some("data-access-key"));
    web.post("/v1/webhooks", json!({"url": "https://example.com/hook", "events": ["*"]})).expect(201);
    let data = folder.path().join("data");
    let names = [
        "baton.db",
        "baton.db-wal",
        "baton.db-shm",
        "baton.commits",
        "baton.lock",
        "baton.steps",
        "link-secret",
        "host-id",
    ];
    nothing_is_open(&data, &names);
    // A life that ends in the middle leaves files, and the next one opens them.
    host.kill();
    for path in files(&data) {
        set(&path, 0o666);
    }
    set(&data, 0o777);
    let told = baton(folder.path(), &["doctor", "--data", "data", "--listen", "127.0.0.1:1"]).stdout;
    assert!(told.contains("others can read data and 8 more"), "{told}");
    let host = Running::start_after(folder.path(), "umask 000", &SERVE, &[KEYS]);
    nothing_is_open(&data, &names);
    assert_eq!(host.stop(), 0);
    let told = baton(folder.path(), &["doctor", "--data", "data", "--listen", "127.0.0.1:1"]).stdout;
    assert!(told.contains("only the owner can read it"), "{told}");

    let host = Running::start_after(folder.path(), "umask 000", &["dev"], &[]);
    nothing_is_open(&folder.path().join(".baton"), &["dev.json", "baton.db", "link-secret"]);
    assert_eq!(host.stop(), 0);
}

/// Root makes a folder of somebody else; anybody else takes one of root's.
fn foreign(folder: &Path) -> PathBuf {
    let data = folder.join("foreign");
    fs::create_dir(&data).unwrap();
    match chown(&data, Some(65534), Some(65534)) {
        Ok(()) => data,
        Err(_) => PathBuf::from("/usr"),
    }
}

#[test]
fn a_folder_of_somebody_else_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let data = foreign(folder.path());
    let before = mode(&data);
    let place = data.display().to_string();
    let refused = baton_with(folder.path(), &["serve", "--data", &place, "--listen", "127.0.0.1:0"], &[KEYS]).expect(1);
    assert!(refused.stderr.contains(&format!("{place} belongs to user")), "{refused:?}");
    assert!(refused.stderr.contains("chown") && refused.stderr.contains("data_access"), "{refused:?}");
    let told = baton(folder.path(), &["doctor", "--data", &place, "--listen", "127.0.0.1:1"]).expect(1).stdout;
    assert!(told.contains("WRONG    permissions"), "{told}");
    assert_eq!(mode(&data), before);
    assert!(!data.join("baton.db").exists() && !data.join("baton.lock").exists());
}

/// A volume as containers get it: of root, shared by group.
#[test]
fn a_folder_that_is_shared_by_group_can_be_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    // Only root can make it somebody else's; for others it stays their own, which is allowed too.
    let _ = chown(&data, Some(65534), None);
    set(&data, 0o2770);
    let host = Running::start(folder.path(), &SERVE, &[KEYS, ("BATON_DATA_ACCESS", "group")]);
    assert_eq!(mode(&data), 0o2770);
    for path in files(&data) {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert_eq!(host.stop(), 0);
    set(&data, 0o2777);
    for (access, is_ok) in [("any", true), ("nobody", false)] {
        match Running::try_start(folder.path(), &SERVE, &[KEYS, ("BATON_DATA_ACCESS", access)]) {
            Ok(host) => assert!(is_ok && host.stop() == 0, "{access}"),
            Err(told) => assert!(!is_ok && told.contains("owner, group or any"), "{access}: {told}"),
        }
    }
    assert_eq!(mode(&data), 0o2777, "nothing is changed for any");
}

#[test]
fn a_copy_of_the_data_is_private_too() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(Running::start(folder.path(), &SERVE, &[KEYS]).stop(), 0);
    let copy = folder.path().join("copy");
    fs::create_dir(&copy).unwrap();
    set(&copy, 0o755);
    // An empty variable counts as not set.
    let copied = ["storage", "copy", "--from", "data", "--to", "copy"];
    baton_with(folder.path(), &copied, &[("BATON_DATA_ACCESS", "")]).expect(0);
    nothing_is_open(&copy, &["baton.db", "link-secret", "host-id"]);
    set(&copy, 0o1777);
    let refused = baton(folder.path(), &["storage", "copy", "--from", "data", "--to", "copy", "--resume"]).expect(1);
    assert!(refused.stderr.contains("folder of the system"), "{refused:?}");
    // Whoever only looks changes nothing.
    set(&copy, 0o755);
    baton(folder.path(), &["storage", "check", "copy"]).expect(0);
    assert_eq!(mode(&copy), 0o755);
}
