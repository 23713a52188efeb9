//! Compiling a schema and judging values by it, within bounds; and schemas that are kept because they come up again.

use std::collections::BTreeMap;
use std::iter::Flatten;
use std::option;
use std::sync::{Arc, Mutex};

use baton_model::Digest;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::weight::{MAX_BACKTRACKS, Weight};
use crate::expr::Strictness;
use crate::expr::pattern::{MAX_COMPILED_BYTES, MAX_TABLE_BYTES};
use crate::expr::reading;

/// What the errors of one value may take: the validator copies it for each alternative that does not hold.
const MAX_COPIED_BYTES: u64 = 8 * 1024 * 1024;

/// What is told of what is wrong with a value or a schema.
const MAX_ERROR_BYTES: usize = 500;

pub(crate) struct Schema {
    /// What judges; or, of a schema that is over a bound that did not apply when it was accepted, which bound.
    judge: Result<Judge, String>,
}

/// What is wrong with a value, one after the other.
pub(crate) type Errors<'v> = Flatten<option::IntoIter<jsonschema::ErrorIterator<'v>>>;

/// A validator that is asked only what it can answer soon.
pub(crate) struct Judge {
    validator: Validator,
    weight: Weight,
}

impl Judge {
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        let weight = Weight::of(schema).map_err(|bound| format!("too costly: {bound}"))?;
        reading::spend(weight.compiling()).map_err(|bound| format!("too costly: {bound}"))?;
        Ok(Self { validator: validator(schema)?, weight })
    }

    /// Goes through what is wrong with a value; a value that is too large for the schema is wrong as a whole.
    pub(crate) fn errors<'v>(&'v self, value: &'v Value) -> Result<Errors<'v>, String> {
        let copies = self.weight.allows(value)?;
        if copies <= MAX_COPIED_BYTES {
            return Ok(Some(self.validator.iter_errors(value)).into_iter().flatten());
        }
        // That it is wrong at all takes no copies.
        match self.validator.is_valid(value) {
            true => Ok(None.into_iter().flatten()),
            false => Err(format!(
                "none of the alternatives of its schema holds, and it would take {copies} bytes to say why; at most \
                 {MAX_COPIED_BYTES} are allowed"
            )),
        }
    }
}

/// Patterns may look around, as many do, but not for long.
fn validator(schema: &Value) -> Result<Validator, String> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKS)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_TABLE_BYTES);
    let options = jsonschema::draft202012::options().with_pattern_options(patterns);
    options.build(schema).map_err(|error| shortened(&error))
}

/// Schemas that a run's agents bring with them, compiled once. It is no part of what a run is.
#[derive(Clone, Default)]
pub(crate) struct SchemaCache(pub(super) Arc<Mutex<BTreeMap<Digest, Arc<Schema>>>>);

/// Schemas that are kept for one run: those of its agents at work, and of their tools.
pub(super) const MAX_KEPT: usize = 32;

impl std::fmt::Debug for SchemaCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SchemaCache")
    }
}

impl SchemaCache {
    pub(crate) fn of(&self, schema: &Value) -> Result<Arc<Schema>, String> {
        // A large one is refused before it is read as a whole.
        Weight::check_size(schema).map_err(|bound| format!("too costly: {bound}"))?;
        let digest = Digest::of_json(schema);
        let kept = |all: &BTreeMap<Digest, Arc<Schema>>| all.get(&digest).cloned();
        if let Some(known) = self.0.lock().ok().and_then(|all| kept(&all)) {
            return Ok(known);
        }
        let made = Arc::new(Schema::compile(schema, Strictness::New)?);
        if let Ok(mut all) = self.0.lock() {
            if all.len() == MAX_KEPT {
                all.clear();
            }
            all.insert(digest, Arc::clone(&made));
        }
        Ok(made)
    }
}

/// What the validator says, which may repeat all of a value.
fn shortened(error: &jsonschema::ValidationError<'_>) -> String {
    /// Takes so much and no more.
    struct Room(String);
    impl std::fmt::Write for Room {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            for letter in text.chars() {
                if self.0.len() > MAX_ERROR_BYTES {
                    self.0.push('…');
                    return Err(std::fmt::Error);
                }
                self.0.push(letter);
            }
            Ok(())
        }
    }
    let mut room = Room(String::new());
    // An error means that there is more.
    let _ = std::fmt::Write::write_fmt(&mut room, format_args!("{error}"));
    room.0
}

/// A rule that a value breaks, and the place in the value. Neither repeats a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    pub(crate) path: String,
    pub(crate) rule: String,
}

impl Broken {
    /// The place, in words.
    pub(crate) fn place(&self) -> &str {
        if self.path.is_empty() { "it" } else { &self.path }
    }
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Schema")
    }
}

impl Schema {
    pub(crate) fn compile(schema: &Value, strictness: Strictness) -> Result<Self, String> {
        match (Judge::compile(schema), strictness) {
            (Ok(judge), _) => Ok(Self { judge: Ok(judge) }),
            // It was accepted once, by whatever bounds there were.
            (Err(why), Strictness::Recorded) => Ok(Self { judge: Err(format!("the schema is not used: {why}")) }),
            (Err(why), Strictness::New) => Err(why),
        }
    }

    fn errors<'v>(&'v self, value: &'v Value) -> Result<Errors<'v>, String> {
        self.judge.as_ref().map_err(String::clone)?.errors(value)
    }

    /// The rule of the schema that the value breaks first, told without a word of the value.
    pub(crate) fn broken_rule(&self, value: &Value) -> Option<String> {
        self.broken(value).map(|broken| broken.rule)
    }

    /// The first violation: which rule, and where.
    pub(crate) fn broken(&self, value: &Value) -> Option<Broken> {
        match self.errors(value) {
            Err(bound) => Some(Broken { path: String::new(), rule: bound }),
            Ok(mut errors) => {
                let error = errors.next()?;
                Some(Broken { path: error.instance_path().to_string(), rule: error.schema_path().to_string() })
            }
        }
    }

    /// The first violation, with the place it was found at.
    pub(crate) fn check(&self, value: &Value) -> Result<(), (String, String)> {
        match self.errors(value) {
            Err(bound) => Err((String::new(), bound)),
            Ok(mut errors) => match errors.next() {
                None => Ok(()),
                Some(error) => Err((error.instance_path().to_string(), shortened(&error))),
            },
        }
    }
}
