use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use baton_model::tool::ToolUse;
use baton_model::{ModelReply, ModelRequest, StopReason, Usage};
use baton_provider::{DeltaSink, Provider, ProviderFault};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use super::witness::Witness;

type Thought = dyn Fn(&ModelRequest) -> Result<ModelReply, ProviderFault> + Send + Sync;

/// Answers the same request with the same words, whoever asks and however often.
pub struct Brain {
    think: Box<Thought>,
    pub asked: Mutex<Vec<ModelRequest>>,
    /// Nobody is answered before this is true.
    pub open: watch::Sender<bool>,
    pub begun: watch::Sender<usize>,
    abandoned: AtomicUsize,
    pub witness: Witness,
}

impl Brain {
    pub fn new(think: impl Fn(&ModelRequest) -> ModelReply + Send + Sync + 'static) -> Arc<Self> {
        Self::moody(move |request| Ok(think(request)))
    }

    /// One that does not always answer.
    pub fn moody(
        think: impl Fn(&ModelRequest) -> Result<ModelReply, ProviderFault> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            think: Box::new(think),
            asked: Mutex::default(),
            open: watch::Sender::new(true),
            begun: watch::Sender::new(0),
            abandoned: AtomicUsize::new(0),
            witness: Witness::default(),
        })
    }

    pub fn count(&self) -> usize {
        self.asked.lock().len()
    }

    /// Calls that were dropped before they were answered.
    pub fn abandoned(&self) -> usize {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// Waits until this many calls have been made.
    pub async fn called(&self, times: usize) {
        let _ = self.begun.subscribe().wait_for(|count| *count >= times).await;
    }

    /// Everything that was said to the model in its latest call, one message a line.
    pub fn heard(&self) -> String {
        heard(self.asked.lock().last().unwrap())
    }
}

pub fn heard(request: &ModelRequest) -> String {
    let lines = request.semantic.messages.iter().map(|message| match message.content() {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[async_trait]
impl Provider for Brain {
    async fn call(&self, request: &ModelRequest, _: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        self.witness.asked(request).await;
        self.asked.lock().push(request.clone());
        self.begun.send_modify(|count| *count += 1);
        let waiting = Waiting::on(&self.abandoned);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
        waiting.over();
        (self.think)(request)
    }
}

/// Counts a caller that went away.
pub(super) struct Waiting<'a>(Option<&'a AtomicUsize>);

impl<'a> Waiting<'a> {
    pub(super) fn on(abandoned: &'a AtomicUsize) -> Self {
        Self(Some(abandoned))
    }

    pub(super) fn over(mut self) {
        self.0 = None;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(abandoned) = self.0 {
            abandoned.fetch_add(1, Ordering::SeqCst);
        }
    }
}

pub fn says(content: impl Into<String>) -> ModelReply {
    ModelReply::text(content, Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() })
}

pub fn says_json(value: &Value) -> ModelReply {
    says(value.to_string())
}

pub fn wants(tools: &[(&str, Value)]) -> ModelReply {
    let uses = tools.iter().enumerate().map(|(i, (name, arguments))| ToolUse {
        id: format!("use-{i}"),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    });
    ModelReply { tools: uses.collect(), stop: StopReason::ToolUse, ..says("") }
}

/// How many answers of tools the model has been told so far.
pub fn told(request: &ModelRequest) -> usize {
    request.semantic.messages.iter().filter(|message| message.role() == "tool").count()
}
