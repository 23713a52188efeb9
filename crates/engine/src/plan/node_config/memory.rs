//! Settings of nodes that read and write memory.

use baton_model::MAX_TAG_CHARS;
use serde_json::Value;

use super::config::Config;
use super::source::TextSource;
use crate::plan::problem::Problem;

/// `vendor.baton.memory.*`: what a run remembers beyond its own life.
#[derive(Debug)]
pub(crate) enum Memory {
    Put { content: TextSource, tags: Vec<String>, ttl_ms: Option<u64> },
    Get { id: TextSource, into: String },
    List { tag: Option<String>, limit: Option<usize>, into: String },
    Delete { id: TextSource },
}

const LONGEST_TTL_SECONDS: f64 = 10.0 * 366.0 * 86_400.0;

impl Memory {
    pub(crate) fn put(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
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
        Ok(Self::Put { content: TextSource::compile(config, "content")?, tags: read_tags(config)?, ttl_ms })
    }

    pub(crate) fn get(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["id", "idExpression", "into"])?;
        Ok(Self::Get { id: TextSource::compile(config, "id")?, into: config.required_text("into")? })
    }

    pub(crate) fn list(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
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

    pub(crate) fn delete(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["id", "idExpression"])?;
        Ok(Self::Delete { id: TextSource::compile(config, "id")? })
    }

    /// The output that also goes to a variable, and that variable.
    pub(crate) fn fills(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Get { into, .. } => Some(("entry", into)),
            Self::List { into, .. } => Some(("entries", into)),
            Self::Put { .. } | Self::Delete { .. } => None,
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
