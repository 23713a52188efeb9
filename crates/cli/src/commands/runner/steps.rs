//! The steps that a runner knows: what it has in hand, and what became of those before. A step is not begun twice under one
//! number.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use baton_client::{DispatchFrame, StepName};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

/// How many steps that are over are remembered, and how much of their outputs.
const MOST_OVER: usize = 10_000;
const MOST_OVER_BYTES: usize = 64 * 1024 * 1024;

type Pair = (String, String);

#[derive(Default)]
pub(super) struct Steps {
    in_hand: HashMap<Pair, InHand>,
    over: HashMap<Pair, Over>,
    /// Oldest first.
    order: VecDeque<Pair>,
    bytes: usize,
    /// The greatest number of those that were forgotten.
    forgot: Option<u64>,
}

struct InHand {
    seq: u64,
    cancelled: CancellationToken,
}

struct Over {
    seq: u64,
    /// None where nobody knows what came of it.
    output: Option<(Arc<Map<String, Value>>, usize)>,
}

/// What is to be done about a step that the host sends.
pub(super) enum Next {
    Begin(CancellationToken),
    /// It is in hand already, or was told to be over.
    Nothing,
    /// It is over, and the host has not heard of it.
    Answer(Arc<Map<String, Value>>),
    /// It was begun before and did not come to an end.
    Unknown,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It was lost on its way here.
    NeverHad,
    /// It may have been one of those that are remembered no longer.
    Forgotten,
}

impl Steps {
    pub(super) fn sent(&mut self, frame: &DispatchFrame) -> Next {
        let pair = (frame.run_id.clone(), frame.step_id.clone());
        if let Some(here) = self.in_hand.get_mut(&pair) {
            here.seq = here.seq.max(frame.seq);
            return Next::Nothing;
        }
        match self.over.get_mut(&pair) {
            Some(Over { seq, output: Some((output, _)) }) => {
                *seq = (*seq).max(frame.seq);
                return Next::Answer(Arc::clone(output));
            }
            Some(Over { seq, output: None }) if *seq >= frame.seq => return Next::Unknown,
            // The host knows that nobody knows, and wants it made again.
            Some(Over { output: None, .. }) | None => {}
        }
        let cancelled = CancellationToken::new();
        self.in_hand.insert(pair, InHand { seq: frame.seq, cancelled: cancelled.clone() });
        Next::Begin(cancelled)
    }

    /// It is over. Says under which number the host knows it.
    pub(super) fn ended(&mut self, run: &str, step: &str, output: Option<Arc<Map<String, Value>>>) -> Option<u64> {
        let pair = (run.to_owned(), step.to_owned());
        let InHand { seq, .. } = self.in_hand.remove(&pair)?;
        let output = output.map(|output| {
            let bytes = serde_json::to_string(&*output).map_or(0, |text| text.len());
            (output, bytes)
        });
        self.bytes += output.as_ref().map_or(0, |(_, bytes)| *bytes);
        if self.over.insert(pair.clone(), Over { seq, output }).is_none() {
            self.order.push_back(pair);
        }
        while self.order.len() > MOST_OVER || self.bytes > MOST_OVER_BYTES {
            let Some(oldest) = self.order.pop_front() else { break };
            let Some(Over { seq, output }) = self.over.remove(&oldest) else { continue };
            self.forgot = self.forgot.max(Some(seq));
            self.bytes -= output.map_or(0, |(_, bytes)| bytes);
        }
        Some(seq)
    }

    /// Certainly not done, so it may begin again.
    pub(super) fn released(&mut self, run: &str, step: &str) -> Option<u64> {
        self.in_hand.remove(&(run.to_owned(), step.to_owned())).map(|here| here.seq)
    }

    /// The host believes that this runner has it. Says what became of it, where it does not; after that it is not begun under
    /// this number.
    pub(super) fn missing(&mut self, run: &str, step: &str, seq: u64) -> Option<Missing> {
        let pair = (run.to_owned(), step.to_owned());
        if self.in_hand.contains_key(&pair) || self.over.contains_key(&pair) {
            return None;
        }
        let missing = if self.forgot >= Some(seq) { Missing::Forgotten } else { Missing::NeverHad };
        self.over.insert(pair.clone(), Over { seq, output: None });
        self.order.push_back(pair);
        Some(missing)
    }

    pub(super) fn cancel(&self, name: &StepName) {
        if let Some(here) = self.in_hand.get(&(name.run_id.clone(), name.step_id.clone())) {
            here.cancelled.cancel();
        }
    }

    pub(super) fn in_hand(&self) -> Vec<(String, String, u64)> {
        self.in_hand.iter().map(|((run, step), here)| (run.clone(), step.clone(), here.seq)).collect()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_hand.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(seq: u64) -> DispatchFrame {
        let (run_id, step_id) = ("run_a".to_owned(), "s".to_owned());
        DispatchFrame { run_id, step_id, seq, kind: "tool".to_owned(), tool: None, inputs: Map::new() }
    }

    #[test]
    fn a_step_is_begun_once_under_one_number() {
        let mut steps = Steps::default();
        assert!(matches!(steps.sent(&frame(1)), Next::Begin(_)));
        assert!(matches!(steps.sent(&frame(1)), Next::Nothing), "sent again");
        assert!(matches!(steps.sent(&frame(3)), Next::Nothing), "under another number");
        assert_eq!(steps.ended("run_a", "s", Some(Arc::default())), Some(3));
        assert!(matches!(steps.sent(&frame(3)), Next::Answer(_)));
        assert!(steps.is_idle());
    }

    #[test]
    fn one_that_came_to_no_end_is_begun_again_only_if_the_host_says_so() {
        let mut steps = Steps::default();
        assert!(matches!(steps.sent(&frame(1)), Next::Begin(_)));
        assert_eq!(steps.ended("run_a", "s", None), Some(1));
        assert!(matches!(steps.sent(&frame(1)), Next::Unknown));
        assert!(matches!(steps.sent(&frame(2)), Next::Begin(_)));
        assert_eq!(steps.released("run_a", "s"), Some(2));
        assert_eq!(steps.ended("run_a", "s", None), None);
    }

    #[test]
    fn one_that_was_lost_on_its_way_is_given_back_and_not_begun_if_it_arrives_after_all() {
        let mut steps = Steps::default();
        assert_eq!(steps.missing("run_a", "s", 4), Some(Missing::NeverHad));
        assert_eq!(steps.missing("run_a", "s", 4), None, "said once");
        assert!(matches!(steps.sent(&frame(4)), Next::Unknown), "too late");
        assert!(matches!(steps.sent(&frame(5)), Next::Begin(_)));
        assert_eq!(steps.missing("run_a", "s", 5), None, "in hand");
        for n in 0..=MOST_OVER {
            let one = DispatchFrame { step_id: n.to_string(), ..frame(n as u64) };
            assert!(matches!(steps.sent(&one), Next::Begin(_)));
            steps.ended("run_a", &one.step_id, Some(Arc::default()));
        }
        assert_eq!(steps.missing("run_a", "0", 0), Some(Missing::Forgotten), "it may have been begun");
    }

    #[test]
    fn what_is_over_is_forgotten_in_the_end() {
        let mut steps = Steps::default();
        for n in 0..=MOST_OVER {
            let one = DispatchFrame { step_id: n.to_string(), ..frame(n as u64) };
            assert!(matches!(steps.sent(&one), Next::Begin(_)));
            steps.ended("run_a", &one.step_id, Some(Arc::default()));
        }
        assert_eq!((steps.over.len(), steps.order.len()), (MOST_OVER, MOST_OVER));
    }
}
