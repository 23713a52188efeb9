//! Archives that were made to hurt, and how packs get from one into a folder.

use crate::support;

use std::fs;

use baton_agent::archive::{self, ArchiveError, MAX_ENTRIES};
use baton_agent::{Checks, MAX_FILE_BYTES, install};
use baton_model::{Digest, code};
use serde_json::json;
use support::{PACK, add, agent, assert_problem, ids, load_from, pack, tgz, with};
use tar::EntryType;

fn manifest() -> String {
    pack(vec![with(agent("editor"), json!({"systemPrompt": null, "systemPromptRef": "prompts/editor.md"}))]).to_string()
}

fn good() -> Vec<u8> {
    tgz(&[("pack.json", manifest().as_bytes()), ("prompts/editor.md", b"You edit.")])
}

#[test]
fn an_ordinary_archive_is_read() {
    let packed = support::archive(|builder| {
        add(builder, "./", b"", EntryType::Directory, None);
        add(builder, "./pack.json", b"{}", EntryType::Regular, None);
        add(builder, "prompts/", b"", EntryType::Directory, None);
        add(builder, "prompts/a.md", b"a", EntryType::Regular, None);
    });
    let contents = archive::read(&packed).unwrap();
    assert_eq!(contents.keys().collect::<Vec<_>>(), ["pack.json", "prompts/a.md"]);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for path in ["../x", "a/../../x", "/etc/passwd", "a\\..\\x", "C:/x", "a//b", "a/./b"] {
        let packed = tgz(&[(path, b"x")]);
        assert!(matches!(archive::read(&packed), Err(ArchiveError::Path { .. })), "{path}");
    }
    let folder = support::archive(|builder| add(builder, "../out/", b"", EntryType::Directory, None));
    assert!(matches!(archive::read(&folder), Err(ArchiveError::Path { .. })));
}

#[test]
fn links_and_devices_are_refused() {
    for kind in [EntryType::Symlink, EntryType::Link, EntryType::Char, EntryType::Block, EntryType::Fifo] {
        let packed = support::archive(|builder| add(builder, "x", b"", kind, Some("/etc/passwd")));
        assert!(matches!(archive::read(&packed), Err(ArchiveError::Kind(_))), "{kind:?}");
    }
}

#[test]
fn nothing_is_there_twice() {
    for (a, b) in [("x", "x"), ("x", "./x"), ("X", "x")] {
        assert!(matches!(archive::read(&tgz(&[(a, b"1"), (b, b"2")])), Err(ArchiveError::Twice(_))), "{a} {b}");
    }
    let both = tgz(&[("x", b"1"), ("x/y", b"2")]);
    assert!(matches!(archive::read(&both), Err(ArchiveError::FileAndFolder(_))));
}

#[test]
fn bombs_do_not_go_off() {
    let file = vec![0; MAX_FILE_BYTES as usize];
    let names: Vec<String> = (0..17).map(|n| format!("f{n}")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), file.as_slice())).collect();
    let packed = tgz(&many);
    assert!(packed.len() < 500_000, "small to send: {}", packed.len());
    assert!(matches!(archive::read(&packed), Err(ArchiveError::Bomb)));

    let large = vec![0; MAX_FILE_BYTES as usize + 1];
    assert!(matches!(archive::read(&tgz(&[("x", &large)])), Err(ArchiveError::FileTooLarge(_))));

    let names: Vec<String> = (0..=MAX_ENTRIES).map(|n| format!("f{n}")).collect();
    let crowd: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), b"".as_slice())).collect();
    assert!(matches!(archive::read(&tgz(&crowd)), Err(ArchiveError::TooManyEntries)));

    // A header may claim any size; what is not there is not made up, and not reserved either.
    let claim = support::archive(|builder| {
        let mut header = tar::Header::new_ustar();
        header.set_path("pack.json").unwrap();
        header.set_size(8 * 1024 * 1024 * 1024 - 1);
        header.set_cksum();
        builder.append(&header, b"x".as_slice()).unwrap();
    });
    assert!(archive::read(&claim).is_err());

    let long_name = support::archive(|builder| {
        add(builder, "././@LongLink", &vec![b'a'; 20 * 1024 * 1024], EntryType::GNULongName, None);
        add(builder, "x", b"x", EntryType::Regular, None);
    });
    assert!(matches!(archive::read(&long_name), Err(ArchiveError::Bomb)));
    assert!(matches!(archive::read(&vec![0; 9 * 1024 * 1024]), Err(ArchiveError::TooLarge)));
}

#[test]
fn damage_is_noticed() {
    let whole = good();
    for cut in [0, 1, 10, whole.len() / 2, whole.len() - 20] {
        assert!(archive::read(&whole[..cut]).is_err(), "cut at {cut} of {}", whole.len());
    }
    assert!(archive::read(b"not an archive").is_err());
}

#[test]
fn a_pack_is_installed_whole_and_once() {
    let packs = tempfile::tempdir().unwrap();
    let folder = packs.path().join("sub/packs");
    let packed = good();
    let first = install(&packed, &folder, &Checks::default()).unwrap();
    assert_eq!((first.name.as_str(), first.version.as_str(), first.unchanged), (PACK, "1.0.0", false));
    assert_eq!(first.sha256, Digest::of_bytes(&packed));
    assert_eq!(first.folder, folder.join(format!("{PACK}-1.0.0")));
    assert_eq!(fs::read_to_string(first.folder.join("prompts/editor.md")).unwrap(), "You edit.");
    assert_eq!(ids(&load_from(&folder), "t"), [format!("{PACK}.editor")]);

    assert!(install(&packed, &folder, &Checks::default()).unwrap().unchanged);
    let other = tgz(&[("pack.json", manifest().as_bytes()), ("prompts/editor.md", b"You edit a lot.")]);
    let problems = install(&other, &folder, &Checks::default()).unwrap_err();
    assert_problem(&problems, code::PACK_INTEGRITY_FAILURE, "-1.0.0", "Remove it first");
    let names: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "nothing else is left behind: {names:?}");
}

#[test]
fn a_pack_that_would_not_load_is_not_installed() {
    let packs = tempfile::tempdir().unwrap();
    for (packed, code) in [
        (tgz(&[("pack.json", manifest().as_bytes())]), code::INVALID_MANIFEST),
        (tgz(&[("readme.md", b"x")]), code::INVALID_MANIFEST),
        (tgz(&[("../pack.json", b"{}")]), code::PACK_INTEGRITY_FAILURE),
        (b"junk".to_vec(), code::PACK_INTEGRITY_FAILURE),
    ] {
        let problems = install(&packed, packs.path(), &Checks::default()).unwrap_err();
        assert!(problems.iter().all(|problem| problem.code == code), "{problems:?}");
    }
    assert_eq!(fs::read_dir(packs.path()).unwrap().count(), 0);
}

#[test]
fn an_archive_in_the_folder_is_a_pack() {
    let packs = tempfile::tempdir().unwrap();
    fs::write(packs.path().join("writers.tgz"), good()).unwrap();
    fs::write(packs.path().join("broken.tgz"), b"junk").unwrap();
    fs::write(packs.path().join("notes.txt"), b"not a pack").unwrap();
    fs::create_dir(packs.path().join(".installing-1-0")).unwrap();
    let registry = load_from(packs.path());
    assert_eq!(ids(&registry, "t"), [format!("{PACK}.editor")]);
    let packs = registry.packs(&support::tenant("t"));
    assert_eq!(packs[0].sha256, Some(Digest::of_bytes(good())));
    assert_eq!(packs[0].origin, "writers.tgz");
    assert_eq!(registry.problems().len(), 1);
    assert_problem(registry.problems(), code::PACK_INTEGRITY_FAILURE, "broken.tgz/archive", "not taken");
}

#[cfg(unix)]
#[test]
fn what_is_installed_is_for_its_owner_only() {
    use std::os::unix::fs::MetadataExt as _;

    let folder = tempfile::tempdir().unwrap();
    let packs = folder.path().join("packs");
    let installed = install(&good(), &packs, &Checks::default()).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode() & 0o777;
    for place in [packs.clone(), installed.folder.clone(), installed.folder.join("prompts")] {
        assert_eq!(mode(&place), 0o700, "{}", place.display());
    }
    for place in ["pack.json", "prompts/editor.md"] {
        assert_eq!(mode(&installed.folder.join(place)), 0o600, "{place}");
    }
}
