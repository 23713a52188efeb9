//! What goes wrong, and when it is over.

use std::sync::atomic::Ordering;

use baton_store::RunRow;

use crate::host::Life;
use crate::simulation::{Place, Simulation};
use crate::workflows::REFUSED;

const MS: i64 = 1000;

impl Simulation {
    fn soon(&self, low_ms: u64, high_ms: u64) -> i64 {
        self.ground.time.now() + i64::try_from(self.trouble.between(low_ms, high_ms)).unwrap_or(0) * MS
    }

    /// The next fault: of one host, of its disk, of its line, or of the network between them.
    pub(crate) fn break_something(&mut self) {
        self.next_fault = self.soon(100, 3_000);
        let index = usize::try_from(self.trouble.below(self.places.len() as u64)).unwrap_or(0);
        let what = self.trouble.below(100);
        self.note("faults", 1);
        match what {
            0..=24 => {
                let polls = self.trouble.between(1, [3, 40, 600][usize::try_from(self.trouble.below(3)).unwrap_or(0)]);
                self.kills.insert(index, polls);
                self.trace.add(format!("host {index} is to be killed after {polls} more polls"));
            }
            25..=29 => {
                // A part of what was queued is durable.
                if let Some(Place::Up(life)) = self.places.get_mut(index) {
                    let most = self.trouble.below(1 + life.store.waiting() as u64);
                    life.store.release_some(usize::try_from(most).unwrap_or(0));
                    self.kill(index, "with a part of what was queued on disk");
                }
            }
            30..=39 => {
                let until = self.soon(100, 25_000);
                self.with(index, "is frozen", |life| life.frozen_until = Some(until));
            }
            40..=49 => {
                let until = self.soon(100, 15_000);
                self.with(index, "is cut off from its disk", |life| {
                    life.line.set_cut(true);
                    life.store.fail_after(0);
                    life.trouble_until = Some(until);
                });
            }
            50..=61 => {
                let (until, commits) = (self.soon(50, 6_000), self.trouble.below(6));
                self.with(index, "has a disk that fails soon", |life| {
                    life.store.fail_after(commits);
                    life.trouble_until = Some(until);
                });
            }
            62..=71 => self.with(index, "does not hear that its next commit is durable", |life| {
                life.store.lose_answers(1);
            }),
            72..=76 => {
                let questions = self.trouble.between(1, 4);
                self.with(index, "gets no answer to its next questions", |life| life.line.lose(questions));
            }
            77..=81 => {
                let until = self.soon(500, 8_000);
                self.with(index, "has a slow disk", |life| {
                    life.line.slow.store(true, Ordering::Relaxed);
                    life.trouble_until = Some(until);
                });
            }
            82..=89 => self.refuse_a_tree(),
            90..=94 => {
                let micros = i64::try_from(self.trouble.between(10, 30_000)).unwrap_or(0) * MS;
                let micros = if self.trouble.percent(30) { -micros } else { micros };
                self.with(index, &format!("finds its clock {micros}us further"), |life| {
                    life.clock.jump(micros);
                    life.clock.wake_due();
                });
            }
            _ => {
                if let Some(news) = &self.news {
                    news.moody.store(true, Ordering::Relaxed);
                    self.moody_until = Some(self.soon(1_000, 10_000));
                    self.trace.add("news between hosts is lost, late and doubled");
                }
            }
        }
    }

    fn with(&mut self, index: usize, what: &str, change: impl FnOnce(&mut Life)) {
        if let Some(Place::Up(life)) = self.places.get_mut(index) {
            change(life);
            life.quiet = false;
            self.trace.add(format!("host {index} {what}"));
        }
    }

    /// Storage takes nothing more of one run: that tree is in trouble, and nobody else.
    fn refuse_a_tree(&mut self) {
        let rows = self.ground.observer.runs();
        let at_work: Vec<RunRow> = rows.into_iter().filter(|row| !row.status.is_terminal()).collect();
        let preferred = at_work.iter().find(|row| row.workflow.as_str() == REFUSED).cloned();
        let Some(row) = preferred.or_else(|| self.trouble.pick(&at_work).cloned()) else { return };
        self.ground.observer.store().refuse_run(&row.id);
        let until = self.soon(500, 20_000);
        self.trace.add(format!("storage refuses records of {} ({})", row.id, row.workflow));
        self.refused.insert(row.id, until);
    }

    /// What has lasted long enough is over.
    pub(crate) fn end_troubles(&mut self) {
        let now = self.now();
        for (index, place) in self.places.iter_mut().enumerate() {
            let Place::Up(life) = place else { continue };
            if life.frozen_until.is_some_and(|until| until <= now) {
                life.frozen_until = None;
                life.executor.advance(std::mem::take(&mut life.behind));
                life.clock.wake_due();
                life.quiet = false;
                self.trace.add(format!("host {index} goes on"));
            }
            if life.trouble_until.is_some_and(|until| until <= now) {
                life.trouble_until = None;
                life.make_well();
                life.quiet = false;
                self.trace.add(format!("host {index} has a good disk again"));
            }
        }
        let over: Vec<_> =
            self.refused.iter().filter(|(_, until)| **until <= now).map(|(run, _)| run.clone()).collect();
        for run in over {
            self.refused.remove(&run);
            self.ground.observer.store().accept_run(&run);
            self.trace.add(format!("storage takes records of {run} again"));
        }
        if self.moody_until.is_some_and(|until| until <= now) {
            self.moody_until = None;
            if let Some(news) = &self.news {
                news.moody.store(false, Ordering::Relaxed);
            }
        }
    }
}
