//! What works without a host: stdout, stderr and exit codes of the real binary.

use crate::support;

use std::path::{Path, PathBuf};

use support::{NOBODY, baton, baton_with};

fn demo(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demos").join(name).display().to_string()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn version_in_both_forms() {
    let here = folder();
    assert_eq!(baton(here.path(), &["version"]).expect(0).stdout, format!("baton {}\n", env!("CARGO_PKG_VERSION")));
    let json = baton(here.path(), &["version", "--json"]).expect(0).json();
    assert_eq!(
        (json["version"].as_str(), json["protocolVersion"].as_str()),
        (Some(env!("CARGO_PKG_VERSION")), Some("1.0"))
    );
}

#[test]
fn usage_errors_exit_2() {
    let here = folder();
    for words in [&["run"][..], &["fly"], &["run", "list", "--status", "odd"], &["interrupt", "resolve", "r", "n"]] {
        baton(here.path(), words).expect(2);
    }
    let bad = baton(here.path(), &["run", "start", "w", "-i", "[1]"]).expect(2);
    assert!(bad.stderr.starts_with("error: --inputs must be a JSON object\nhint: "), "{bad:?}");
    assert_eq!(bad.stdout, "");
}

#[test]
fn nobody_there_exits_10_with_a_hint() {
    let here = folder();
    let ended = baton(here.path(), &["--url", &format!("http://{NOBODY}"), "run", "list"]).expect(10);
    assert!(ended.stderr.contains("cannot be reached") && ended.stderr.contains("hint: start a host"), "{ended:?}");
    let ended = baton(here.path(), &["--url", &format!("http://{NOBODY}"), "run", "list", "--json"]).expect(10);
    let error: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert!(error["message"].is_string() && error["hint"].is_string());
}

#[test]
fn https_to_a_plain_port_says_so() {
    use std::io::{Read as _, Write as _};
    let here = folder();
    let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = plain.local_addr().unwrap();
    // Ends with the test.
    std::thread::spawn(move || {
        for stream in plain.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
            // Everything that was sent is read, or the answer could be lost in a reset.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        }
    });
    let ended = baton(here.path(), &["--url", &format!("https://{address}"), "run", "list"]).expect(10);
    assert!(ended.stderr.contains("hint: the server there may speak plain http"), "{ended:?}");
}

#[test]
fn validate_names_file_place_and_problem() {
    let here = folder();
    let ok =
        baton(here.path(), &["workflow", "validate", &demo("demo-pipeline.json"), &demo("demo-parent.json")]).expect(0);
    assert!(ok.stdout.contains("demo-pipeline.json: ok (demo-pipeline)"), "{ok:?}");

    let text = std::fs::read_to_string(demo("demo-pipeline.json")).unwrap();
    write(&here, "bad.json", &text.replace("core.delay", "core.dealy"));
    let bad = baton(here.path(), &["workflow", "validate", "bad.json"]).expect(2);
    let line = 1 + text.lines().position(|line| line.contains("core.delay")).unwrap();
    assert!(bad.stdout.starts_with(&format!("bad.json:{line}:")), "{bad:?}");
    assert!(bad.stdout.contains(": /nodes/3/typeId: "), "{bad:?}");
    let json = baton(here.path(), &["workflow", "validate", "bad.json", "--json"]).expect(2).json();
    assert_eq!(
        (json[0]["valid"].as_bool(), json[0]["problems"][0]["pointer"].as_str()),
        (Some(false), Some("/nodes/3/typeId"))
    );
    assert_eq!(json[0]["problems"][0]["line"], line);

    baton(here.path(), &["workflow", "validate", "missing.json"]).expect(3);
    write(&here, "half.json", "{");
    baton(here.path(), &["workflow", "validate", "half.json"]).expect(2);
}

#[test]
fn graphs_are_drawn_from_files() {
    let here = folder();
    let text = baton(here.path(), &["workflow", "graph", &demo("demo-child.json")]).expect(0).stdout;
    assert_eq!(text, "demo-child 1.0.0 (Greeting)\n\ncompose  core.setVariable\n");
    let mermaid =
        baton(here.path(), &["workflow", "graph", &demo("demo-parent.json"), "--format", "mermaid"]).expect(0).stdout;
    assert!(mermaid.starts_with("flowchart TD\n") && mermaid.contains("n0 --> n2"), "{mermaid}");
}

#[test]
fn configuration_shows_where_each_value_comes_from() {
    let here = folder();
    write(&here, "baton.toml", "data = \"/from/file\"\nlisten = \"127.0.0.1:1\"\n");
    let words = ["config", "show", "--origin", "--config", "baton.toml", "--json", "--conformance"];
    let env = [("BATON_LISTEN", "127.0.0.1:2"), ("BATON_API_KEYS", "hush:tenant")];
    let shown = baton_with(here.path(), &words, &env).expect(0);
    assert!(!shown.stdout.contains("hush"), "{shown:?}");
    let json = shown.json();
    for (key, value, origin) in [
        ("data", "/from/file", "baton.toml"),
        ("listen", "127.0.0.1:2", "BATON_LISTEN"),
        ("log.level", "info", "default"),
        ("api_keys", "(hidden)", "BATON_API_KEYS"),
    ] {
        assert_eq!((json[key]["value"].as_str(), json[key]["origin"].as_str()), (Some(value), Some(origin)), "{key}");
    }
    assert_eq!(json["conformance"]["origin"], "--conformance");

    write(&here, "typo.toml", "lisen = \"127.0.0.1:1\"\n");
    let typo = baton(here.path(), &["serve", "--config", "typo.toml"]).expect(2);
    assert!(typo.stderr.contains("unknown key `lisen`; did you mean `listen`?"), "{typo:?}");
}

#[test]
fn serve_refuses_to_start_without_keys() {
    let here = folder();
    let ended = baton(here.path(), &["serve", "--listen", "127.0.0.1:0"]).expect(2);
    assert!(ended.stderr.contains("hint: set BATON_API_KEYS"), "{ended:?}");
    assert!(!here.path().join(".baton").exists(), "nothing may be created before the refusal");
}

#[test]
fn doctor_judges_a_folder_without_a_host() {
    let here = folder();
    let words = ["doctor", "--json", "--url", &format!("http://{NOBODY}")];
    let findings = baton(here.path(), &words).expect(0).json();
    let names: Vec<&str> =
        findings.as_array().unwrap().iter().map(|finding| finding["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["configuration", "keys", "host id", "permissions", "free space", "fsync", "clock", "storage", "host"]
    );

    std::fs::create_dir(here.path().join(".baton")).unwrap();
    let empty = baton(here.path(), &words).expect(1).json();
    let storage = empty.as_array().unwrap().iter().find(|finding| finding["name"] == "storage").unwrap();
    assert_eq!(storage["state"], "wrong");
    assert!(storage["fix"].is_string());
}

#[test]
fn completions_are_scripts() {
    let here = folder();
    for shell in ["bash", "zsh", "fish"] {
        assert!(baton(here.path(), &["completions", shell]).expect(0).stdout.contains("baton"));
    }
}
