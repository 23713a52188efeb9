//! What clients may do with connections over HTTP/2, frame by frame.

use crate::support;

use serde_json::json;
use support::served::{Served, short};
use support::{PATIENCE, Site};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const INITIAL_WINDOW_SIZE: u16 = 4;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;

struct Client(TcpStream);

#[derive(Debug)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Client {
    /// With a window of this many bytes for every answer.
    async fn new(served: &Served, window: u32) -> Self {
        let mut client = Self(served.connect().await);
        client.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let mut settings = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        settings.extend(window.to_be_bytes());
        client.send(SETTINGS, 0, 0, &settings).await.unwrap();
        client
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> std::io::Result<()> {
        self.0.write_all(&frame(kind, flags, stream, payload)).await
    }

    /// GET, with the key of all scopes.
    async fn get(&mut self, stream: u32, path: &str) -> std::io::Result<()> {
        self.send(HEADERS, END_STREAM | END_HEADERS, stream, &header(path)).await
    }

    /// The next frame; `None` when the host has closed the connection.
    async fn next(&mut self) -> Option<Frame> {
        let reading = async {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.ok()?;
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            self.0.read_exact(&mut payload).await.ok()?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            Some(Frame { kind: head[3], flags: head[4], stream, payload })
        };
        let frame = tokio::time::timeout(PATIENCE, reading).await.expect("the host says something")?;
        if frame.kind == SETTINGS && frame.flags & ACK == 0 {
            let _ = self.send(SETTINGS, ACK, 0, &[]).await;
        }
        Some(frame)
    }

    /// Waits for a frame like this one.
    async fn until(&mut self, wanted: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let frame = self.next().await.expect("the connection stays open");
            if wanted(&frame) {
                return frame;
            }
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Without a table: every field is literal, but for those that everybody has.
fn header(path: &str) -> Vec<u8> {
    // GET, http, and a path that is not remembered.
    let mut block = vec![0x82, 0x86, 0x04];
    let mut text = |text: &str| {
        block.push(u8::try_from(text.len()).unwrap());
        block.extend(text.as_bytes());
    };
    text(path);
    block.push(0x00);
    for part in ["authorization", "Bearer full"] {
        block.push(u8::try_from(part.len()).unwrap());
        block.extend(part.as_bytes());
    }
    block
}

fn code(frame: &Frame) -> u32 {
    u32::from_be_bytes(frame.payload[..4].try_into().unwrap())
}

async fn waiting() -> (Site, String) {
    let site = Site::open().await;
    site.register("slow", "core.delay", json!({"ms": 600_000})).await;
    let run = site.start("slow").await;
    (site, run)
}

#[tokio::test]
async fn a_connection_has_a_bounded_number_of_requests_at_once() {
    let (site, run) = waiting().await;
    let served = Served::limited(&site.host, |limits| limits.http2_streams = 10).await;
    let mut client = Client::new(&served, 1 << 20).await;
    // Once the client knows the number it is refused what is above it.
    client.until(|frame| frame.kind == SETTINGS && frame.flags & ACK == ACK).await;
    for place in 0..30 {
        client.get(2 * place + 1, &format!("/v1/runs/{run}/events")).await.unwrap();
    }
    let mut refused = 0;
    let mut open = 0;
    while refused + open < 30 {
        let frame = client.next().await.expect("the connection stays open");
        refused += u32::from(frame.kind == RST_STREAM && code(&frame) == REFUSED_STREAM);
        open += u32::from(frame.kind == HEADERS);
    }
    assert_eq!((open, refused), (10, 20));
    served.stop().await;
}

#[tokio::test]
async fn requests_that_are_taken_back_at_once_end_the_connection_and_nothing_else() {
    let (site, run) = waiting().await;
    let served = Served::limited(&site.host, |_| {}).await;
    let mut client = Client::new(&served, 1 << 20).await;
    let path = format!("/v1/runs/{run}/events");
    let mut sent = 0u32;
    // As much in one go as it takes.
    let mut burst = Vec::new();
    let block = header(&path);
    for place in 0..20_000u32 {
        let stream = 2 * place + 1;
        burst.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &block));
        burst.extend(frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
    }
    for piece in burst.chunks(16 * 1024) {
        if client.0.write_all(piece).await.is_err() {
            break;
        }
        sent += 1;
    }
    // The host closes it; it says so first if the client reads in time.
    loop {
        match client.next().await {
            Some(frame) if frame.kind == GOAWAY => {
                assert_ne!(u32::from_be_bytes(frame.payload[4..8].try_into().unwrap()), 0)
            }
            Some(_) => {}
            None => break,
        }
    }
    assert!(sent > 0);
    assert_eq!(served.get("/health", &[]).await.status, 200);
    served.stop().await;
}

#[tokio::test]
async fn a_header_list_without_end_is_cut_off() {
    let site = Site::open().await;
    let served = Served::limited(&site.host, |_| {}).await;
    let mut client = Client::new(&served, 1 << 20).await;
    client.send(HEADERS, END_STREAM, 1, &header("/health")).await.unwrap();
    let mut filler = vec![0x00, 1, b'a', 0x7f, 0x81, 0x7e];
    filler.extend([b'x'; 16_000]);
    let mut pieces = 0;
    while client.send(CONTINUATION, 0, 1, &filler).await.is_ok() {
        pieces += 1;
        assert!(pieces < 100_000, "it goes on for ever");
    }
    assert_eq!(served.get("/health", &[]).await.status, 200);
    served.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_not_taken_is_ended_alone() {
    let (site, run) = waiting().await;
    let served = Served::limited(&site.host, |limits| limits.write = short(300)).await;
    // No room for a single byte of any answer.
    let mut client = Client::new(&served, 0).await;
    client.get(1, &format!("/v1/runs/{run}/events")).await.unwrap();
    client.until(|frame| frame.kind == HEADERS && frame.stream == 1).await;
    let ended = client.until(|frame| frame.kind == RST_STREAM).await;
    assert_eq!(ended.stream, 1);
    // The connection goes on: here is room for one answer.
    let mut asked = frame(HEADERS, END_STREAM | END_HEADERS, 3, &header("/health"));
    asked.extend(frame(WINDOW_UPDATE, 0, 3, &1000u32.to_be_bytes()));
    client.0.write_all(&asked).await.unwrap();
    let answer = client.until(|frame| frame.kind == DATA && frame.stream == 3).await;
    assert_eq!(answer.payload, b"{\"status\":\"ok\"}");
    served.stop().await;
}

#[tokio::test]
async fn pings_do_not_keep_an_idle_connection() {
    let site = Site::open().await;
    let served = Served::limited(&site.host, |limits| limits.idle = short(400)).await;
    let mut client = Client::new(&served, 1 << 20).await;
    client.get(1, "/health").await.unwrap();
    client.until(|frame| frame.kind == DATA).await;
    let mut pings = 0;
    loop {
        let _ = client.send(6, 0, 0, &[0; 8]).await;
        pings += 1;
        assert!(pings < 10_000, "pings keep it open");
        match client.next().await {
            Some(frame) if frame.kind == GOAWAY => break,
            Some(_) => tokio::time::sleep(short(5)).await,
            None => break,
        }
    }
    served.stop().await;
}
