//! Calls over HTTP: two tools for agents ([`fetch`](HttpFetch), [`request`](HttpRequest)) and one effect for workflows
//! ([`HttpEffect`]), all through the same guard, with the same bounds, and with the same care for secrets.
//!
//! Whatever the other side answers is an answer, be it `404`: the call was made and this is what came of it. A failure
//! is a call that never arrived, and a call that may have arrived and was never answered is [`Called::Unknown`].

mod answer;
mod client;
mod effect;
mod outgoing;
mod request;
mod tools;

pub use client::{HttpClient, HttpOptions};
pub use effect::{HttpEffect, Verified};
pub use request::HttpCall;
pub use tools::{FETCH, HttpFetch, HttpRequest, REQUEST};
