//! A host's name among others: it outlives restarts, and everybody is told the same one.

use crate::support;

use std::path::Path;

use serde_json::{Value, json};
use support::web::Web;
use support::{Running, baton, baton_with};

const KEYS: (&str, &str) = ("BATON_API_KEYS", "alpha:acme");

fn advertised(host: &Running) -> Value {
    let document = Web::new(&host.url, None).get("/.well-known/openwop").expect(200);
    document["multiAgent"]["executionModel"]["crossHostCausation"]["hostId"].clone()
}

fn shown(here: &Path, words: &[&str], env: &[(&str, &str)]) -> Value {
    let all = baton_with(here, &[&["config", "show", "--origin", "--json"], words].concat(), env).expect(0).json();
    let row = &all["host_id"];
    json!([row["value"], row["origin"]])
}

#[test]
fn it_is_made_once_and_survives_restarts() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    assert_eq!(shown(here, &[], &[]), json!([null, null]));
    let host = Running::start(here, &["serve"], &[KEYS]);
    let first = advertised(&host);
    assert!(first.as_str().unwrap().starts_with("baton-"), "{first}");
    host.kill();
    let host = Running::start(here, &["serve"], &[KEYS]);
    assert_eq!(advertised(&host), first);
    // Where a run comes from is told under the same name.
    let web = Web::new(&host.url, Some("alpha"));
    let flow = support::flow::chain("noop", vec![support::flow::node("a", "core.noop", json!({}))]);
    web.post("/v1/workflows", flow).expect(201);
    let run = web.start("noop");
    let ancestry = web.get(&format!("/v1/runs/{run}/ancestry")).expect(200);
    assert_eq!(ancestry, json!({"runId": run, "hostId": first, "parent": null}));
    assert_eq!(shown(here, &[], &[]), json!([first, "./.baton/host-id"]));
    let findings = baton(here, &["doctor", "--json"]).json();
    let finding = findings.as_array().unwrap().iter().find(|finding| finding["name"] == "host id").unwrap();
    assert_eq!(finding["found"], format!("{} (./.baton/host-id)", first.as_str().unwrap()));
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_given_one_wins_over_the_public_address() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let public = ("BATON_PUBLIC_URL", "https://Baton.Example.com:8443/x");
    let host = Running::start(here, &["serve"], &[KEYS, public]);
    assert_eq!(advertised(&host), "baton.example.com:8443");
    assert_eq!(host.stop(), 0);
    assert_eq!(shown(here, &[], &[public]), json!(["baton.example.com:8443", "public_url"]));
    let env = ("BATON_HOST_ID", "north");
    assert_eq!(shown(here, &[], &[public, env]), json!(["north", "BATON_HOST_ID"]));
    assert_eq!(shown(here, &["--host-id", "south"], &[public, env]), json!(["south", "--host-id"]));
    std::fs::write(here.join("b.toml"), "host_id = \"east\"\n").unwrap();
    assert_eq!(shown(here, &["--config", "b.toml"], &[public]), json!(["east", "b.toml"]));
    let host = Running::start(here, &["serve", "--host-id", "south"], &[KEYS, public, env]);
    assert_eq!(advertised(&host), "south");
    assert_eq!(host.stop(), 0);
    assert!(!here.join(".baton/host-id").exists(), "nothing is made where one is given");
    baton_with(here, &["serve", "--host-id", "two words"], &[KEYS]).expect(2);
    baton_with(here, &["serve"], &[KEYS, ("BATON_HOST_ID", "a/b")]).expect(2);
}
