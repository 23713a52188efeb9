//! Server-sent events, read as they arrive: chunks in, whole events out. Chunks may end anywhere, also inside a UTF-8
//! character or between CR and LF.
//!
//! The crate `sse-stream`, which comes with the MCP client, is not used here: it fails at lines that the standard says to
//! ignore (fields it does not know, names without a colon, a second `event`). One more field from a vendor would then
//! break each of its answers.
//!
//! Nothing is bounded here. Whoever reads the connection counts what it passes on.

/// One event. `id` and `retry` are left out: Baton's events carry their sequence in the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub name: Option<String>,
    /// As it was sent: whether it must be UTF-8 is for the reader to say.
    pub data: Vec<u8>,
}

/// Reads one connection.
#[derive(Debug, Default)]
pub struct Parser {
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The last chunk ended in CR: a LF that follows belongs to the same line end.
    after_cr: bool,
    past_first_line: bool,
    name: Option<String>,
    data: Option<Vec<u8>>,
}

impl Parser {
    /// Takes the next chunk and returns the events that it completes.
    pub fn push(&mut self, mut chunk: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        if let [first, rest @ ..] = chunk
            && std::mem::take(&mut self.after_cr)
            && *first == b'\n'
        {
            chunk = rest;
        }
        while let Some(end) = chunk.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            self.line.extend_from_slice(&chunk[..end]);
            let line = std::mem::take(&mut self.line);
            events.extend(self.end_line(&line));
            chunk = match &chunk[end..] {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                _ => &chunk[end + 1..],
            };
        }
        self.line.extend_from_slice(chunk);
        events
    }

    /// The event that was begun and not ended. Browsers ignore it; some servers leave out the last empty line.
    pub fn finish(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.end_line(&line);
        }
        self.end_event()
    }

    fn end_line(&mut self, line: &[u8]) -> Option<Event> {
        let byte_order_mark = "\u{feff}".as_bytes();
        let first = !std::mem::replace(&mut self.past_first_line, true);
        let line = if first { line.strip_prefix(byte_order_mark).unwrap_or(line) } else { line };
        if line.is_empty() {
            return self.end_event();
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (field, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => self.name = Some(String::from_utf8_lossy(value).into_owned()),
            // No name at all is a comment (a heartbeat); other fields are ignored by definition.
            _ => {}
        }
        None
    }

    /// A name without data is no event, and is not kept for the next one.
    fn end_event(&mut self) -> Option<Event> {
        let name = self.name.take();
        self.data.take().map(|data| Event { name, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, data: &str) -> Event {
        Event { name: Some(name.to_owned()), data: data.into() }
    }

    fn parse(text: &str) -> Vec<Event> {
        Parser::default().push(text.as_bytes())
    }

    #[test]
    fn a_stream_means_the_same_wherever_it_is_cut() {
        let text = "id: 1\r\nevent: run.started\r\ndata: {\"a\":\"ü\"}\r\n\r\n:keepalive\n\nid:2\nevent:x\ndata:b\ndata: c\n\ndata: open";
        for size in 1..=text.len() {
            let mut parser = Parser::default();
            let events: Vec<Event> = text.as_bytes().chunks(size).flat_map(|chunk| parser.push(chunk)).collect();
            assert_eq!(events, [event("run.started", "{\"a\":\"ü\"}"), event("x", "b\nc")], "in chunks of {size}");
            assert_eq!(parser.finish(), Some(Event { name: None, data: b"open".to_vec() }));
            assert_eq!(parser.finish(), None);
        }
    }

    #[test]
    fn several_data_lines_are_joined() {
        assert_eq!(parse("data: a\ndata:\ndata:  b\n\n")[0].data, b"a\n\n b");
    }

    #[test]
    fn comments_unknown_fields_and_names_alone_are_no_events() {
        assert_eq!(parse(": hello\n\nevent: lonely\n\nretry: 10\n\nwho: knows\nbare\n\n"), vec![]);
    }

    #[test]
    fn a_name_does_not_leak_into_the_next_event() {
        assert_eq!(parse("event: a\ndata: x\n\nevent: b\n\ndata: y\n\n")[1], Event { name: None, data: b"y".to_vec() });
    }

    #[test]
    fn bare_carriage_returns_end_lines() {
        assert_eq!(parse("data: a\rdata: b\r\r")[0].data, b"a\nb");
    }

    #[test]
    fn the_last_empty_line_may_be_missing() {
        for text in ["data: a", "data: a\n", "data: a\r\n"] {
            let mut parser = Parser::default();
            assert_eq!(parser.push(text.as_bytes()), vec![]);
            assert_eq!(parser.finish(), Some(Event { name: None, data: b"a".to_vec() }), "{text:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_skipped_once() {
        assert_eq!(parse("\u{feff}data: a\n\n")[0].data, b"a");
    }
}
