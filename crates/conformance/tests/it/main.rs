//! What the test mode says of itself. What its endpoints do is tested over HTTP, in the server's tests.
#![allow(clippy::unwrap_used)]

mod discovery;
