//! What each dispatch of a step has asked so far, as far as this process knows. The log says which answers there are; this
//! says which of them the program was given, so that it gets each of them once, in their order.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use baton_model::{Digest, code};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::MOST_OPEN;
use crate::{Error, ErrorKind};

/// How many dispatches are remembered. The oldest is forgotten: it begins with its first answer again.
const MOST_DISPATCHES: usize = 10_000;
/// How many different requests of one dispatch are remembered: more than a step may record.
const MOST_REQUESTS: usize = 2_000;

#[derive(Default)]
pub(crate) struct Dispatches {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Calls in progress, by step.
    open: HashMap<String, usize>,
    known: HashMap<Digest, HashMap<Digest, Progress>>,
    /// Oldest first.
    order: VecDeque<Digest>,
}

/// One request of one dispatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Progress {
    /// Answers of earlier dispatches that it was given.
    given: usize,
    in_flight: usize,
    /// Times it was told that there is no answer.
    failed: usize,
}

/// Where an answer is to come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// This record has it.
    Log(u64),
    /// Nobody has answered it: this is the how-many-eth answer to the same request, from 0.
    Model(usize),
}

/// A call in progress.
pub(super) struct Open {
    all: Arc<Dispatches>,
    step: String,
}

/// A model is being asked.
pub(super) struct Asking {
    all: Arc<Dispatches>,
    dispatch: Digest,
    request: Digest,
    answered: bool,
}

impl Dispatches {
    pub(super) fn enter(self: &Arc<Self>, step: &str) -> Result<Open, Error> {
        let mut state = self.state.lock();
        let open = state.open.entry(step.to_owned()).or_default();
        if *open >= MOST_OPEN {
            let message = format!("This step asks {MOST_OPEN} models at the same time already.");
            let error = Error::new(ErrorKind::TooMany, code::RATE_LIMITED, message);
            return Err(error.with("limit", MOST_OPEN).with("retryAfter", 1));
        }
        *open += 1;
        Ok(Open { all: Arc::clone(self), step: step.to_owned() })
    }

    /// Waits until nobody asks this any more.
    pub(super) async fn settled(&self, dispatch: &Digest, request: &Digest) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Before looking, so that an end in between is not missed.
            changed.as_mut().enable();
            if self.state.lock().progress(dispatch, request).is_none_or(|progress| progress.in_flight == 0) {
                return;
            }
            changed.await;
        }
    }

    /// Where the next answer to this request comes from. `earlier` and `own` are the records of answers to it: of dispatches
    /// before, and of this one. Whoever has recorded one of its own has been given all that came before.
    pub(super) fn next(
        self: &Arc<Self>,
        dispatch: &Digest,
        request: &Digest,
        (earlier, own): (&[u64], &[u64]),
        retried: bool,
    ) -> (Source, Option<Asking>) {
        let mut state = self.state.lock();
        let progress = state.progress_mut(dispatch, request);
        if retried && progress.failed > 0 {
            progress.failed -= 1;
        } else if retried {
            // What it was given last did not reach it.
            let last = own.last().or_else(|| earlier.get(progress.given.checked_sub(1)?));
            if let Some(seq) = last {
                return (Source::Log(*seq), None);
            }
        }
        if own.is_empty()
            && let Some(seq) = earlier.get(progress.given)
        {
            progress.given += 1;
            return (Source::Log(*seq), None);
        }
        let place = earlier.len() + own.len() + progress.in_flight;
        progress.in_flight += 1;
        let (dispatch, request) = (dispatch.clone(), request.clone());
        let asking = Asking { all: Arc::clone(self), dispatch, request, answered: false };
        (Source::Model(place), Some(asking))
    }
}

impl State {
    fn progress(&self, dispatch: &Digest, request: &Digest) -> Option<Progress> {
        self.known.get(dispatch)?.get(request).copied()
    }

    fn progress_mut(&mut self, dispatch: &Digest, request: &Digest) -> &mut Progress {
        if !self.known.contains_key(dispatch) {
            self.order.push_back(dispatch.clone());
            if self.order.len() > MOST_DISPATCHES
                && let Some(oldest) = self.order.pop_front()
            {
                self.known.remove(&oldest);
            }
        }
        let requests = self.known.entry(dispatch.clone()).or_default();
        if requests.len() >= MOST_REQUESTS && !requests.contains_key(request) {
            requests.retain(|_, progress| progress.in_flight > 0 || progress.given > 0);
        }
        requests.entry(request.clone()).or_default()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut state = self.all.state.lock();
        if let Some(open) = state.open.get_mut(&self.step) {
            *open -= 1;
            if *open == 0 {
                state.open.remove(&self.step);
            }
        }
    }
}

impl Asking {
    /// The answer is on the log.
    pub(super) fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut state = self.all.state.lock();
        if let Some(progress) = state.known.get_mut(&self.dispatch).and_then(|all| all.get_mut(&self.request)) {
            progress.in_flight = progress.in_flight.saturating_sub(1);
            progress.failed += usize::from(!self.answered);
        }
        drop(state);
        self.all.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Digest {
        Digest::of_bytes(text)
    }

    #[test]
    fn answers_of_earlier_dispatches_are_given_once_each_and_in_their_order() {
        let all = Arc::new(Dispatches::default());
        let (first, second, request) = (digest("1"), digest("2"), digest("q"));
        let next = |dispatch: &Digest, earlier: &[u64], own: &[u64], retried| {
            all.next(dispatch, &request, (earlier, own), retried).0
        };
        assert_eq!(next(&first, &[4, 7], &[], false), Source::Log(4));
        assert_eq!(next(&first, &[4, 7], &[], true), Source::Log(4), "it did not arrive");
        assert_eq!(next(&first, &[4, 7], &[], false), Source::Log(7));
        assert_eq!(next(&first, &[4, 7], &[], false), Source::Model(2));
        assert_eq!(next(&second, &[4, 7], &[], false), Source::Log(4), "another dispatch begins anew");
        assert_eq!(next(&second, &[4, 7], &[9], false), Source::Model(3), "it has had all of them");
    }

    #[test]
    fn who_was_told_that_there_is_no_answer_asks_again_and_who_heard_nothing_gets_the_last() {
        let all = Arc::new(Dispatches::default());
        let (dispatch, request) = (digest("1"), digest("q"));
        let (source, asking) = all.next(&dispatch, &request, (&[], &[]), false);
        assert_eq!(source, Source::Model(0));
        asking.unwrap_or_else(|| unreachable!()).answered();
        let (source, asking) = all.next(&dispatch, &request, (&[], &[3]), false);
        assert_eq!(source, Source::Model(1), "asked a second time");
        drop(asking);
        let (source, asking) = all.next(&dispatch, &request, (&[], &[3]), true);
        assert_eq!(source, Source::Model(1), "that one failed");
        asking.unwrap_or_else(|| unreachable!()).answered();
        assert_eq!(all.next(&dispatch, &request, (&[], &[3, 5]), true).0, Source::Log(5));
    }

    #[test]
    fn a_step_asks_so_many_models_at_once_and_nothing_is_left_behind() {
        let all = Arc::new(Dispatches::default());
        let open: Vec<_> = (0..MOST_OPEN).filter_map(|_| all.enter("a").ok()).collect();
        assert_eq!(open.len(), MOST_OPEN);
        assert!(all.enter("a").is_err() && all.enter("b").is_ok());
        drop(open);
        assert!(all.state.lock().open.is_empty());
        for n in 0..=MOST_DISPATCHES {
            all.next(&digest(&n.to_string()), &digest("q"), (&[1], &[]), false);
        }
        let state = all.state.lock();
        assert_eq!((state.known.len(), state.order.len()), (MOST_DISPATCHES, MOST_DISPATCHES));
    }
}
