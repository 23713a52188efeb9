//! The links to everything outside, for operators.

use baton_model::{Connection, Secret, Timestamp, redact};
use baton_runtime::Host;
use serde::Serialize;
use utoipa::ToSchema;

/// A link to an MCP server, a model provider or another host.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownConnection {
    /// `mcp`, `provider` or `remote`.
    kind: &'static str,
    /// As the configuration names it.
    name: String,
    /// `idle` (nobody has needed it yet), `connecting`, `connected` or `failed`.
    state: &'static str,
    /// Since when it works, or does not.
    #[schema(value_type = String, format = DateTime)]
    since: Timestamp,
    /// How many tools an MCP server offers, or offered before it was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
    /// Which of its tools an MCP server does not get to offer, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<String>,
    /// Failures in a row.
    failures: u32,
    /// When it is tried again. Providers and other hosts are tried when a run needs them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How the process of an MCP server ended: `exit code 3`, `signal 9`.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<String>,
    /// The last lines that process wrote to its standard error, without secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stderr: Vec<String>,
}

/// All of them, by kind and name. They are clean already, of what each of them knew to be secret; now also of the rest.
pub(super) fn shown(host: &Host) -> Vec<ShownConnection> {
    let secrets = &host.options().secrets;
    host.connections().into_iter().map(|connection| clean(connection, secrets)).collect()
}

fn clean(connection: Connection, secrets: &[Secret]) -> ShownConnection {
    ShownConnection {
        kind: connection.kind.as_str(),
        name: connection.name,
        state: connection.state.as_str(),
        since: connection.since,
        tools: connection.tools,
        left_out: connection.left_out.map(|left_out| redact(&left_out, secrets)),
        failures: connection.failures,
        next_attempt: connection.next_attempt,
        reason: connection.reason.map(|reason| redact(&reason, secrets)),
        exit: connection.exit,
        stderr: connection.stderr.iter().map(|line| redact(line, secrets)).collect(),
    }
}
