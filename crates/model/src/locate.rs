//! Where in a JSON text something stands, for people who mend it in an editor.

/// A place in a text, both counted from 1; columns are letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Where the value that a JSON pointer names stands in `text`: at its name, if it has one. What is not there is where it
/// should be, at the innermost value around it. For text that is JSON; anything else may answer anything.
pub fn locate(text: &str, pointer: &str) -> Position {
    let mut scanner = Scanner { text: text.as_bytes(), at: 0 };
    scanner.space();
    let mut place = scanner.at;
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let Some(found) = scanner.enter(&segment) else { break };
        place = found;
    }
    position(text, place)
}

fn position(text: &str, at: usize) -> Position {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or("");
    Position { line: before.matches('\n').count() + 1, column: line.chars().count() + 1 }
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Steps to the value of this name or number in the value that begins here, and says where that is to be shown.
    fn enter(&mut self, segment: &str) -> Option<usize> {
        let list = match self.peek()? {
            b'{' => false,
            b'[' => true,
            _ => return None,
        };
        self.at += 1;
        for number in 0_usize.. {
            self.space();
            let shown = self.at;
            let wanted = if list {
                segment.parse() == Ok(number) && self.peek() != Some(b']')
            } else {
                let name = self.name()?;
                self.space();
                self.expect(b':')?;
                self.space();
                name == segment
            };
            if wanted {
                return Some(shown);
            }
            self.value()?;
            self.space();
            self.expect(b',')?;
        }
        None
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn name(&mut self) -> Option<String> {
        let from = self.at;
        self.string()?;
        serde_json::from_slice(&self.text[from..self.at]).ok()
    }

    fn string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            match self.peek()? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                _ => self.at += 1,
            }
        }
    }

    /// Steps over a whole value, however deep it is.
    fn value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            self.space();
            match self.peek()? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => {
                    while self
                        .peek()
                        .is_some_and(|byte| !matches!(byte, b',' | b'}' | b']') && !byte.is_ascii_whitespace())
                    {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n  \"id\": \"x\",\n  \"nö des\": [\n    {\"a\": \"}],{\\\"\", \"b\": {\"c\": [1, [], {}, true]}},\n    {\"a/b\": 1, \"~\": null}\n  ]\n}\n";

    #[test]
    fn a_pointer_is_found_at_its_name() {
        let at = |pointer: &str| {
            let Position { line, column } = locate(TEXT, pointer);
            (line, column)
        };
        assert_eq!(at(""), (1, 1));
        assert_eq!(at("/id"), (2, 3));
        assert_eq!(at("/nö des"), (3, 3));
        assert_eq!(at("/nö des/0"), (4, 5));
        assert_eq!(at("/nö des/0/b"), (4, 21));
        assert_eq!(at("/nö des/0/b/c/3"), (4, 44));
        assert_eq!(at("/nö des/1/a~1b"), (5, 6));
        assert_eq!(at("/nö des/1/~0"), (5, 16));
    }

    #[test]
    fn what_is_missing_is_where_it_should_be() {
        assert_eq!(locate(TEXT, "/nö des/1/typeId"), locate(TEXT, "/nö des/1"));
        assert_eq!(locate(TEXT, "/nö des/7"), locate(TEXT, "/nö des"));
        assert_eq!(locate(TEXT, "/id/deeper"), locate(TEXT, "/id"));
        assert_eq!(locate(TEXT, "/none"), locate(TEXT, ""));
    }

    #[test]
    fn text_that_is_no_json_is_survived() {
        for text in ["", "{", "{\"a", "{\"a\\", "[1,", "]", "{\"a\":}", "nonsense", "{\"a\":\"\\"] {
            for pointer in ["", "/a", "/0/a", "/a/0"] {
                let _ = locate(text, pointer);
            }
        }
        let deep = "[".repeat(100_000);
        let _ = locate(&deep, "/1/2/3");
    }
}
