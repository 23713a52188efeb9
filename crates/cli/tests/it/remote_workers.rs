//! Two real hosts, each a process of its own: configuration, a kill at the worst moment, and credentials that show
//! nowhere.

use crate::support;

use std::net::SocketAddr;
use std::path::Path;

use baton_testkit::proxy::{Fate, Proxy};
use serde_json::{Value, json};
use support::canary::files_with;
use support::flow::{chain, node};
use support::web::{Web, of_type};
use support::{Running, baton_with};

const CANARY: &str = "canary-3b9e71-far-key";
const CREATE: &str = "POST /v1/runs ";
const NEAR_KEYS: (&str, &str) = ("BATON_API_KEYS", "alpha:acme");

fn address(host: &Running) -> SocketAddr {
    host.url.strip_prefix("http://").unwrap().parse().unwrap()
}

/// Hands `n` to a worker over there, takes `m` back as `n`, and ends.
fn team(far: SocketAddr) -> Value {
    let rules = json!({
        "rules": [{
            "when": "iteration == 1",
            "decide": {"kind": "next-worker", "nextWorkerIds": [format!("http://{far}/workflows/work")]},
        }],
        "otherwise": {"kind": "terminate", "reason": "done"},
    });
    let dispatch = json!({"inputMapping": {"n": "n"}, "outputMapping": {"n": "m"}});
    let nodes = vec![node("lead", "core.orchestrator.supervisor", rules), node("dispatch", "core.dispatch", dispatch)];
    let mut flow = chain("team", nodes);
    flow["variables"] = json!([{"name": "n", "type": "number", "defaultValue": 4}]);
    flow
}

fn work() -> Value {
    let nodes = vec![
        node("gate", "core.approvalGate", json!({"title": "Go on?"})),
        node("times", "core.setVariable", json!({"name": "m", "expression": "variables.n * 10"})),
    ];
    let mut flow = chain("work", nodes);
    flow["variables"] = json!([{"name": "n", "type": "number", "defaultValue": 0}]);
    flow
}

/// The other host, with its workflow.
fn far(folder: &Path) -> (Running, Web) {
    let keys = format!("{CANARY}:acme,wrong-one:nobody:runs:read");
    let host = Running::start(folder, &["serve", "--host-id", "far.example"], &[("BATON_API_KEYS", &keys)]);
    let web = Web::new(&host.url, Some(CANARY));
    web.post("/v1/workflows", work()).expect(201);
    (host, web)
}

fn runs(web: &Web) -> Vec<String> {
    let runs = web.get("/v1/runs").expect(200);
    runs["runs"].as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_parent_that_is_killed_between_asking_and_hearing_has_one_child() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let here = here.path();
    let network = tokio::runtime::Runtime::new().unwrap();
    let (far_host, far) = far(there.path());
    let proxy = network.block_on(Proxy::before(address(&far_host)));
    // The credential stays out of the data folder, so that what is found there was put there by the host.
    let config = format!(
        "host_id = \"near.example\"\n[remotes.far]\nurl = \"http://{}\"\ncredential = \"env:FAR_KEY\"\n",
        proxy.address
    );
    std::fs::write(here.join("near.toml"), config).unwrap();
    let env = [NEAR_KEYS, ("FAR_KEY", CANARY), ("BATON_LOG_LEVEL", "debug")];
    let start = || Running::start(here, &["serve", "--config", "near.toml"], &env);
    let mut near_host = start();
    let mut near = Web::new(&near_host.url, Some("alpha"));
    near.post("/v1/workflows", team(proxy.address)).expect(201);
    let mut printed = String::new();
    // The child is made, and its parent dies before it hears of it; then again while it waits for the child.
    proxy.next(CREATE, 1, Fate::Silence);
    let run = near.start("team");
    assert_eq!(network.block_on(proxy.answers(CREATE, 1)), [201]);
    printed += &near_host.kill();
    assert_eq!(runs(&far).len(), 1);
    near_host = start();
    near = Web::new(&near_host.url, Some("alpha"));
    near.until_status(&run, "waiting-approval");
    printed += &near_host.kill();
    let [child] = &runs(&far)[..] else { panic!("not one child") };
    far.resolve(child, "gate", json!({"action": "accept"})).expect(200);
    far.ended(child, "completed");
    near_host = start();
    near = Web::new(&near_host.url, Some("alpha"));
    let (snapshot, events) = near.ended(&run, "completed");
    assert_eq!(snapshot["variables"]["n"], 40);
    assert_eq!(runs(&far), std::slice::from_ref(child), "still one");
    let phases: Vec<&Value> =
        of_type(&events, "core.workflowChain.event").iter().map(|event| &event["payload"]["phase"]).collect();
    assert_eq!(phases, ["dispatch.began", "dispatch.succeeded", "child.completed", "output.harvested"]);
    // Both ways, over the addresses that are given.
    let down = snapshot["childRuns"][0]["url"].as_str().unwrap();
    assert_eq!(down, format!("http://{}/v1/runs/{child}", proxy.address));
    assert_eq!(snapshot["childRuns"][0]["hostId"], "far.example");
    let up = far.get(&format!("/v1/runs/{child}/ancestry")).expect(200)["parent"].clone();
    assert_eq!((&up["runId"], &up["hostId"]), (&json!(run), &json!("near.example")));
    let shown =
        baton_with(there.path(), &["run", "show", child], &[("BATON_URL", &far_host.url), ("BATON_API_KEY", CANARY)]);
    let line = format!("parent     {run} on near.example (core.dispatch; ");
    assert!(shown.expect(0).stdout.contains(&line), "a child names its parent elsewhere");
    let began = of_type(&events, "core.workflowChain.event")[0];
    assert_eq!(far.events(child)[0]["causationId"], began["eventId"]);
    // The parent was on a port of its own each time: the address the child was told first is what it keeps.
    let page = up["wellKnownUrl"].as_str().unwrap();
    assert!(page.starts_with("http://127.0.0.1:") && page.ends_with("/.well-known/openwop"), "{page}");
    printed += &near_host.kill();
    assert!(!printed.contains(CANARY), "{printed}");
    assert_eq!(files_with(CANARY, here), Vec::<String>::new());
}

#[test]
fn a_credential_the_other_host_does_not_take_is_named_but_not_shown() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let here = here.path();
    let (far_host, far) = far(there.path());
    let wrong = "canary-3b9e71-far-key-of-last-year";
    let remote = format!("far={}@env:FAR_KEY", far_host.url);
    let env = [NEAR_KEYS, ("FAR_KEY", wrong), ("BATON_REMOTES", remote.as_str()), ("BATON_LOG_LEVEL", "debug")];
    let near_host = Running::start(here, &["serve"], &env);
    let near = Web::new(&near_host.url, Some("alpha"));
    near.post("/v1/workflows", team(address(&far_host))).expect(201);
    let run = near.start("team");
    let (snapshot, events) = near.ended(&run, "completed");
    let failed = &of_type(&events, "core.workflowChain.event")[1]["payload"];
    assert_eq!((&failed["phase"], &failed["error"]["code"]), (&json!("dispatch.failed"), &json!("remote_refused")));
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains("`far`") && message.contains("[remotes.far]"), "{message}");
    assert!(runs(&far).is_empty());
    let shown = baton_with(here, &["config", "show", "--json"], &env).expect(0);
    assert_eq!(shown.json()["remotes"]["value"], json!([remote]));
    let doctor = baton_with(here, &["doctor"], &env);
    let metrics = near.get("/metrics").text();
    assert!(metrics.contains("baton_remote_requests_total"), "{metrics}");
    for text in [json!([snapshot, events]).to_string(), shown.stdout, doctor.stdout, doctor.stderr, metrics] {
        assert!(!text.contains("canary-"), "{text}");
    }
    let printed = near_host.kill();
    assert!(!printed.contains("canary-"), "{printed}");
    assert_eq!(files_with(CANARY, here), Vec::<String>::new());
}

#[test]
fn what_is_wrong_with_a_remote_is_said_before_anything_starts() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let serve = |toml: &str, more: &[&str]| {
        std::fs::write(here.join("c.toml"), format!("listen = \"127.0.0.1:0\"\n{toml}")).unwrap();
        let words = [&["serve", "--config", "c.toml"], more].concat();
        let ended = baton_with(here, &words, &[NEAR_KEYS, ("FAR_KEY", CANARY)]).expect(2);
        assert!(!ended.stderr.contains(CANARY), "{ended:?}");
        ended.stderr
    };
    let table = |fields: &str| format!("[remotes.far]\n{fields}\n");
    let printed = serve(&table("url = \"https://far.example\"\ncredental = \"env:FAR_KEY\""), &[]);
    assert!(
        printed.contains("unknown key `remotes.far.credental`; did you mean `remotes.far.credential`?"),
        "{printed}"
    );
    // The secret itself instead of where it is.
    let printed = serve(&table(&format!("url = \"https://far.example\"\ncredential = \"{CANARY}\"")), &[]);
    assert!(printed.contains("`remotes` must be [remotes.NAME]"), "{printed}");
    let printed = serve("", &["--remote", &format!("far=https://far.example@{CANARY}")]);
    assert!(printed.contains("--remote"), "{printed}");
    let printed = serve(&table("url = \"https://far.example/v1\"\ncredential = \"env:FAR_KEY\""), &[]);
    assert!(printed.contains("`remotes` must be"), "{printed}");
    let printed = serve(&table("url = \"https://far.example\"\ncredential = \"env:NOWHERE\""), &[]);
    assert!(printed.contains("NOWHERE, which is not set") && printed.contains("out of remotes"), "{printed}");
    // Nobody over there could find the way back. It is said before anything listens.
    let printed =
        serve(&table("url = \"https://far.example\"\ncredential = \"env:FAR_KEY\""), &["--listen", "0.0.0.0:0"]);
    assert!(printed.contains("public_url"), "{printed}");
}
