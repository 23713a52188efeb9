//! Reading a node's configuration, with the place of every mistake.

use baton_model::workflow::Node;
use serde_json::{Map, Value};

use crate::expr::{Expression, Strictness};
use crate::plan::problem::Problem;

pub(crate) struct Config<'a> {
    pub(crate) map: &'a Map<String, Value>,
    pub(crate) place: String,
    /// The node's id, for messages.
    pub(crate) node: &'a str,
    pub(crate) strictness: Strictness,
}

impl<'a> Config<'a> {
    pub(crate) fn new(node: &'a Node, place: &str, strictness: Strictness) -> Self {
        Self { map: &node.config, place: format!("{place}/config"), node: node.id.as_str(), strictness }
    }

    /// The same place, read through another node's configuration.
    pub(crate) fn nested<'b>(&self, node: &'b Node) -> Config<'b> {
        let place = format!("{}/data", self.place);
        Config { map: &node.config, place, node: node.id.as_str(), strictness: self.strictness }
    }

    /// Refuses settings nobody reads: a typo must not silently change nothing.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Vec<Problem>> {
        // What every node may say of itself, whatever its type.
        let general = |key: &str| key == "nondeterministic";
        match self.map.keys().find(|key| !known.contains(&key.as_str()) && !general(key)) {
            None => Ok(()),
            Some(unknown) => {
                let message = format!("There is no setting `{unknown}` here; there are {}.", known.join(", "));
                Err(self.problem(unknown, message))
            }
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    pub(crate) fn problem(&self, key: &str, message: impl Into<String>) -> Vec<Problem> {
        let pointer = if key.is_empty() { self.place.clone() } else { format!("{}/{key}", self.place) };
        vec![Problem::at(pointer, message)]
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<String>, Vec<Problem>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.problem(key, format!("`{key}` is a string."))),
        }
    }

    pub(crate) fn required_text(&self, key: &str) -> Result<String, Vec<Problem>> {
        self.text(key)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| self.problem(key, format!("`{key}` is required and not empty.")))
    }

    pub(crate) fn whole(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, Vec<Problem>> {
        match self.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_u64()
                .or_else(|| value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0 && *n < 9e15).map(|n| n as u64))
                .filter(|n| (least..=most).contains(n))
                .map(Some)
                .ok_or_else(|| self.problem(key, format!("`{key}` is a whole number from {least} to {most}."))),
        }
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>, Vec<Problem>> {
        match self.get(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(self.problem(key, format!("`{key}` is true or false."))),
        }
    }

    pub(crate) fn expression(&self, key: &str) -> Result<Option<Expression>, Vec<Problem>> {
        self.text(key)?.map(|source| self.cel(key, &source)).transpose()
    }

    /// An expression that stands at this key.
    pub(crate) fn cel(&self, key: &str, source: &str) -> Result<Expression, Vec<Problem>> {
        Expression::compile(source, &format!("node `{}`, {key}", self.node), self.strictness)
            .map_err(|error| self.problem(key, format!("Not valid CEL: {error}")))
    }

    /// An object whose values are all strings.
    pub(crate) fn text_map(&self, key: &str) -> Result<Vec<(String, String)>, Vec<Problem>> {
        let wrong = || self.problem(key, format!("`{key}` maps names to names."));
        match self.get(key) {
            None => Ok(Vec::new()),
            Some(Value::Object(map)) => map
                .iter()
                .map(|(name, value)| Ok((name.clone(), value.as_str().ok_or_else(wrong)?.to_owned())))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    /// One of a closed list of words.
    pub(crate) fn choice<T: serde::de::DeserializeOwned>(
        &self,
        key: &str,
        words: &str,
    ) -> Result<Option<T>, Vec<Problem>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => serde_json::from_value(value.clone())
                .map(Some)
                .map_err(|_| self.problem(key, format!("`{key}` is one of {words}."))),
        }
    }
}
