//! What a host is linked to may be mute, dead or slow: the host starts, answers and runs all the same, and says how each
//! link is doing.

use crate::support;

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use support::web::Web;
use support::{PATIENCE, Running, baton, eventually};

/// Takes connections and says nothing, for as long as the test runs.
fn mute() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let held: Vec<TcpStream> = listener.incoming().filter_map(Result::ok).collect();
        drop(held);
    });
    address
}

fn dev_key(here: &Path) -> String {
    let file = std::fs::read(here.join(".baton/dev.json")).unwrap();
    serde_json::from_slice::<Value>(&file).unwrap()["key"].as_str().unwrap().to_owned()
}

fn connections(web: &Web) -> Vec<Value> {
    let system = web.get("/v1/host/baton/system").expect(200);
    system["operator"]["connections"].as_array().unwrap_or_else(|| panic!("{system}")).clone()
}

fn named(all: &[Value], name: &str) -> Value {
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name} in {all:?}")).clone()
}

#[test]
fn mute_and_dead_servers_hold_up_neither_the_start_nor_a_run_nor_the_stop() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let pid = here.join("pid");
    std::fs::write(
        here.join("baton.toml"),
        format!(
            r#"
            [mcp.mute]
            command = "/bin/sh"
            args = ["-c", "echo $$ > {}; while read -r line; do :; done"]
            [mcp.deaf]
            url = "http://{}/mcp"
            [mcp.dead]
            command = "/bin/sh"
            args = ["-c", "echo 'the folder is missing' >&2; exit 3"]
            [providers.away]
            base_url = "http://{}/v1"
            "#,
            pid.display(),
            mute(),
            mute()
        ),
    )
    .unwrap();
    let host = Running::start(here, &["dev", "--config", "baton.toml"], &[("PATH", "/usr/bin:/bin")]);
    let web = Web::new(&host.url, Some(&dev_key(here)));
    // The host is open, and the first attempt to reach each of them is still under way.
    let shown = connections(&web);
    for name in ["mute", "deaf"] {
        let one = named(&shown, name);
        assert_eq!((&one["kind"], &one["state"], &one["failures"]), (&json!("mcp"), &json!("connecting"), &json!(0)));
    }
    assert_eq!(named(&shown, "away")["state"], "idle", "nobody has asked it");
    assert_eq!(web.get("/health").expect(200), json!({"status": "ok"}));
    assert_eq!(web.get("/readiness").expect(200), json!({"status": "ready"}));
    // One that asks a human, and one that is an agent.
    baton(here, &["run", "start", "demo-pipeline", "--wait"]).expect(6);
    baton(here, &["agent", "run", "vendor.baton.team.researcher", "--task", "Why?", "--wait"]).expect(0);

    // The dead one says how it died.
    eventually("the dead server is noticed", || named(&connections(&web), "dead")["exit"] == "exit code 3");
    let dead = named(&connections(&web), "dead");
    assert_eq!(dead["stderr"], json!(["the folder is missing"]), "{dead}");
    let metrics = web.get("/metrics").text();
    for name in ["mute", "deaf", "dead"] {
        assert!(metrics.contains(&format!("baton_connection_up{{kind=\"mcp\",name=\"{name}\"}} 0")), "{metrics}");
    }
    assert!(!metrics.contains("name=\"away\""), "what nobody has needed is neither up nor down");
    let address = host.url.strip_prefix("http://").unwrap();
    let doctor = support::baton_with(
        here,
        &["doctor", "--config", "baton.toml"],
        &[("BATON_URL", host.url.as_str()), ("BATON_API_KEY", &dev_key(here))],
    );
    let line = doctor.stdout.lines().find(|line| line.contains("mcp dead fails since"));
    let line = line.unwrap_or_else(|| panic!("{address}: {doctor:?}"));
    assert!(line.starts_with("warning") && line.contains("the folder is missing"), "{line}");

    // A stop takes the processes along.
    host.ask_to_stop();
    let printed = host.told_until_it_ended(PATIENCE);
    let warning = printed.lines().find(|line| line.contains("the MCP server is not connected"));
    let warning = warning.unwrap_or_else(|| panic!("{printed}"));
    assert!(warning.contains("exit code 3") && warning.contains("the folder is missing"), "{warning}");
    let pid = std::fs::read_to_string(&pid).unwrap();
    eventually("the server has ended", || !Path::new(&format!("/proc/{}", pid.trim())).exists());
}

/// A process that is ended with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn health_answers_while_the_store_does_not_and_readiness_says_why() {
    let here = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .current_dir(here.path())
        .env_clear()
        .env("BATON_API_KEYS", "alpha:acme")
        .env("BATON_DATABASE_URL", format!("postgres://baton:baton@{}/baton", mute()))
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let _ending = Ending(child);
    let bound = lines.by_ref().map(Result::unwrap).find(|line| line.contains("the host is starting"));
    let bound = bound.expect("it says where it listens before it opens the store");
    let address = bound.split("address=").nth(1).unwrap().split_whitespace().next().unwrap();
    let web = Web::new(&format!("http://{address}"), Some("alpha"));
    assert_eq!(web.get("/health").expect(200), json!({"status": "ok"}));
    assert_eq!(web.get("/metrics").status, 200);
    eventually("the store is being opened", || web.get("/readiness").text().contains("it is opening the store"));
    for path in ["/readiness", "/v1/runs", "/.well-known/openwop"] {
        let refused = web.get(path);
        let envelope = refused.json();
        assert_eq!((refused.status, &envelope["error"]), (503, &json!("service_unavailable")));
        assert!(envelope["message"].as_str().unwrap().contains("it is opening the store"), "{envelope}");
        assert_eq!(refused.header("retry-after"), Some("1"));
    }
}

/// What a dev host says until it is up, and what it says when it stops.
fn printed(config: &str, env: &[(&str, &str)]) -> String {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("baton.toml"), config).unwrap();
    let host = Running::start(here.path(), &["dev", "--config", "baton.toml"], env);
    host.ask_to_stop();
    host.told_until_it_ended(PATIENCE)
}

#[test]
fn dev_logs_what_the_settings_say() {
    let opened = "storage is open";
    assert!(!printed("", &[]).contains(opened), "warnings only, if nobody says otherwise");
    assert!(printed("[log]\nlevel = \"info\"\n", &[]).contains(opened));
    let text = printed("", &[("BATON_LOG_LEVEL", "info")]);
    assert!(text.lines().any(|line| line.contains(" INFO ") && line.contains(opened)), "{text}");
    // The environment lies over the file.
    assert!(!printed("[log]\nlevel = \"info\"\n", &[("BATON_LOG_LEVEL", "error")]).contains(opened));
    let lines = printed("[log]\nlevel = \"info\"\nformat = \"json\"\n", &[]);
    let record = lines.lines().find(|line| line.contains(opened)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(record).unwrap()["level"], "INFO");
    // Nothing else of the environment counts.
    assert!(printed("", &[("BATON_LOG_LEVEL", "info"), ("BATON_LISTEN", "not an address")]).contains(opened));
}

#[test]
fn dev_shows_what_a_server_writes_to_its_standard_error() {
    let here = tempfile::tempdir().unwrap();
    let said = "the worker cannot find its table";
    let shown = |level: &str| {
        let server = format!("[mcp.shop]\ncommand = \"/bin/sh\"\nargs = [\"-c\", \"echo '{said}' >&2; exit 3\"]\n");
        std::fs::write(here.path().join("baton.toml"), format!("log.level = \"{level}\"\n{server}")).unwrap();
        // The file of the folder is read without being named.
        let host = Running::start(here.path(), &["dev"], &[("PATH", "/usr/bin:/bin")]);
        let web = Web::new(&host.url, Some(&dev_key(here.path())));
        // By then everything that it wrote has been read.
        eventually("the server has ended", || named(&connections(&web), "shop")["exit"] == "exit code 3");
        host.ask_to_stop();
        host.told_until_it_ended(PATIENCE)
    };
    for level in ["warn", "info", "debug"] {
        let text = shown(level);
        let line = text.lines().find(|line| line.contains("mcp_stderr") && line.contains(said));
        assert!(line.is_some_and(|line| line.contains("server=\"shop\"")), "{level}: {text}");
    }
    assert!(!shown("error").contains(said));
}
