//! Live agents as a person meets them: the bundled team on the scripted model, the same team on another model by two
//! lines of configuration, and the host dying under it.

use crate::support;

use std::path::Path;

use serde_json::{Value, json};
use support::model_server::ModelServer;
use support::{Running, baton, baton_with, show, until};

const RESEARCHER: &str = "vendor.baton.team.researcher";
const FACT: &str = "The moon raises two bulges of water; the earth turns beneath them.";

fn status(wanted: &str) -> impl Fn(&Value) -> bool {
    move |snapshot| snapshot["status"] == wanted
}

/// The child of a run that works by this workflow.
fn child(here: &Path, run: &str, workflow: &str) -> String {
    let children = show(here, run)["childRuns"].as_array().unwrap().clone();
    let child = children.iter().find(|child| child["workflowId"] == workflow);
    child.unwrap_or_else(|| panic!("no {workflow} in {children:?}"))["runId"].as_str().unwrap().to_owned()
}

fn events(here: &Path, run: &str) -> Vec<Value> {
    let log = baton(here, &["run", "events", run, "--json"]).expect(0).stdout;
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn payloads<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).map(|event| &event["payload"]).collect()
}

/// What the supervisor decided: turn, kind, workers.
fn decided(here: &Path, run: &str) -> Vec<Value> {
    let log = events(here, run);
    let printed = |payload: &&Value| {
        let decision = &payload["decision"];
        json!([payload["iteration"], decision["kind"], decision["nextWorkerIds"]])
    };
    payloads(&log, "runOrchestrator.decided").iter().map(printed).collect()
}

fn team_decisions() -> Vec<Value> {
    vec![
        json!([1, "next-worker", ["demo-agent-research"]]),
        json!([2, "next-worker", ["demo-agent-review"]]),
        json!([3, "terminate", null]),
    ]
}

fn remembered(here: &Path, run: &str) -> Vec<Value> {
    let list = baton(here, &["memory", "list", "--run", run, "--json"]).expect(0).json();
    list["entries"].as_array().unwrap_or_else(|| panic!("{list}")).clone()
}

fn script() -> Value {
    serde_json::from_str(include_str!("../../demos/scripted/model.json")).unwrap()
}

#[test]
fn the_team_can_be_looked_at_and_asked() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = Running::start(here, &["dev"], &[]);

    let listed = baton(here, &["agent", "list"]).expect(0);
    let agents: Vec<&str> = listed.stdout.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect();
    let team = ["researcher", "reviewer", "supervisor"].map(|name| format!("vendor.baton.team.{name}"));
    assert_eq!(agents, team);
    assert!(listed.stderr.contains("agent show vendor.baton.team.researcher"), "{listed:?}");
    let json = baton(here, &["agent", "list", "--json"]).expect(0).json();
    assert_eq!(
        (json["agents"].as_array().unwrap().len(), &json["agents"][0]["agentId"]),
        (3, &team[0].as_str().into())
    );

    let shown = baton(here, &["agent", "show", RESEARCHER]).expect(0);
    for line in ["agent              vendor.baton.team.researcher\n", "asks a human below 0.6\n"] {
        assert!(shown.stdout.contains(line), "{line}: {shown:?}");
    }
    let json = baton(here, &["agent", "show", RESEARCHER, "--json"]).expect(0).json();
    assert_eq!((&json["modelClass"], &json["hasHandoffSchemas"]), (&"research".into(), &true.into()));
    assert!(!json.to_string().contains("You are a researcher"), "prompts never show: {json}");
    let nobody = baton(here, &["agent", "show", "vendor.nobody.here"]).expect(3);
    assert!(nobody.stderr.contains("hint: `baton agent list`"), "{nobody:?}");

    let tools = baton(here, &["agent", "tools"]).expect(0).stdout;
    assert!(tools.lines().any(|line| line.starts_with("openwop:memory.put ") && line.contains(" write ")), "{tools}");
    let tools = baton(here, &["agent", "tools", "--json"]).expect(0).json();
    let ids: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["toolId"].as_str().unwrap()).collect();
    assert!(ids.contains(&"openwop:http.fetch"), "{ids:?}");

    // The answer is printed whole, after what every run shows.
    let printed = baton(here, &["agent", "run", RESEARCHER, "--task", "What moves the tides?", "--wait"]).expect(0);
    let answer: Value =
        serde_json::from_str(printed.stdout.split_once("\n{").map(|(_, rest)| format!("{{{rest}")).unwrap().as_str())
            .unwrap();
    assert_eq!(answer["findings"][0]["source"], "the team's memory");
    let json = baton(here, &["agent", "run", RESEARCHER, "-i", r#"{"question": "Why?"}"#, "--wait", "--json"]);
    let json = json.expect(0).json();
    assert_eq!((&json["status"], &json["variables"]["question"]), (&"completed".into(), &"Why?".into()));
    let nobody = baton(here, &["agent", "run", "vendor.nobody.here", "--task", "x"]).expect(2);
    assert!(nobody.stderr.contains("hint: `baton agent list`"), "{nobody:?}");
    let model = baton(here, &["agent", "run", RESEARCHER, "--task", "x", "--model", "gpt-5"]).expect(2);
    assert!(model.stderr.contains("--model is PROVIDER/MODEL"), "{model:?}");
    assert_eq!(host.stop(), 0);
}

#[test]
fn the_demo_runs_through_a_death_and_an_approval_and_reads_well() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = Running::start(here, &["dev"], &[]);
    let started = baton(here, &["run", "start", "demo-agents", "--wait", "--json"]).expect(6);
    let run = started.json()["runId"].as_str().unwrap().to_owned();
    let review = child(here, &run, "demo-agent-review");
    // The question is a child's; the hint leads there.
    assert!(started.stderr.contains("waiting for approval: Publish what the team has written?"), "{started:?}");
    assert!(started.stderr.contains(&format!("interrupt resolve {review} publish --accept")), "{started:?}");

    // Two turns are over, the third waits for a human. Nobody has to be asked again after a power cut.
    host.kill();
    let host = Running::start(here, &["dev"], &[]);
    let before = events(here, &run).len();
    baton(here, &["interrupt", "resolve", &review, "publish", "--accept"]).expect(0);
    until(here, &run, status("completed"));
    assert_eq!(decided(here, &run), team_decisions());
    let asked = payloads(&events(here, &run)[before..], "provider.usage").len();
    assert_eq!(asked, 1, "only the third turn asks its model");
    let memory = remembered(here, &run);
    assert_eq!((memory.len(), &memory[0]["content"]), (1, &FACT.into()));

    let research = child(here, &run, "demo-agent-research");
    let lead = baton(here, &["run", "watch", &run]).expect(0).stdout;
    let worker = baton(here, &["run", "watch", &research]).expect(0).stdout;
    for (log, line) in [
        (
            &lead,
            "agent.started           lead              vendor.baton.team.supervisor 1.0.0 asks scripted/demo, 4 tools",
        ),
        (
            &lead,
            "agent.promptResolved    lead              system: prompt:vendor.baton.team.supervisor@1.0.0 (agent-intrinsic)",
        ),
        (&lead, "agent.reasoned          lead              \"Nothing is known yet, so somebody has to find out.\""),
        (&lead, "agent.decided           lead              next-worker demo-agent-research, confidence 0.92"),
        (&worker, "agent.toolCalled        research          openwop:memory.list {\"tag\":\"tides\"}"),
        (&worker, "agent.toolReturned      research          openwop:memory.list ok {\"entries\":[]}"),
        (
            &worker,
            "agent.completed         research          vendor.baton.team.researcher completed, confidence 0.90, fits its schema",
        ),
    ] {
        assert!(log.contains(line), "{line} is missing:\n{log}");
    }
    assert!(worker.contains("scripted/demo: "), "{worker}");
    let tree = baton(here, &["run", "tree", &run]).expect(0).stdout;
    assert!(tree.contains("├─ demo-agent-research") && tree.contains("└─ demo-agent-review"), "{tree}");
    for run in [&run, &research, &review] {
        let proof = baton(here, &["run", "verify", run]).expect(0).stdout;
        assert!(proof.contains(" equal: "), "{proof}");
    }

    // A branch from the second tool call on remembers for itself and leaves the first one's memory alone.
    let log = events(here, &research);
    let put = log.iter().position(|event| event["payload"]["toolName"] == "openwop:memory.put").unwrap();
    let at = log[put]["sequence"].to_string();
    let fork = baton(here, &["run", "fork", &research, "--at", &at, "--wait", "--json"]).expect(0).json();
    assert_eq!(fork["variables"]["result"], show(here, &research)["variables"]["result"]);
    assert_eq!(remembered(here, &run).len(), 1);
    assert_eq!(remembered(here, fork["runId"].as_str().unwrap()).len(), 1);
    assert_eq!(host.stop(), 0);
}

#[test]
fn two_lines_of_configuration_put_the_team_on_another_model() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let server = ModelServer::start(script());
    let config = format!(
        "[providers.local]\nbase_url = \"{}\"\napi_key_env = \"LOCAL_KEY\"\n[models]\ndefault = \"local/some-model\"\n",
        server.base_url
    );
    std::fs::write(here.join("baton.toml"), config).unwrap();
    let dev = || Running::start(here, &["dev", "--config", "baton.toml"], &[("LOCAL_KEY", "sk-local-canary-1")]);

    // The first death: the researcher has remembered something and asks its model what now.
    server.hold("You are a researcher", 3, "");
    let host = dev();
    let run = baton(here, &["run", "start", "demo-agents"]).expect(0).stdout.trim().to_owned();
    server.until_held();
    host.kill();
    // The second: between two turns, the first harvested, the second being thought about.
    server.hold("You are the supervisor", 1, "\"iteration\": 2,");
    let host = dev();
    server.until_held();
    assert_eq!(decided(here, &run), team_decisions()[..1]);
    host.kill();
    server.release();

    let host = dev();
    until(here, &run, status("waiting-approval"));
    let review = child(here, &run, "demo-agent-review");
    baton(here, &["interrupt", "resolve", &review, "--accept"]).expect(0);
    let end = until(here, &run, status("completed"));
    assert_eq!(decided(here, &run), team_decisions());
    assert_eq!(end["variables"]["verdict"]["verdict"], "accept");

    // Each answer is on the log once, though two of them had to be asked for again; so is what was remembered.
    let research = child(here, &run, "demo-agent-research");
    let log = events(here, &research);
    assert_eq!(payloads(&log, "provider.usage").len(), 3);
    assert_eq!(payloads(&log, "agent.toolCalled").len(), 2);
    assert_eq!(payloads(&log, "memory.written").len(), 1);
    let memory = remembered(here, &run);
    assert_eq!((memory.len(), &memory[0]["content"]), (1, &FACT.into()));
    let started = payloads(&log, "agent.invocation.started");
    assert_eq!(
        (&started[0]["resolvedProvider"], &started[0]["resolvedModel"]),
        (&"local".into(), &"some-model".into())
    );
    assert_eq!(payloads(&log, "provider.usage")[0]["totalTokens"], 120);

    let seen = server.seen();
    // 3 turns, 3 calls of the researcher, 1 of the reviewer, and the two that nobody was there to hear answered.
    assert_eq!(seen.len(), 9);
    for request in &seen {
        assert_eq!(request.path, "/v1/chat/completions");
        assert_eq!(request.authorization.as_deref(), Some("Bearer sk-local-canary-1"));
        assert_eq!(request.body["model"], "some-model");
    }
    let whole: String = [&run, &research, &review].iter().map(|run| json!(events(here, run)).to_string()).collect();
    assert!(!whole.contains("canary") && !whole.contains("You are a researcher"), "keys and prompts stay private");
    let printed = host.kill();
    assert!(!printed.contains("canary"), "{printed}");
}

#[test]
fn an_unsure_answer_waits_for_a_human() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let unsure =
        json!({"rules": [], "otherwise": {"json": {"verdict": "accept", "reasons": ["?"], "confidence": 0.3}}});
    std::fs::write(here.join("script.json"), unsure.to_string()).unwrap();
    let config =
        "[providers.unsure]\nkind = \"scripted\"\nscript = \"script.json\"\n[models]\ndefault = \"unsure/m\"\n";
    std::fs::write(here.join("baton.toml"), config).unwrap();
    let host = Running::start(here, &["dev", "--config", "baton.toml"], &[]);
    let reviewer = "vendor.baton.team.reviewer";
    let asked = baton(here, &["agent", "run", reviewer, "-i", r#"{"work": "w"}"#, "--wait", "--json"]).expect(6);
    let run = asked.json()["runId"].as_str().unwrap().to_owned();
    let why = format!("{reviewer} is not sure enough of its answer: confidence 0.30 is below 0.70");
    assert!(asked.stderr.contains(&why), "{asked:?}");
    assert!(asked.stderr.contains("or answer with --reject, --edit JSON\n"), "{asked:?}");
    let shown = baton(here, &["interrupt", "show", &run]).expect(0).stdout;
    assert!(shown.contains("answer     {\"confidence\":0.3"), "{shown}");
    // What a human says instead has to be an answer too.
    baton(here, &["interrupt", "resolve", &run, "--edit", r#"{"verdict": "maybe"}"#]).expect(2);
    let better = r#"{"verdict": "revise", "reasons": ["too short"], "confidence": 0.9}"#;
    baton(here, &["interrupt", "resolve", &run, "--edit", better]).expect(0);
    let end = until(here, &run, status("completed"));
    assert_eq!(end["variables"]["result"]["verdict"], "revise");
    assert_eq!(host.stop(), 0);
}

#[test]
fn what_is_wrong_with_the_configuration_of_models_is_said_with_what_to_do() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    for (text, printed) in [
        ("[providers.openai]\n", "hint: say in [providers.openai] where its key is, `api_key_env = \"VARIABLE\"`"),
        (
            "[providers.openai]\napi_key = \"sk-canary\"\n",
            "say `api_key_env = \"VARIABLE\"` or `api_key_file = \"PATH\"`",
        ),
        ("[providers.a]\napi_key_env = \"NOT_SET\"\n", "hint: set NOT_SET, or take it out of [providers.a]"),
        ("[providers.a]\nkind = \"opnai\"\n", "expected one of `openai`"),
        ("[providers.a]\nbase_url = \"localhost:1\"\n", "`base_url` is not a URL such as"),
        ("[models]\ndefault = \"gpt-5\"\n", "`models.default` must be \"provider/model\""),
        ("[models]\ndefault = \"openai/gpt-5\"\n", "hint: add [providers.openai], or use one of: scripted"),
        ("[models]\nclever = \"a/b\"\n", "the classes are reasoning, writing"),
        ("[modles]\ndefault = \"a/b\"\n", "did you mean `[models]`?"),
        ("[mcp.files]\ncomand = \"x\"\n", "`mcp.files`: unknown field `comand`"),
    ] {
        std::fs::write(here.join("baton.toml"), text).unwrap();
        let words = ["dev", "--config", "baton.toml", "--listen", "127.0.0.1:0"];
        let ended = baton_with(here, &words, &[]).expect(2);
        assert!(ended.stderr.contains(printed) && !ended.stderr.contains("canary"), "{text}: {ended:?}");
    }
    // Outside `dev` there may be none to choose from. Empty variables count as not set.
    std::fs::write(here.join("baton.toml"), "[models]\ndefault = \"openai/gpt-5\"\n").unwrap();
    std::fs::write(here.join("keys"), "k:acme\n").unwrap();
    baton_with(here, &["config", "show"], &[("BATON_CONFIG", "")]).expect(0);
    let words = ["serve", "--config", "baton.toml", "--listen", "127.0.0.1:0"];
    let ended = baton_with(here, &words, &[("BATON_API_KEYS", ""), ("BATON_API_KEYS_FILE", "keys")]).expect(2);
    let printed = "hint: no provider is set up yet; say in [providers.openai] where its key is";
    assert!(ended.stderr.contains(printed), "{ended:?}");
}
