//! Recorded answers: taken once from a real provider, and played back for ever after without a network, a key or a
//! bill. What is kept is the request's cache key and the reply. Keys are not kept apart by tenant: a recording is for tests
//! and demonstrations, not for a host that serves others.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use baton_model::{Digest, ModelReply, ModelRequest};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::stream_reply::stream_reply;
use crate::{DeltaSink, Provider, ProviderFault};

/// One line of a recording.
#[derive(Serialize, Deserialize)]
struct Line {
    key: Digest,
    /// For people who read recordings.
    provider: String,
    model: String,
    reply: ModelReply,
}

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordingProblem {
    #[error("the recording cannot be opened: {0}")]
    Io(#[from] std::io::Error),
    #[error("line {0} of the recording cannot be read; remove it, or record anew")]
    Line(usize),
}

/// Asks another provider and writes every answer down. Where the same request was answered before, the new answer
/// counts.
pub struct Recorder {
    inner: Arc<dyn Provider>,
    file: Arc<Mutex<File>>,
}

impl Recorder {
    pub fn new(inner: Arc<dyn Provider>, path: &Path) -> Result<Self, RecordingProblem> {
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        // What models said may be nobody else's business.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let mut so_far = Vec::new();
        file.read_to_end(&mut so_far)?;
        // Whoever wrote before may have been stopped in the middle of a line.
        let whole = so_far.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self { inner, file: Arc::new(Mutex::new(file)) })
    }

    /// One line, in one write.
    async fn write(&self, request: &ModelRequest, reply: &ModelReply) -> std::io::Result<()> {
        let semantic = &request.semantic;
        let (provider, model) = (semantic.provider.clone(), semantic.model.clone());
        let line = Line { key: semantic.cache_key(), provider, model, reply: reply.clone() };
        let mut bytes = serde_json::to_vec(&line)?;
        bytes.push(b'\n');
        let file = Arc::clone(&self.file);
        let written = tokio::task::spawn_blocking(move || {
            let mut file = file.lock();
            file.write_all(&bytes)?;
            file.sync_data()
        });
        written.await.unwrap_or_else(|_| Err(std::io::Error::other("the writer was stopped")))
    }
}

#[async_trait]
impl Provider for Recorder {
    async fn call(&self, request: &ModelRequest, sink: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        let reply = self.inner.call(request, sink).await?;
        // The answer is paid for: it counts, written down or not.
        if let Err(error) = self.write(request, &reply).await {
            tracing::warn!(%error, "an answer could not be recorded");
        }
        Ok(reply)
    }

    fn infers(&self) -> bool {
        self.inner.infers()
    }
}

/// Answers from a recording.
pub struct Player {
    replies: BTreeMap<Digest, ModelReply>,
}

impl Player {
    pub fn new(path: &Path) -> Result<Self, RecordingProblem> {
        let text = std::fs::read_to_string(path)?;
        let mut replies = BTreeMap::new();
        for (i, line) in text.split_inclusive('\n').enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match serde_json::from_str::<Line>(line) {
                Ok(line) => {
                    replies.insert(line.key, line.reply);
                }
                // Cut off while it was written; it never counted.
                Err(_) if !line.ends_with('\n') => {}
                Err(_) => return Err(RecordingProblem::Line(i + 1)),
            }
        }
        Ok(Self { replies })
    }
}

#[async_trait]
impl Provider for Player {
    async fn call(&self, request: &ModelRequest, sink: &dyn DeltaSink) -> Result<ModelReply, ProviderFault> {
        let key = request.semantic.cache_key();
        let Some(reply) = self.replies.get(&key) else {
            let why = format!(
                "the recording has no answer for this request ({key}); record it with the provider's recording mode `record`"
            );
            return Err(ProviderFault::Rejected(why));
        };
        stream_reply(reply, sink);
        Ok(reply.clone())
    }

    fn infers(&self) -> bool {
        false
    }
}
