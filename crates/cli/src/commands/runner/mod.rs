//! `baton runner`: makes a program that speaks the Model Context Protocol on its standard streams a runner of a host.

mod bridge;
mod link;
mod log_lines;
mod outbox;
mod progress;
mod steps;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baton_client::{Client, RunnerClient};
use baton_tool::NoSecrets;
use baton_tool::mcp::{McpServer, McpSettings, McpStatus};

use self::bridge::Bridge;
use self::link::{Link, OwnTokens};
use crate::context::Context;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hosting::Signals;

/// The program's own limit of a call: the host's deadline comes before it.
const LONGEST_CALL_MS: u64 = 24 * 60 * 60 * 1000;
/// The host judges how large a result may be.
const LARGEST_RESULT: usize = 8 * 1024 * 1024;
/// What must not reach the program.
const KEPT_BACK: [&str; 3] = ["BATON_API_KEY", "BATON_RUNNER_TOKEN", "BATON_RUNNER_TOKEN_FILE"];

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// File with a runner token [default: a token is made with the API key, and revoked at the end]
    #[arg(long, value_name = "FILE", env = "BATON_RUNNER_TOKEN_FILE")]
    token_file: Option<PathBuf>,
    /// Name of the pool: tools are called runner:POOL.TOOL [default: made from the command]
    #[arg(long, value_name = "POOL", value_parser = pool)]
    name: Option<String>,
    /// How many calls the program gets at a time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: u16,
    /// Offer only these tools
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    tools: Vec<String>,
    /// Version of the program, for workflows that ask for one
    #[arg(long, value_name = "VERSION")]
    tool_version: Option<String>,
    /// How long calls in progress may take after SIGTERM
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::millis)]
    grace: u64,
    /// Allow plain HTTP to a host on another machine
    #[arg(long)]
    insecure: bool,
    /// How long a token is good that was made because none was given; it is made anew at half of that
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration::millis, hide = true)]
    token_life: u64,
    /// Stop when standard input is closed: whoever started this is gone then
    #[arg(long, hide = true)]
    while_stdin: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

fn pool(text: &str) -> Result<String, String> {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    let fits = !text.is_empty() && text.len() <= 64 && text.chars().all(letter);
    fits.then(|| text.to_owned()).ok_or_else(|| "use 1 to 64 of a-z 0-9 - _".to_owned())
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let (output, url) = (&context.output, context.target.url.clone());
    if !args.insecure && !is_safe(&url) {
        let message = format!("{url} is plain HTTP: the token would be readable on the way.");
        return Err(Failure::usage(message).hint("use https://, or --insecure if the network is yours"));
    }
    let name = args.name.clone().unwrap_or_else(|| pool_of(&args.command));
    let mut signals = Signals::new().map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    log_lines::start();
    let (link, mut own) = credentials(&args, context, &url, &name).await?;
    let subject = match link.client().own_runner_token().await {
        Ok(shown) => shown.subject,
        Err(error) => {
            revoke(context, own.as_ref()).await;
            return Err(Failure::new(Exit::Failed, format!("The host refused this runner: {error}")));
        }
    };
    let server = start(&args, &name)?;
    server.tried().await;
    if let McpStatus::Disconnected { reason } = server.status() {
        server.close().await;
        revoke(context, own.as_ref()).await;
        let message = format!("`{}` does not work: {reason}", args.command.join(" "));
        return Err(Failure::new(Exit::Failed, message).hint("it has to speak MCP on its standard input and output"));
    }
    let settings = bridge::Settings {
        pool: name,
        subject,
        concurrency: args.concurrency.into(),
        only: args.tools.clone(),
        version: args.tool_version.clone(),
        grace: Duration::from_millis(args.grace),
    };
    let bridge = Bridge::new(link, Arc::clone(&server), settings, *output);
    let stop = async {
        tokio::select! {
            _ = signals.next() => {}
            () = stdin_closed(args.while_stdin) => {}
        }
    };
    let ended = bridge.run(&mut own, stop).await;
    server.close().await;
    revoke(context, own.as_ref()).await;
    ended.map(|()| Exit::Ok)
}

/// Resolves when standard input comes to its end, or never. Read on a thread of its own, which the process does not wait
/// for when it ends.
async fn stdin_closed(watch: bool) {
    if !watch {
        return std::future::pending().await;
    }
    let (open, closed) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        let mut ignored = [0_u8; 256];
        while std::io::stdin().read(&mut ignored).is_ok_and(|bytes| bytes > 0) {}
        drop(open);
    });
    let _ = closed.await;
}

/// Only over TLS, or where nobody can listen.
fn is_safe(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return true };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A link that shows a runner token, and the tokens of this process' own if it was given none.
async fn credentials(
    args: &Args,
    context: &Context,
    url: &str,
    name: &str,
) -> Result<(Link, Option<OwnTokens>), Failure> {
    let given = match &args.token_file {
        Some(path) => {
            let read = std::fs::read_to_string(path);
            Some(read.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?)
        }
        None => std::env::var("BATON_RUNNER_TOKEN").ok(),
    };
    if let Some(token) = given {
        return Ok((Link::new(RunnerClient::new(Client::new(url, Some(token.trim()))?)), None));
    }
    let (own, link) = OwnTokens::make(context, url, name, Duration::from_millis(args.token_life)).await?;
    Ok((link, Some(own)))
}

async fn revoke(context: &Context, own: Option<&OwnTokens>) {
    if let Some(own) = own {
        own.revoke(context.output).await;
    }
}

fn start(args: &Args, name: &str) -> Result<Arc<McpServer>, Failure> {
    let Some((command, rest)) = args.command.split_first() else {
        return Err(Failure::usage("Say what to start behind `--`."));
    };
    // The program is the user's own: it has the environment it would have without us, but for what opens the host.
    let env: BTreeMap<String, serde_json::Value> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?.into())))
        .filter(|(name, _)| !KEPT_BACK.contains(&name.as_str()))
        .collect();
    let settings = McpSettings {
        command: Some(command.clone()),
        args: rest.to_vec(),
        env,
        timeout_ms: LONGEST_CALL_MS,
        max_result_bytes: LARGEST_RESULT,
        ..McpSettings::default()
    };
    McpServer::start(name, settings, Arc::new(NoSecrets)).map_err(|wrong| Failure::usage(wrong.to_string()))
}

/// The first argument that looks like a file of its own, else the program: `python worker.py` is `worker`.
fn pool_of(command: &[String]) -> String {
    let file = command.iter().skip(1).find(|argument| !argument.starts_with('-') && argument.contains('.'));
    let named = file.or(command.first()).map_or("worker", String::as_str);
    let stem = PathBuf::from(named);
    let stem = stem.file_stem().and_then(|stem| stem.to_str()).unwrap_or("worker").to_ascii_lowercase();
    let clean: String =
        stem.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' }).collect();
    clean.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_over_tls_or_stays_on_the_machine() {
        for url in ["https://x", "http://127.0.0.1:7717", "http://[::1]:1/x", "http://localhost", "http://127.9.9.9/"] {
            assert!(is_safe(url), "{url}");
        }
        for url in ["http://10.0.0.1", "http://example.com", "http://localhost.example.com", "http://127.0.0.1.nip.io"]
        {
            assert!(!is_safe(url), "{url}");
        }
    }

    #[test]
    fn a_pool_is_named_after_the_program() {
        let of = |command: &[&str]| pool_of(&command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["python", "-u", "/srv/My Worker.py"]), "my-worker");
        assert_eq!(of(&["./tools"]), "tools");
        assert_eq!(of(&["node", "worker.mjs", "x.y"]), "worker");
        assert!(pool("a.b").is_err() && pool("").is_err() && pool("a-b_1").is_ok());
    }
}
