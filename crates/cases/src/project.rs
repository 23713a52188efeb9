//! What cases are about: the workflows and agents of a project, and what its configuration says about models.

use std::collections::BTreeMap;
use std::path::PathBuf;

use baton_provider::Price;
use baton_runtime::Options;
use baton_tool::Aliases;
use serde_json::Value;

/// A workflow of the project.
#[derive(Clone, Debug)]
pub struct WorkflowFile {
    pub path: PathBuf,
    pub definition: Value,
}

impl WorkflowFile {
    pub fn id(&self) -> Option<&str> {
        self.definition.get("id").and_then(Value::as_str)
    }
}

/// Everything that all cases share.
#[derive(Clone, Debug, Default)]
pub struct Project {
    /// Those that can be registered.
    pub workflows: Vec<WorkflowFile>,
    /// Those that cannot, by id, and why.
    pub broken: Vec<(String, String)>,
    /// Names under which models are configured. In a case the script answers for all of them.
    pub providers: Vec<String>,
    /// Limits, agents, models by class, prices. What reaches outside is replaced in every case.
    pub options: Options,
    pub aliases: Aliases,
    /// By `provider/model`.
    pub prices: BTreeMap<String, Price>,
}
