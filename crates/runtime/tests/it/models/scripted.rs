//! A provider in the test's hands: it notes who asks, answers when it is let, and notices when nobody waits any more.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use baton_model::{ModelReply, ModelRequest, Usage};
use baton_provider::{DeltaSink, Provider, ProviderFault};
use parking_lot::Mutex;
use tokio::sync::watch;

pub struct Scripted {
    /// Keys of the calls that were made, in order.
    keys: Mutex<Vec<String>>,
    open: watch::Sender<bool>,
    called: watch::Sender<usize>,
    abandoned: Arc<AtomicUsize>,
    answers: Mutex<Vec<Result<ModelReply, ProviderFault>>>,
}

impl Scripted {
    /// One that answers at once.
    pub fn prompt() -> Arc<Self> {
        Self::new(true)
    }

    /// One that answers nobody until it is let.
    pub fn slow() -> Arc<Self> {
        Self::new(false)
    }

    fn new(open: bool) -> Arc<Self> {
        Arc::new(Self {
            keys: Mutex::default(),
            open: watch::Sender::new(open),
            called: watch::Sender::new(0),
            abandoned: Arc::default(),
            answers: Mutex::default(),
        })
    }

    /// The answers to give first, the last of them first; then it answers well.
    pub fn first(&self, answer: Result<ModelReply, ProviderFault>) {
        self.answers.lock().push(answer);
    }

    pub fn let_answer(&self, open: bool) {
        self.open.send_replace(open);
    }

    pub fn keys(&self) -> Vec<String> {
        self.keys.lock().clone()
    }

    /// Calls that were dropped before they were answered.
    pub fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::Acquire)
    }

    /// Waits until it was called this often.
    pub async fn called(&self, times: usize) {
        let _ = self.called.subscribe().wait_for(|now| *now >= times).await;
    }
}

pub fn valid() -> ModelReply {
    ModelReply::text(r#"{"valid":true}"#, Usage { input_tokens: 2, output_tokens: 1, ..Usage::default() })
}

/// Counts a call that nobody waited for.
struct Waiting(Option<Arc<AtomicUsize>>);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(count) = self.0.take() {
            count.fetch_add(1, Ordering::AcqRel);
        }
    }
}

#[async_trait]
impl Provider for Scripted {
    async fn call(&self, request: &ModelRequest, _: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        self.keys.lock().push(request.key.clone());
        self.called.send_modify(|count| *count += 1);
        let mut waiting = Waiting(Some(Arc::clone(&self.abandoned)));
        let _ = self.open.subscribe().wait_for(|open| *open).await;
        waiting.0 = None;
        self.answers.lock().pop().unwrap_or_else(|| Ok(valid()))
    }
}
