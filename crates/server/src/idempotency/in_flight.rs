//! Requests that are running now, so that equal ones wait for the first instead of running beside it.

use std::collections::HashMap;
use std::sync::Arc;

use baton_model::Digest;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::reply::Reply;

type Running = HashMap<Digest, (Digest, watch::Receiver<Option<Reply>>)>;

#[derive(Default)]
pub(crate) struct InFlight(Arc<Mutex<Running>>);

pub(super) enum Entry {
    /// Nobody runs this key: the caller does, and holds the place until dropped.
    Lead(Lead),
    /// The same request is running.
    Follow(Follow),
    /// The key is in use for something else.
    Clash,
}

impl InFlight {
    pub(super) fn enter(&self, key: &Digest, request: &Digest) -> Entry {
        let mut running = self.0.lock();
        match running.get(key) {
            Some((asked, answer)) if asked == request => Entry::Follow(Follow(answer.clone())),
            Some(_) => Entry::Clash,
            None => {
                let (send, receive) = watch::channel(None);
                running.insert(key.clone(), (request.clone(), receive));
                Entry::Lead(Lead { running: Arc::clone(&self.0), key: key.clone(), send })
            }
        }
    }
}

pub(super) struct Lead {
    running: Arc<Mutex<Running>>,
    key: Digest,
    send: watch::Sender<Option<Reply>>,
}

impl Lead {
    /// Hands the answer to everybody who waits.
    pub(super) fn publish(self, reply: Reply) {
        self.send.send_replace(Some(reply));
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.running.lock().remove(&self.key);
    }
}

pub(super) struct Follow(watch::Receiver<Option<Reply>>);

impl Follow {
    /// The leader's answer; `None` when it ended without one that may be shared.
    pub(super) async fn answer(mut self) -> Option<Reply> {
        match self.0.wait_for(Option::is_some).await {
            Ok(reply) => reply.clone(),
            Err(_) => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    fn digest(text: &str) -> Digest {
        Digest::of_bytes(text)
    }

    #[tokio::test]
    async fn equal_requests_share_and_different_ones_clash() {
        let in_flight = InFlight::default();
        let Entry::Lead(lead) = in_flight.enter(&digest("k"), &digest("r")) else { panic!("first leads") };
        let Entry::Follow(follow) = in_flight.enter(&digest("k"), &digest("r")) else { panic!("second follows") };
        assert!(matches!(in_flight.enter(&digest("k"), &digest("other")), Entry::Clash));
        assert!(matches!(in_flight.enter(&digest("k2"), &digest("other")), Entry::Lead(_)));
        lead.publish(Reply::new(StatusCode::CREATED, "{}"));
        assert_eq!(follow.answer().await.unwrap().status(), StatusCode::CREATED);
        assert!(matches!(in_flight.enter(&digest("k"), &digest("r")), Entry::Lead(_)));
    }

    #[tokio::test]
    async fn a_leader_that_gives_up_lets_the_next_one_try() {
        let in_flight = InFlight::default();
        let Entry::Lead(lead) = in_flight.enter(&digest("k"), &digest("r")) else { panic!("first leads") };
        let Entry::Follow(follow) = in_flight.enter(&digest("k"), &digest("r")) else { panic!("second follows") };
        drop(lead);
        assert!(follow.answer().await.is_none());
        assert!(matches!(in_flight.enter(&digest("k"), &digest("r")), Entry::Lead(_)));
    }
}
