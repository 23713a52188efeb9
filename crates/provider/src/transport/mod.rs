//! The one way to every vendor over HTTP.
//!
//! ```text
//!  translate ──► send ──► status ──► body, piece by piece ──► decoder ──► reply
//!                 │         │           │ too long, too slow, broken off
//!                 └─ again ─┘           └─ not again here: the answer had begun, and says what it cost
//! ```
//!
//! Nothing that leaves here tells the key, the prompt, what a server said in its own words, or where it is.

mod body;
mod client;
mod limits;
mod retry;
mod retry_after;

pub(crate) use client::Transport;
pub(crate) use limits::CallLimits;
pub(crate) use retry::RetryPolicy;
