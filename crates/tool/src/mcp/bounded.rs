//! No message of a server is larger than a bound, however it arrives. A server that goes beyond it loses its
//! connection: what else it would say cannot be told from what it was saying.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, ReadBuf};

/// The largest message, as it arrives. Results have a smaller bound of their own; lists of tools do not.
pub(super) const MESSAGE_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
#[error("the server sent a message of more than {MESSAGE_BYTES} bytes")]
pub(super) struct TooLarge;

/// Counts the bytes of one message, from one end to the next.
#[derive(Default)]
struct Meter {
    bytes: usize,
    line: usize,
}

impl Meter {
    /// `end` is whether a finished line of this length ends a message.
    fn observe(&mut self, bytes: &[u8], end: impl Fn(usize) -> bool) -> Result<(), TooLarge> {
        for byte in bytes {
            self.bytes += 1;
            match byte {
                b'\n' => {
                    if end(self.line) {
                        self.bytes = 0;
                    }
                    self.line = 0;
                }
                // Half of a line end, or a line end of its own that is followed by the other half soon enough.
                b'\r' => {}
                _ => self.line += 1,
            }
            if self.bytes > MESSAGE_BYTES {
                return Err(TooLarge);
            }
        }
        Ok(())
    }
}

/// A reader of lines, each of them a message.
pub(super) struct Lines<R> {
    inner: R,
    meter: Meter,
}

impl<R> Lines<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, meter: Meter::default() }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let observed = self.meter.observe(&buf.filled()[before..], |_| true);
        Poll::Ready(observed.map_err(|problem| {
            // A reader that fails has read nothing.
            buf.set_filled(before);
            io::Error::new(io::ErrorKind::InvalidData, problem)
        }))
    }
}

/// A stream of server-sent events: a message ends with an empty line.
pub(super) fn events<E>(
    stream: impl Stream<Item = Result<Bytes, E>> + Send,
) -> impl Stream<Item = Result<Bytes, io::Error>> + Send
where
    E: std::error::Error + Send + Sync + 'static,
{
    let mut meter = Meter::default();
    stream.map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        meter
            .observe(&chunk, |line| line == 0)
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))?;
        Ok(chunk)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn many_messages_pass_and_one_that_is_too_large_does_not() {
        let line = [vec![b'x'; MESSAGE_BYTES - 1], vec![b'\n']].concat();
        let three = line.repeat(3);
        let mut passed = Vec::new();
        Lines::new(&three[..]).read_to_end(&mut passed).await.unwrap();
        assert_eq!(passed.len(), three.len());
        let long = vec![b'x'; MESSAGE_BYTES + 1];
        let refused = Lines::new(&long[..]).read_to_end(&mut Vec::new()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidData);
    }

    #[tokio::test]
    async fn an_event_ends_at_an_empty_line() {
        let count = async |chunks: Vec<&'static str>, times: usize| {
            let chunks: Vec<_> = chunks.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
            let all = chunks.iter().cycle().take(chunks.len() * times).cloned().map(Ok::<_, io::Error>);
            events(futures_util::stream::iter(all.collect::<Vec<_>>()))
                .filter(|chunk| std::future::ready(chunk.is_err()))
                .count()
                .await
        };
        let megabyte: &'static str = Box::leak(format!("data: {}\n", "x".repeat(1024 * 1024)).into_boxed_str());
        assert_eq!(count(vec![megabyte, "\n"], 20).await, 0);
        assert_eq!(count(vec![megabyte, "\r\n"], 20).await, 0);
        assert!(count(vec![megabyte], 20).await > 0);
    }
}
