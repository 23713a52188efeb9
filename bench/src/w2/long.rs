//! A loop of thousands of turns: the last ones must cost what the first ones cost.

use anyhow::{Context, Result};
use jiff::Timestamp;

use super::{WORKER, check_value, handed_through, start};
use crate::Sizes;
use crate::api;
use crate::definition::supervised;
use crate::http::Connection;
use crate::log;
use crate::report::{Bound, Report};

const WORKFLOW: &str = "bench-long-loop";
/// Turns at either end that are compared.
const WINDOW: usize = 100;
/// A hundred turns are over in milliseconds, so one interruption of the process distorts a single comparison.
const ROUNDS: usize = 3;
const TARGET_RATIO: f64 = 1.5;
/// Milliseconds per turn.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pace {
    /// Means over the first turns, the last turns and all of them.
    first: f64,
    last: f64,
    all: f64,
    /// The median turn of the last ones over that of the first ones: what is left of the ratio without outliers.
    typical_ratio: f64,
}

impl Pace {
    fn ratio(self) -> f64 {
        self.last / self.first.max(f64::EPSILON)
    }
}

pub(super) async fn measure(report: &mut Report, connection: &mut Connection, sizes: &Sizes) -> Result<()> {
    let turns = sizes.long_loop_turns;
    api::register(connection, &supervised(WORKFLOW, turns, &[WORKER], handed_through())).await?;
    let mut paces = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let run = start(connection, WORKFLOW, round as u64).await?;
        // Asking for the state again and again would grow more expensive with each worker it lists.
        check_value(&api::follow(connection, &run).await?, (round + turns) as u64)?;
        let events = log::read(connection, &run).await?;
        let decided = log::turns(&events, turns).with_context(|| format!("the log of {run}"))?;
        paces.push(pace(&decided, WINDOW).context("the loop is too short to compare its ends")?);
    }
    paces.sort_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    let median = paces[paces.len() / 2];
    let mut section = report.section("W2");
    section.show(format!("long: a loop of {turns} turns"), 1e3 / median.all, "turns/s");
    section.show(format!("  per turn, turns 1 to {WINDOW}"), median.first, "ms");
    section.show(format!("  per turn, turns {} to {turns}", turns - WINDOW + 1), median.last, "ms");
    section.judge("  last turns over first turns", median.ratio(), "x", Bound::AtMost(TARGET_RATIO));
    let ratios: Vec<String> = paces.iter().map(|pace| format!("{:.2}", pace.ratio())).collect();
    section.note(format!("median of {}", ratios.join(", ")));
    section.show("  the same, median turns", median.typical_ratio, "x");
    Ok(())
}

/// A turn lasts from its own decision to the next one's. `None` if there are fewer than `window` turns.
fn pace(decided: &[Timestamp], window: usize) -> Option<Pace> {
    let turns = decided.len().checked_sub(1)?;
    let mean = |from: usize, to: usize| {
        let micros = decided.get(to)?.as_microsecond() - decided.get(from)?.as_microsecond();
        Some(micros as f64 / 1e3 / (to - from) as f64)
    };
    let typical = |from: usize, to: usize| {
        let mut micros: Vec<i64> =
            decided[from..=to].windows(2).map(|pair| pair[1].as_microsecond() - pair[0].as_microsecond()).collect();
        micros.sort_unstable();
        micros[micros.len() / 2] as f64
    };
    let late = turns.checked_sub(window).filter(|_| window > 0)?;
    let typical_ratio = typical(late, turns) / typical(0, window).max(1.0);
    Some(Pace { first: mean(0, window)?, last: mean(late, turns)?, all: mean(0, turns)?, typical_ratio })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_loop_are_compared_by_the_time_between_decisions() {
        // Turns of 1, 1, 2, 3 and 3 ms.
        let decided: Vec<Timestamp> =
            [0, 1000, 2000, 4000, 7000, 10_000].map(|at| Timestamp::from_microsecond(at).unwrap()).into();
        let pace = pace(&decided, 2).unwrap();
        assert_eq!(pace, Pace { first: 1.0, last: 3.0, all: 2.0, typical_ratio: 3.0 });
        assert_eq!(pace.ratio(), 3.0);
    }

    #[test]
    fn one_slow_turn_moves_the_mean_and_not_the_median() {
        // Turns of 1, 1, 1, 1, 1 and 7 ms.
        let decided: Vec<Timestamp> =
            [0, 1000, 2000, 3000, 4000, 5000, 12_000].map(|at| Timestamp::from_microsecond(at).unwrap()).into();
        let pace = pace(&decided, 3).unwrap();
        assert_eq!((pace.ratio(), pace.typical_ratio), (3.0, 1.0));
    }

    #[test]
    fn a_loop_shorter_than_the_window_has_no_pace() {
        let decided = [Timestamp::UNIX_EPOCH; 3];
        assert!(pace(&decided, 3).is_none());
        assert!(pace(&decided, 2).is_some());
        assert!(pace(&[], 1).is_none());
    }
}
