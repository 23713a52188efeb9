//! Reading an answer that is JSON in some wrapping, or nearly JSON. Nothing is guessed: a value that was cut off is
//! not one, and every repair is of a slip that has one meaning.

mod unique;

use baton_model::event::RecoveryPath;
use serde_json::{Map, Value};

/// A value, and how it was found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Recovered {
    pub(crate) value: Value,
    pub(crate) path: RecoveryPath,
}

/// The value that a text means.
pub(crate) fn recover(text: &str) -> Option<Recovered> {
    direct(text).or_else(|| fenced(text)).or_else(|| walked(text)).or_else(|| repaired(text))
}

/// The one value that a text is, and nothing else: what is acted upon must not depend on which part of an answer is
/// looked at. JSON, or nearly JSON, by itself or as the whole of one code block. Words around it, a second value, a
/// comment, or a member that is there twice, and nobody knows what was meant.
pub(crate) fn sole(text: &str) -> Result<Recovered, &'static str> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let (body, path) = match whole_block(text) {
        Some(body) => (body.trim(), RecoveryPath::MarkdownFence),
        None => (text, RecoveryPath::Direct),
    };
    match unique::from_str(body) {
        Ok(value) => return Ok(Recovered { value, path }),
        Err(unique::Trouble::Twice) => return Err("A member of the answer is there twice."),
        Err(unique::Trouble::NoJson) => {}
    }
    match mend_whole(body) {
        Some(value) => Ok(Recovered { value, path: RecoveryPath::Jsonrepair }),
        None if body.contains(['{', '[']) => {
            Err("The answer is more than one JSON value: there is text, a comment or another value beside it.")
        }
        None => Err(NO_JSON),
    }
}

/// Why a text is no value at all.
pub(crate) const NO_JSON: &str = "The answer is not JSON.";

/// Why nobody can tell which value a text means, if that is so: two that would do differ, or one has a member twice.
/// Readers differ in which of them they take.
pub(crate) fn ambiguity(text: &str, would_do: impl Fn(&Value) -> bool) -> Option<&'static str> {
    let (mut first, mut from) = (None, 0);
    while let Some(open) = text[from..].find(['{', '[']).map(|found| from + found) {
        let length = balanced(&text[open..])?;
        match unique::from_str(&text[open..open + length]) {
            Err(unique::Trouble::Twice) => return Some("A member of the answer is there twice."),
            Err(unique::Trouble::NoJson) => {}
            Ok(value) if first.as_ref() == Some(&value) || !would_do(&value) => {}
            Ok(value) if first.is_none() => first = Some(value),
            Ok(_) => return Some("The answer holds several JSON values that differ, and each would do."),
        }
        from = open + length;
    }
    None
}

/// The body of a code block that is the whole text.
fn whole_block(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let (language, body) = inner.split_once('\n')?;
    let named = language.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    (named && !body.contains("```")).then_some(body)
}

/// A value with slips in it that is the whole text, without comments and with each member once.
fn mend_whole(text: &str) -> Option<Value> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut mender = Mender { text, at: 0, depth: 0, strict: true };
    let value = mender.value()?;
    mender.rest().trim().is_empty().then_some(value)
}

fn direct(text: &str) -> Option<Recovered> {
    let inner = text.trim_start_matches('\u{feff}').trim_start();
    let value = serde_json::from_str(inner).ok()?;
    Some(Recovered { value, path: RecoveryPath::Direct })
}

/// The bodies of the text's code blocks, with where they begin.
fn blocks(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let open = rest + text.get(rest..)?.find("```")?;
        let after = open + 3;
        // The rest of the line names a language.
        let body = after + text[after..].find('\n')? + 1;
        let close = body + text[body..].find("```")?;
        rest = close + 3;
        Some((body, &text[body..close]))
    })
}

fn fenced(text: &str) -> Option<Recovered> {
    blocks(text).find_map(|(_, body)| {
        let value = serde_json::from_str(body).ok()?;
        Some(Recovered { value, path: RecoveryPath::MarkdownFence })
    })
}

/// The longest segment from a brace to the one that closes it that is JSON. A brace that never closes ends the search:
/// what is inside it is a piece of a value that was cut off.
fn walked(text: &str) -> Option<Recovered> {
    let mut best: Option<(&str, Value)> = None;
    let mut from = 0;
    while let Some(open) = text[from..].find(['{', '[']).map(|found| from + found) {
        let Some(length) = balanced(&text[open..]) else { break };
        let segment = &text[open..open + length];
        if best.as_ref().is_none_or(|(longest, _)| longest.len() < length)
            && let Ok(value) = serde_json::from_str(segment)
        {
            best = Some((segment, value));
        }
        from = open + length;
    }
    best.map(|(_, value)| Recovered { value, path: RecoveryPath::BraceWalker })
}

/// How many bytes from the first brace to the one that closes it, texts in quotes left alone.
fn balanced(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => depth += 1,
            b'}' | b']' if !quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// A value with slips in it: in the first code block that has one, else at the first brace.
fn repaired(text: &str) -> Option<Recovered> {
    let value = blocks(text).find_map(|(_, body)| mend(body)).or_else(|| mend(text))?;
    Some(Recovered { value, path: RecoveryPath::Jsonrepair })
}

fn mend(text: &str) -> Option<Value> {
    let start = text.find(['{', '['])?;
    Mender { text, at: start, depth: 0, strict: false }.value()
}

const MAX_DEPTH: usize = 64;

/// Reads JSON the way people write it: trailing commas, comments, single quotes, names without quotes, Python's words
/// for true, false and null, line breaks in texts.
struct Mender<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// No comments, and no member twice.
    strict: bool,
}

impl Mender<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn eat(&mut self, expected: char) -> bool {
        let there = self.peek() == Some(expected);
        if there {
            self.at += expected.len_utf8();
        }
        there
    }

    /// Blanks and comments.
    fn skip(&mut self) {
        loop {
            let before = self.at;
            while self.peek().is_some_and(char::is_whitespace) {
                self.take();
            }
            if self.strict {
                return;
            }
            if self.rest().starts_with("//") {
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
            } else if self.rest().starts_with("/*") {
                self.at += self.rest().find("*/").map_or(self.rest().len(), |end| end + 2);
            }
            if self.at == before {
                return;
            }
        }
    }

    fn value(&mut self) -> Option<Value> {
        self.skip();
        match self.peek()? {
            '{' => self.nested(Self::object),
            '[' => self.nested(Self::array),
            '"' | '\'' | '“' | '‘' => self.string().map(Value::String),
            _ => self.word(),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<Value>) -> Option<Value> {
        self.depth += 1;
        let value = if self.depth > MAX_DEPTH { None } else { read(self) };
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Option<Value> {
        self.take();
        let mut map = Map::new();
        loop {
            self.skip();
            if self.eat('}') {
                return Some(Value::Object(map));
            }
            let key = self.key()?;
            self.skip();
            if !self.eat(':') {
                return None;
            }
            let value = self.value()?;
            if map.insert(key, value).is_some() && self.strict {
                return None;
            }
            self.skip();
            if !self.eat(',') && self.peek() != Some('}') {
                return None;
            }
        }
    }

    fn array(&mut self) -> Option<Value> {
        self.take();
        let mut list = Vec::new();
        loop {
            self.skip();
            if self.eat(']') {
                return Some(Value::Array(list));
            }
            list.push(self.value()?);
            self.skip();
            if !self.eat(',') && self.peek() != Some(']') {
                return None;
            }
        }
    }

    fn key(&mut self) -> Option<String> {
        if matches!(self.peek()?, '"' | '\'' | '“' | '‘') {
            return self.string();
        }
        let bare = self.bare();
        (!bare.is_empty()).then_some(bare)
    }

    fn bare(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.' | '+')) {
            word.push(c);
            self.take();
        }
        word
    }

    /// A number, or a word that means a value.
    fn word(&mut self) -> Option<Value> {
        match self.bare().as_str() {
            "true" | "True" => Some(Value::Bool(true)),
            "false" | "False" => Some(Value::Bool(false)),
            "null" | "None" => Some(Value::Null),
            number => serde_json::from_str::<serde_json::Number>(number).ok().map(Value::Number),
        }
    }

    fn string(&mut self) -> Option<String> {
        let close = match self.take()? {
            '“' => '”',
            '‘' => '’',
            quote => quote,
        };
        let mut out = String::new();
        loop {
            match self.take()? {
                c if c == close => return Some(out),
                '\\' => out.push(self.escaped()?),
                c => out.push(c),
            }
        }
    }

    fn escaped(&mut self) -> Option<char> {
        match self.take()? {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'u' => {
                let high = self.hex()?;
                if !(0xd800..0xdc00).contains(&high) {
                    return char::from_u32(high);
                }
                if !(self.eat('\\') && self.eat('u')) {
                    return None;
                }
                let low = self.hex().filter(|low| (0xdc00..0xe000).contains(low))?;
                char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
            }
            same @ ('"' | '\'' | '\\' | '/') => Some(same),
            _ => None,
        }
    }

    fn hex(&mut self) -> Option<u32> {
        let mut number = 0;
        for _ in 0..4 {
            number = number * 16 + self.take()?.to_digit(16)?;
        }
        Some(number)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_found_in_its_wrapping() {
        let value = json!({"a": [1, "}"], "b": null});
        for (text, path) in [
            (r#"{"a": [1, "}"], "b": null}"#, RecoveryPath::Direct),
            ("\u{feff} {\"a\": [1, \"}\"], \"b\": null}\n", RecoveryPath::Direct),
            ("```json\n{\"a\": [1, \"}\"], \"b\": null}\n```", RecoveryPath::MarkdownFence),
            (
                "See:\n```\nnot this\n```\nand\n```json\n{\"a\": [1, \"}\"], \"b\": null}\n```\n",
                RecoveryPath::MarkdownFence,
            ),
            (r#"Sure! {"a": [1, "}"], "b": null} Done [1]."#, RecoveryPath::BraceWalker),
            (r#"As [1] and [see there] say: {"a": [1, "}"], "b": null}"#, RecoveryPath::BraceWalker),
            (r#"{"a": [1, "}",], "b": null,}"#, RecoveryPath::Jsonrepair),
            ("{a: [1, '}'], 'b': None}", RecoveryPath::Jsonrepair),
            ("Here: {“a”: [1, ‘}’], // first\n /* then */ \"b\": null } bye", RecoveryPath::Jsonrepair),
            ("```\n{\"a\": [1, \"}\"], b: None}\n```", RecoveryPath::Jsonrepair),
        ] {
            let found = recover(text).unwrap_or_else(|| panic!("nothing in {text:?}"));
            assert_eq!((&found.value, found.path), (&value, path), "{text:?}");
        }
        let lines = recover("{\"t\": 'two\nlines', \"u\": \"\\u00e9\\ud83d\\ude00\\/\", n: -1.5e3, y: True}").unwrap();
        assert_eq!(lines.value, json!({"t": "two\nlines", "u": "é😀/", "n": -1500.0, "y": true}));
    }

    #[test]
    fn what_is_acted_upon_is_the_whole_answer() {
        let value = json!({"kind": "terminate", "reason": "it's {done}"});
        for text in [
            r#"{"kind": "terminate", "reason": "it's {done}"}"#,
            "\u{feff}\n {\"kind\": \"terminate\", \"reason\": \"it's {done}\"}\n",
            "```json\n{\"kind\": \"terminate\", \"reason\": \"it's {done}\"}\n```",
            "```\n{\"kind\": \"terminate\", \"reason\": \"it's {done}\",}\n```\n",
            r#"{kind: 'terminate', "reason": "it's {done}",}"#,
        ] {
            assert_eq!(sole(text).map(|found| found.value).as_ref(), Ok(&value), "{text:?}");
        }
        let end = r#"{"kind":"terminate"}"#;
        for text in [
            format!("I would NOT do {end}."),
            format!("{end} {end}"),
            format!("{end}\n{end}"),
            format!("{end},"),
            format!("Here you are:\n```json\n{end}\n```"),
            format!("```json\n{end}\n```\nor\n```json\n{end}\n```"),
            format!("```json\n{end}\n``` as you wish"),
            format!("```not this one\n{end}\n```"),
            format!("// {end}\n{{kind: 'ask-user'}}"),
            format!("{{/* {end} */ kind: 'ask-user'}}"),
            r#"{"kind":"terminate","kind":"next-worker"}"#.to_owned(),
            r#"{"kind":"terminate","\u006bind":"next-worker"}"#.to_owned(),
            "{kind: 'terminate', kind: 'next-worker'}".to_owned(),
            r#"{"a": [{"kind": 1, "kind": 2}]}"#.to_owned(),
            r#"{"kind":"terminate","confidence":NaN}"#.to_owned(),
            "no value at all".to_owned(),
            String::new(),
        ] {
            assert!(sole(&text).is_err(), "{text:?}");
        }
        let deep = "[".repeat(100_000);
        assert!(sole(&deep).is_err());
    }

    #[test]
    fn what_is_not_whole_or_has_no_one_meaning_is_left_alone() {
        for text in [
            "",
            "no value at all",
            "{",
            r#"{"a": [1, 2]"#,
            r#"{"a": "cut o"#,
            r#"Sure: {"a": {"b": 1}, "c": "#,
            "{a b}",
            "{a: b}",
            "{'a' 1}",
            "{a: 1 b: 2}",
            "[1 2]",
            "{a: .5}",
            "{a: 0x1f}",
            r#"{a: "\x"}"#,
            r#"{a: "\ud800"}"#,
            "```json\n{\"a\": 1",
        ] {
            assert_eq!(recover(text), None, "{text:?}");
        }
        let deep = format!("{}1{}", "[".repeat(200), ",]".repeat(200));
        assert_eq!(recover(&deep), None, "no deeper than a person would write");
    }

    proptest! {
        #[test]
        fn recovery_never_panics_and_keeps_what_is_json(text in "[\\[\\]{}\"'`:,a1 \\\\\n/*é-]{0,60}", n in any::<i64>(), s in ".*") {
            let _ = recover(&text);
            // What is acted upon is never more than what is found.
            if let Ok(found) = sole(&text) {
                prop_assert!(recover(&text).is_some_and(|any| any.value == found.value), "{}", text);
            }
            let beside = sole(&format!("{text} x")).is_err();
            prop_assert!(beside, "{}", text);
            let value = json!({"n": n, "s": s, "l": [true, null]});
            let found = recover(&format!("Answer:\n{value}\nThat is all.")).unwrap();
            prop_assert_eq!(found.value, value);
        }
    }
}
