//! Everything that is wrong with a pack.

use baton_agent::Problem;
use baton_model::code;

use crate::context::Context;
use crate::exit::Exit;

/// Says everything that is wrong with a pack.
pub(super) fn refused(problems: &[Problem], context: &Context) -> Exit {
    if context.output.is_json() {
        let all: Vec<_> = problems
            .iter()
            .map(
                |problem| serde_json::json!({"code": problem.code, "place": problem.place, "message": problem.message}),
            )
            .collect();
        // Nobody can be told when stdout is gone.
        let _ = context.output.json(&serde_json::json!({"ok": false, "problems": all}));
    } else {
        problems.iter().for_each(|problem| context.output.error(&problem.to_string()));
        if problems.iter().any(|problem| problem.code == code::PACK_PEER_DEPENDENCY_MISSING) {
            context
                .output
                .hint("use --ignore-requirement KEY if the agents can work without it; they then show as degraded");
        }
    }
    Exit::Failed
}
