//! `baton runner`: a program with tools, as a real process, through everything that may happen to it, to the host and to the
//! runner. The program is this very test binary, started once more and told to serve.

use crate::support;

use std::io::{BufRead as _, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use baton_testkit::Flow;
use serde_json::{Value, json};
use support::{Running, baton, show, until, wait_for};

/// Where the program notes each call; set for programs only.
const CALLS: &str = "BATON_TEST_CALLS";
const PACK: &str = "private.own.helpers";

/// Not a test: what a program does. It knows nothing but the protocol.
#[test]
fn program() {
    let Ok(calls) = std::env::var(CALLS) else { return };
    eprintln!("the program is up");
    let mut pids = std::fs::OpenOptions::new().create(true).append(true).open(format!("{calls}.pids")).unwrap();
    writeln!(pids, "{}", std::process::id()).unwrap();
    let answer = |id: &Value, result: Value| {
        let mut out = std::io::stdout().lock();
        let message = json!({"jsonrpc": "2.0", "id": id, "result": result});
        out.write_all(format!("\n{message}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    };
    let tell = |message: &Value| {
        let mut out = std::io::stdout().lock();
        out.write_all(format!("\n{message}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    };
    // Read beside the calls, so that what is said during one is heard.
    let (heard, messages) = std::sync::mpsc::sync_channel(1024);
    let cancelled = format!("{calls}.cancelled");
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else { continue };
            if message["method"] == "notifications/cancelled" {
                std::fs::write(&cancelled, message["params"].to_string()).unwrap();
            }
            if heard.send(message).is_err() {
                return;
            }
        }
    });
    for message in messages {
        let id = &message["id"];
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => answer(
                id,
                json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "program", "version": "1"},
                }),
            ),
            "tools/list" => answer(id, json!({"tools": [{"name": "work", "inputSchema": {"type": "object"}}]})),
            "tools/call" => {
                let key = message["params"]["_meta"]["io.baton/idempotencyKey"].as_str().unwrap_or_default().to_owned();
                let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&calls).unwrap();
                writeln!(file, "{key} token={}", std::env::var("BATON_API_KEY").is_ok()).unwrap();
                let hold = format!("{calls}.hold");
                let token = &message["params"]["_meta"]["progressToken"];
                let mut said = 0;
                while Path::new(&hold).exists() {
                    said += 1;
                    let params = json!({"progressToken": token, "progress": said, "total": 9, "message": "halfway"});
                    tell(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}));
                    std::thread::sleep(Duration::from_millis(20));
                }
                if message["params"]["arguments"]["ask"] == true {
                    let said = uses_the_step(&message["params"]["_meta"], &calls);
                    writeln!(file, "{said}").unwrap();
                }
                if Path::new(&format!("{calls}.die")).exists() {
                    std::fs::remove_file(format!("{calls}.die")).unwrap();
                    eprintln!("the program dies");
                    std::process::exit(3);
                }
                answer(id, json!({"content": [{"type": "text", "text": "worked"}]}));
            }
            method if method.starts_with("notifications/") => {}
            _ => {
                let mut out = std::io::stdout().lock();
                let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}});
                out.write_all(format!("\n{error}\n").as_bytes()).unwrap();
                out.flush().unwrap();
            }
        }
    }
}

/// One request of a program, with what the call's metadata says: who was called, how the answer began, and its body.
fn http(place: &Value, method: &str, path: &str, body: &Value) -> (u16, bool, Value) {
    let url = place["baseUrl"].as_str().unwrap().strip_prefix("http://").unwrap();
    let (address, base) = url.split_once('/').unwrap();
    let (token, body) = (place["apiKey"].as_str().unwrap(), body.to_string());
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let head = format!(
        "{method} /{base}{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head.contains("x-baton-recorded: true"), serde_json::from_str(body).unwrap_or(Value::Null))
}

/// Asks a model, keeps a value, and says what came of both.
fn uses_the_step(meta: &Value, calls: &str) -> String {
    let (models, memo) = (&meta["io.baton/models"], &meta["io.baton/memo"]);
    let mut tokens = std::fs::OpenOptions::new().create(true).append(true).open(format!("{calls}.tokens")).unwrap();
    writeln!(tokens, "{}", models["apiKey"].as_str().unwrap()).unwrap();
    let asked = json!({"model": "script/x", "messages": [{"role": "user", "content": "the question"}]});
    let (status, recorded, answer) = http(models, "POST", "/chat/completions", &asked);
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
    let (kept, _, value) = http(memo, "PUT", "/place", &json!({"value": std::process::id()}));
    format!("{status} {text} recorded={recorded} kept={kept} value={}", value["value"])
}

struct Runner {
    child: Child,
}

impl Drop for Runner {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn files(here: &Path) {
    let manifest = json!({
        "name": PACK, "version": "1.0.0", "engines": {"openwop": ">=1.0.0 <2.0.0"},
        "runtime": {"language": "remote", "entry": "pack.json"},
        "agents": [{
            "agentId": format!("{PACK}.worker"), "persona": "Worker", "modelClass": "general",
            "systemPrompt": "You work.", "toolAllowlist": ["runner:own"],
        }],
    });
    let folder = here.join("packs").join(PACK);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("pack.json"), manifest.to_string()).unwrap();
    let script = json!({"rules": [
        {"when": {"system": "You work", "call": 1},
         "reply": {"tools": [{"name": "runner:own.work", "arguments": {"n": 1}}]}},
        {"when": {"system": "You work"}, "reply": {"text": "done"}},
        {"when": {"last": "the question"}, "reply": {"text": "the answer"}},
    ]});
    std::fs::write(here.join("script.json"), script.to_string()).unwrap();
    let config =
        "[providers.script]\nkind = \"scripted\"\nscript = \"script.json\"\n[models]\ndefault = \"script/x\"\n";
    std::fs::write(here.join("baton.toml"), config).unwrap();
}

fn host(here: &Path, listen: Option<&str>) -> Running {
    let mut arguments = vec!["dev", "--config", "baton.toml", "--packs", "packs"];
    arguments.extend(listen.map(|_| "-q"));
    Running::start(here, &arguments, &[])
}

fn runner(here: &Path) -> Runner {
    let me = std::env::current_exe().unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["runner", "--name", "own", "--grace", "5s", "--"])
        .arg(me)
        .args(["runner_cli::program", "--exact", "--nocapture"])
        .current_dir(here)
        .env(CALLS, here.join("calls"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(here.join("runner.log")).unwrap())
        .spawn()
        .unwrap();
    Runner { child }
}

fn said(here: &Path) -> String {
    std::fs::read_to_string(here.join("runner.log")).unwrap_or_default()
}

fn connected(here: &Path) {
    wait_for("the runner is connected", || said(here).contains("connected to").then_some(()));
}

fn calls(here: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(here.join("calls")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn start(here: &Path) -> String {
    let started = baton(here, &["agent", "run", &format!("{PACK}.worker"), "--task", "x", "--json"]).expect(0);
    started.json()["runId"].as_str().unwrap().to_owned()
}

fn is(wanted: &str) -> impl Fn(&Value) -> bool {
    move |snapshot| snapshot["status"] == wanted
}

#[test]
fn a_program_is_all_it_takes_and_it_never_sees_the_token() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    files(here);
    let host = host(here, None);
    let mut runner = runner(here);
    connected(here);
    let run = start(here);
    until(here, &run, is("completed"));
    let made = calls(here);
    assert_eq!(made.len(), 1);
    assert!(made[0].starts_with(&format!("{run}/")) && made[0].ends_with("token=false"), "{made:?}");
    assert!(said(here).contains("own | the program is up"), "{}", said(here));
    assert_eq!(
        baton(here, &["runner-token", "list", "--json"]).expect(0).json()["tokens"].as_array().unwrap().len(),
        1
    );
    let pid = runner.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ended = wait_for("the runner ends", || runner.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0), "{}", said(here));
    assert_eq!(baton(here, &["runner-token", "list", "--json"]).expect(0).json(), json!({"tokens": []}));
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_program_that_dies_in_the_middle_of_a_call_is_started_again_and_a_human_is_asked() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    files(here);
    let host = host(here, None);
    let _runner = runner(here);
    connected(here);
    std::fs::write(here.join("calls.die"), "").unwrap();
    let run = start(here);
    let waiting = until(here, &run, is("waiting-approval"));
    assert_eq!(calls(here).len(), 1);
    let node = waiting["openInterrupts"][0]["nodeId"].as_str().unwrap_or("agent").to_owned();
    baton(here, &["interrupt", "resolve", &run, &node, "--value", r#"{"action":"retry"}"#]).expect(0);
    until(here, &run, is("completed"));
    let made = calls(here);
    assert_eq!((made.len(), &made[0]), (2, &made[1]), "the same key");
    assert!(said(here).contains("own | the program dies"), "{}", said(here));
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_host_that_dies_in_the_middle_of_a_call_takes_the_result_when_it_is_back() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    files(here);
    let first = host(here, None);
    let address = first.url.trim_start_matches("http://").to_owned();
    let _runner = runner(here);
    connected(here);
    std::fs::write(here.join("calls.hold"), "").unwrap();
    let run = start(here);
    wait_for("the call has begun", || (calls(here).len() == 1).then_some(()));
    first.kill();
    std::fs::remove_file(here.join("calls.hold")).unwrap();
    // At the same place, so that the runner finds it.
    let again = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["dev", "--config", "baton.toml", "--packs", "packs", "--listen", &address])
        .current_dir(here)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _again = Runner { child: again };
    wait_for("the host is back", || {
        let listed = baton(here, &["runner-token", "list"]);
        (listed.code == 0).then_some(())
    });
    until(here, &run, is("completed"));
    assert_eq!(calls(here).len(), 1, "made once");
    assert_eq!(show(here, &run)["status"], "completed");
}

#[test]
fn a_runner_that_is_stopped_finishes_what_it_has() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    files(here);
    let host = host(here, None);
    let mut runner = runner(here);
    connected(here);
    std::fs::write(here.join("calls.hold"), "").unwrap();
    let run = start(here);
    wait_for("the call has begun", || (calls(here).len() == 1).then_some(()));
    let pid = runner.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    std::fs::remove_file(here.join("calls.hold")).unwrap();
    let ended = wait_for("the runner ends", || runner.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0), "{}", said(here));
    until(here, &run, is("completed"));
    assert_eq!(calls(here).len(), 1);
    assert_eq!(host.stop(), 0);
}

#[test]
fn how_far_a_call_is_is_on_the_log_and_a_cancelled_run_tells_the_program() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    files(here);
    let host = host(here, None);
    let _runner = runner(here);
    connected(here);
    std::fs::write(here.join("calls.hold"), "").unwrap();
    let run = start(here);
    wait_for("the call has begun", || (calls(here).len() == 1).then_some(()));
    let told = || {
        let events = baton(here, &["run", "events", &run, "--json"]).expect(0).stdout;
        let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        events.into_iter().filter(|event| event["type"] == "baton.tool.progress").collect::<Vec<_>>()
    };
    let told = wait_for("the log says how far it is", || Some(told()).filter(|told| !told.is_empty()));
    let payload = &told[0]["payload"];
    assert_eq!((&payload["total"], &payload["message"]), (&json!(9.0), &json!("halfway")), "{told:?}");
    baton(here, &["run", "cancel", &run]).expect(0);
    until(here, &run, is("cancelled"));
    let said = wait_for("the program is told", || std::fs::read_to_string(here.join("calls.cancelled")).ok());
    assert!(said.contains("requestId"), "{said}");
    std::fs::remove_file(here.join("calls.hold")).unwrap();
    // And its place is free.
    let run = start(here);
    until(here, &run, is("completed"));
    assert_eq!(host.stop(), 0);
}

#[test]
fn a_runner_without_a_token_of_its_own_makes_another_before_the_first_ends() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    files(here);
    let host = host(here, None);
    let me = std::env::current_exe().unwrap();
    let child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["runner", "--name", "own", "--token-life", "6s", "--"])
        .arg(me)
        .args(["runner_cli::program", "--exact", "--nocapture"])
        .current_dir(here)
        .env(CALLS, here.join("calls"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(here.join("runner.log")).unwrap())
        .spawn()
        .unwrap();
    let mut runner = Runner { child };
    connected(here);
    let tokens = || {
        let listed = baton(here, &["runner-token", "list", "--json"]).expect(0).json();
        let ids: Vec<String> =
            listed["tokens"].as_array().unwrap().iter().map(|token| token["tokenId"].to_string()).collect();
        ids
    };
    let first = tokens().remove(0);
    wait_for("the first token is gone", || (!tokens().contains(&first)).then_some(()));
    let run = start(here);
    until(here, &run, is("completed"));
    let pid = runner.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let ended = wait_for("the runner ends", || runner.child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0), "{}", said(here));
    assert_eq!(tokens(), [""; 0]);
    assert_eq!(host.stop(), 0);
}

#[test]
fn workers_of_a_host_that_listens_everywhere_reach_it() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    files(here);
    let me = std::env::current_exe().unwrap();
    let command = json!([me, "runner_cli::program", "--exact", "--nocapture"]);
    let config = std::fs::read_to_string(here.join("baton.toml")).unwrap();
    std::fs::write(here.join("baton.toml"), format!("{config}\n[workers.own]\ncommand = {command}\n")).unwrap();
    let log = here.join("host.log");
    let child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["dev", "--config", "baton.toml", "--packs", "packs", "--listen", "0.0.0.0:0"])
        .current_dir(here)
        .env(CALLS, here.join("calls"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let _host = Runner { child };
    let said = || std::fs::read_to_string(&log).unwrap_or_default();
    wait_for("its worker is connected", || said().contains("connected to http://127.0.0.1:").then_some(()));
    assert!(said().contains("listening on http://0.0.0.0:"), "{}", said());
    let run = start(here);
    until(here, &run, is("completed"));
}

#[test]
fn dev_reads_packs_again_when_they_change() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    files(here);
    let host = host(here, None);
    let agents = || baton(here, &["agent", "list", "--json"]).expect(0).json().to_string();
    assert!(agents().contains("Worker"), "{}", agents());
    let pack = here.join("packs").join(PACK).join("pack.json");
    let changed = std::fs::read_to_string(&pack).unwrap().replace("\"Worker\"", "\"Another name\"");
    std::fs::write(&pack, changed).unwrap();
    wait_for("the pack is read again", || agents().contains("Another name").then_some(()));
    // One that cannot be read leaves what there was.
    std::fs::write(&pack, "{").unwrap();
    assert_eq!(host.stop(), 0);
}

#[test]
fn dev_starts_workers_watches_them_and_takes_them_along() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    files(here);
    let me = std::env::current_exe().unwrap();
    let worker = json!({"command": [me, "runner_cli::program", "--exact", "--nocapture"], "watch": ["watched"]});
    let table = format!(
        "\n[workers.own]\ncommand = {}\nwatch = {}\n[runners.own.tools.work]\ntier = \"read\"\n",
        worker["command"], worker["watch"]
    );
    let config = std::fs::read_to_string(here.join("baton.toml")).unwrap() + &table;
    std::fs::write(here.join("baton.toml"), config).unwrap();
    std::fs::write(here.join("watched"), "one").unwrap();
    let flow =
        Flow::chain("step", &[("step", "vendor.baton.tool", json!({"tool": "runner:own.work", "arguments": {}}))]);
    std::fs::create_dir_all(here.join("workflows")).unwrap();
    std::fs::write(here.join("workflows/step.json"), flow.build().to_string()).unwrap();
    let noted = here.join("calls").display().to_string();
    let host = Running::start(here, &["dev", "--config", "baton.toml", "--packs", "packs"], &[(CALLS, &noted)]);
    let pids = || -> Vec<String> {
        let text = std::fs::read_to_string(format!("{noted}.pids")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    let alive = |pid: &str| Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status().unwrap().success();
    let step = || {
        let started = baton(here, &["run", "start", "step", "--json"]).expect(0);
        let run = started.json()["runId"].as_str().unwrap().to_owned();
        until(here, &run, is("completed"));
    };
    // The run waits for the program, which may not even be up.
    step();
    assert_eq!((pids().len(), calls(here).len()), (1, 1));
    std::fs::write(here.join("watched"), "another").unwrap();
    wait_for("it is started anew when a file changes", || (pids().len() == 2).then_some(()));
    wait_for("the first is gone", || (!alive(&pids()[0])).then_some(()));
    step();
    assert!(Command::new("kill").args(["-KILL", &pids()[1]]).status().unwrap().success());
    wait_for("it is started anew when it ends", || (pids().len() == 3).then_some(()));
    step();
    // Whatever becomes of the host, its programs do not stay behind.
    let said = host.kill();
    assert!(said.contains("own | the program is up"), "{said}");
    wait_for("the last is gone", || (!alive(&pids()[2])).then_some(()));
}

/// Every file below a folder.
fn bytes_below(folder: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => all.extend(bytes_below(&entry)),
            false => all.extend(std::fs::read(&entry).unwrap_or_default()),
        }
    }
    all
}

#[test]
fn a_program_asks_models_and_keeps_values_and_finds_both_when_it_is_called_again() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    files(here);
    let config =
        std::fs::read_to_string(here.join("baton.toml")).unwrap() + "\n[runners.own.tools.work]\ntier = \"read\"\n";
    std::fs::write(here.join("baton.toml"), config).unwrap();
    let call = json!({"tool": "runner:own.work", "arguments": {"ask": true}});
    let flow = Flow::chain("step", &[("step", "vendor.baton.tool", call)]);
    std::fs::create_dir_all(here.join("workflows")).unwrap();
    std::fs::write(here.join("workflows/step.json"), flow.build().to_string()).unwrap();
    let host = host(here, None);
    let _runner = runner(here);
    connected(here);
    std::fs::write(here.join("calls.die"), "").unwrap();
    let run = baton(here, &["run", "start", "step", "--json"]).expect(0).json()["runId"].as_str().unwrap().to_owned();
    until(here, &run, is("completed"));
    let made = calls(here);
    assert_eq!((made.len(), &made[0]), (4, &made[2]), "the program died and was called again: {made:?}");
    let place = made[1].rsplit_once("value=").unwrap().1;
    assert_eq!(made[1], format!("200 the answer recorded=false kept=201 value={place}"));
    assert_eq!(made[3], format!("200 the answer recorded=true kept=200 value={place}"), "from the log");
    let snapshot = show(here, &run);
    let usage = json!({"input": 2, "output": 2});
    assert_eq!(snapshot["metrics"]["openwopCost"]["tokens"], usage, "it counts once: {}", snapshot["metrics"]);
    let tokens = std::fs::read_to_string(here.join("calls.tokens")).unwrap();
    let tokens: Vec<&str> = tokens.lines().collect();
    assert!(tokens.len() == 2 && tokens[0] != tokens[1], "each dispatch has its own");
    let stored = bytes_below(&here.join(".baton"));
    for token in tokens {
        assert!(!stored.windows(token.len()).any(|bytes| bytes == token.as_bytes()), "a token is nowhere on the disk");
        assert!(!said(here).contains(token));
        let late = json!({"baseUrl": format!("{}/v1/host/baton/steps/memo", host.url), "apiKey": token});
        assert_eq!(http(&late, "GET", "/place", &Value::Null).0, 409, "the step is over");
        let other = json!({"baseUrl": format!("{}/v1", host.url), "apiKey": token});
        assert_eq!(http(&other, "GET", "/runs", &Value::Null).0, 403, "it opens nothing else");
    }
    assert_eq!(host.stop(), 0);
}

#[test]
fn what_cannot_work_is_said_at_once() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = support::dev(here);
    let missing = baton(here, &["runner", "--", "no-such-program-here"]).expect(1);
    assert!(missing.stderr.contains("does not work"), "{missing:?}");
    let complains = baton(here, &["runner", "--", "/bin/sh", "-c", "echo no key set >&2; exit 4"]).expect(1);
    assert!(complains.stderr.contains("no key set") && complains.stderr.contains("exit code 4"), "{complains:?}");
    let plain = baton(here, &["runner", "--url", "http://example.com", "--", "x"]).expect(2);
    assert!(plain.stderr.contains("plain HTTP"), "{plain:?}");
    baton(here, &["runner"]).expect(2);
    std::fs::write(here.join("token"), "br_nobody\n").unwrap();
    let unknown = baton(here, &["runner", "--token-file", "token", "--", "/bin/cat"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("refused"), "{unknown:?}");
    assert_eq!(
        baton(here, &["runner-token", "list", "--json"]).expect(0).json(),
        json!({"tokens": []}),
        "none is left"
    );
    assert_eq!(host.stop(), 0);
}
