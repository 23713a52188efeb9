//! An answer as a stream. It is on the log before any of it is shown, so until then there are only signs of life.

use std::io;
use std::pin::Pin;

use baton_runtime::{Error, StepReply};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::OpenAiError;
use crate::sse::{KEEPALIVE, Pieces};

pub(crate) type Answering = Pin<Box<dyn Future<Output = Result<StepReply, Error>> + Send>>;

/// Writes the answer down, once.
type Write = Box<dyn FnOnce(&StepReply) -> Vec<u8> + Send>;

pub(crate) struct AnswerFeed {
    answering: Answering,
    shutdown: CancellationToken,
    write: Option<Write>,
    heartbeat_at: Instant,
}

impl AnswerFeed {
    pub(crate) fn new(
        answering: Answering,
        shutdown: CancellationToken,
        write: impl FnOnce(&StepReply) -> Vec<u8> + Send + 'static,
    ) -> Self {
        // The client is to know at once that the stream is open.
        Self { answering, shutdown, write: Some(Box::new(write)), heartbeat_at: Instant::now() }
    }
}

impl Pieces for AnswerFeed {
    fn heartbeat_at(&mut self) -> &mut Instant {
        &mut self.heartbeat_at
    }

    async fn next(&mut self) -> Option<io::Result<Vec<u8>>> {
        self.write.as_ref()?;
        let answer = tokio::select! {
            biased;
            answer = &mut self.answering => answer,
            () = self.shutdown.cancelled() => return Some(Err(io::Error::other("the host is shutting down"))),
            () = tokio::time::sleep_until(self.heartbeat_at) => return Some(Ok(KEEPALIVE.to_vec())),
        };
        let write = self.write.take()?;
        Some(Ok(match answer {
            Ok(answer) => write(&answer),
            // Their clients raise it.
            Err(error) => format!("data: {}\n\n", OpenAiError::from(error).into_body()).into_bytes(),
        }))
    }
}
