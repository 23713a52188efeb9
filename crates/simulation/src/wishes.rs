//! What clients ask for, and when.

use baton_model::RunStatus;
use baton_store::RunRow;
use serde_json::json;

use crate::clients::{Ask, go_on};
use crate::simulation::Simulation;
use crate::workflows::{BUDGETS, ROOTS, tenants};

/// How many trees clients start while things go wrong.
const MOST_STARTS: usize = 7;

impl Simulation {
    /// A client wants something, of any host.
    pub(crate) fn wish(&mut self, chaos: bool) {
        let pause = if chaos { self.wishes.between(10, 1_200) } else { 400 };
        self.next_wish = self.now() + i64::try_from(pause).unwrap_or(0) * 1000;
        if !chaos {
            return self.settle_what_is_left();
        }
        let index = usize::try_from(self.wishes.below(self.places.len() as u64)).unwrap_or(0);
        let Some(ask) = self.next_ask() else { return };
        if self.ask(index, ask.clone()) {
            // Some click twice.
            if self.wishes.percent(10) {
                let other = usize::try_from(self.wishes.below(self.places.len() as u64)).unwrap_or(0);
                self.ask(other, ask);
            }
        } else if matches!(ask, Ask::Start { .. }) {
            self.lost.push(ask);
        }
    }

    /// A name that nobody has used yet.
    fn new_name(&mut self, what: &str) -> String {
        self.named_so_far += 1;
        format!("{what}-{}", self.named_so_far)
    }

    fn next_ask(&mut self) -> Option<Ask> {
        let rows = self.ground.observer.runs();
        let roots = rows.iter().filter(|row| row.parent.is_none() && row.origin.is_none()).count();
        let tenant = if self.wishes.percent(80) { tenants()[0].clone() } else { tenants()[1].clone() };
        let any = self.wishes.pick(&rows).cloned();
        let run = |row: RunRow| (row.tenant, row.id);
        match self.wishes.below(100) {
            0..=39 => {
                if self.wishes.percent(50)
                    && let Some(again) = self.lost.pop()
                {
                    return Some(again);
                }
                if roots >= MOST_STARTS {
                    return None;
                }
                let workflow = self.wishes.pick(ROOTS)?.to_string();
                let key = self.new_name("key");
                let bounded = self.wishes.percent(if workflow.starts_with("agent") { 70 } else { 15 });
                let budget = bounded.then(|| *self.wishes.pick(BUDGETS).unwrap_or(&2_000));
                Some(Ask::Start { tenant, key, workflow, budget })
            }
            40..=64 => {
                let questions = self.ground.observer.questions();
                let question = self.wishes.pick(&questions)?;
                Some(Ask::Answer {
                    tenant: question.tenant.clone(),
                    run: question.run.clone(),
                    node: question.node.clone(),
                    interrupt: question.interrupt_id.clone(),
                    value: go_on(question),
                })
            }
            65..=68 => any.map(run).map(|(tenant, run)| Ask::Cancel { tenant, run }),
            69..=72 => any.map(run).map(|(tenant, run)| Ask::Pause { tenant, run }),
            73..=77 => any.map(run).map(|(tenant, run)| Ask::Resume { tenant, run }),
            78..=81 => any.map(|row| {
                let from = self.wishes.below(row.next_seq.max(1));
                Ask::Fork { tenant: row.tenant, run: row.id, from, replay: self.wishes.percent(50) }
            }),
            82..=84 => {
                let over = |row: &RunRow| row.parent.is_none() && row.status.is_terminal();
                let ended: Vec<RunRow> = rows.into_iter().filter(over).collect();
                let row = self.wishes.pick(&ended)?.clone();
                Some(Ask::Prune { tenant: row.tenant, run: row.id, log: self.wishes.percent(50) })
            }
            85..=87 => Some(Ask::Remember { tenant, content: self.new_name("note") }),
            88..=89 => Some(Ask::WriteFile {
                tenant,
                path: format!("file-{}.md", self.wishes.below(3)),
                content: self.new_name("text"),
            }),
            90..=91 => Some(Ask::Subscribe { tenant }),
            92..=94 => {
                let ended = |row: &RunRow| {
                    row.status.is_terminal() && row.pruned.is_none() && row.status != RunStatus::Cancelled
                };
                any.filter(ended).map(run).map(|(tenant, run)| Ask::Verify { tenant, run })
            }
            95..=96 => {
                let mut definition = baton_testkit::Flow::chain("noop", &[("a", "core.noop", json!({}))]).build();
                definition["name"] = json!(self.new_name("noop"));
                Some(Ask::Register { tenant, definition })
            }
            _ => any.map(run).map(|(tenant, run)| Ask::Look { tenant, run }),
        }
    }
}
