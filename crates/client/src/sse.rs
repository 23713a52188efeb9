//! Server-sent events, line by line: bytes in, frames out. Chunk boundaries may fall anywhere, also inside a UTF-8
//! character or between CR and LF.

/// One dispatched event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) data: String,
}

#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    /// The previous chunk ended in CR: a LF that follows belongs to the same line end.
    after_cr: bool,
    id: Option<String>,
    event: Option<String>,
    data: Option<String>,
    started: bool,
}

impl Parser {
    /// Takes the next chunk and appends every frame it completes.
    pub(crate) fn feed(&mut self, chunk: &[u8], frames: &mut Vec<Frame>) {
        for &byte in chunk {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                continue;
            }
            match byte {
                b'\r' => {
                    self.after_cr = true;
                    self.end_line(frames);
                }
                b'\n' => self.end_line(frames),
                _ => self.line.push(byte),
            }
        }
    }

    fn end_line(&mut self, frames: &mut Vec<Frame>) {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let line = if self.started { &*text } else { text.strip_prefix('\u{feff}').unwrap_or(&text) };
        self.started = true;
        if line.is_empty() {
            return self.dispatch(frames);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "event" => self.event = Some(value.to_owned()),
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // An empty field name is a comment (a heartbeat); unknown fields are ignored by definition.
            _ => {}
        }
    }

    fn dispatch(&mut self, frames: &mut Vec<Frame>) {
        let event = self.event.take();
        let id = self.id.take();
        if let Some(data) = self.data.take() {
            frames.push(Frame { id, event, data });
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn frame(id: &str, event: &str, data: &str) -> Frame {
        Frame { id: Some(id.to_owned()), event: Some(event.to_owned()), data: data.to_owned() }
    }

    fn parse(chunks: &[&[u8]]) -> Vec<Frame> {
        let mut parser = Parser::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            parser.feed(chunk, &mut frames);
        }
        frames
    }

    #[test]
    fn a_stream_means_the_same_wherever_it_is_split() {
        let text = "id: 1\r\nevent: run.started\r\ndata: {\"a\":\"ü\"}\r\n\r\n:keepalive\n\nid:2\nevent:x\ndata:b\ndata: c\n\n";
        let expected = vec![frame("1", "run.started", "{\"a\":\"ü\"}"), frame("2", "x", "b\nc")];
        let bytes = text.as_bytes();
        for cut in 0..=bytes.len() {
            assert_eq!(parse(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(parse(&single), expected);
    }

    #[test]
    fn several_data_lines_are_joined() {
        assert_eq!(parse(&[b"data: a\ndata:\ndata:  b\n\n"])[0].data, "a\n\n b");
    }

    #[test]
    fn comments_and_frames_without_data_dispatch_nothing() {
        assert_eq!(parse(&[b": hello\n\nevent: lonely\n\nretry: 10\n\n"]), vec![]);
    }

    #[test]
    fn a_name_does_not_leak_into_the_next_frame() {
        let frames = parse(&[b"event: a\nid: 1\ndata: x\n\ndata: y\n\n"]);
        assert_eq!(frames[1], Frame { id: None, event: None, data: "y".to_owned() });
    }

    #[test]
    fn bare_carriage_returns_end_lines() {
        assert_eq!(parse(&[b"data: a\rdata: b\r\r"])[0].data, "a\nb");
    }

    #[test]
    fn an_unfinished_frame_is_not_dispatched() {
        assert_eq!(parse(&[b"data: a\n"]), vec![]);
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once() {
        assert_eq!(parse(&["\u{feff}data: a\n\n".as_bytes()])[0].data, "a");
    }
}
