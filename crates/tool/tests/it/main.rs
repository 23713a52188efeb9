//! Tools, over loopback and in process. One binary for all of it: a test more costs no link more.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod http;
mod mcp_hostile;
mod mcp_http;
mod mcp_in_process;
mod mcp_processes;
mod mcp_stdio;
mod support;
#[path = "support/test_server.rs"]
mod test_server;
mod toolbox;
