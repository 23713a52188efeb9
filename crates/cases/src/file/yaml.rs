//! YAML as case files use it: what JSON can say, in a form that people like to write. One document, no anchors, no tags,
//! names once. Plain words are read as YAML 1.2 does: `no` is a text.

use std::collections::BTreeMap;

use baton_model::Position;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError};
use serde_json::{Map, Number, Value};

use super::problem::FileProblem;

/// No case is nested deeper; a file that is was not written by a person.
const MAX_DEPTH: usize = 64;

/// A value, and the place of every value in it by its JSON pointer.
pub(super) type Read = (Value, BTreeMap<String, Position>);

pub(super) fn read(text: &str) -> Result<Read, FileProblem> {
    let mut builder = Builder::default();
    for next in Parser::new_from_str(text) {
        let (event, span) = next.map_err(|error| unreadable(&error))?;
        builder.take(event, place(span.start))?;
    }
    match builder.root {
        Some(root) => Ok((root, builder.places)),
        None => Err(FileProblem::at(Position { line: 1, column: 1 }, "the file is empty")
            .hint("begin with `cases:` and a list of cases")),
    }
}

fn unreadable(error: &ScanError) -> FileProblem {
    let problem = FileProblem::at(place(*error.marker()), format!("not YAML: {}", error.info()));
    problem.hint("look at the indentation, and put texts with `:`, `#`, `{` or `[` into quotes")
}

fn place(mark: Marker) -> Position {
    Position { line: mark.line().max(1), column: mark.col() + 1 }
}

/// A list or a mapping that has begun.
enum Open {
    List(Vec<Value>),
    Map { map: Map<String, Value>, key: Option<String> },
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    /// The pointer of the value that comes next, by segments.
    path: Vec<String>,
    places: BTreeMap<String, Position>,
    documents: usize,
    root: Option<Value>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, at: Position) -> Result<(), FileProblem> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(FileProblem::at(at, "a second document begins here")
                        .hint("put all cases into one list under `cases:`"));
                }
            }
            Event::Alias(_) => {
                return Err(FileProblem::at(at, "anchors and aliases are not supported")
                    .hint("put what all cases of a file share beside `cases:`"));
            }
            Event::Scalar(text, style, anchor, tag) => {
                refuse_extras(anchor, tag.is_some(), at)?;
                let plain = style == ScalarStyle::Plain;
                if self.wants_key() {
                    return self.key(text.into_owned(), at);
                }
                let value = if plain { plain_value(&text) } else { Value::String(text.into_owned()) };
                self.begin(at);
                self.put(value);
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_extras(anchor, tag.is_some(), at)?;
                self.enter(Open::List(Vec::new()), at)?;
            }
            Event::MappingStart(anchor, tag) => {
                refuse_extras(anchor, tag.is_some(), at)?;
                self.enter(Open::Map { map: Map::new(), key: None }, at)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let value = match self.open.pop() {
                    Some(Open::List(items)) => Value::Array(items),
                    Some(Open::Map { map, .. }) => Value::Object(map),
                    None => return Ok(()),
                };
                self.put(value);
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        Ok(())
    }

    fn wants_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { key: None, .. }))
    }

    fn key(&mut self, name: String, at: Position) -> Result<(), FileProblem> {
        if let Some(Open::Map { map, key }) = self.open.last_mut() {
            if map.contains_key(&name) {
                return Err(FileProblem::at(at, format!("`{name}` is given twice")).hint("keep one of them"));
            }
            *key = Some(name.clone());
        }
        self.path.push(name);
        // A value in a mapping is shown at its name.
        self.places.insert(self.pointer(), at);
        Ok(())
    }

    /// Notes where the next value stands.
    fn begin(&mut self, at: Position) {
        if let Some(Open::List(items)) = self.open.last() {
            self.path.push(items.len().to_string());
        }
        let pointer = self.pointer();
        self.places.entry(pointer).or_insert(at);
    }

    fn enter(&mut self, open: Open, at: Position) -> Result<(), FileProblem> {
        if self.wants_key() {
            return Err(FileProblem::at(at, "a name must be a text").hint("write `name: value`"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(FileProblem::at(at, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.begin(at);
        self.open.push(open);
        Ok(())
    }

    /// The value at `path` is complete.
    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(items)) => {
                items.push(value);
                self.path.pop();
            }
            Some(Open::Map { map, key }) => {
                if let Some(name) = key.take() {
                    map.insert(name, value);
                }
                self.path.pop();
            }
        }
    }

    fn pointer(&self) -> String {
        self.path.iter().map(|segment| format!("/{}", segment.replace('~', "~0").replace('/', "~1"))).collect()
    }
}

fn refuse_extras(anchor: usize, tagged: bool, at: Position) -> Result<(), FileProblem> {
    if anchor != 0 {
        return Err(FileProblem::at(at, "anchors and aliases are not supported")
            .hint("put what all cases of a file share beside `cases:`"));
    }
    if tagged {
        return Err(FileProblem::at(at, "tags such as `!!str` are not supported").hint("put a text into quotes"));
    }
    Ok(())
}

/// A word without quotes, by the core schema of YAML 1.2.
fn plain_value(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.to_owned()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return u64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    let begins = bare.starts_with(|first: char| first.is_ascii_digit())
        || bare.strip_prefix('.').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    if !begins || !bare.chars().all(|letter| letter.is_ascii_digit() || ".eE+-".contains(letter)) {
        return None;
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let whole = unsigned.parse::<u64>().map(Number::from).or_else(|_| unsigned.parse::<i64>().map(Number::from)).ok();
    whole.or_else(|| unsigned.parse::<f64>().ok().and_then(Number::from_f64))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_read_with_their_places() {
        let (value, places) = read(
            "cases:\n  - name: \"a: b\"\n    on: yes\n    n: [1, -2.5, 0x10, .5, 1e3, 007, 1.2.3]\n    empty:\n    text: |\n      one\n      two\n",
        )
        .unwrap();
        assert_eq!(
            value,
            json!({"cases": [{"name": "a: b", "on": "yes", "n": [1, -2.5, 16, 0.5, 1000.0, 7, "1.2.3"], "empty": null, "text": "one\ntwo\n"}]})
        );
        assert_eq!(places["/cases/0/name"], Position { line: 2, column: 5 });
        assert_eq!(places["/cases/0/n/1"], Position { line: 4, column: 12 });
        assert_eq!(places["/cases/0/empty"], Position { line: 5, column: 5 });
    }

    #[test]
    fn what_is_no_plain_tree_of_values_is_refused_with_its_place() {
        for (text, says, line) in [
            ("", "empty", 1),
            ("# nothing\n", "empty", 1),
            ("a: 1\nb: 2\na: 3\n", "`a` is given twice", 3),
            ("a: &x 1\nb: *x\n", "anchors", 1),
            ("a: !!str 1\n", "tags", 1),
            ("a: 1\n---\nb: 2\n", "second document", 2),
            ("a: [1, 2\nb: 3\n", "not YAML", 2),
            ("? [a]\n: 1\n", "must be a text", 1),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.message.contains(says), "{text}: {}", problem.message);
            assert_eq!(problem.position.line, line, "{text}: {}", problem.message);
        }
        assert!(read(&"[".repeat(70)).unwrap_err().message.contains("deeper"));
        assert!(read(&"[".repeat(1_000_000)).is_err());
        assert!(read(&"- ".repeat(1_000_000)).is_err());
    }
}
