use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, fmt, registry};

use super::log_tail::{TailLayer, tail};
use crate::config::LogFormat;

/// Logs go to stderr: stdout is for data. The newest lines stay in memory too. A second call changes nothing.
pub(crate) fn start(level: &str, format: LogFormat) {
    // Migrations are told by the store itself, and lost MCP servers by whoever supervises them; what the libraries say of
    // them is for debugging.
    let filter = EnvFilter::new(match level {
        "error" => "error,rmcp=off",
        "warn" => "warn,rmcp=off",
        "info" => "info,refinery_core=warn,rmcp=off",
        other => other,
    });
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let _ = registry().with(filter).with(lines).with(TailLayer(tail())).try_init();
}
