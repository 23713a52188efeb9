//! Logs that earlier builds wrote, gone through again by this one: what it decides must be what they decided. The files
//! are in `tests/journals`; see the page there for how one is added.

use crate::journals_library;

use std::fs;
use std::path::{Path, PathBuf};

use baton_model::Digest;
use journals_library::{Stage, all, who};
use serde_json::{Value, json};

/// Set to write the files that are missing.
const WRITE: &str = "BATON_WRITE_JOURNALS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/journals")
}

fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    files.sort();
    files
}

fn side_by_side(original: Option<&Value>, replayed: Option<&Value>) -> String {
    let text = |event: Option<&Value>| {
        let text = event.map_or_else(|| "nothing".to_owned(), |event| serde_json::to_string_pretty(event).unwrap());
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (left, right) = (text(original), text(replayed));
    let width = left.iter().map(|line| line.chars().count()).max().unwrap_or(0).max(8);
    let mut printed = format!("{:width$} | now\n", "written");
    for line in 0..left.len().max(right.len()) {
        let at = |lines: &[String]| lines.get(line).cloned().unwrap_or_default();
        let (left, right) = (at(&left), at(&right));
        let mark = if left == right { '|' } else { '>' };
        printed.push_str(&format!("{left:width$} {mark} {right}\n"));
    }
    printed
}

/// How many events were decided anew, or what came out otherwise.
async fn gone_through(text: &str) -> Result<u64, String> {
    let stage = Stage::open(99).await;
    stage.import(text).await.map_err(|error| error.to_string())?;
    let mut decided = 0;
    let rows = stage.rows().await;
    assert!(!rows.is_empty());
    for row in rows {
        let verified = stage.host.verify(&who().tenant, &row.id).await.map_err(|error| error.to_string())?;
        if let Some(found) = verified.difference {
            let both = side_by_side(found.original.as_ref(), found.replayed.as_ref());
            return Err(format!("{} of {} at {} ({:?}):\n{both}", row.id, row.workflow, found.seq, found.kind));
        }
        assert_eq!(verified.events, row.next_seq, "{}", row.id);
        decided += verified.decided;
    }
    Ok(decided)
}

#[tokio::test]
async fn every_journal_is_decided_as_it_was_written() {
    if std::env::var_os(WRITE).is_some() {
        write_missing().await;
    }
    let files = files();
    for journal in all() {
        let there = files.iter().any(|file| name_of(file) == journal.name);
        assert!(there, "{} is missing; {WRITE}=1 writes it", journal.name);
    }
    let mut differing = Vec::new();
    for file in files {
        match gone_through(&fs::read_to_string(&file).unwrap()).await {
            Ok(decided) => assert!(decided > 0, "{}: nothing was decided", file.display()),
            Err(difference) => differing.push(format!("{}: {difference}", file.display())),
        }
    }
    assert!(differing.is_empty(), "this build decides otherwise:\n{}", differing.join("\n"));
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap().to_str().unwrap().split('@').next().unwrap().to_owned()
}

async fn write_missing() {
    for (seed, journal) in (100..).zip(all()) {
        let path = folder().join(format!("{}@{}.jsonl", journal.name, env!("CARGO_PKG_VERSION")));
        if !path.exists() {
            fs::write(path, journal.write(seed).await).unwrap();
        }
    }
}

/// The file with one record changed, and a digest that fits again. It has no checksums, like those of earlier versions.
fn altered(text: &str, alter: impl Fn(&mut Value) -> bool) -> String {
    let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter_mut().any(|line| line.get("record").is_some() && alter(&mut line["record"])));
    lines[0]["header"]["version"] = json!(3);
    for line in &mut lines {
        for part in ["record", "run"] {
            if let Some(part) = line.get_mut(part).and_then(Value::as_object_mut) {
                part.remove("sum");
                part.remove("chainBase");
            }
        }
    }
    let mut footer = lines.pop().unwrap();
    let mut altered: String = lines.iter().map(|line| format!("{line}\n")).collect();
    footer["footer"]["digest"] = json!(Digest::of_bytes(&altered).as_str());
    altered.push_str(&format!("{footer}\n"));
    altered
}

#[tokio::test]
async fn a_decision_that_this_build_would_not_take_is_found() {
    let journal = all().into_iter().find(|journal| journal.name == "pipeline").unwrap();
    let text = journal.write(1).await;
    assert!(gone_through(&text).await.is_ok());
    let other = altered(&text, |record| {
        let found = record["body"]["type"] == "variable.changed";
        if found {
            record["body"]["payload"]["next"] = json!(12345);
        }
        found
    });
    let printed = gone_through(&other).await.unwrap_err();
    assert!(printed.contains("12345") && printed.contains(" > ") && printed.contains("written"), "{printed}");
}

#[tokio::test]
async fn what_is_played_twice_comes_out_the_same() {
    for journal in all() {
        assert_eq!(journal.write(5).await, journal.write(5).await, "{}", journal.name);
    }
}
