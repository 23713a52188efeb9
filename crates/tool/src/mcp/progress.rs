//! What servers say of calls that are not over: how far they are. Of each call only the last word is kept.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::watch;

/// How far a call is.
#[derive(Clone, Debug, PartialEq)]
pub struct CallProgress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// The calls of one server that somebody follows, by their keys.
#[derive(Default)]
pub(super) struct Follows(Mutex<HashMap<String, Follow>>);

struct Follow {
    /// Under which the server speaks of the call, once it is made.
    token: Option<ProgressToken>,
    said: watch::Sender<Option<CallProgress>>,
}

impl Follows {
    pub(super) fn begin(self: &Arc<Self>, key: &str) -> Followed {
        let (said, news) = watch::channel(None);
        self.0.lock().insert(key.to_owned(), Follow { token: None, said });
        Followed { follows: Arc::clone(self), key: key.to_owned(), news }
    }

    /// The call was sent.
    pub(super) fn sent(&self, key: &str, token: &ProgressToken) {
        if let Some(follow) = self.0.lock().get_mut(key) {
            follow.token = Some(token.clone());
        }
    }

    pub(super) fn heard(&self, said: ProgressNotificationParam) {
        let follows = self.0.lock();
        let token = Some(&said.progress_token);
        if let Some(follow) = follows.values().find(|follow| follow.token.as_ref() == token) {
            let ProgressNotificationParam { progress, total, message, .. } = said;
            follow.said.send_replace(Some(CallProgress { progress, total, message }));
        }
    }
}

/// Follows one call until it is dropped.
pub struct Followed {
    follows: Arc<Follows>,
    key: String,
    news: watch::Receiver<Option<CallProgress>>,
}

impl Followed {
    /// What the server said last, if that is new.
    pub fn news(&mut self) -> Option<CallProgress> {
        let changed = self.news.has_changed().unwrap_or(false);
        changed.then(|| self.news.borrow_and_update().clone()).flatten()
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.follows.0.lock().remove(&self.key);
    }
}
