//! Reading closed objects: every member is asked for by name, what is left over is a problem, and each problem says
//! where it is. All of them are found at once, so that an author mends a manifest in one go.

use serde_json::{Map, Value};

use crate::problem::Problem;

/// What else holds for a text, and how to say so.
type Rule = (fn(&str) -> bool, &'static str);

/// What a text must be.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    pub(crate) min: usize,
    pub(crate) max: usize,
    pub(crate) rule: Option<Rule>,
}

impl Text {
    pub(crate) const ANY: Self = Self { min: 0, max: usize::MAX, rule: None };
    pub(crate) const NOT_EMPTY: Self = Self { min: 1, max: usize::MAX, rule: None };

    pub(crate) const fn up_to(max: usize) -> Self {
        Self { min: 0, max, rule: None }
    }

    pub(crate) const fn between(min: usize, max: usize) -> Self {
        Self { min, max, rule: None }
    }

    pub(crate) const fn which(self, holds: fn(&str) -> bool, says: &'static str) -> Self {
        Self { rule: Some((holds, says)), ..self }
    }

    fn problem_with(self, text: &str) -> Option<String> {
        let count = text.chars().count();
        if count < self.min && self.min == 1 {
            return Some("is not empty".to_owned());
        }
        if count < self.min || count > self.max {
            let bounds = if self.min == 0 { "at most".to_owned() } else { format!("{} to", self.min) };
            return Some(format!("has {bounds} {} characters; this one has {count}", self.max));
        }
        self.rule.and_then(|(holds, says)| (!holds(text)).then(|| says.to_owned()))
    }
}

/// A closed object being read.
pub(crate) struct Fields<'v, 'p> {
    map: &'v Map<String, Value>,
    at: String,
    asked: Vec<&'static str>,
    code: &'static str,
    problems: &'p mut Vec<Problem>,
}

/// Reads `value` as a closed object at `at`; `None` if it is none.
pub(crate) fn object<'v, T>(
    value: &'v Value,
    at: &str,
    code: &'static str,
    problems: &mut Vec<Problem>,
    read: impl FnOnce(&mut Fields<'v, '_>) -> T,
) -> Option<T> {
    let Value::Object(map) = value else {
        problems.push(Problem::new(code, at, "This is an object: `{ … }`."));
        return None;
    };
    let mut fields = Fields { map, at: at.to_owned(), asked: Vec::new(), code, problems };
    let read = read(&mut fields);
    fields.close();
    Some(read)
}

impl<'v> Fields<'v, '_> {
    pub(crate) fn value(&mut self, key: &'static str) -> Option<&'v Value> {
        self.asked.push(key);
        self.map.get(key)
    }

    pub(crate) fn required(&mut self, key: &'static str) -> Option<&'v Value> {
        let value = self.value(key);
        if value.is_none() {
            self.problem("", format!("`{key}` is missing."));
        }
        value
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// Where a member is.
    pub(crate) fn place(&self, key: &str) -> String {
        format!("{}/{}", self.at, key.replace('~', "~0").replace('/', "~1"))
    }

    /// Notes a problem of the member `key`, or of the object itself.
    pub(crate) fn problem(&mut self, key: &str, message: impl Into<String>) {
        let place = if key.is_empty() { self.at.clone() } else { self.place(key) };
        self.problems.push(Problem::new(self.code, place, message));
    }

    pub(crate) fn problems(&mut self) -> &mut Vec<Problem> {
        self.problems
    }

    pub(crate) fn text(&mut self, key: &'static str, rule: Text) -> Option<String> {
        let value = self.value(key)?;
        let Value::String(text) = value else {
            self.problem(key, format!("`{key}` is a text."));
            return None;
        };
        if let Some(problem_with) = rule.problem_with(text) {
            self.problem(key, format!("`{key}` {problem_with}."));
            return None;
        }
        Some(text.clone())
    }

    pub(crate) fn required_text(&mut self, key: &'static str, rule: Text) -> Option<String> {
        self.required(key)?;
        self.text(key, rule)
    }

    /// One of a fixed set of words.
    pub(crate) fn word(&mut self, key: &'static str, words: &[&str]) -> Option<String> {
        let text = self.text(key, Text::ANY)?;
        if words.contains(&text.as_str()) {
            return Some(text);
        }
        self.problem(key, format!("`{key}` is one of {}.", quoted(words)));
        None
    }

    pub(crate) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        if value.as_bool().is_none() {
            self.problem(key, format!("`{key}` is `true` or `false`."));
        }
        value.as_bool()
    }

    pub(crate) fn number(&mut self, key: &'static str, min: f64, max: f64) -> Option<f64> {
        let value = self.value(key)?;
        let number = value.as_f64().filter(|number| (min..=max).contains(number));
        if number.is_none() {
            self.problem(key, format!("`{key}` is a number from {min} to {max}."));
        }
        number
    }

    pub(crate) fn list(&mut self, key: &'static str) -> Option<&'v Vec<Value>> {
        let value = self.value(key)?;
        if !value.is_array() {
            self.problem(key, format!("`{key}` is a list."));
        }
        value.as_array()
    }

    /// A list of texts; entries that break the rule are reported one by one.
    pub(crate) fn texts(&mut self, key: &'static str, max: usize, rule: Text) -> Option<Vec<String>> {
        let list = self.list(key)?;
        if list.len() > max {
            self.problem(key, format!("`{key}` has at most {max} entries; this one has {}.", list.len()));
        }
        let mut texts = Vec::with_capacity(list.len());
        for (index, entry) in list.iter().enumerate() {
            let place = format!("{}/{index}", self.place(key));
            match entry.as_str() {
                None => self.problems.push(Problem::new(self.code, place, format!("An entry of `{key}` is a text."))),
                Some(text) => match rule.problem_with(text) {
                    Some(problem_with) => {
                        let message = format!("An entry of `{key}` {problem_with}.");
                        self.problems.push(Problem::new(self.code, place, message));
                    }
                    None => texts.push(text.to_owned()),
                },
            }
        }
        Some(texts)
    }

    /// An open object whose members are texts.
    pub(crate) fn text_map(&mut self, key: &'static str) -> Vec<(String, String)> {
        let Some(value) = self.value(key) else { return Vec::new() };
        let Value::Object(map) = value else {
            self.problem(key, format!("`{key}` is an object of texts."));
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (name, entry) in map {
            match entry.as_str() {
                Some(text) => pairs.push((name.clone(), text.to_owned())),
                None => self.problem(key, format!("`{key}.{name}` is a text.")),
            }
        }
        pairs
    }

    /// A closed object within this one.
    pub(crate) fn nested<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Fields<'v, '_>) -> T) -> Option<T> {
        let value = self.value(key)?;
        let at = self.place(key);
        object(value, &at, self.code, self.problems, read)
    }

    fn close(self) {
        for name in self.map.keys().filter(|name| !self.asked.contains(&name.as_str())) {
            let place = format!("{}/{}", self.at, name.replace('~', "~0").replace('/', "~1"));
            let message = format!("`{name}` is not known here; take it out, or look for a slip in its spelling.");
            self.problems.push(Problem::new(self.code, place, message));
        }
    }
}

pub(crate) fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
