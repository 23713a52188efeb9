//! The files of a new project. They are kept as files, in `crates/cli/templates`.

use super::worker::Worker;

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/templates/", $path))
    };
}

/// Paths within the project and what is in them.
pub(super) fn files(name: &str, worker: Worker) -> Vec<(String, String)> {
    let Parts { workflow, cases, config, rows, readme, worker } = parts(worker);
    let pack = "packs/private.{{name}}.helpers";
    let mut files = vec![
        (
            "README.md".to_owned(),
            template!("common/README.md").replace("{{rows}}", rows).replace("{{worker}}\n", readme),
        ),
        ("baton.toml".to_owned(), format!("{}{config}", template!("common/baton.toml"))),
        (".gitignore".to_owned(), template!("common/gitignore").to_owned()),
        ("workflows/triage.json".to_owned(), workflow.to_owned()),
        (format!("{pack}/pack.json"), template!("common/packs/helpers/pack.json").to_owned()),
        (format!("{pack}/prompts/clerk.md"), template!("common/packs/helpers/prompts/clerk.md").to_owned()),
        (format!("{pack}/schemas/answer.json"), template!("common/packs/helpers/schemas/answer.json").to_owned()),
        ("model/script.json".to_owned(), template!("common/model/script.json").to_owned()),
        ("tests/triage.test.yaml".to_owned(), cases.to_owned()),
    ];
    files.extend(worker.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
    let named = |text: &str| text.replace("{{name}}", name);
    files.iter().map(|(path, text)| (named(path), named(text))).collect()
}

/// What depends on the language of the worker.
struct Parts {
    workflow: &'static str,
    cases: &'static str,
    config: &'static str,
    rows: &'static str,
    readme: &'static str,
    worker: &'static [(&'static str, &'static str)],
}

fn parts(worker: Worker) -> Parts {
    match worker {
        Worker::None => Parts {
            workflow: template!("plain/triage.json"),
            cases: template!("plain/triage.test.yaml"),
            config: "",
            rows: "",
            readme: "",
            worker: &[],
        },
        Worker::Python => Parts {
            workflow: template!("tool/triage.json"),
            cases: template!("tool/triage.test.yaml"),
            config: template!("python/baton.toml.part"),
            rows: "| `worker/worker.py` | the project's own functions, in Python |\n",
            readme: template!("python/README.part"),
            worker: &[
                ("worker/worker.py", template!("python/worker/worker.py")),
                ("worker/requirements.txt", template!("python/worker/requirements.txt")),
            ],
        },
        Worker::Typescript => Parts {
            workflow: template!("tool/triage.json"),
            cases: template!("tool/triage.test.yaml"),
            config: template!("typescript/baton.toml.part"),
            rows: "| `worker/worker.mjs` | the project's own tools, for Node |\n",
            readme: template!("typescript/README.part"),
            worker: &[
                ("worker/worker.mjs", template!("typescript/worker/worker.mjs")),
                ("worker/package.json", template!("typescript/worker/package.json")),
            ],
        },
    }
}
