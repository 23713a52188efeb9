//! Server-sent events, as far as vendors use them: what they say is in `data`, and the rest is of no concern.

use crate::ProviderFault;
use crate::wire::garbled;

/// Turns bytes, however they are cut, into the data of whole events.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: String,
    /// An event has data even if that is an empty line.
    begun: bool,
}

impl Events {
    /// Takes more bytes and gives the events that they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, ProviderFault> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                events.extend(self.end_line(&line)?);
            }
        }
        Ok(events)
    }

    /// The event that was begun and not ended; some servers leave out the last empty line.
    pub(super) fn rest(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if self.end_line(&line).ok()?.is_some() {
            return None;
        }
        std::mem::take(&mut self.begun).then(|| std::mem::take(&mut self.data))
    }

    fn end_line(&mut self, line: &[u8]) -> Result<Option<String>, ProviderFault> {
        let line = std::str::from_utf8(line).map_err(|_| garbled())?.trim_end_matches(['\r', '\n']);
        if line.is_empty() {
            return Ok(std::mem::take(&mut self.begun).then(|| std::mem::take(&mut self.data)));
        }
        if let Some(data) = line.strip_prefix("data:") {
            if self.begun {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            self.begun = true;
        }
        Ok(None)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_wherever_the_bytes_are_cut() {
        let stream = ": hello\r\nevent: a\ndata: {\"ü\":1}\n\ndata:two\r\ndata: lines\r\nid: 7\r\n\r\n\ndata: [DONE]\n\ndata: open";
        for size in 1..stream.len() {
            let mut events = Events::default();
            let mut seen = Vec::new();
            for piece in stream.as_bytes().chunks(size) {
                seen.extend(events.push(piece).unwrap());
            }
            assert_eq!(seen, ["{\"ü\":1}", "two\nlines", "[DONE]"], "in pieces of {size}");
            assert_eq!(events.rest().as_deref(), Some("open"));
            assert_eq!(events.rest(), None);
        }
    }

    #[test]
    fn what_is_no_text_is_refused() {
        assert!(Events::default().push(b"data: \xff\n").is_err());
    }
}
