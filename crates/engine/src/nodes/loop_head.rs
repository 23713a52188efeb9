//! Going round once more, or leaving.

use baton_model::{Fault, code};
use serde_json::json;

use super::outcome::{Done, Outcome};
use crate::eval_context::EvalContext;
use crate::plan::{Loop, Rounds};

impl Loop {
    pub(super) fn run(&self, context: &EvalContext<'_>) -> Outcome {
        // The visit being started is the (round + 1)-th since a loop around this one went round.
        let earlier = context.state.nodes[context.node].earlier_visits;
        let round = u64::from(context.visit.saturating_sub(earlier + 1));
        let next = match &self.rounds {
            _ if context.broken => None,
            Rounds::Count(count) => (round < *count).then(|| json!(round)),
            Rounds::While(condition) => match condition.evaluate_bool(context) {
                Ok(go) => go.then(|| json!(round)),
                Err(error) => return Outcome::Failed(condition.fault(&error)),
            },
            Rounds::Items(items) => match items.evaluate_item(context, round as usize) {
                Ok(item) => item,
                Err(error) => return Outcome::Failed(items.fault(&error)),
            },
        };
        let Some(item) = next else {
            return Outcome::Done(Done {
                outputs: [("iterations".to_owned(), json!(round))].into_iter().collect(),
                port: Some("done"),
                ..Done::default()
            });
        };
        if round >= self.most {
            return Outcome::Failed(
                Fault::new(code::LOOP_LIMIT_EXCEEDED, format!("The loop wanted more than {} rounds.", self.most))
                    .with("iterations", round + 1)
                    .with("limit", self.most),
            );
        }
        Outcome::Done(Done {
            outputs: [("iteration".to_owned(), json!(round)), ("item".to_owned(), item.clone())].into_iter().collect(),
            variables: self.into.iter().map(|name| (name.clone(), item.clone())).collect(),
            port: Some("body"),
            again: true,
            ..Done::default()
        })
    }
}
