//! Settings of nodes that read and write files.

use baton_model::workspace::path_problem;

use super::config::Config;
use super::source::TextSource;
use crate::plan::problem::Problem;

/// `vendor.baton.workspace.*`: the files a tenant's runs share.
#[derive(Debug)]
pub(crate) enum Workspace {
    Put { path: String, content: TextSource, content_type: Option<String> },
    Get { path: String, into: String },
    List { prefix: Option<String>, into: String },
}

impl Workspace {
    pub(crate) fn put(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["path", "content", "contentExpression", "contentType"])?;
        Ok(Self::Put {
            path: read_path(config)?,
            content: TextSource::compile(config, "content")?,
            content_type: config.text("contentType")?,
        })
    }

    pub(crate) fn get(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["path", "into"])?;
        Ok(Self::Get { path: read_path(config)?, into: config.required_text("into")? })
    }

    pub(crate) fn list(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["prefix", "into"])?;
        Ok(Self::List { prefix: config.text("prefix")?, into: config.required_text("into")? })
    }

    /// The output that also goes to a variable, and that variable.
    pub(crate) fn fills(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Get { into, .. } => Some(("file", into)),
            Self::List { into, .. } => Some(("files", into)),
            Self::Put { .. } => None,
        }
    }
}

fn read_path(config: &Config<'_>) -> Result<String, Vec<Problem>> {
    let path = config.required_text("path")?;
    match path_problem(&path) {
        None => Ok(path),
        Some(why) => Err(config.problem("path", format!("`{path}` cannot name a file: {why}."))),
    }
}
