use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::LogFormat;

/// Logs go to stderr: stdout is for data. A second call changes nothing.
pub(crate) fn start(level: &str, format: LogFormat) {
    // Migrations are told by the store itself; the library's own account of them is for debugging.
    let filter = EnvFilter::new(if level == "info" { "info,refinery_core=warn,rmcp=warn" } else { level });
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    let _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
}
