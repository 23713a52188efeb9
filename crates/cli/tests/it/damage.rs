//! A folder that is not what was written, from outside: what the host says, what finds it, and the ways to go on.

use crate::support;

use std::fs::{self, OpenOptions};
use std::path::Path;

use serde_json::Value;
use support::{Running, baton, dev};

const DATA: &str = ".baton";

/// A folder with a few runs, left behind by a killed host.
fn killed(here: &Path) -> Vec<String> {
    let host = dev(here);
    let start = || baton(here, &["run", "start", "demo-child", "--wait", "--json"]).expect(0).json();
    let runs = (0..4).map(|_| start()["runId"].as_str().unwrap().to_owned()).collect();
    host.kill();
    runs
}

fn data(here: &Path) -> std::path::PathBuf {
    let data = here.join(DATA);
    assert!(data.join("baton.db").exists(), "{}", data.display());
    data
}

/// Changes one byte of a text wherever it is in the file: free places may still hold what was there before.
fn flip(file: &Path, text: &str) {
    let mut bytes = fs::read(file).unwrap();
    let places: Vec<usize> = (0..bytes.len()).filter(|place| bytes[*place..].starts_with(text.as_bytes())).collect();
    assert!(!places.is_empty(), "the text is in the file");
    places.into_iter().for_each(|place| bytes[place] ^= 1);
    fs::write(file, bytes).unwrap();
}

fn problems(checked: &Value) -> String {
    checked["problems"].to_string()
}

#[test]
fn a_cut_log_is_refused_until_somebody_accepts_it() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    killed(here);
    let data = data(here);
    let path = data.to_str().unwrap();
    let log = OpenOptions::new().write(true).open(data.join("baton.db-wal")).unwrap();
    log.set_len(log.metadata().unwrap().len() - 3000).unwrap();

    let told = Running::try_start(here, &["dev"], &[]).err().expect("it does not start");
    assert!(told.contains("has lost its end") && told.contains("baton storage check"), "{told}");
    let checked = baton(here, &["storage", "check", path, "--no-replay", "--json"]).expect(1).json();
    assert!(problems(&checked).contains("has lost its end"), "{checked}");
    let doctor = baton(here, &["doctor", "--data", path, "--json"]).expect(1).json();
    let storage = doctor.as_array().unwrap().iter().find(|finding| finding["name"] == "storage").unwrap();
    assert!(storage["found"].as_str().unwrap().contains("has lost its end"), "{storage}");

    baton(here, &["storage", "accept", path]).expect(2);
    let accepted = baton(here, &["storage", "accept", path, "--yes", "--json"]).expect(0).json();
    assert!(accepted["lostEnd"].as_str().unwrap().contains("are missing"), "{accepted}");
    baton(here, &["storage", "check", path]).expect(0);
    let host = dev(here);
    baton(here, &["run", "start", "demo-child", "--wait"]).expect(0);
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_damaged_record_is_named_and_the_rest_goes_on_and_can_be_saved() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let runs = killed(here);
    let data = data(here);
    let path = data.to_str().unwrap();
    // Folded back into one file, as a stopped host leaves it.
    assert_eq!(dev(here).stop(), 0);
    // In the body of a record of the second run: its id is in each of them.
    flip(&data.join("baton.db"), &format!(r#"{}","sequence":3"#, &runs[1][20..]));

    let host = dev(here);
    let refused = baton(here, &["run", "events", &runs[1]]).expect(5);
    assert!(refused.stderr.contains("is damaged at sequence 3"), "{refused:?}");
    baton(here, &["run", "events", &runs[2]]).expect(0);
    let file = here.join("saved.jsonl");
    baton(here, &["run", "export", &runs[0], "-o", file.to_str().unwrap()]).expect(0);
    assert!(fs::read_to_string(&file).unwrap().contains(r#""sum":""#));
    baton(here, &["run", "start", "demo-child", "--wait"]).expect(0);
    assert_eq!(host.stop(), 0);

    let checked = baton(here, &["storage", "check", path, "--json"]).expect(1).json();
    assert!(problems(&checked).contains(&runs[1]), "{checked}");
    assert_eq!(checked["replayed"]["broken"].as_array().unwrap().len(), 1, "{checked}");
    let saved = here.join("saved");
    let saved = saved.to_str().unwrap();
    let copied = baton(here, &["storage", "copy", "--from", path, "--to", saved, "--salvage", "--json"]).expect(1);
    let copied = copied.json();
    assert_eq!(copied["leftOut"], serde_json::json!([]), "a record reads back, and its log does not: {copied}");
    assert_eq!(copied["replayed"]["equal"], 4, "{copied}");
}
