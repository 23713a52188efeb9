//! The guide's examples of tool steps and maps, run as it says.

use crate::support;

use std::path::Path;

use support::{Ended, baton, dev};

fn start(here: &Path, workflow: &str) -> (String, Ended) {
    let ended = baton(here, &["run", "start", workflow, "--wait", "--json"]).expect(0);
    (ended.json()["runId"].as_str().unwrap().to_owned(), ended)
}

#[test]
fn the_guides_tool_step_and_map_do_what_it_says() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let host = dev(here);
    for name in ["line-item", "tool-step", "map"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/examples").join(format!("{name}.json"));
        baton(here, &["workflow", "validate", file.to_str().unwrap()]).expect(0);
        baton(here, &["workflow", "register", file.to_str().unwrap()]).expect(0);
    }
    let (run, done) = start(here, "tool-step");
    assert_eq!(done.json()["variables"]["text"], "Green, 80 degrees.", "{done:?}");
    let log = baton(here, &["run", "events", &run]).expect(0).stdout;
    assert!(log.contains("openwop:workspace.put"), "{log}");

    let (run, done) = start(here, "map");
    let variables = &done.json()["variables"];
    assert_eq!(variables["totals"], serde_json::json!([6, 5, null, 10]), "{done:?}");
    assert_eq!((&variables["priced"], &variables["unpriced"]), (&serde_json::json!(3), &serde_json::json!([2])));
    let log = baton(here, &["run", "events", &run]).expect(0).stdout;
    assert!(log.contains("4 items, 2 at once") && log.contains("item 2: expression_error"), "{log}");
    assert_eq!(host.stop(), 0);
}
