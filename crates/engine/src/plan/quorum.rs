//! A dispatch that waits for more workers than a rule names can never be satisfied. Where the rule says so in so many
//! words, that is known before any run starts.

use baton_model::Decision;

use super::compiled::Plan;
use super::node_config::Kind;
use super::problem::Problem;

/// For new definitions only: those on record are read all the same, and their runs fail where they always did.
pub(super) fn check(plan: &Plan) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (node, supervisor) in plan.nodes.iter().enumerate() {
        let (Kind::Supervisor(supervisor), Some(dispatch)) = (&supervisor.kind, supervisor.partner) else { continue };
        let Kind::Dispatch(dispatch) = &plan.nodes[dispatch].kind else { continue };
        let quorum = dispatch.join.quorum as usize;
        for (place, decision) in supervisor.rule_decisions() {
            let Decision::NextWorker { next_worker_ids, .. } = decision else { continue };
            let named = next_worker_ids.len();
            if named < quorum {
                let message = format!(
                    "This names {named} of the {quorum} workers that the dispatch's quorum needs. Name more of them, or \
                     lower `joinPolicy.quorum`."
                );
                problems.push(Problem::at(format!("/nodes/{node}/config/{place}/nextWorkerIds"), message));
            }
        }
    }
    problems
}
