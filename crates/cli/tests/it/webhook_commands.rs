//! `baton webhook`: subscribing, looking, resuming, a new secret, and the end, against a host that is killed in between.

use crate::support;

use serde_json::json;
use support::{Running, baton_with};

#[test]
fn subscriptions_are_looked_after_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("BATON_API_KEYS", "alpha:acme,beta:elsewhere"), ("OPENWOP_WEBHOOK_ALLOW_PRIVATE", "true")];
    let host = Running::start(folder.path(), &["serve"], &env);
    let at = |url: &str, key: &str, arguments: &[&str]| {
        baton_with(folder.path(), arguments, &[("BATON_URL", url), ("BATON_API_KEY", key)])
    };
    let made = at(&host.url, "alpha", &["--json", "webhook", "add", "http://127.0.0.1:9/in?token=x", "--tag", "red"]);
    let made = made.expect(0).json();
    let id = made["webhookId"].as_str().unwrap();
    host.kill();

    let host = Running::start(folder.path(), &["serve"], &env);
    let run = |key: &str, arguments: &[&str]| at(&host.url, key, arguments);
    let list = run("alpha", &["--json", "webhook", "list"]).expect(0).json();
    assert_eq!(list["webhooks"][0]["webhookId"], id);
    assert_eq!(list["webhooks"][0]["events"], json!(["*"]));
    let shown = run("alpha", &["webhook", "show", id]).expect(0).stdout;
    assert!(shown.contains("active") && shown.contains("http://127.0.0.1:9/in?..."), "{shown}");
    let rotated = run("alpha", &["--json", "webhook", "rotate-secret", id]).expect(0).json();
    assert_ne!(rotated["secret"], made["secret"]);
    for text in [&shown, &list.to_string()] {
        assert!(!text.contains(made["secret"].as_str().unwrap()), "{text}");
    }
    run("alpha", &["webhook", "resume", id]).expect(0);
    assert_eq!(run("alpha", &["--json", "webhook", "redeliver", id, "--all"]).expect(0).json(), json!({"queued": 0}));
    run("alpha", &["webhook", "redeliver", id, "run_1.3"]).expect(3);
    run("alpha", &["webhook", "redeliver", id]).expect(2);
    run("beta", &["webhook", "show", id]).expect(3);
    run("beta", &["webhook", "rm", id]).expect(3);
    run("alpha", &["webhook", "rm", id]).expect(0);
    run("alpha", &["webhook", "show", id]).expect(3);
    assert_eq!(host.stop(), 0);
}
