//! The arrows of the architecture, checked: which crate of ours may depend on which.
//!
//! Only normal dependencies count. Tests may reach anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Crate, and the crates of ours it may know.
const ALLOWED: &[(&str, &[&str])] = &[
    ("baton-model", &[]),
    ("baton-api", &["baton-model"]),
    ("baton-engine", &["baton-model"]),
    ("baton-agent", &["baton-model"]),
    ("baton-sse", &[]),
    ("baton-provider", &["baton-model", "baton-sse"]),
    ("baton-tool", &["baton-model"]),
    ("baton-store", &["baton-model"]),
    ("baton-store-sqlite", &["baton-model", "baton-store"]),
    ("baton-store-postgres", &["baton-model", "baton-store"]),
    ("baton-runtime", &["baton-model", "baton-agent", "baton-engine", "baton-provider", "baton-store", "baton-tool"]),
    ("baton-cases", &["baton-model", "baton-provider", "baton-store", "baton-runtime", "baton-tool"]),
    ("baton-telemetry", &["baton-model"]),
    (
        "baton-server",
        &["baton-model", "baton-api", "baton-agent", "baton-runtime", "baton-store", "baton-telemetry", "baton-tool"],
    ),
    (
        "baton-conformance",
        &[
            "baton-model",
            "baton-api",
            "baton-agent",
            "baton-engine",
            "baton-provider",
            "baton-tool",
            "baton-store",
            "baton-runtime",
            "baton-server",
            "baton-telemetry",
        ],
    ),
    ("baton-client", &["baton-model", "baton-api", "baton-sse"]),
    ("baton-remote", &["baton-model", "baton-api", "baton-runtime", "baton-client"]),
    (
        "baton",
        &[
            "baton-model",
            "baton-api",
            "baton-agent",
            "baton-engine",
            "baton-provider",
            "baton-tool",
            "baton-store",
            "baton-store-sqlite",
            "baton-store-postgres",
            "baton-runtime",
            "baton-server",
            "baton-cases",
            "baton-conformance",
            "baton-client",
            "baton-remote",
            "baton-telemetry",
        ],
    ),
    ("baton-faulty-disk", &[]),
    ("baton-testkit", &["baton-model", "baton-engine", "baton-store", "baton-runtime"]),
    (
        "baton-simulation",
        &["baton-model", "baton-provider", "baton-tool", "baton-store", "baton-runtime", "baton-testkit"],
    ),
    ("baton-bench", &["baton-api", "baton-client", "baton-model", "baton-testkit"]),
];

/// Crates that would bring IO, a clock or a scheduler into the pure core.
const NOT_IN_THE_CORE: &[&str] =
    &["axum", "getrandom", "hyper", "rand", "reqwest", "rusqlite", "tokio", "tokio-util", "tracing"];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What cargo knows of the crates of the workspace.
pub(crate) fn metadata() -> Value {
    serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--no-deps", "--offline"])).unwrap()
}

/// Crate → names of its normal dependencies.
fn workspace() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let packages = metadata["packages"].as_array().unwrap();
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap();
            // Dev and build dependencies have a kind; normal ones have none.
            let normal = dependencies.iter().filter(|dependency| dependency["kind"].is_null());
            (text(&package["name"]), normal.map(|dependency| text(&dependency["name"])).collect())
        })
        .collect()
}

/// Edges between crates of ours that `ALLOWED` does not list.
fn forbidden(workspace: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let allowed: BTreeMap<_, _> = ALLOWED.iter().copied().collect();
    let mut edges = Vec::new();
    for (name, dependencies) in workspace {
        for dependency in dependencies.iter().filter(|dependency| workspace.contains_key(*dependency)) {
            if !allowed.get(name.as_str()).is_some_and(|list| list.contains(&dependency.as_str())) {
                edges.push(format!("{name} -> {dependency}"));
            }
        }
    }
    edges
}

#[test]
fn arrows_point_inwards() {
    let workspace = workspace();
    for name in workspace.keys() {
        assert!(ALLOWED.iter().any(|(known, _)| known == name), "{name} has no place in ALLOWED yet");
    }
    assert_eq!(forbidden(&workspace), Vec::<String>::new());
}

#[test]
fn a_forbidden_arrow_is_noticed() {
    let mut workspace = workspace();
    workspace.get_mut("baton-engine").unwrap().insert("baton-store".to_owned());
    assert_eq!(forbidden(&workspace), ["baton-engine -> baton-store"]);
}

/// What may use `unsafe`, and what the binary is made of, have nothing in common.
#[test]
fn no_shipped_crate_knows_the_disk_that_fails() {
    const CRATE: &str = "baton-faulty-disk";
    for package in ["baton", "baton-bench"] {
        let tree = cargo(&["tree", "--package", package, "--edges", "normal,build", "--offline", "--locked"]);
        assert!(tree.contains("baton-model") && !tree.contains(CRATE), "{tree}");
    }
    let mut free = Vec::new();
    for package in metadata()["packages"].as_array().unwrap() {
        let manifest = std::fs::read_to_string(package["manifest_path"].as_str().unwrap()).unwrap();
        let is_bound = manifest.contains("[lints]\nworkspace = true") && !manifest.contains("unsafe_code");
        free.extend((!is_bound).then(|| package["name"].as_str().unwrap().to_owned()));
    }
    assert_eq!(free, [CRATE], "crates that may use unsafe code");
}

#[test]
fn the_core_stays_pure() {
    let workspace = workspace();
    for name in ["baton-model", "baton-engine"] {
        let dependencies = &workspace[name];
        assert!(!dependencies.is_empty(), "{name} was not read");
        for banned in NOT_IN_THE_CORE {
            assert!(!dependencies.contains(*banned), "{name} depends on {banned}");
        }
    }
}

#[test]
fn only_the_binary_knows_the_wire_of_traces() {
    // The server folds logs into spans; sending them is another matter, and another thirty crates.
    let tree = cargo(&["tree", "--package", "baton-server", "--edges", "normal", "--offline", "--locked"]);
    assert!(tree.contains("baton-telemetry") && !tree.contains("opentelemetry"), "{tree}");
    let tree = cargo(&["tree", "--package", "baton", "--edges", "normal", "--offline", "--locked"]);
    assert!(tree.contains("opentelemetry-otlp"), "{tree}");
}

#[test]
fn json_maps_stay_sorted() {
    // One crate anywhere in the graph could switch this on for all of us, and digests would change with it.
    let tree =
        cargo(&["tree", "--workspace", "--edges", "features", "--invert", "serde_json", "--offline", "--locked"]);
    assert!(tree.contains("serde_json feature"), "no features were listed:\n{tree}");
    for feature in ["preserve_order", "arbitrary_precision"] {
        assert!(!tree.contains(&format!("serde_json feature \"{feature}\"")), "serde_json/{feature} is on:\n{tree}");
    }
}
