//! Reading and writing what a run remembers beyond its own life.

use baton_model::{Fault, MAX_TAG_CHARS};
use serde_json::{Map, Value, json};

use super::outcome::{Done, wrong_answer};
use crate::conceal::without_sensitive;
use crate::eval_context::EvalContext;
use crate::node_request::{Found, NewEntry, Request};
use crate::plan::Memory;
use crate::size;

impl Memory {
    /// What to ask the shell.
    pub(super) fn request(&self, context: &EvalContext<'_>) -> Result<Request, Fault> {
        let read_version = context.state.read_version;
        Ok(match self {
            Self::Put { content, tags, ttl_ms } => {
                let hide = |text: &str| without_sensitive(context.state, text);
                Request::Remember(NewEntry {
                    id: context.entry_id(0),
                    content: hide(&content.text(context)?),
                    tags: tags.iter().map(|tag| hide(tag).chars().take(MAX_TAG_CHARS).collect()).collect(),
                    ttl_ms: *ttl_ms,
                })
            }
            Self::Get { id, .. } => Request::Recall { id: id.text(context)?, read_version },
            Self::List { tag, limit, .. } => Request::Recollect { tag: tag.clone(), limit: *limit, read_version },
            Self::Delete { id } => Request::Forget { id: id.text(context)?, read_version },
        })
    }

    /// What the visit made of the answer.
    pub(super) fn finish(&self, found: Found, context: &EvalContext<'_>) -> Result<Done, Fault> {
        let alive = |entry: &baton_model::MemoryEntry| !entry.is_expired(context.at);
        let (output, value) = match found {
            Found::Entry(entry) => ("entry", json!(entry.filter(alive))),
            Found::Entries(entries) => {
                let text =
                    |e: &baton_model::MemoryEntry| e.content.len() + e.tags.iter().map(String::len).sum::<usize>();
                let size = entries.iter().filter(|e| alive(e)).map(|e| text(e) as u64).fold(0, u64::saturating_add);
                size::one("entries", size, context.state.bounds())?;
                ("entries", entries.iter().filter(|e| alive(e)).map(|e| json!(e)).collect())
            }
            Found::Forgotten(deleted) => ("deleted", json!(deleted)),
            _ => return Err(wrong_answer()),
        };
        let variables = self.fills().map(|(_, into)| (into.to_owned(), value.clone())).into_iter().collect();
        let outputs: Map<String, Value> = [(output.to_owned(), value)].into_iter().collect();
        Ok(Done { outputs, variables, ..Done::default() })
    }
}
