//! The way out: a bounded queue, and one thread that empties it.
//!
//! ```text
//!  offer (never waits) ──► queue (bounded; what does not fit is dropped and counted) ──► batches ──► collector
//!                                                                          │
//!                                                 a pause after a failure, then the same batch again
//! ```
//!
//! Whatever the collector does, runs do not notice. A thread and not a task: the client is a blocking one, since the
//! other kind needs a reactor that nobody has here.

mod exporter;
mod otlp;
mod settings;

pub use exporter::Exporter;
pub use settings::{Encoding, Endpoint, Error, Header, Settings};
