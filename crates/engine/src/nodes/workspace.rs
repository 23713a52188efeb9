//! Reading and writing the files that a tenant's runs share.

use baton_model::Fault;
use serde_json::{Map, Value, json};

use super::outcome::{Done, wrong_answer};
use crate::conceal::without_sensitive;
use crate::eval_context::EvalContext;
use crate::node_request::{Found, Request};
use crate::plan::Workspace;

impl Workspace {
    pub(super) fn request(&self, context: &EvalContext<'_>) -> Result<Request, Fault> {
        let version = context.state.workspace;
        Ok(match self {
            Self::Put { path, content, content_type } => Request::WriteFile {
                path: path.clone(),
                content: without_sensitive(context.state, &content.text(context)?),
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
