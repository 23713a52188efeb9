//! Another Baton as a place where workers run: the runtime's port to other hosts, spoken over HTTP.
//!
//! TLS uses the process-wide rustls provider; install one before building a [`HttpRemote`].

mod http;
mod origin;

pub use http::HttpRemote;
pub use origin::{BadAddress, origin};
