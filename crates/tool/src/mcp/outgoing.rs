//! What waits to be written to a server. A server that asks and does not read the answers, or that reads its input ever so
//! slowly, would otherwise have the host keep a task for every message: the library begins to send each of them at once.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::streamable::Fault;

/// Answers that wait to be written. With more, the server is not read: it gets no more answers by asking more. Servers
/// have little to ask here, so that an honest one does not come near.
const UNWRITTEN_ANSWERS: usize = 64;
/// Everything else that waits to be written: the calls that may be open (128), and as many again, three times, whose
/// callers have given up. With more, the connection is of no use and ends.
const UNWRITTEN_MESSAGES: usize = 512;
/// How long one message may take to be written, to its last byte. As long as connecting may take.
const WRITING: Duration = Duration::from_secs(30);

/// A transport that keeps count of what it still has to write. Ends the connection when that is hopeless.
pub(super) struct Outgoing<T> {
    inner: T,
    /// Cancelled when the other side does not read.
    stuck: CancellationToken,
    unwritten: watch::Sender<Unwritten>,
    /// Whose message is being written, where there is one stream for all of them. Its holder has a deadline.
    turn: Option<Arc<Mutex<()>>>,
}

#[derive(Default)]
struct Unwritten {
    answers: usize,
    messages: usize,
}

/// Counts a message until it is written, or nobody writes it any more.
struct Counted {
    unwritten: watch::Sender<Unwritten>,
    answer: bool,
}

impl Unwritten {
    fn of(&mut self, answer: bool) -> &mut usize {
        if answer { &mut self.answers } else { &mut self.messages }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.unwritten.send_modify(|unwritten| *unwritten.of(self.answer) -= 1);
    }
}

/// An error that says that the other side does not read.
pub(super) trait NotRead {
    fn not_read() -> Self;
}

impl NotRead for io::Error {
    fn not_read() -> Self {
        io::ErrorKind::TimedOut.into()
    }
}

impl NotRead for StreamableHttpError<Fault> {
    fn not_read() -> Self {
        Self::Client(Fault::Lost("it does not read what it is sent"))
    }
}

impl<T> Outgoing<T> {
    /// For messages that follow each other on one stream.
    pub(super) fn in_turn(inner: T, stuck: CancellationToken) -> Self {
        Self { turn: Some(Arc::default()), ..Self::at_once(inner, stuck) }
    }

    /// For messages that are sent independently of each other, each with a deadline of its own.
    pub(super) fn at_once(inner: T, stuck: CancellationToken) -> Self {
        Self { inner, stuck, unwritten: watch::Sender::default(), turn: None }
    }

    /// Counts one more message, unless there are too many.
    fn count(&self, answer: bool) -> Option<Counted> {
        let mut many = 0;
        self.unwritten.send_modify(|unwritten| {
            let of = unwritten.of(answer);
            *of += 1;
            many = *of;
        });
        let counted = Counted { unwritten: self.unwritten.clone(), answer };
        // Answers are bounded by what is read, but for the few whose questions were read already.
        let hopeless = !answer && many > UNWRITTEN_MESSAGES;
        (!hopeless).then_some(counted)
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Outgoing<T>
where
    T::Error: NotRead,
{
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let counted = self.count(answer);
        // Made here even if it is not awaited: the transport takes note of what is cancelled when it is told, not later.
        let sending = self.inner.send(item);
        let (stuck, turn) = (self.stuck.clone(), self.turn.clone());
        async move {
            let Some(_counted) = counted else {
                stuck.cancel();
                return Err(T::Error::not_read());
            };
            let Some(turn) = turn else { return sending.await };
            let _turn = turn.lock().await;
            // Half a message may have been written: nothing may follow it, even if there were room again.
            if stuck.is_cancelled() {
                return Err(T::Error::not_read());
            }
            timeout(WRITING, sending).await.unwrap_or_else(|_| {
                stuck.cancel();
                Err(T::Error::not_read())
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let mut unwritten = self.unwritten.subscribe();
        // An error would mean that nobody counts any more, and we do.
        let _ = unwritten.wait_for(|unwritten| unwritten.answers < UNWRITTEN_ANSWERS).await;
        self.inner.receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        timeout(WRITING, self.inner.close()).await.unwrap_or_else(|_| Err(T::Error::not_read()))
    }
}
