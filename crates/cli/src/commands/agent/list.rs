use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::table;

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let found = context.client()?.agents().await?;
    let output = &context.output;
    if output.is_json() {
        output.json(&found)?;
        return Ok(Exit::Ok);
    }
    if found.agents.is_empty() {
        output.note("no agents are installed");
        output.hint("baton pack install FILE.tgz --packs DIR");
        return Ok(Exit::Ok);
    }
    let mut rows = table(&["AGENT", "CLASS", "TOOLS", "PACK", "NOTE"]);
    for agent in &found.agents {
        let lacks = agent.degraded.iter().chain(&agent.degraded_memory_dimensions).cloned().collect::<Vec<_>>();
        rows.add_row([
            agent.agent_id.clone(),
            agent.model_class.clone(),
            agent.tool_allowlist.len().to_string(),
            format!("{}@{}", agent.pack_name, agent.pack_version),
            if lacks.is_empty() { String::new() } else { format!("lacks {}", lacks.join(", ")) },
        ]);
    }
    output.table(&rows)?;
    if let Some(first) = found.agents.first() {
        output.hint(format_args!("baton agent show {}", first.agent_id));
    }
    Ok(Exit::Ok)
}
