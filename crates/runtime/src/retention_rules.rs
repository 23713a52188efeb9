//! Which trees the operator wants to keep. Nothing is pruned by itself unless somebody says so.

use std::collections::BTreeMap;

use baton_model::{RunStatus, Timestamp, WorkflowId};
use baton_store::KeptTree;

/// How long a tree is kept after its end at least, where the operator names no other time: what hosts of the protocol
/// promise in production.
pub const RETENTION_WINDOW_MS: u64 = 7 * 24 * 3600 * 1000;

/// What may be pruned without anybody asking. Of each tenant by itself: nobody's runs go because somebody else has many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// How long a tree is kept after its end, whatever the rules say.
    pub window_ms: u64,
    /// For workflows that have no rule of their own, all of them together.
    pub general: RetentionRule,
    pub workflows: BTreeMap<WorkflowId, RetentionRule>,
}

/// A tree goes if any of these says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetentionRule {
    /// How long after its end.
    pub max_age_ms: Option<u64>,
    /// How many trees keep their logs, the newest.
    pub max_runs: Option<u64>,
    /// About how many bytes of logs, the newest.
    pub max_bytes: Option<u64>,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self { window_ms: RETENTION_WINDOW_MS, general: RetentionRule::default(), workflows: BTreeMap::new() }
    }
}

/// Why a tree goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetentionReason {
    Age,
    Count,
    Size,
}

impl RetentionReason {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Age => "age",
            Self::Count => "count",
            Self::Size => "size",
        }
    }
}

impl RetentionRule {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn counts(&self) -> bool {
        self.max_runs.is_some() || self.max_bytes.is_some()
    }
}

impl RetentionPolicy {
    /// Whether anything is ever pruned.
    pub fn is_on(&self) -> bool {
        self.rules().any(|rule| !rule.is_empty())
    }

    fn rules(&self) -> impl Iterator<Item = &RetentionRule> {
        std::iter::once(&self.general).chain(self.workflows.values())
    }

    /// Trees that were created after this need not be looked at: none of them goes, and none counts.
    pub(crate) fn newest(&self, now: Timestamp) -> Option<Timestamp> {
        if self.rules().any(RetentionRule::counts) {
            return None;
        }
        let youngest = self.rules().filter_map(|rule| rule.max_age_ms).min().unwrap_or(u64::MAX);
        Some(before(now, youngest.max(self.window_ms)))
    }
}

/// A walk over the trees of one tenant, newest first, and what was kept so far.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    policy: &'a RetentionPolicy,
    now: Timestamp,
    /// What a record takes, about.
    record_bytes: u64,
    kept: BTreeMap<Option<&'a WorkflowId>, Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    trees: u64,
    bytes: u64,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(policy: &'a RetentionPolicy, now: Timestamp, record_bytes: u64) -> Self {
        Self { policy, now, record_bytes, kept: BTreeMap::new() }
    }

    /// Why the next tree goes, if it does. One that has not ended, or ended within the window, stays and counts.
    pub(crate) fn judge(&mut self, tree: &KeptTree) -> Option<RetentionReason> {
        let own = self.policy.workflows.get_key_value(&tree.workflow);
        let rule = own.map_or(&self.policy.general, |(_, rule)| rule);
        let kept = self.kept.entry(own.map(|(workflow, _)| workflow)).or_default();
        let bytes = tree.records.saturating_mul(self.record_bytes);
        let over = |kept: u64, more: u64, most: Option<u64>| most.is_some_and(|most| kept.saturating_add(more) > most);
        let older = |age: u64| tree.updated_at < before(self.now, age);
        let reason = if !ended(tree.status) || !older(self.policy.window_ms) {
            None
        } else if rule.max_age_ms.is_some_and(older) {
            Some(RetentionReason::Age)
        } else if over(kept.trees, 1, rule.max_runs) {
            Some(RetentionReason::Count)
        } else if over(kept.bytes, bytes, rule.max_bytes) {
            Some(RetentionReason::Size)
        } else {
            None
        };
        if reason.is_none() {
            kept.trees += 1;
            kept.bytes = kept.bytes.saturating_add(bytes);
        }
        reason
    }
}

fn ended(status: RunStatus) -> bool {
    status.is_terminal()
}

fn before(now: Timestamp, millis: u64) -> Timestamp {
    let micros = i64::try_from(millis.saturating_mul(1000)).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros().saturating_sub(micros).max(0))
}

#[cfg(test)]
mod tests {
    use baton_model::RunId;
    use baton_store::RunPlace;

    use super::*;

    const DAY: u64 = 24 * 3600 * 1000;

    fn day(days: u64) -> Timestamp {
        Timestamp::from_micros((days * DAY * 1000).cast_signed())
    }

    /// One that ended on a day.
    fn tree(workflow: &str, on: u64, status: RunStatus) -> KeptTree {
        KeptTree {
            place: RunPlace { created_at: day(on), position: on },
            id: RunId::new(format!("run_{on}")),
            workflow: WorkflowId::new(workflow),
            status,
            updated_at: day(on),
            runs: 1,
            records: 10,
        }
    }

    fn judged(policy: &RetentionPolicy, trees: &[KeptTree]) -> Vec<Option<RetentionReason>> {
        let mut walk = Walk::new(policy, day(100), 100);
        trees.iter().map(|tree| walk.judge(tree)).collect()
    }

    #[test]
    fn each_rule_takes_the_oldest_and_none_takes_what_is_in_the_window() {
        use RetentionReason::{Age, Count, Size};
        let done = RunStatus::Completed;
        let trees = [99, 95, 80, 70, 60, 10].map(|on| tree("w", on, done));
        let rule = |general: RetentionRule| RetentionPolicy { general, ..RetentionPolicy::default() };
        let none = RetentionRule::default();
        assert_eq!(judged(&rule(none), &trees), [None; 6], "nothing by itself");
        assert!(!rule(none).is_on());
        let age = rule(RetentionRule { max_age_ms: Some(30 * DAY), ..none });
        assert_eq!(judged(&age, &trees), [None, None, None, None, Some(Age), Some(Age)]);
        assert_eq!(age.newest(day(100)), Some(day(70)), "what is younger is not looked at");
        let count = rule(RetentionRule { max_runs: Some(3), ..none });
        assert_eq!(judged(&count, &trees), [None, None, None, Some(Count), Some(Count), Some(Count)]);
        assert_eq!(count.newest(day(100)), None);
        let size = rule(RetentionRule { max_bytes: Some(4000), ..none });
        assert_eq!(judged(&size, &trees), [None, None, None, None, Some(Size), Some(Size)]);
        let nothing = RetentionRule { max_age_ms: Some(0), max_runs: Some(0), max_bytes: Some(0) };
        assert_eq!(judged(&rule(nothing), &trees)[..2], [None, None], "those of the last seven days stay");
        assert_eq!(rule(nothing).newest(day(100)), None);
        let hasty = rule(RetentionRule { max_age_ms: Some(DAY), ..none });
        assert_eq!(hasty.newest(day(100)), Some(day(93)), "the window is longer");
    }

    #[test]
    fn what_has_not_ended_stays_and_counts() {
        let general = RetentionRule { max_runs: Some(1), ..RetentionRule::default() };
        let policy = RetentionPolicy { general, ..RetentionPolicy::default() };
        let trees = [tree("w", 50, RunStatus::WaitingApproval), tree("w", 40, RunStatus::Failed)];
        assert_eq!(judged(&policy, &trees), [None, Some(RetentionReason::Count)]);
    }

    #[test]
    fn a_workflow_with_a_rule_of_its_own_counts_by_itself() {
        let most = |max_runs| RetentionRule { max_runs: Some(max_runs), ..RetentionRule::default() };
        let workflows =
            BTreeMap::from([(WorkflowId::new("noisy"), most(1)), (WorkflowId::new("kept"), RetentionRule::default())]);
        let policy = RetentionPolicy { general: most(2), workflows, ..RetentionPolicy::default() };
        let done = RunStatus::Completed;
        let trees =
            [("noisy", 50), ("w", 49), ("noisy", 48), ("kept", 47), ("v", 46), ("kept", 45), ("w", 44), ("kept", 1)]
                .map(|(workflow, on)| tree(workflow, on, done));
        let count = Some(RetentionReason::Count);
        assert_eq!(judged(&policy, &trees), [None, None, count, None, None, None, count, None]);
    }
}
