//! What a run looks like from outside: its log folded into spans, and the way out to a collector.
//!
//! ```text
//!  records, once durable ──► RunSpans (pure, one per run) ──► finished spans ──► Exporter ──► OTLP over HTTP
//!                                      │                                        (bounded queue, one thread)
//!                                      └──► the debug bundle
//! ```
//!
//! Spans are named by their place and timed by their records, so nothing has to be remembered between processes: the
//! log is enough. Sending is the only part that knows OpenTelemetry's crates, and can be left out.

#[cfg(feature = "export")]
pub mod export;
pub mod ids;
mod span;
mod spans;

pub use ids::{Lineage, Parent, Place, SpanId, TraceId};
pub use span::{COST_ALLOWED, Kind, Link, Span, Status, Value};
pub use spans::{Detail, Envelope, RunSpans, Taken};

/// The version of the protocol that the attributes follow.
pub const PROTOCOL_VERSION: &str = "1.0";
