//! The workflows `baton dev` brings along, so that there is something to run a minute after the first start.

use std::path::PathBuf;

use baton_provider::Script;

use crate::definition::Source;
use crate::exit::Exit;
use crate::failure::Failure;

const FILES: [(&str, &str); 14] = [
    ("demo-agent-research.json", include_str!("../demos/demo-agent-research.json")),
    ("demo-agent-review.json", include_str!("../demos/demo-agent-review.json")),
    ("demo-agents.json", include_str!("../demos/demo-agents.json")),
    ("demo-check.json", include_str!("../demos/demo-check.json")),
    ("demo-child.json", include_str!("../demos/demo-child.json")),
    ("demo-draft.json", include_str!("../demos/demo-draft.json")),
    ("demo-notebook.json", include_str!("../demos/demo-notebook.json")),
    ("demo-observe.json", include_str!("../demos/demo-observe.json")),
    ("demo-parent.json", include_str!("../demos/demo-parent.json")),
    ("demo-pipeline.json", include_str!("../demos/demo-pipeline.json")),
    ("demo-report.json", include_str!("../demos/demo-report.json")),
    ("demo-research.json", include_str!("../demos/demo-research.json")),
    ("demo-review.json", include_str!("../demos/demo-review.json")),
    ("demo-team.json", include_str!("../demos/demo-team.json")),
];

/// What the scripted model of `baton dev` says.
pub(crate) fn script() -> Result<Script, Failure> {
    Script::read(include_str!("../demos/scripted/model.json"))
        .map_err(|error| Failure::new(Exit::Failed, format!("built-in script: {error}")))
}

pub(crate) fn all() -> Result<Vec<Source>, Failure> {
    FILES
        .into_iter()
        .map(|(name, text)| {
            let definition = serde_json::from_str(text)
                .map_err(|error| Failure::new(Exit::Failed, format!("built-in {name}: {error}")))?;
            Ok(Source { path: PathBuf::from(name), definition })
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_script_can_be_played() {
        assert!(script().is_ok());
    }

    #[test]
    fn every_demo_can_run() {
        for source in all().unwrap() {
            assert_eq!(crate::definition::problems(&source.definition, false), vec![], "{}", source.path.display());
            assert_eq!(source.path.file_stem().unwrap().to_str(), source.id());
        }
    }
}
