//! Ways to write a host that stops, found by their names.
//!
//! A fair semaphore hands a permit to whoever waits longest. If that is a future in a set that is polled only now and
//! then, because the arm of a `select!` beside it awaits something else, it keeps the permit without ever running, and
//! everybody behind it waits for good. So every future that may be given a permit, a lock or a connection is a task of its
//! own. And a queue without a bound takes in work until there is no memory left.

use std::fs;
use std::path::{Path, PathBuf};

const INSTEAD: &str = "A future that may be given a permit, a lock or a connection must always be polled: spawn a task for each \
                       (tokio::task::JoinSet), and bound how many there are. Give a channel a bound (mpsc::channel(n)), and \
                       say beside the number why it is enough. If neither is possible, add a line with the reason to ALLOWED.";

/// Sets of futures that only run while somebody polls the set.
const SETS: [&str; 7] = [
    "FuturesUnordered",
    "FuturesOrdered",
    "buffer_unordered",
    ".buffered(",
    "for_each_concurrent",
    "select_all(",
    "SelectAll",
];

/// File, what is in it, and why that does no harm.
const ALLOWED: [(&str, &str, &str); 3] = [
    (
        "crates/store-postgres/src/store.rs",
        "unbounded_channel",
        "submit() is called under a run's lock and cannot wait; the runtime bounds what waits here (`Outbox::room`)",
    ),
    (
        "crates/store-postgres/src/news.rs",
        "unbounded_channel",
        "a line of news for each commit of the writer, which is bounded by it; taken in by a task that waits for nothing \
         longer than a pulse, and dropped while there is no connection",
    ),
    (
        "crates/store-sqlite/src/store.rs",
        "channel()",
        "submit() is called under a run's lock and cannot wait; the runtime bounds what waits here (`Outbox::room`)",
    ),
];

/// What a line of code holds of the pattern.
fn found_in(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    if let Some(set) = SETS.into_iter().find(|set| code.contains(set)) {
        return Some(set);
    }
    if code.contains("unbounded_channel") || code.contains("unbounded(") || code.contains("unbounded::<") {
        return Some("unbounded_channel");
    }
    // That of the standard library has no bound; that of tokio takes one.
    let rest = code.split_once("mpsc::channel")?.1;
    let rest = if rest.starts_with("::<") {
        rest.split_once(">(").map(|(_, rest)| format!("({rest}"))
    } else {
        Some(rest.to_owned())
    };
    rest.is_some_and(|rest| rest.starts_with("()")).then_some("channel()")
}

/// Where `select!` leaves the order in which its arms are asked to chance: a seed would not take the same course twice.
fn unbiased(text: &str) -> Vec<usize> {
    let code = |line: &'_ str| line.split("//").next().unwrap_or_default().trim().to_owned();
    let lines: Vec<String> = text.lines().map(code).collect();
    let begins = |line: &String| line.contains("select! {") || line.contains("select!(");
    let follows = |number: usize| lines[number + 1..].iter().find(|line| !line.is_empty());
    let wrong = |number: &usize| {
        let same = lines[*number].split_once("select!").is_some_and(|(_, rest)| rest.contains("biased;"));
        !same && follows(*number).is_none_or(|next| !next.starts_with("biased;"))
    };
    (0..lines.len()).filter(|number| begins(&lines[*number])).filter(wrong).map(|number| number + 1).collect()
}

#[test]
fn every_select_of_the_runtime_asks_its_arms_in_order() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let (mut files, mut wrong, mut all) = (Vec::new(), Vec::new(), 0);
    sources(&root.join("crates/runtime/src"), &mut files);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        all += text.matches("select! {").count();
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        wrong.extend(unbiased(&text).into_iter().map(|line| format!("{name}:{line}")));
    }
    assert!(all > 50, "only {all} were found");
    assert!(wrong.is_empty(), "a select! begins with `biased;`, see docs/adr/0018:\n{}", wrong.join("\n"));
    assert!(unbiased("tokio::select! {\n    // why\n    biased;\n").is_empty());
    assert!(unbiased("tokio::select! { biased; () = a => {} }").is_empty());
    assert_eq!(unbiased("let x = 1;\ntokio::select! {\n    () = a => {}\n}"), [2]);
}

/// Where commits are made and handed over, and why elsewhere than in `journal/`.
const HANDED_OVER: [(&str, &str); 2] = [
    ("crates/runtime/src/journal/", "says among whose writes they keep their place (`Lane`), and counts them"),
    ("crates/runtime/src/history/transfer/staged.rs", "a store of its own, in memory, for what is being imported"),
];

/// A commit that belongs to nobody holds everybody up until all before it is written. So all of them are handed over where
/// it must be said whose they are.
#[test]
fn every_commit_says_whose_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut files = Vec::new();
    sources(&root.join("crates/runtime/src"), &mut files);
    let mut wrong = Vec::new();
    for path in files {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        if HANDED_OVER.iter().any(|(allowed, _)| name.starts_with(allowed)) {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains("store.submit(") || line.contains("Commit::new("));
        wrong.extend(lines.map(|(number, _)| format!("{name}:{}", number + 1)));
    }
    assert!(wrong.is_empty(), "hand it over with `Storage::write` and a `Lane`:\n{}", wrong.join("\n"));
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            sources(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            found.push(entry);
        }
    }
}

/// File, line and what it holds, of everything that is part of the product.
fn occurrences() -> Vec<(String, usize, &'static str)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut files = Vec::new();
    for entry in fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.file_name().is_some_and(|name| name != "testkit") && entry.join("src").is_dir() {
            sources(&entry.join("src"), &mut files);
        }
    }
    assert!(files.len() > 100, "only {} files were found", files.len());
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("use ")) {
            all.extend(found_in(line).map(|what| (name.clone(), number + 1, what)));
        }
    }
    all
}

#[test]
fn every_future_that_may_be_given_something_is_a_task_and_every_queue_has_a_bound() {
    let all = occurrences();
    let wrong: Vec<String> = all
        .iter()
        .filter(|(file, _, what)| !ALLOWED.iter().any(|(path, allowed, _)| path == file && allowed == what))
        .map(|(file, line, what)| format!("{file}:{line}: {what}"))
        .collect();
    assert!(wrong.is_empty(), "\n{}\n\n{INSTEAD}", wrong.join("\n"));
    for (path, allowed, _) in ALLOWED {
        let there = all.iter().any(|(file, _, what)| path == file && allowed == *what);
        assert!(there, "{path} has no {allowed} any more: take the line out of ALLOWED");
    }
}

#[test]
fn the_pattern_is_recognised() {
    for line in [
        "let mut calls = FuturesUnordered::new();",
        "let answers = stream.buffer_unordered(8);",
        "    .buffered(4)",
        "stream::iter(all).for_each_concurrent(16, |one| work(one)).await;",
        "let (sender, receiver) = mpsc::unbounded_channel();",
        "let (sender, receiver) = unbounded_channel::<Line>();",
        "let (sender, receiver) = std::sync::mpsc::channel();",
        "let (sender, receiver) = mpsc::channel::<()>();",
        "let (sender, receiver) = crossbeam_channel::unbounded();",
    ] {
        assert!(found_in(line).is_some(), "{line}");
    }
    for line in [
        "// not a FuturesUnordered: see there",
        "let (sender, receiver) = mpsc::channel(QUEUE);",
        "let (sender, receiver) = mpsc::channel::<Line>(QUEUE);",
        "let (sender, receiver) = oneshot::channel();",
        "let mut calls = JoinSet::new();",
        "let reader = BufReader::new(stream);",
    ] {
        assert_eq!(found_in(line), None, "{line}");
    }
}
