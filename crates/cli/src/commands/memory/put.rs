use std::path::PathBuf;

use baton_client::NewMemory;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{duration, input};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Name of the scope
    scope: String,
    #[command(flatten)]
    source: Source,
    /// Tag to find the entry by; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Delete the entry after this long, for example 90s, 1h or 30d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    ttl: Option<f64>,
    /// Idempotency key: the same key writes only one entry
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Source {
    /// Read the content from stdin
    #[arg(value_name = "-", value_parser = ["-"])]
    stdin: Option<String>,
    /// Content
    #[arg(long, value_name = "TEXT")]
    content: Option<String>,
    /// Read the content from a file (`-` = stdin)
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let content = match (args.source.content, args.source.file) {
        (Some(text), _) => text,
        (None, file) => input::read(&file.unwrap_or_else(|| PathBuf::from("-")))?,
    };
    let new = NewMemory { content, tags: args.tags, ttl_seconds: args.ttl, expires_at: None };
    let entry = context.client()?.memory_put(&args.scope, &new, args.idempotency_key.as_deref()).await?;
    let output = &context.output;
    if entry.content != new.content {
        output.note("secrets were removed before it was stored");
    }
    if output.is_json() {
        output.json(&entry)?;
    } else {
        output.line(&entry.id)?;
    }
    Ok(Exit::Ok)
}

/// The host counts in seconds.
fn seconds(text: &str) -> Result<f64, String> {
    match duration::millis(text)? {
        millis if millis >= 1000 && millis % 1000 == 0 => Ok((millis / 1000) as f64),
        _ => Err("use whole seconds, at least one".to_owned()),
    }
}
