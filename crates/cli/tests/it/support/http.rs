//! HTTP as it is on the wire: exact headers, exact statuses, and the difference between an answer that ended and one
//! that broke off. One connection a request, so a test never shares state with the one before.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Longer than anything a loaded machine needs; reached only when the host hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Status, headers in lower case, and the body as it arrived.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The body of an answer that must have this status.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The content type of a good answer.
    #[track_caller]
    pub fn expect_type(&self) -> String {
        assert_eq!(self.status, 200, "{}", self.text());
        self.header("content-type").unwrap_or_default().to_owned()
    }

    /// Checks that this is a refusal in the closed envelope, and gives the whole envelope.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        let body = self.json();
        super::audit::envelope(&body);
        assert_eq!(body["error"], code, "{body}");
        body
    }
}

/// What is asked of a host at `address` (`host:port`).
pub fn head(method: &str, path: &str, address: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        text.push_str(&format!("Content-Type: application/json\r\nContent-Length: {}\r\n", body.len()));
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Sends a request and reads the whole answer. An answer that breaks off is an error, never a short answer.
pub fn exchange(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Answer> {
    let mut response = open(address, &head(method, path, address, headers, body))?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk()? {
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status: response.status, headers: response.headers, body })
}

pub fn open(address: &str, request: &[u8]) -> io::Result<Response<BufReader<TcpStream>>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(request)?;
    Response::read(BufReader::new(stream))
}

enum Framing {
    Length(usize),
    Chunked,
}

/// An answer whose body is still arriving.
pub struct Response<R> {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    reader: R,
    framing: Framing,
    done: bool,
}

impl<R: BufRead> Response<R> {
    pub fn read(mut reader: R) -> io::Result<Self> {
        let status = line(&mut reader)?.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(broken)?;
        let mut headers = Vec::new();
        loop {
            let line = line(&mut reader)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(broken)?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = find(&headers, "content-length").and_then(|length| length.parse().ok());
        let framing = match length {
            Some(length) => Framing::Length(length),
            None if find(&headers, "transfer-encoding") == Some("chunked") => Framing::Chunked,
            None => Framing::Length(0),
        };
        Ok(Self { status, headers, reader, framing, done: false })
    }

    /// The next piece of the body; `None` only after the host has said that it is whole.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.done {
            return Ok(None);
        }
        let length = match self.framing {
            Framing::Length(length) => {
                self.done = true;
                length
            }
            Framing::Chunked => usize::from_str_radix(&line(&mut self.reader)?, 16).map_err(|_| broken())?,
        };
        let mut piece = vec![0; length];
        self.reader.read_exact(&mut piece)?;
        if matches!(self.framing, Framing::Chunked) {
            line(&mut self.reader)?;
            if length == 0 {
                self.done = true;
                return Ok(None);
            }
        }
        Ok(Some(piece))
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    match line.strip_suffix("\r\n") {
        Some(whole) => Ok(whole.to_owned()),
        None => Err(broken()),
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the answer broke off")
}
