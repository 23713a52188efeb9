use std::fmt::Write as _;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Id of the agent
    agent: String,
}

pub(crate) async fn run(args: Args, context: &Context) -> Result<Exit, Failure> {
    let agent = context.client()?.agent(&args.agent).await.map_err(super::refused::refused)?;
    let output = &context.output;
    if output.is_json() {
        output.json(&agent)?;
        return Ok(Exit::Ok);
    }
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "{name:<18} {value}");
        }
    };
    row("agent", agent.agent_id.clone());
    row("name", agent.label);
    row("for", agent.description.unwrap_or_default());
    row("pack", format!("{} {}", agent.pack_name, agent.pack_version));
    row("model class", agent.model_class);
    row("tools", if agent.tool_allowlist.is_empty() { "none".to_owned() } else { agent.tool_allowlist.join(", ") });
    row("asks a human below", agent.confidence_threshold.map(|n| n.to_string()).unwrap_or_default());
    row("schemas", if agent.has_handoff_schemas { "task or answer is checked".to_owned() } else { "none".to_owned() });
    row(
        "lacks here",
        agent.degraded.into_iter().chain(agent.degraded_memory_dimensions).collect::<Vec<_>>().join(", "),
    );
    output.line(text.trim_end())?;
    output.hint(format_args!("baton agent run {} --task '…' --wait", agent.agent_id));
    Ok(Exit::Ok)
}
