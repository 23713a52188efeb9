//! Reading an event stream frame by frame.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader};
use std::net::TcpStream;

use serde_json::Value;

use super::http::Response;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frame {
    pub id: Option<u64>,
    pub event: String,
    pub data: Value,
}

pub struct Stream<R = BufReader<TcpStream>> {
    response: Response<R>,
    text: String,
    ready: VecDeque<Frame>,
}

impl<R: BufRead> Stream<R> {
    /// Checks that the host really streams.
    pub fn new(response: Response<R>) -> Self {
        assert_eq!(response.status, 200, "{:?}", response.headers);
        let header = |name: &str| response.headers.iter().find(|(known, _)| known == name).map(|(_, v)| v.as_str());
        assert_eq!(header("content-type"), Some("text/event-stream"));
        assert_eq!(header("cache-control"), Some("no-cache"));
        Self { response, text: String::new(), ready: VecDeque::new() }
    }

    /// The next frame; `None` when the host closed the stream, an error when it broke off.
    pub fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return Ok(Some(frame));
            }
            let Some(chunk) = self.response.chunk()? else {
                assert!(self.text.is_empty(), "the stream ended inside a frame: {}", self.text);
                return Ok(None);
            };
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some(end) = self.text.find("\n\n") {
                let block: String = self.text.drain(..end + 2).collect();
                self.ready.extend(frame(&block));
            }
        }
    }

    /// Every frame until the host closes the stream.
    pub fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().unwrap() {
            frames.push(frame);
        }
        frames
    }
}

/// `None` for a comment.
fn frame(block: &str) -> Option<Frame> {
    let mut frame = Frame::default();
    let mut data = String::new();
    for line in block.lines().filter(|line| !line.starts_with(':')) {
        match line.split_once(": ") {
            Some(("id", id)) => frame.id = Some(id.parse().expect("ids are sequences")),
            Some(("event", event)) => frame.event = event.to_owned(),
            Some(("data", text)) => data.push_str(text),
            _ => assert!(line.is_empty(), "a stream line nobody knows: {line}"),
        }
    }
    if data.is_empty() {
        return None;
    }
    frame.data = serde_json::from_str(&data).unwrap();
    Some(frame)
}

/// The sequences of frames that hold one event each; checks that id, name and event agree.
pub fn sequences(frames: &[Frame]) -> Vec<u64> {
    frames
        .iter()
        .map(|frame| {
            assert_eq!(frame.data["sequence"].as_u64(), frame.id, "{frame:?}");
            assert_eq!(frame.data["type"], frame.event.as_str(), "{frame:?}");
            frame.id.unwrap()
        })
        .collect()
}
