use baton_model::{Fault, MAX_TAG_CHARS, code};
use serde_json::{Map, Value, json};

use super::Done;
use super::config::Config;
use crate::eval_context::EvalContext;
use crate::expr::Expression;
use crate::node_request::{Found, NewEntry, Request};
use crate::plan::Problem;
use crate::size;

/// `vendor.baton.memory.*`: what a run remembers beyond its own life.
#[derive(Debug)]
pub(crate) enum Memory {
    Put { content: Source, tags: Vec<String>, ttl_ms: Option<u64> },
    Get { id: Source, into: String },
    List { tag: Option<String>, limit: Option<usize>, into: String },
    Delete { id: Source },
}

/// A text that stands in the configuration or is computed.
#[derive(Debug)]
pub(crate) enum Source {
    Text(String),
    Expression(Expression),
}

const LONGEST_TTL_SECONDS: f64 = 10.0 * 366.0 * 86_400.0;

impl Memory {
    pub(super) fn put(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["content", "contentExpression", "tags", "ttlSeconds"])?;
        let ttl_ms = match config.get("ttlSeconds") {
            None => None,
            Some(value) => {
                let seconds = value.as_f64().filter(|s| *s >= 0.001 && *s <= LONGEST_TTL_SECONDS);
                let seconds =
                    seconds.ok_or_else(|| config.problem("ttlSeconds", "`ttlSeconds` is a number, at least 0.001."))?;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded just above")]
                Some((seconds * 1000.0).round() as u64)
            }
        };
        Ok(Self::Put { content: Source::compile(config, "content")?, tags: read_tags(config)?, ttl_ms })
    }

    pub(super) fn get(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["id", "idExpression", "into"])?;
        Ok(Self::Get { id: Source::compile(config, "id")?, into: config.required_text("into")? })
    }

    pub(super) fn list(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["tag", "limit", "into"])?;
        // Zero means no limit of one's own.
        let limit = config.whole("limit", 0, 100_000)?.filter(|limit| *limit > 0);
        let tag = config.text("tag")?;
        if tag.as_ref().is_some_and(|tag| !fits(tag)) {
            return Err(config.problem("tag", format!("`tag` has 1 to {MAX_TAG_CHARS} characters.")));
        }
        Ok(Self::List {
            tag,
            limit: limit.and_then(|limit| usize::try_from(limit).ok()),
            into: config.required_text("into")?,
        })
    }

    pub(super) fn delete(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["id", "idExpression"])?;
        Ok(Self::Delete { id: Source::compile(config, "id")? })
    }

    /// The output that also goes to a variable, and that variable.
    pub(super) fn fills(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Get { into, .. } => Some(("entry", into)),
            Self::List { into, .. } => Some(("entries", into)),
            Self::Put { .. } | Self::Delete { .. } => None,
        }
    }

    /// What to ask the shell.
    pub(super) fn request(&self, scene: &EvalContext<'_>) -> Result<Request, Fault> {
        let sight = scene.state.sight;
        Ok(match self {
            Self::Put { content, tags, ttl_ms } => {
                let hide = |text: &str| scene.state.without_sensitive(text);
                Request::Remember(NewEntry {
                    id: scene.entry_id(0),
                    content: hide(&content.text(scene)?),
                    tags: tags.iter().map(|tag| hide(tag).chars().take(MAX_TAG_CHARS).collect()).collect(),
                    ttl_ms: *ttl_ms,
                })
            }
            Self::Get { id, .. } => Request::Recall { id: id.text(scene)?, sight },
            Self::List { tag, limit, .. } => Request::Recollect { tag: tag.clone(), limit: *limit, sight },
            Self::Delete { id } => Request::Forget { id: id.text(scene)?, sight },
        })
    }

    /// What the visit made of the answer.
    pub(super) fn finish(&self, found: Found, scene: &EvalContext<'_>) -> Result<Done, Fault> {
        let alive = |entry: &baton_model::MemoryEntry| !entry.is_expired(scene.at);
        let (output, value) = match found {
            Found::Entry(entry) => ("entry", json!(entry.filter(alive))),
            Found::Entries(entries) => {
                let text =
                    |e: &baton_model::MemoryEntry| e.content.len() + e.tags.iter().map(String::len).sum::<usize>();
                let size = entries.iter().filter(|e| alive(e)).map(|e| text(e) as u64).fold(0, u64::saturating_add);
                size::one("entries", size, scene.state.bounds())?;
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

impl Source {
    /// `key`, or `keyExpression`: exactly one of the two.
    pub(super) fn compile(config: &Config<'_>, key: &str) -> Result<Self, Vec<Problem>> {
        let computed = format!("{key}Expression");
        match (config.text(key)?, config.expression(&computed)?) {
            (Some(text), None) => Ok(Self::Text(text)),
            (None, Some(expression)) => Ok(Self::Expression(expression)),
            _ => Err(config.problem(key, format!("Give either `{key}` or `{computed}`."))),
        }
    }

    /// The text itself. What an expression makes of it that is not text is kept as JSON.
    pub(super) fn text(&self, scene: &EvalContext<'_>) -> Result<String, Fault> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Expression(expression) => match expression.evaluate(scene) {
                Ok(Value::String(text)) => Ok(text),
                Ok(other) => Ok(other.to_string()),
                Err(error) => Err(expression.fault(&error)),
            },
        }
    }
}

fn fits(tag: &str) -> bool {
    (1..=MAX_TAG_CHARS).contains(&tag.chars().count())
}

fn read_tags(config: &Config<'_>) -> Result<Vec<String>, Vec<Problem>> {
    let wrong = || config.problem("tags", format!("`tags` lists texts of 1 to {MAX_TAG_CHARS} characters."));
    match config.get("tags") {
        None => Ok(Vec::new()),
        Some(Value::Array(tags)) => {
            tags.iter().map(|tag| tag.as_str().filter(|tag| fits(tag)).map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// The shell answered another question than was asked: a defect of ours, and no reason to guess.
pub(crate) fn wrong_answer() -> Fault {
    Fault::new(code::INTERNAL_ERROR, "The host answered another question than the node asked.")
}
