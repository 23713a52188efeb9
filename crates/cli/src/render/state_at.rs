//! A run as of one of its records: what it knew, what it remembered, which files it saw.

use std::fmt::Write as _;
use std::io;

use baton_client::StateAt;

use super::snapshot::{nodes, row_map};
use super::versioned;
use crate::output::Output;

pub(crate) fn print(output: &Output, state: &StateAt) -> io::Result<()> {
    let mut head = String::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(head, "{name:<10} {value}");
    };
    row("run", state.run_id.as_str());
    row("as of", &format!("sequence {}, {}", state.seq, state.at));
    row("status", state.status.as_str());
    if let Some(open) = &state.interrupt {
        row("waits for", &format!("{} at {}", open.kind, open.node_id));
    }
    let around = &state.around;
    row("memory", &format!("{}, version {}", around.memory_scope, around.memory_version));
    row("workspace", &format!("version {}", around.workspace_version));
    row_map(&mut head, "variables", &state.variables);
    row_map(&mut head, "channels", &state.channels);
    output.line(head.trim_end())?;
    if !state.node_states.is_empty() {
        output.line("")?;
        output.table(&nodes(&state.node_states))?;
    }
    // Ages are told as of then: "expires in 1h" must not depend on when one looks back.
    if let Some(memory) = around.memory.as_ref().filter(|entries| !entries.is_empty()) {
        output.line("")?;
        output.table(&versioned::entries(memory, state.at))?;
    }
    if let Some(files) = around.workspace.as_ref().filter(|files| !files.is_empty()) {
        output.line("")?;
        output.table(&versioned::files(files, state.at))?;
    }
    if !around.omitted.is_empty() {
        output.note(format_args!("not shown, because the key may not read it: {}", around.omitted.join(", ")));
    }
    Ok(())
}
