//! A file that is not whole, or not what it says, is refused with the line that is wrong, and leaves nothing behind.

use crate::common;
use crate::forking;
use crate::transferring;

use baton_model::{ForkMode, Secret};
use baton_runtime::{Error, ErrorKind, Options, StartRun};
use baton_store::Disk;
use baton_testkit::Flow;
use common::scenario::{call, gate, parent, pipeline};
use common::versioned_stores::{LIST, PUT, WRITE, file, list, note};
use common::{World, options, tenant, who};
use forking::fork;
use serde_json::{Value, json};
use transferring::{elsewhere, export, fresh, import, lines, sealed, try_export, whole};

/// A parent with a child, a note and a file.
async fn sample() -> (World, String) {
    let top = Flow::chain(
        "top",
        &[
            ("put", PUT, note("one")),
            ("write", WRITE, file("p.md", "x")),
            ("call", "core.subWorkflow", call("pipeline")),
            ("list", LIST, list()),
        ],
    )
    .variable("n", "number", json!(4));
    let world = World::with([top, pipeline("pipeline")]).await;
    let run = world.start("top").await;
    world.ended(&run).await;
    let text = export(&world, &run).await;
    (world, text)
}

/// Imports what must be refused and checks that nothing came of it.
async fn refusal(text: &str) -> Error {
    let there = fresh().await;
    let before = whole(&there.store.disk());
    let refused = import(&there.host, text).await.err().unwrap_or_else(|| panic!("taken:\n{text}"));
    assert_eq!(whole(&there.store.disk()), before, "{refused}");
    assert!(there.rows().await.is_empty());
    // And the host takes the next file.
    let (_, good) = sample().await;
    import(&there.host, &good).await.unwrap();
    refused
}

#[tokio::test]
async fn a_file_that_was_cut_anywhere_is_refused() {
    let (_, text) = sample().await;
    let ends: Vec<usize> = text.match_indices('\n').map(|(end, _)| end).collect();
    let last = ends.len() - 1;
    for (number, end) in ends.iter().enumerate().take(last) {
        let refused = refusal(&text[..=*end]).await;
        assert_eq!((refused.kind, refused.code), (ErrorKind::Invalid, "validation_error"), "{refused}");
        assert_eq!(refused.details["line"], number + 1, "{refused}");
        assert!(refused.message.contains("cut"), "{refused}");
    }
    for cut in [0, 1, 10, text.len() / 2, text.len() - 3] {
        assert_eq!(refusal(&text[..cut]).await.kind, ErrorKind::Invalid, "{cut}");
    }
    // The last line break is nobody's loss.
    import(&fresh().await.host, text.trim_end()).await.unwrap();
}

#[tokio::test]
async fn a_file_in_which_anything_was_changed_is_refused() {
    let (_, text) = sample().await;
    for (from, to) in
        [("\"one\"", "\"two\""), ("p.md", "q.md"), ("completed", "cancelled"), ("\"seq\":1,", "\"seq\":2,")]
    {
        assert!(text.contains(from), "{from}");
        assert_eq!(refusal(&text.replacen(from, to, 1)).await.kind, ErrorKind::Invalid, "{from}");
    }
    let mut all: Vec<&str> = text.lines().collect();
    for (a, b) in [(1, 2), (4, 6), (8, 9), (10, 12)] {
        all.swap(a, b);
        assert_eq!(refusal(&(all.join("\n") + "\n")).await.kind, ErrorKind::Invalid, "{a} and {b}");
        all.swap(a, b);
    }
    for gone in [0, 1, 3, 7, 9] {
        let mut fewer = all.clone();
        fewer.remove(gone);
        assert_eq!(refusal(&(fewer.join("\n") + "\n")).await.kind, ErrorKind::Invalid, "without {gone}");
    }
    let refused = refusal(&format!("{text}{{}}\n")).await;
    assert!(refused.message.contains("footer"), "{refused}");
}

#[tokio::test]
async fn a_file_with_a_flipped_byte_is_refused_wherever_it_is() {
    let (_, text) = sample().await;
    let there = fresh().await;
    let before = whole(&there.store.disk());
    // Evenly through the file, the last line included, which tells what the others must be.
    for at in (0..text.len() - 1).step_by(text.len() / 97).chain(text.len() - 60..text.len() - 1) {
        let mut bytes = text.clone().into_bytes();
        // Another letter, digit or sign: what is not text at all is refused before.
        bytes[at] ^= 1;
        let Ok(changed) = String::from_utf8(bytes) else { continue };
        let refused = import(&there.host, &changed).await.err().unwrap_or_else(|| panic!("byte {at} is taken"));
        assert_eq!(refused.kind, ErrorKind::Invalid, "byte {at}: {refused}");
    }
    assert_eq!(whole(&there.store.disk()), before);
    import(&there.host, &text).await.unwrap();
}

/// A file that somebody made with care: the digest fits.
async fn forged(change: impl Fn(&mut Vec<Value>)) -> Error {
    let (_, text) = sample().await;
    let mut all = lines(&text);
    change(&mut all);
    refusal(&sealed(&all)).await
}

fn place(lines: &[Value], what: &str, nth: usize) -> usize {
    lines.iter().enumerate().filter(|(_, line)| line.get(what).is_some()).nth(nth).unwrap().0
}

/// Changes the nth line of a kind, and expects that very line to be named.
async fn forged_line(what: &str, nth: usize, change: impl Fn(&mut Value)) {
    // Boxed: a test makes dozens of these, and has room for all of them on one stack.
    let (_, text) = Box::pin(sample()).await;
    let mut all = lines(&text);
    let index = place(&all, what, nth);
    change(&mut all[index][what]);
    let refused = Box::pin(refusal(&sealed(&all))).await;
    let told = (refused.kind, refused.details["line"].as_u64());
    assert_eq!(told, (ErrorKind::Invalid, Some(index as u64 + 1)), "{what}: {refused}");
    assert!(refused.message.starts_with(&format!("Line {}: ", index + 1)), "{refused}");
}

#[tokio::test]
async fn every_line_is_judged_and_named() {
    forged_line("header", 0, |header| header["format"] = json!("something.else")).await;
    forged_line("header", 0, |header| header["run"] = json!("run_of_mine")).await;
    forged_line("header", 0, |header| header["first"] = json!(format!("run_{}", "0".repeat(32)))).await;
    forged_line("definition", 0, |definition| definition["definition"]["name"] = json!("other")).await;
    forged_line("definition", 0, |definition| definition["workflow"] = json!("other")).await;
    forged_line("ledger", 0, |ledger| ledger["kind"] = json!("secrets")).await;
    forged_line("ledger", 0, |ledger| ledger["version"] = json!(0)).await;
    forged_line("ledger", 0, |ledger| ledger["scope"] = json!("")).await;
    forged_line("ledger", 0, |ledger| ledger["base"] = json!({"scope": "nobody", "version": 1})).await;
    forged_line("change", 0, |change| change["version"] = json!(7)).await;
    forged_line("change", 1, |change| change["key"] = json!("../../etc/passwd")).await;
    forged_line("run", 0, |run| run["status"] = json!("running")).await;
    forged_line("run", 0, |run| run["status"] = json!("failed")).await;
    forged_line("run", 0, |run| run["id"] = json!("x")).await;
    forged_line("run", 0, |run| run["digest"] = json!("0".repeat(64))).await;
    forged_line("run", 0, |run| run["root"] = Value::Null).await;
    forged_line("run", 0, |run| run["errorCode"] = json!("made_up")).await;
    forged_line("run", 1, |run| {
        run["origin"] = json!({"source": run["id"], "seq": 1, "mode": "branch", "at": run["createdAt"]})
    })
    .await;
    forged_line("run", 1, |run| run["surprise"] = json!(1)).await;
    forged_line("record", 0, |record| record["kind"] = json!("node.started")).await;
    forged_line("record", 0, |record| record["private"] = json!({})).await;
    forged_line("record", 2, |record| record["seq"] = json!(5)).await;
    forged_line("record", 2, |record| record["body"]["sequence"] = json!(5)).await;
    forged_line("record", 2, |record| record["body"]["runId"] = json!("run_x")).await;
    forged_line("record", 2, |record| record["body"]["payload"] = json!([])).await;
    forged_line("record", 2, |record| record["body"]["payload"]["approvedBy"] = json!("ceo")).await;
    forged_line("record", 2, |record| record["body"]["approvedBy"] = json!("ceo")).await;
    forged_line("record", 2, |record| record["body"]["type"] = json!("node.failed")).await;
    forged_line("record", 2, |record| record["body"]["nodeId"] = json!("another")).await;
    forged_line("record", 2, |record| record["body"]["causationId"] = json!("evt_elsewhere")).await;
    forged_line("record", 2, |record| record["body"]["causationId"] = record["body"]["eventId"].clone()).await;
    forged_line("record", 2, |record| {
        record["body"].as_object_mut().unwrap().remove("nodeId").unwrap();
    })
    .await;
    forged_line("record", 2, |record| record["at"] = json!("yesterday")).await;
    forged_line("record", 2, |record| record["versions"] = json!({"memory": 99})).await;
    forged_line("record", 2, |record| record["part"] = json!("both")).await;
}

#[tokio::test]
async fn what_is_not_whole_is_refused_though_its_digest_fits() {
    // A run without its end, a child without its parent, a parent without its child's record.
    let refused = forged(|all| {
        let last = all.iter().rposition(|line| line.get("record").is_some()).unwrap();
        all.remove(last);
    });
    assert!(refused.await.message.contains("records"), "the count does not fit");
    let refused = forged(|all| {
        let last = all.iter().rposition(|line| line.get("record").is_some()).unwrap();
        all.remove(last);
        let run = place(all, "run", 1);
        let next = all[run]["run"]["nextSeq"].as_u64().unwrap();
        all[run]["run"]["nextSeq"] = json!(next - 1);
    });
    assert!(refused.await.message.contains("end"));
    let refused = forged(|all| {
        let run = place(all, "run", 1);
        all.truncate(run);
    });
    assert!(refused.await.message.contains("not in the file"));
    let refused = forged(|all| {
        let (change, ledger) = (place(all, "change", 0), place(all, "ledger", 0));
        all.remove(change);
        all.remove(ledger);
    });
    assert!(refused.await.message.contains("refers to version"));
    let refused = forged(|all| {
        let header = all[0].clone();
        all.insert(1, header);
    });
    assert!(refused.await.message.contains("cannot come here"));
    let refused = forged(|all| {
        let mut more = all[place(all, "ledger", 0)].clone();
        more["ledger"]["scope"] = json!("somebody-elses");
        all.insert(place(all, "run", 0), more);
    });
    assert!(refused.await.message.contains("somebody-elses"));
}

#[tokio::test]
async fn a_log_that_does_not_fold_is_refused() {
    let refused = forged(|all| {
        let body = |line: &Value| line["record"]["body"]["type"].as_str().map(str::to_owned);
        let node = all.iter().position(|line| body(line).as_deref() == Some("node.completed")).unwrap();
        all[node]["record"]["body"]["payload"]["nodeId"] = json!("nobody");
        all[node]["record"]["body"]["nodeId"] = json!("nobody");
    });
    let refused = refused.await;
    assert!(refused.kind == ErrorKind::Invalid && refused.details["line"].as_u64().is_some(), "{refused}");
}

#[tokio::test]
async fn a_newer_format_says_so_and_something_else_is_recognised() {
    let (_, text) = sample().await;
    let refused = refusal(&text.replacen("\"version\":4", "\"version\":5", 1)).await;
    assert_eq!((&refused.details["version"], &refused.details["supported"]), (&json!(5), &json!(4)), "{refused}");
    for other in ["", "hello\n", "{}\n", "[1]\n", "\u{feff}{}\n", "null\n"] {
        let refused = refusal(other).await;
        assert_eq!(refused.kind, ErrorKind::Invalid, "{other:?}: {refused}");
    }
}

#[tokio::test]
async fn what_is_too_large_or_too_deep_is_not_followed() {
    let (_, text) = sample().await;
    let there = fresh().await;
    let mut import = there.host.import(&who()).unwrap();
    import.take(text.lines().next().unwrap().as_bytes()).await.unwrap();
    import.take(b"\n").await.unwrap();
    let block = vec![b'x'; 1024 * 1024];
    let mut refused = None;
    for _ in 0..40 {
        refused = import.take(&block).await.err();
        if refused.is_some() {
            break;
        }
    }
    let refused = refused.unwrap();
    assert_eq!(
        (refused.kind, refused.code, &refused.details["line"]),
        (ErrorKind::TooLarge, "payload_too_large", &json!(2))
    );
    drop(import);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    let record = all.iter().position(|line| line.starts_with("{\"record\"")).unwrap();
    all[record] = all[record].replacen("\"payload\":{", &format!("\"payload\":{{\"deep\":{deep},"), 1);
    let refused = refusal(&(all.join("\n") + "\n")).await;
    assert_eq!(
        (refused.kind, refused.details["line"].as_u64()),
        (ErrorKind::Invalid, Some(record as u64 + 1)),
        "{refused}"
    );
    // A host may allow less than the one the file comes from.
    let mut small: Options = options(512);
    small.limits.max_workspace_file_bytes = 0;
    let there = elsewhere(Disk::default(), std::sync::Arc::default(), small).await;
    let refused = transferring::import(&there.host, &text).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::TooLarge, "{refused}");
    assert!(there.rows().await.is_empty());
}

#[tokio::test]
async fn gaps_that_nobody_could_fill_are_refused_at_once() {
    let refused = forged(|all| {
        let ledger = place(all, "ledger", 0);
        all[ledger]["ledger"]["version"] = json!(9_000_000_000_000_000_000_u64);
    });
    assert_eq!(refused.await.kind, ErrorKind::TooLarge);
}

#[tokio::test]
async fn a_run_that_is_here_and_not_the_same_is_refused() {
    let (_, text) = sample().await;
    let there = fresh().await;
    import(&there.host, &text).await.unwrap();
    assert!(import(&there.host, &text).await.unwrap().already_here);
    let before = whole(&there.store.disk());
    let mut all = lines(&text);
    let run = place(&all, "run", 0);
    all[run]["run"]["tags"] = json!(["other"]);
    let refused = import(&there.host, &sealed(&all)).await.unwrap_err();
    assert_eq!((refused.kind, refused.code), (ErrorKind::Conflict, "run_conflict"));
    assert_eq!(refused.details["runId"], all[run]["run"]["id"], "{refused}");
    assert_eq!(whole(&there.store.disk()), before);
}

#[tokio::test]
async fn only_what_has_ended_and_is_whole_leaves() {
    let world = World::with([parent("parent", call("gated")), gate("gated")]).await;
    let run = world.start("parent").await;
    world.waiting(&run).await;
    let refused = try_export(&world.host, &tenant(), &run).await.unwrap_err();
    assert_eq!((refused.kind, refused.code), (ErrorKind::Conflict, "run_conflict"), "{refused}");
    assert!(refused.message.contains("cancel"), "{refused}");
    let branch = world.host.fork(&who(), &run, fork(ForkMode::Branch, 1), None).await.unwrap().run_id;
    world.host.cancel(&who(), &branch, None).await.unwrap();
    world.ended(&branch).await;
    let refused = try_export(&world.host, &tenant(), &branch).await.unwrap_err();
    assert_eq!(refused.details["runId"], run.as_str(), "its source goes on: {refused}");
    world.drive(1).await;
    let child = world.snapshot(&run).await.child_runs[0].run_id.clone();
    let refused = try_export(&world.host, &tenant(), &child).await.unwrap_err();
    assert_eq!(refused.details["rootRunId"], run.as_str(), "{refused}");
    assert_eq!(try_export(&world.host, &common::other().tenant, &run).await.unwrap_err().code, "run_not_found");
    export(&world, &run).await;
    let mut half = world.host.export(&tenant(), &run).await.unwrap();
    half.next().await.unwrap();
    world.host.prune(&tenant(), &run, false).await.unwrap();
    let mut outcome = Ok(None);
    for _ in 0..1000 {
        outcome = half.next().await;
        if !matches!(outcome, Ok(Some(_))) {
            break;
        }
    }
    assert_eq!(outcome.unwrap_err().code, "run_pruned", "pruned on its way out");
    assert_eq!(try_export(&world.host, &tenant(), &run).await.unwrap_err().code, "run_pruned");
}

#[tokio::test]
async fn one_import_at_a_time() {
    let there = fresh().await;
    let first = there.host.import(&who()).unwrap();
    assert_eq!(there.host.import(&who()).err().unwrap().kind, ErrorKind::Unavailable);
    drop(first);
    assert!(there.host.import(&who()).is_ok());
}

#[tokio::test]
async fn secrets_of_a_host_neither_leave_nor_come_in() {
    const CANARY: &str = "sk-canary-\"0123456789";
    let secret = || Options { secrets: vec![Secret::new("canary", CANARY)], ..options(512) };
    let flow = Flow::chain(
        "leaky",
        &[
            ("put", PUT, json!({"content": format!("the key is {CANARY}")})),
            ("write", WRITE, file("key.md", CANARY)),
            ("set", "core.setVariable", json!({"name": "copy", "expression": "variables.key"})),
        ],
    )
    .variable("key", "string", json!(""));
    // Registered before anybody called it a secret, as it happens.
    let careless = World::with([flow]).await;
    let inputs = [("key".to_owned(), json!(CANARY))].into_iter().collect();
    let request = StartRun { inputs, ..common::request("leaky") };
    let run = careless.host.start_run(&who(), request, None).await.unwrap().run_id;
    careless.ended(&run).await;
    let spelt = json!(CANARY).to_string();
    let spelt = spelt.trim_matches('"');
    let leaky = export(&careless, &run).await;
    assert!(leaky.contains(spelt), "the test would prove nothing");
    let clock = careless.clock.clone();
    let world = elsewhere(careless.stop().await, clock, secret()).await;
    let refused = try_export(&world.host, &tenant(), &run).await.unwrap_err();
    assert!(refused.message.contains("secret") && !refused.message.contains("canary-"), "{refused}");

    // In a log there may be one; in what leaves there is none.
    let flow =
        Flow::chain("quiet", &[("set", "core.setVariable", json!({"name": "copy", "expression": "variables.key"}))])
            .variable("key", "string", json!(""));
    let world = elsewhere(Disk::default(), std::sync::Arc::default(), secret()).await;
    world.register(flow).await;
    let inputs = [("key".to_owned(), json!(CANARY))].into_iter().collect();
    let run = world.host.start_run(&who(), StartRun { inputs, ..common::request("quiet") }, None).await.unwrap().run_id;
    world.ended(&run).await;
    let text = export(&world, &run).await;
    assert!(!text.contains(spelt) && text.contains("[REDACTED:canary]"));
    import(&fresh().await.host, &text).await.unwrap();
}

#[tokio::test]
async fn a_file_cannot_bring_a_secret_into_memory() {
    let flow = Flow::chain("notes", &[("put", PUT, note("the key is sk-canary-0123456789"))]);
    let world = World::with([flow]).await;
    let run = world.start("notes").await;
    world.ended(&run).await;
    let text = export(&world, &run).await;
    let secrets = vec![Secret::new("canary", "sk-canary-0123456789")];
    let there = elsewhere(Disk::default(), std::sync::Arc::default(), Options { secrets, ..options(512) }).await;
    // The definition itself holds it, and is not what its digest names once it does not.
    let refused = import(&there.host, &text).await.unwrap_err();
    assert!(!refused.message.contains("sk-canary"), "{refused}");
    assert!(!whole(&there.store.disk()).contains("sk-canary"));
}

#[tokio::test]
async fn a_chain_of_forks_has_an_end() {
    let world = World::with([pipeline("pipeline")]).await;
    let mut run = world.start("pipeline").await;
    world.ended(&run).await;
    for _ in 0..100 {
        run = world.host.fork(&who(), &run, fork(ForkMode::Replay, 2), None).await.unwrap().run_id;
        world.ended(&run).await;
    }
    let text = export(&world, &run).await;
    assert_eq!(import(&fresh().await.host, &text).await.unwrap().new_runs, 101);
    run = world.host.fork(&who(), &run, fork(ForkMode::Replay, 2), None).await.unwrap().run_id;
    world.ended(&run).await;
    let refused = try_export(&world.host, &tenant(), &run).await.unwrap_err();
    assert!(refused.kind == ErrorKind::Conflict && refused.message.contains("100 times"), "{refused}");
}
