use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt, registry};

use baton_tool::mcp::STDERR_TARGET;

use super::log_tail::{TailLayer, tail};
use crate::config::LogFormat;

/// The same for a host that somebody develops on: what MCP servers write to their standard error shows too. It is often
/// the only word about what is wrong. Whoever wants nothing but errors gets those.
pub(crate) fn start_for_dev(level: &str, format: LogFormat) {
    match level {
        "warn" | "info" => start_with(level, format, Some(STDERR_TARGET)),
        _ => start(level, format),
    }
}

/// Logs go to stderr: stdout is for data. The newest lines stay in memory too. A second call changes nothing.
pub(crate) fn start(level: &str, format: LogFormat) {
    start_with(level, format, None);
}

fn start_with(level: &str, format: LogFormat, also: Option<&str>) {
    // Migrations are told by the store itself, and lost MCP servers by whoever supervises them; what the libraries say of
    // them is for debugging.
    let filter = match level {
        "error" => "error,rmcp=off",
        "warn" => "warn,rmcp=off",
        "info" => "info,refinery_core=warn,rmcp=off",
        other => other,
    };
    let filter = EnvFilter::new(match also {
        Some(target) => format!("{filter},{target}=debug"),
        None => filter.to_owned(),
    });
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let _ = registry().with(filter).with(lines).with(TailLayer(tail())).try_init();
}
