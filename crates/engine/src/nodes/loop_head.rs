use baton_model::{Fault, code};
use serde_json::json;

use super::config::Config;
use super::{Done, Outcome};
use crate::eval_context::EvalContext;
use crate::expr::Expression;
use crate::plan::{Origin, Problem};

const DEFAULT_MOST: u64 = 1000;

/// `core.loop`: the head of a loop. Each visit either sends another round through the port `body` or leaves through
/// every other port. The body comes back to the head by an edge.
#[derive(Debug)]
pub(crate) struct Loop {
    rounds: Rounds,
    most: u64,
    /// A variable that receives the current item (or the round's number).
    into: Option<String>,
}

#[derive(Debug)]
enum Rounds {
    Count(u64),
    While(Expression),
    Items(Expression),
}

impl Loop {
    pub(super) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
        config.only(&["count", "iterations", "while", "items", "maxIterations", "into"])?;
        let count = match config.whole("count", 0, u64::MAX >> 1)? {
            None => config.whole("iterations", 0, u64::MAX >> 1)?,
            some => some,
        };
        let rounds = match (count, config.expression("while")?, config.expression("items")?) {
            (Some(count), None, None) => Rounds::Count(count),
            (None, Some(condition), None) => Rounds::While(condition),
            (None, None, Some(items)) => Rounds::Items(items),
            _ => {
                return Err(config.problem("", "A loop has exactly one of `count`, `while` (CEL) and `items` (CEL)."));
            }
        };
        let most = config.whole("maxIterations", 1, u64::MAX >> 1)?;
        Ok(Self { rounds, most: most.unwrap_or(DEFAULT_MOST), into: config.text("into")? })
    }

    pub(crate) fn limit(&self) -> u64 {
        self.most
    }

    pub(crate) fn into(&self) -> Option<&str> {
        self.into.as_deref()
    }

    pub(crate) fn items(&self) -> Option<&Expression> {
        match &self.rounds {
            Rounds::Items(items) => Some(items),
            Rounds::Count(_) | Rounds::While(_) => None,
        }
    }

    pub(super) fn stores(&self) -> Option<(&str, Origin<'_>)> {
        Some((self.into.as_deref()?, Origin::Expression(self.items()?)))
    }

    pub(super) fn run(&self, scene: &EvalContext<'_>) -> Outcome {
        // The visit being started is the (round + 1)-th since a loop around this one went round.
        let earlier = scene.state.nodes[scene.node].earlier_visits;
        let round = u64::from(scene.visit.saturating_sub(earlier + 1));
        let next = match &self.rounds {
            _ if scene.broken => None,
            Rounds::Count(count) => (round < *count).then(|| json!(round)),
            Rounds::While(condition) => match condition.evaluate_bool(scene) {
                Ok(go) => go.then(|| json!(round)),
                Err(error) => return Outcome::Failed(condition.fault(&error)),
            },
            Rounds::Items(items) => match items.evaluate_item(scene, round as usize) {
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
