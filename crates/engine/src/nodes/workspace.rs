use baton_model::Fault;
use baton_model::workspace::path_problem;
use serde_json::{Map, Value, json};

use super::Done;
use super::config::Config;
use super::memory::{Source, wrong_answer};
use crate::eval_context::EvalContext;
use crate::node_request::{Found, Request};
use crate::plan::Problem;

/// `vendor.baton.workspace.*`: the files a tenant's runs share.
#[derive(Debug)]
pub(crate) enum Workspace {
    Put { path: String, content: Source, content_type: Option<String> },
    Get { path: String, into: String },
    List { prefix: Option<String>, into: String },
}

impl Workspace {
    pub(super) fn put(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["path", "content", "contentExpression", "contentType"])?;
        Ok(Self::Put {
            path: read_path(config)?,
            content: Source::compile(config, "content")?,
            content_type: config.text("contentType")?,
        })
    }

    pub(super) fn get(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["path", "into"])?;
        Ok(Self::Get { path: read_path(config)?, into: config.required_text("into")? })
    }

    pub(super) fn list(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["prefix", "into"])?;
        Ok(Self::List { prefix: config.text("prefix")?, into: config.required_text("into")? })
    }

    /// The output that also goes to a variable, and that variable.
    pub(super) fn fills(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Get { into, .. } => Some(("file", into)),
            Self::List { into, .. } => Some(("files", into)),
            Self::Put { .. } => None,
        }
    }

    pub(super) fn request(&self, scene: &EvalContext<'_>) -> Result<Request, Fault> {
        let version = scene.state.workspace;
        Ok(match self {
            Self::Put { path, content, content_type } => Request::WriteFile {
                path: path.clone(),
                content: scene.state.without_sensitive(&content.text(scene)?),
                content_type: content_type.clone(),
            },
            Self::Get { path, .. } => Request::ReadFile { path: path.clone(), version },
            Self::List { prefix, .. } => Request::ListFiles { prefix: prefix.clone(), version },
        })
    }

    pub(super) fn finish(&self, found: Found) -> Result<Done, Fault> {
        let (output, value) = match found {
            Found::File(file) => ("file", json!(file)),
            Found::Written(meta) => ("file", json!(meta)),
            Found::Files(files) => ("files", json!(files)),
            _ => return Err(wrong_answer()),
        };
        let variables = self.fills().map(|(_, into)| (into.to_owned(), value.clone())).into_iter().collect();
        let outputs: Map<String, Value> = [(output.to_owned(), value)].into_iter().collect();
        Ok(Done { outputs, variables, ..Done::default() })
    }
}

fn read_path(config: &Config<'_>) -> Result<String, Vec<Problem>> {
    let path = config.required_text("path")?;
    match path_problem(&path) {
        None => Ok(path),
        Some(why) => Err(config.problem("path", format!("`{path}` cannot name a file: {why}."))),
    }
}
