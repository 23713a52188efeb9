//! Keeps the newest lines of the log in memory, for the operator's page.

use std::fmt::{Debug, Write as _};
use std::sync::OnceLock;

use baton_runtime::{Clock as _, SystemClock};
use baton_server::{LogLine, LogTail};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// How much of a line is kept.
const LETTERS: usize = 2000;

/// The one there is: a process has one log.
pub(crate) fn tail() -> LogTail {
    static TAIL: OnceLock<LogTail> = OnceLock::new();
    TAIL.get_or_init(LogTail::default).clone()
}

pub(super) struct TailLayer(pub(super) LogTail);

impl<S: Subscriber> Layer<S> for TailLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let meta = event.metadata();
        self.0.push(LogLine {
            at: SystemClock.now(),
            level: meta.level().as_str(),
            target: meta.target().to_owned(),
            message: line.message.chars().chain(line.fields.chars()).take(LETTERS).collect(),
        });
    }
}

/// The message, and after it what belongs to it.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a String cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
