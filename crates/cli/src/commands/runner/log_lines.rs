//! What the program writes to its standard error, line by line behind its name.

use std::fmt::{Debug, Write as _};

use baton_tool::mcp::STDERR_TARGET;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

struct Lines;

#[derive(Default)]
struct Line {
    server: String,
    text: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.text, "{value:?}"),
            "server" => write!(self.server, "{value:?}"),
            _ => Ok(()),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "server" {
            value.clone_into(&mut self.server);
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (target, level) = (event.metadata().target(), *event.metadata().level());
        let mut line = Line::default();
        if target == STDERR_TARGET {
            event.record(&mut line);
            let _ =
                std::io::Write::write_fmt(&mut anstream::stderr(), format_args!("{} | {}\n", line.server, line.text));
        } else if level <= Level::WARN && target.starts_with("baton") {
            event.record(&mut line);
            let _ = std::io::Write::write_fmt(&mut anstream::stderr(), format_args!("{}\n", line.text));
        }
    }
}

pub(super) fn start() {
    let _ = tracing_subscriber::registry().with(Lines).try_init();
}
