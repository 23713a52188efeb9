//! Configured secrets: given as references, resolved at the start, and found nowhere afterwards.

use crate::support;

use serde_json::json;
use support::canary::files_with;
use support::model_server::ModelServer;
use support::{Ended, NOBODY, Running, baton_fed, baton_with};

const PASSWORD: &str = "sentinel-8f1d2c-password";
const KEY: &str = "sentinel-55e0aa-signing-key";
const CANARY: &str = "sentinel-";

const ENV: [(&str, &str); 4] = [
    ("BATON_API_KEYS", "alpha:a"),
    ("BATON_SECRETS", "db=env:DB_PASSWORD,signing=file:key.txt"),
    ("DB_PASSWORD", PASSWORD),
    ("BATON_LOG_LEVEL", "debug"),
];

#[track_caller]
fn clean(ended: Ended) -> Ended {
    assert!(!ended.stdout.contains(CANARY) && !ended.stderr.contains(CANARY), "{ended:?}");
    ended
}

#[test]
fn a_secret_that_is_put_is_nowhere_afterwards() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    std::fs::write(here.join("key.txt"), format!("{KEY}\n")).unwrap();
    let mut host = Running::start(here, &["serve"], &ENV);
    let data = here.join(".baton");
    for round in 0..2 {
        let env = [("BATON_URL", host.url.as_str()), ("BATON_API_KEY", "alpha")];
        let ask = |words: &[&str]| clean(baton_with(here, words, &env));
        let feed = |words: &[&str], text: &str| clean(baton_fed(here, words, &env, text));
        let text = format!("log in with {PASSWORD}, sign with {KEY}; {PASSWORD}{KEY}");
        let redacted = "log in with [REDACTED:db], sign with [REDACTED:signing]; [REDACTED:db][REDACTED:signing]";

        let tag = format!("for-{PASSWORD}");
        let key = format!("put-{round}");
        let words = ["memory", "put", "team", "-", "--tag", &tag, "--idempotency-key", &key];
        let put = feed(&words, &text).expect(0);
        assert!(put.stderr.contains("secrets were removed"), "{put:?}");
        assert_eq!(feed(&words, &text).expect(0).stdout, put.stdout, "the kept reply");
        let entry = ask(&["memory", "get", "team", put.stdout.trim(), "--json"]).expect(0).json();
        assert_eq!((&entry["content"], &entry["tags"][0]), (&redacted.into(), &"for-[REDACTED:db]".into()));
        ask(&["memory", "list", "team"]).expect(0);
        ask(&["memory", "export", "team"]).expect(0);

        feed(&["workspace", "put", "a.md", "--json"], &text).expect(0);
        assert_eq!(ask(&["workspace", "cat", "a.md"]).expect(0).stdout, redacted);
        feed(&["workspace", "put", "a.md"], &format!("{text}\n")).expect(0);
        ask(&["workspace", "diff", "a.md"]).expect(0);

        // Not as a name either.
        feed(&["memory", "put", PASSWORD, "-"], "x").expect(2);
        feed(&["workspace", "put", &format!("{PASSWORD}.md")], "x").expect(2);

        let log = host.kill();
        assert!(!log.contains(CANARY), "{log}");
        assert_eq!(files_with(CANARY, &data), Vec::<String>::new());
        host = Running::start(here, &["serve"], &ENV);
    }
    assert_eq!(host.stop(), 0);
    assert_eq!(files_with(CANARY, &data), Vec::<String>::new());
}

/// The control: what is not named as a secret is stored, and the search finds it.
#[test]
fn what_nobody_called_a_secret_is_found() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = Running::start(here, &["dev"], &[]);
    baton_fed(here, &["memory", "put", "s", "-"], &[], PASSWORD).expect(0);
    host.kill();
    assert!(!files_with(CANARY, &here.join(".baton")).is_empty());
}

#[test]
fn the_configuration_shows_references_and_never_values() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    std::fs::write(here.join("key.txt"), KEY).unwrap();
    let shown = clean(baton_with(here, &["config", "show", "--origin", "--json"], &ENV)).expect(0).json();
    assert_eq!(shown["secrets"]["value"], serde_json::json!(["db=env:DB_PASSWORD", "signing=file:key.txt"]));
    assert_eq!(shown["secrets"]["origin"], "BATON_SECRETS");
    let text = clean(baton_with(here, &["config", "show"], &ENV)).expect(0).stdout;
    assert!(text.contains("[db=env:DB_PASSWORD, signing=file:key.txt]"), "{text}");

    std::fs::write(here.join("baton.toml"), "secrets = [\"tls=file:key.txt\"]\n").unwrap();
    let file = baton_with(here, &["config", "show", "--config", "baton.toml", "--json"], &[]).expect(0).json();
    assert_eq!(file["secrets"]["value"], serde_json::json!(["tls=file:key.txt"]));
    let flags = ["config", "show", "--config", "baton.toml", "--secret", "x=env:X", "--secret", "y=env:Y", "--json"];
    let flag = baton_with(here, &flags, &[]).expect(0).json();
    assert_eq!(flag["secrets"]["value"], serde_json::json!(["x=env:X", "y=env:Y"]));

    let doctor = clean(baton_with(here, &["doctor", "--url", &format!("http://{NOBODY}")], &ENV)).expect(0).stdout;
    assert!(doctor.contains("2 are kept out of memory and workspace"), "{doctor}");
    let words = ["doctor", "--url", &format!("http://{NOBODY}"), "--secret", "db=env:NOT_SET"];
    let wrong = baton_with(here, &words, &[]).expect(1).stdout;
    assert!(wrong.contains("WRONG    secrets        the secret `db` is read from the variable NOT_SET"), "{wrong}");
}

#[test]
fn a_secret_that_cannot_be_read_stops_the_start() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    std::fs::write(here.join("short.txt"), "7 bytes\n").unwrap();
    let keys = ("BATON_API_KEYS", "alpha:a");
    let serve = |words: &[&str], env: &[(&str, &str)]| {
        let words = [&["serve", "--listen", "127.0.0.1:0"], words].concat();
        clean(baton_with(here, &words, &[&[keys], env].concat())).expect(2).stderr
    };
    let unset = serve(&["--secret", "db=env:NOT_SET"], &[]);
    assert!(unset.contains("`db` is read from the variable NOT_SET, which is not set\nhint: "), "{unset}");
    let missing = serve(&["--secret", "db=file:no.txt"], &[]);
    assert!(missing.contains("`db` is read from no.txt, which cannot be read"), "{missing}");
    let short = serve(&[], &[("BATON_SECRETS", "db=file:short.txt")]);
    assert!(short.contains("`db` from short.txt has fewer than 8 bytes"), "{short}");
    let empty = serve(&["--secret", "db=env:EMPTY"], &[("EMPTY", "")]);
    assert!(empty.contains("fewer than 8 bytes"), "{empty}");
    // Somebody who writes the secret itself where a reference belongs does not find it on the screen.
    for (words, env, origin) in [
        (&["--secret", "db=sentinel-itself"][..], &[][..], "--secret"),
        (&[], &[("BATON_SECRETS", "sentinel-itself")], "BATON_SECRETS"),
    ] {
        let printed = serve(words, env);
        assert!(printed.contains(&format!("{origin}: `secrets` must be a list of ID=env:VARIABLE")), "{printed}");
    }
    std::fs::write(here.join("bad.toml"), "secrets = [\"db=sentinel-itself\"]\n").unwrap();
    let printed = serve(&["--config", "bad.toml"], &[]);
    assert!(printed.contains("bad.toml: `secrets` must be"), "{printed}");
    assert!(!here.join(".baton").exists(), "nothing may be created before the refusal");
}

#[test]
fn dev_takes_secrets_too() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = Running::start(here, &["dev", "--secret", "db=env:DB_PASSWORD"], &[("DB_PASSWORD", PASSWORD)]);
    let put = clean(baton_fed(here, &["memory", "put", "s", "-", "--json"], &[], PASSWORD)).expect(0).json();
    assert_eq!(put["content"], "[REDACTED:db]");
    assert_eq!(host.stop(), 0);
}

/// What opens a gateway in front of a model is a secret like any other, wherever the model repeats it.
#[test]
fn headers_of_providers_are_kept_out_of_what_is_stored() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let echoed = "sentinel-7d21-token and sentinel-90c4-account";
    let reply = json!({"json": {"said": format!("I was opened with {echoed}.")}});
    let rule = json!({"when": {"system": "You are a researcher"}, "reply": reply});
    let server = ModelServer::start(json!({ "rules": [rule] }));
    let config = format!(
        "[providers.gate]\nbase_url = \"{}\"\n[providers.gate.headers]\nAuthorization = \"env:GATE_KEY\"\n\
         x-account-token = \"sentinel-90c4-account\"\n[models]\ndefault = \"gate/some-model\"\n",
        server.base_url
    );
    std::fs::write(here.join("baton.toml"), config).unwrap();
    let env = [("GATE_KEY", "Bearer sentinel-7d21-token"), ("BATON_LOG_LEVEL", "debug")];
    let host = Running::start(here, &["dev", "--config", "baton.toml"], &env);
    let asked = ["agent", "run", "vendor.baton.team.researcher", "--task", "Which key?", "--wait", "--json"];
    let ended = clean(baton_with(here, &asked, &[]));
    let run = ended.json()["runId"].as_str().unwrap().to_owned();
    clean(baton_with(here, &["run", "events", &run, "--json"], &[])).expect(0);
    let log = host.kill();
    assert!(!log.contains(CANARY), "{log}");
    let seen = server.seen();
    assert!(
        !seen.is_empty() && seen.iter().all(|one| one.authorization.as_deref() == Some("Bearer sentinel-7d21-token"))
    );
    let data = here.join(".baton");
    assert_eq!(files_with(CANARY, &data), Vec::<String>::new());
    for id in ["authorization", "x-account-token"] {
        let marker = format!("[REDACTED:provider-gate-{id}]");
        assert!(!files_with(&marker, &data).is_empty(), "the control: it was said, {id}");
    }
}
