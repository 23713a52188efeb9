//! Taking a run from one host to another with the command line.

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use support::{Running, baton, baton_fed, baton_with};

#[test]
fn a_run_moves_with_everything_it_knew() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (here, there) = (here.path(), there.path());
    let (first, second) = (Running::start(here, &["dev"], &[]), Running::start(there, &["dev"], &[]));
    let inputs = json!({"topic": "tides"}).to_string();
    let done = baton(here, &["run", "start", "demo-notebook", "-i", &inputs, "--wait", "--json"]).expect(0).json();
    let run = done["runId"].as_str().unwrap();
    let file = here.join("tides.jsonl");
    let path = file.to_str().unwrap();

    let exported = baton(here, &["run", "export", &run[..20], "-o", path, "--json"]).expect(0);
    assert!(exported.stderr.contains("private"), "{exported:?}");
    let printed = exported.json();
    assert_eq!((&printed["runId"], &printed["runs"]), (&json!(run), &json!(6)));
    assert_eq!(printed["bytes"], fs::metadata(&file).unwrap().len());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!here.join("tides.jsonl.part").exists());
    let nowhere = baton(here, &["run", "export", run, "-o", "no/such/x.jsonl"]).expect(1);
    assert!(nowhere.stderr.contains("hint: the folder no/such does not exist"), "{nowhere:?}");
    let text = fs::read_to_string(&file).unwrap();
    let piped = baton(here, &["run", "export", run, "-o", "-"]).expect(0);
    let bodies = |text: &str| {
        text.lines().skip(1).filter(|line| !line.starts_with("{\"footer\"")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(bodies(&piped.stdout), bodies(&text));

    let imported = baton_fed(there, &["run", "import", "-", "--json"], &[], &piped.stdout).expect(0).json();
    assert_eq!(
        (&imported["runId"], &imported["newRuns"], &imported["alreadyHere"]),
        (&json!(run), &json!(6), &json!(false))
    );
    let again = baton(there, &["run", "import", path]).expect(0);
    assert!(again.stderr.contains("already") && again.stdout.trim() == run, "{again:?}");

    let state = |folder: &std::path::Path| -> Value {
        baton(folder, &["run", "show", run, "--at", "20", "--json"]).expect(0).json()
    };
    assert_eq!(state(here), state(there));
    let events = |folder: &std::path::Path| baton(folder, &["run", "events", run, "--json"]).expect(0).stdout;
    assert_eq!(events(here), events(there));
    baton(there, &["run", "verify", run]).expect(0);
    assert_eq!((first.stop(), second.stop()), (0, 0));
}

#[test]
fn what_cannot_move_says_why() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = Running::start(here, &["dev"], &[]);
    let waits = baton(here, &["run", "start", "demo-pipeline", "--wait", "--json"]);
    let run = waits.json()["runId"].as_str().unwrap().to_owned();
    assert_eq!(waits.code, 6, "it waits for a human: {waits:?}");
    let refused = baton(here, &["run", "export", &run]).expect(5);
    assert!(refused.stderr.contains("has not ended"), "{refused:?}");
    assert!(!here.join(format!("{run}.jsonl")).exists() && !here.join(format!("{run}.jsonl.part")).exists());
    baton(here, &["run", "cancel", &run]).expect(0);
    let file = baton(here, &["run", "export", &run]).expect(0);
    let name = format!("{run}.jsonl");
    assert_eq!(file.stdout.trim(), name);
    let text = fs::read_to_string(here.join(&name)).unwrap();
    fs::write(here.join("cut.jsonl"), &text[..text.len() / 2]).unwrap();
    let refused = baton(here, &["run", "import", "cut.jsonl"]).expect(2);
    assert!(refused.stderr.contains("cut.jsonl") && refused.stderr.contains("ine "), "{refused:?}");
    baton(here, &["run", "import", "nowhere.jsonl"]).expect(3);
    let key = [("BATON_API_KEY", "nobody")];
    baton_with(here, &["--url", &host.url, "run", "import", &name], &key).expect(4);
    assert_eq!(host.stop(), 0);
}
