//! Tokens, runners and their steps.

use baton_store::codec::{Existing, integer};
use baton_store::{RunnerRow, RunnerWrite, StepRow, TokenRow};

use super::left::{Left, split};
use crate::insert;
use crate::statement::Statement;

/// What a transaction leaves of them. A row that is deleted is deleted before others are written: a later one of the same
/// key is as new as the first.
#[derive(Default)]
pub(super) struct Runners<'a> {
    tokens: Left<&'a str, &'a TokenRow>,
    runners: Left<&'a str, &'a RunnerRow>,
    steps: Left<&'a str, &'a StepRow>,
    /// Deleted at some time, whatever came after.
    dropped_runners: Vec<&'a str>,
    dropped_steps: Vec<&'a str>,
    forgotten: Vec<(i64, &'static str, i64)>,
}

impl<'a> Runners<'a> {
    pub(super) fn add(&mut self, write: &'a RunnerWrite) {
        match write {
            RunnerWrite::PutToken(row) => drop(self.tokens.insert(&row.id, Some(row))),
            RunnerWrite::DeleteToken { id } => drop(self.tokens.insert(id, None)),
            RunnerWrite::PutRunner(row) => {
                let there = self.runners.entry(&row.key).or_default();
                if there.is_none_or(|there| there.version < row.version) {
                    *there = Some(row);
                }
            }
            RunnerWrite::DeleteRunner { key } => {
                self.dropped_runners.push(key);
                self.runners.insert(key, None);
            }
            RunnerWrite::PutStep(row) => {
                let there = self.steps.entry(&row.key).or_default();
                if there.is_none_or(|there| there.version < row.version) {
                    *there = Some(row);
                }
            }
            RunnerWrite::DeleteStep { key } => {
                self.dropped_steps.push(key);
                self.steps.insert(key, None);
            }
            RunnerWrite::ForgetSteps { before, state, limit } => {
                let state = state.map_or("", |state| state.as_str());
                self.forgotten.push((before.as_micros(), state, integer(*limit)));
            }
        }
    }

    pub(super) fn statements(&self, all: &mut Vec<Statement<'a>>) {
        let (gone, kept) = split(&self.tokens);
        if !gone.is_empty() {
            all.push(Statement::new(DELETE_TOKENS).texts(gone));
        }
        if !kept.is_empty() {
            all.push(insert::rows(Existing::Replace, kept));
        }
        if !self.dropped_runners.is_empty() {
            all.push(Statement::new(DELETE_RUNNERS).texts(self.dropped_runners.iter().copied()));
        }
        let (_, kept) = split(&self.runners);
        if !kept.is_empty() {
            all.push(insert::rows(Existing::Newer, kept));
        }
        if !self.dropped_steps.is_empty() {
            all.push(Statement::new(DELETE_STEPS).texts(self.dropped_steps.iter().copied()));
        }
        let (_, kept) = split(&self.steps);
        if !kept.is_empty() {
            all.push(insert::rows(Existing::Newer, kept));
        }
        for (before, state, limit) in &self.forgotten {
            all.push(Statement::new(FORGET_STEPS).value(*before).value(*state).value(*limit));
        }
    }
}

pub(super) const DELETE_TOKENS: &str = "DELETE FROM tokens WHERE id = ANY($1)";
pub(super) const DELETE_RUNNERS: &str = "DELETE FROM runners WHERE key = ANY($1)";
pub(super) const DELETE_STEPS: &str = "DELETE FROM runner_steps WHERE key = ANY($1)";
pub(super) const FORGET_STEPS: &str = "DELETE FROM runner_steps WHERE key = ANY (ARRAY
    (SELECT key FROM runner_steps WHERE at < $1 AND ($2 = '' OR state = $2) ORDER BY at, key LIMIT $3))";
