//! No message of a server is larger than a bound, however it arrives. A server that goes beyond it loses its
//! connection: what else it would say cannot be told from what it was saying. Nor does it say more in a second than a
//! bound ([`Pace`]): beyond it, it is read later.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep_until};

use super::paced::Pace;

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
    pace: Pace,
    /// It said too much for now.
    resting: Option<Pin<Box<Sleep>>>,
}

impl<R> Lines<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, meter: Meter::default(), pace: Pace::default(), resting: None }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Lines<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(resting) = &mut self.resting {
            ready!(resting.as_mut().poll(cx));
            self.resting = None;
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let until = self.pace.observe(&buf.filled()[before..]);
        self.resting = until.map(|until| Box::pin(sleep_until(until)));
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
    pace: Pace,
) -> impl Stream<Item = Result<Bytes, io::Error>> + Send
where
    E: std::error::Error + Send + Sync + 'static,
{
    let mut meter = Meter::default();
    stream.then(move |chunk| {
        let until = chunk.as_ref().ok().and_then(|chunk| pace.observe(chunk));
        let observed = chunk.map_err(io::Error::other).and_then(|chunk| {
            let fits = meter.observe(&chunk, |line| line == 0);
            fits.map(|()| chunk).map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))
        });
        async move {
            if let Some(until) = until {
                sleep_until(until).await;
            }
            observed
        }
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

    /// Time stands still but for whoever sleeps, so what passed is what the reader waited.
    #[tokio::test(start_paused = true)]
    async fn a_flood_of_messages_is_read_at_a_bounded_rate() {
        let start = tokio::time::Instant::now();
        let flood = tokio::io::repeat(b'\n').take(100_000);
        let mut lines = Lines::new(flood);
        let mut chunk = [0; 1000];
        let mut read = 0;
        while let Ok(count @ 1..) = lines.read(&mut chunk).await {
            read += count;
        }
        assert_eq!((read, start.elapsed().as_secs()), (100_000, 9));
        // The same over HTTP.
        let start = tokio::time::Instant::now();
        let chunks = (0..100).map(|_| Ok::<_, io::Error>(Bytes::from_static(&[b'\n'; 1000])));
        let passed = events(futures_util::stream::iter(chunks), Pace::default())
            .filter(|chunk| std::future::ready(chunk.is_ok()));
        assert_eq!((passed.count().await, start.elapsed().as_secs()), (100, 9));
    }

    /// A message that is too large ends its stream; what it cost is not forgotten with it.
    #[tokio::test(start_paused = true)]
    async fn streams_that_are_made_again_have_one_pace() {
        let (pace, start) = (Pace::default(), tokio::time::Instant::now());
        let large = Bytes::from(vec![b'x'; MESSAGE_BYTES + 1]);
        for _ in 0..12 {
            let one = futures_util::stream::iter([Ok::<_, io::Error>(large.clone())]);
            let mut one = std::pin::pin!(events(one, pace.clone()));
            assert!(one.next().await.is_some_and(|chunk| chunk.is_err()));
        }
        assert_eq!(start.elapsed().as_secs(), 3, "four in a second");
    }

    #[tokio::test]
    async fn an_event_ends_at_an_empty_line() {
        let count = async |chunks: Vec<&'static str>, times: usize| {
            let chunks: Vec<_> = chunks.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
            let all = chunks.iter().cycle().take(chunks.len() * times).cloned().map(Ok::<_, io::Error>);
            events(futures_util::stream::iter(all.collect::<Vec<_>>()), Pace::default())
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
