//! Settings of a loop: what makes it go round, and how often at most.

use super::config::Config;
use crate::expr::Expression;
use crate::plan::ports::Origin;
use crate::plan::problem::Problem;

const DEFAULT_MOST: u64 = 1000;

/// `core.loop`: the head of a loop. Each visit either sends another round through the port `body` or leaves through
/// every other port. The body comes back to the head by an edge.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) rounds: Rounds,
    pub(crate) most: u64,
    /// A variable that receives the current item (or the round's number).
    pub(crate) into: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Rounds {
    Count(u64),
    While(Expression),
    Items(Expression),
}

impl Loop {
    pub(crate) fn compile(config: &Config<'_>) -> Result<Self, Vec<Problem>> {
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

    pub(crate) fn stores(&self) -> Option<(&str, Origin<'_>)> {
        Some((self.into.as_deref()?, Origin::Expression(self.items()?)))
    }
}
