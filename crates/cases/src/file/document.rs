//! A file that was read: its value, and where each part of it stands.

use std::collections::BTreeMap;

use baton_model::{Position, locate};
use serde_json::Value;

use super::problem::FileProblem;
use super::yaml;

pub struct Document {
    pub value: Value,
    places: Places,
}

enum Places {
    Yaml(BTreeMap<String, Position>),
    Json(String),
}

impl Document {
    pub fn yaml(text: &str) -> Result<Self, FileProblem> {
        let (value, places) = yaml::read(text)?;
        Ok(Self { value, places: Places::Yaml(places) })
    }

    pub fn json(text: &str) -> Result<Self, FileProblem> {
        let value = serde_json::from_str(text).map_err(|error| {
            let position = Position { line: error.line().max(1), column: error.column().max(1) };
            FileProblem::at(position, format!("not JSON: {error}"))
        })?;
        Ok(Self { value, places: Places::Json(text.to_owned()) })
    }

    /// Where the value that a JSON pointer names stands; of what is not there, the innermost value around it.
    pub fn place(&self, pointer: &str) -> Position {
        match &self.places {
            Places::Json(text) => locate(text, pointer),
            Places::Yaml(places) => {
                let mut pointer = pointer;
                loop {
                    if let Some(place) = places.get(pointer) {
                        return *place;
                    }
                    let Some((around, _)) = pointer.rsplit_once('/') else { break };
                    pointer = around;
                }
                Position { line: 1, column: 1 }
            }
        }
    }
}
