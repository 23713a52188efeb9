//! The lightest HTTP/1.1 client that can carry the load.
//!
//! The generator shares its cores with the server it measures, so every cycle spent here is taken from the result.
//! One keep-alive connection per client, requests written in one piece, bodies decoded in place; only what our server
//! sends is understood (a content length or chunks, no redirects, no compression).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const READ_CHUNK: usize = 64 * 1024;
/// Consumed bytes are dropped from the buffer beyond this, so that a long stream does not pile up.
const COMPACT_ABOVE: usize = 256 * 1024;
/// A response head larger than this is not one of ours.
const MAX_HEAD: usize = 64 * 1024;

/// One client's connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// `Host` and `Authorization`, the same in every request.
    fixed_headers: String,
    request: Vec<u8>,
    buffer: Vec<u8>,
    /// How much of `buffer` has been consumed.
    at: usize,
    body: Vec<u8>,
}

/// A response; its body lives in the connection until the next request.
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
    /// From sending the request to the first byte of the body.
    pub(crate) first_byte: Duration,
    /// From sending the request to the end of the body.
    pub(crate) total: Duration,
}

enum Framing {
    Length(usize),
    Chunked,
}

struct Head {
    status: u16,
    framing: Framing,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr, key: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await.with_context(|| format!("cannot connect to {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            fixed_headers: format!("Host: {address}\r\nAuthorization: Bearer {key}\r\n"),
            request: Vec::with_capacity(1024),
            buffer: Vec::with_capacity(READ_CHUNK),
            at: 0,
            body: Vec::new(),
        })
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Response<'_>> {
        self.send("GET", path, "application/json", None).await
    }

    /// Reads a stream of server-sent events to its end.
    pub(crate) async fn get_stream(&mut self, path: &str) -> Result<Response<'_>> {
        self.send("GET", path, "text/event-stream", None).await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Result<Response<'_>> {
        self.send("POST", path, "application/json", Some(body)).await
    }

    pub(crate) async fn put(&mut self, path: &str, body: &str) -> Result<Response<'_>> {
        self.send("PUT", path, "application/json", Some(body)).await
    }

    async fn send(&mut self, method: &str, path: &str, accept: &str, body: Option<&str>) -> Result<Response<'_>> {
        self.request.clear();
        for part in [method, " ", path, " HTTP/1.1\r\n", &self.fixed_headers, "Accept: ", accept, "\r\n"] {
            self.request.extend_from_slice(part.as_bytes());
        }
        if let Some(body) = body {
            let length = body.len();
            self.request.extend_from_slice(
                format!("Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes(),
            );
        } else {
            self.request.extend_from_slice(b"\r\n");
        }
        self.body.clear();
        let sent_at = Instant::now();
        self.stream.write_all(&self.request).await.context("the server closed the connection")?;
        let head = self.read_head().await?;
        let first_byte = match head.framing {
            Framing::Length(length) => {
                let first_byte = self.wait_for(length.min(1), sent_at).await?;
                self.take(length).await?;
                first_byte
            }
            Framing::Chunked => self.read_chunks(sent_at).await?,
        };
        Ok(Response { status: head.status, body: &self.body, first_byte, total: sent_at.elapsed() })
    }

    /// Opens a stream of server-sent events and leaves it open: nothing else can be asked on this connection.
    pub(crate) async fn open_stream(&mut self, path: &str) -> Result<u16> {
        let headers = format!("GET {path} HTTP/1.1\r\n{}Accept: text/event-stream\r\n\r\n", self.fixed_headers);
        self.stream.write_all(headers.as_bytes()).await.context("the server closed the connection")?;
        Ok(self.read_head().await?.status)
    }

    async fn read_head(&mut self) -> Result<Head> {
        let end = loop {
            if let Some(end) = find(&self.buffer[self.at..], b"\r\n\r\n") {
                break end;
            }
            ensure!(self.buffer.len() - self.at < MAX_HEAD, "the response head does not end");
            self.fill().await?;
        };
        let head = parse_head(&self.buffer[self.at..self.at + end])?;
        self.at += end + 4;
        Ok(head)
    }

    async fn read_chunks(&mut self, sent_at: Instant) -> Result<Duration> {
        let mut first_byte = None;
        loop {
            let line = loop {
                if let Some(line) = find(&self.buffer[self.at..], b"\r\n") {
                    break line;
                }
                self.fill().await?;
            };
            let size = parse_chunk_size(&self.buffer[self.at..self.at + line])?;
            self.at += line + 2;
            if size > 0 && first_byte.is_none() {
                first_byte = Some(self.wait_for(1, sent_at).await?);
            }
            self.take(size).await?;
            self.wait_for(2, sent_at).await?;
            self.at += 2;
            if size == 0 {
                return Ok(first_byte.unwrap_or_else(|| sent_at.elapsed()));
            }
        }
    }

    /// Waits until `count` unread bytes are there.
    async fn wait_for(&mut self, count: usize, since: Instant) -> Result<Duration> {
        while self.buffer.len() - self.at < count {
            self.fill().await?;
        }
        Ok(since.elapsed())
    }

    /// Moves `count` bytes of the connection into the body.
    async fn take(&mut self, mut count: usize) -> Result<()> {
        self.body.reserve(count);
        while count > 0 {
            let ready = (self.buffer.len() - self.at).min(count);
            self.body.extend_from_slice(&self.buffer[self.at..self.at + ready]);
            self.at += ready;
            count -= ready;
            if count > 0 {
                self.fill().await?;
            }
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<()> {
        if self.at == self.buffer.len() {
            self.buffer.clear();
            self.at = 0;
        } else if self.at > COMPACT_ABOVE {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.reserve(READ_CHUNK);
        let count = self.stream.read_buf(&mut self.buffer).await.context("the connection broke")?;
        ensure!(count > 0, "the server closed the connection in the middle of a response");
        Ok(())
    }
}

impl Response<'_> {
    /// Fails with the server's own words unless the status is the expected one.
    pub(crate) fn expect(&self, status: u16, doing: &str) -> Result<&Self> {
        if self.status != status {
            let text = String::from_utf8_lossy(&self.body[..self.body.len().min(400)]);
            bail!("{doing}: expected {status}, got {}: {text}", self.status);
        }
        Ok(self)
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn parse_head(head: &[u8]) -> Result<Head> {
    let head = std::str::from_utf8(head).context("the response head is not text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).context("no status line")?.parse()?;
    let mut framing = Framing::Length(0);
    for line in lines {
        let Some((name, value)) = line.split_once(':') else { continue };
        if name.eq_ignore_ascii_case("content-length") {
            framing = Framing::Length(value.trim().parse().context("bad content-length")?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") && value.trim().eq_ignore_ascii_case("chunked") {
            framing = Framing::Chunked;
        }
    }
    Ok(Head { status, framing })
}

fn parse_chunk_size(line: &[u8]) -> Result<usize> {
    let line = std::str::from_utf8(line).context("a chunk size is not text")?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    usize::from_str_radix(digits, 16).with_context(|| format!("bad chunk size {digits:?}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers each request on one connection with the next of `responses`, byte by byte.
    async fn dribble(responses: Vec<&'static str>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            for response in responses {
                let mut request = Vec::new();
                while find(&request, b"\r\n\r\n").is_none() {
                    assert!(stream.read_buf(&mut request).await.unwrap() > 0);
                }
                for byte in response.as_bytes() {
                    stream.write_all(&[*byte]).await.unwrap();
                }
            }
        });
        address
    }

    #[tokio::test]
    async fn a_connection_is_reused_across_both_framings() {
        let address = dribble(vec![
            "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
            "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
        ])
        .await;
        let mut connection = Connection::open(address, "k").await.unwrap();
        let response = connection.get("/").await.unwrap();
        assert_eq!((response.status, response.body), (200, &b"hello"[..]));
        let response = connection.get("/").await.unwrap();
        assert_eq!((response.status, response.body), (201, &b"hello, world"[..]));
        assert!(response.first_byte <= response.total);
        let response = connection.get("/").await.unwrap();
        assert_eq!((response.status, response.body), (204, &b""[..]));
    }

    #[tokio::test]
    async fn a_body_cut_short_is_an_error() {
        let address = dribble(vec!["HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello"]).await;
        let mut connection = Connection::open(address, "k").await.unwrap();
        assert!(connection.get("/").await.is_err());
    }

    #[test]
    fn chunk_sizes_are_hexadecimal() {
        assert_eq!(parse_chunk_size(b"1aF; ext").unwrap(), 0x1af);
        assert!(parse_chunk_size(b"zz").is_err());
    }
}
