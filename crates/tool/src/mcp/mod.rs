//! Servers of the Model Context Protocol, as a source of tools.
//!
//! The operator names servers; each becomes a [`McpServer`] with a task of its own that makes the connection, keeps it
//! and makes it again, ever more slowly, when it is lost. Nobody waits for that but callers of its tools, and they not for
//! long. Its tools are offered as `mcp:<server>.<tool>`. What a server says about its own tools is
//! hearsay: descriptions and schemas are shown to models, but how dangerous a tool is and whether a call may be made
//! again is what the operator says, and without a word from the operator a tool writes and a human is asked.
//!
//! ```text
//!   settings ──► McpServer ──► supervise (task): dial ─► list tools ─► attend ─┐ ─► listing (task): keeps tools current
//!                   │  ▲                          ▲                            │ lost, or told that it is
//!            tools()│  │call                      └── wait: 0.25 s … 60 s ◄────┘
//!                   ▼  │
//!               McpTool (one for each listed tool)
//! ```
//!
//! Two transports: a child process that speaks on its standard streams, and streamable HTTP.
//! Revisions of the protocol: `2026-07-28`, which is asked for first, and where a server does not know it the handshake
//! of `2025-11-25`, by which a server may choose `2025-11-25`, `2025-06-18`, `2025-03-26` or `2024-11-05`. What was agreed
//! on shows in [`McpStatus`]. A server that wants another one is not used, and `revision` in its settings pins one.
//!
//! Not offered to servers: sampling, elicitation, roots and tasks. A tool that needs them fails.

mod backoff;
mod bounded;
mod call;
mod dial;
mod handle;
mod listing;
mod outgoing;
mod paced;
mod progress;
mod reopening;
mod result;
mod server;
mod settings;
mod start_queue;
mod status;
mod stderr_tail;
mod stdio;
mod streamable;
mod supervisor;
mod tool;

pub use dial::{InProcess, Stream};
pub use progress::{CallProgress, Followed};
pub(crate) use result::disconnection;
pub use server::McpServer;
pub use settings::{McpSettings, ToolOverride, WrongSettings};
pub use status::McpStatus;
pub use stderr_tail::STDERR_TARGET;
