//! Words that we once made up and have replaced by words of the field. They stay out.

use std::fs;
use std::path::{Path, PathBuf};

/// Names of types, and what they are called now.
const NOT_A_TYPE: &[(&str, &str)] = &[
    ("Wave", "WorkerBatch"),
    ("Manner", "AgentOptions"),
    ("Consult", "NodeRequest"),
    ("Brief", "InvocationContext"),
    ("Frozen", "TurnSnapshot"),
    ("Sight", "ReadVersion"),
    ("Errand", "ToolInvocation"),
    ("Mandate", "RemoteChildTask"),
    ("Wish", "RemoteChildAction"),
    ("Company", "ClusterState"),
    ("Bells", "NotifyMap"),
    ("World", "Generation"),
    ("Stretch", "LogSegment"),
    ("Crossing", "BranchPoint"),
    ("Going", "ReplayCursor"),
    ("Ear", "DeltaSink"),
    ("Deaf", "NoSink"),
    ("Offers", "ModelCapabilities"),
    ("Cassette", "Recording"),
    ("Shelf", "ToolSet"),
    ("Supply", "ToolSource"),
    ("Equipment", "HostParts"),
    ("KeyRing", "ApiKeys"),
    ("Waivers", "IgnoredRequirements"),
    ("Complaints", "StderrTail"),
    ("Legs", "Segments"),
    ("Ledger", "VersionedStore"),
    ("Lens", "ReadView"),
    ("Letter", "ForwardedCommand"),
    ("News", "ClusterEvent"),
    ("Roster", "AgentRegistry"),
    ("Slot", "RunHandle"),
    ("Janitor", "EvictionQueue"),
    ("Doubt", "UnknownOutcome"),
    ("Vitals", "HealthState"),
    ("Seam", "TestHooks"),
];

/// Words that readers of our pages would have to look up, and what to write instead.
const NOT_ON_A_PAGE: &[(&str, &str)] = &[
    ("wave", "worker batch"),
    ("roster", "agent registry"),
    ("errand", "tool call"),
    ("mandate", "action"),
    ("playhead", "selected event"),
    ("seam", "test endpoint"),
    ("seams", "test endpoints"),
    ("lens", "view"),
    ("patience", "timeout"),
    ("shelf", "tool registry"),
    ("ledgers", "versioned stores"),
    ("janitor", "eviction queue"),
];

/// Where readers look who are no users yet: these pages are held to the same words.
const PAGES: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];

const GLOSSARY_ROWS: usize = 20;
const README_WORDS: usize = 1_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|found| found == extension) {
                found.push(entry);
            }
        }
    }
    found
}

fn defines(line: &str, name: &str) -> bool {
    ["struct", "enum", "trait", "type"].iter().any(|keyword| {
        line.split_once(&format!("{keyword} {name}")).is_some_and(|(before, rest)| {
            !before.contains("//") && !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
        })
    })
}

fn says(text: &str, word: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '-')
        .any(|found| found.eq_ignore_ascii_case(word))
}

#[test]
fn types_have_names_of_the_field() {
    let mut found = Vec::new();
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    for file in crates.flat_map(|folder| files(&folder, "rs")) {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let bad = NOT_A_TYPE.iter().filter(|(name, _)| defines(line, name));
            found.extend(bad.map(|(name, plain)| format!("{}: `{name}` is `{plain}`", file.display())));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn pages_use_words_of_the_field() {
    let folders = ["docs/guide", "docs/errors"].into_iter().flat_map(|folder| files(&root().join(folder), "md"));
    let pages = folders.chain(PAGES.map(|page| root().join(page)));
    let mut found = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let bad = NOT_ON_A_PAGE.iter().filter(|(word, _)| says(&text, word));
        found.extend(bad.map(|(word, plain)| format!("{}: `{word}`; write `{plain}`", page.display())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_first_page_and_the_glossary_stay_short() {
    let words = fs::read_to_string(root().join("README.md")).unwrap().split_whitespace().count();
    assert!(words <= README_WORDS, "the README has {words} words");
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let glossary = page.split_once("\n## Words\n").unwrap().1.split("\n## ").next().unwrap();
    let rows = glossary.lines().filter(|line| line.starts_with("| **")).count();
    assert!((1..=GLOSSARY_ROWS).contains(&rows), "the glossary has {rows} rows");
}

#[test]
fn what_is_looked_for_is_found() {
    assert!(defines("pub(crate) struct Wave {", "Wave") && defines("enum Wave<'a> {", "Wave"));
    assert!(!defines("struct WaveForm;", "Wave") && !defines("// struct Wave", "Wave"));
    assert!(says("A Wave of workers", "wave") && !says("waves and microwave", "wave"));
}
