//! Putting a prompt together: bind, substitute, fence. What comes out has markers where secrets would go; no prompt has
//! their values.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use baton_model::{Digest, Origins, Provenance, Secret, Trust, fence, redact};
use serde_json::{Map, Value};

use super::error::PromptError;
use super::path::Path;
use super::template::{CONTEXT_NAMES, PromptTemplate};
use super::text::{self, Piece};
use super::variable::{PromptVariable, VariableSource};

/// The longest prompt, its values filled in.
pub const MAX_COMPOSED_BYTES: usize = 4 * 1024 * 1024;
/// Gaps that are filled in one template; a template of the largest size with nothing but gaps has more.
pub const MAX_GAPS: usize = 4096;

/// What may fill the gaps of a template.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    pub inputs: Map<String, Value>,
    pub variables: Map<String, Value>,
    pub context: Map<String, Value>,
    /// The secret that stands behind a variable, by the variable's name. Only ids: values are not needed here.
    pub secrets: BTreeMap<String, String>,
    /// Secrets that must not show in any value, wherever it is from.
    pub known: Vec<Secret>,
    /// Variables whose values nobody vouches for.
    pub untrusted: BTreeSet<String>,
    /// How far inputs and variables are to be trusted as a whole.
    pub trust: Trust,
    /// Where inputs and variables are from. What has an origin is fenced with it.
    pub origins: Origins,
}

/// A prompt with its gaps filled. Secrets are markers in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Composed {
    pub text: String,
    /// `sha256:` over the text.
    pub hash: String,
    /// `sha256:` over each value; a secret's is over its marker.
    pub variable_hashes: BTreeMap<String, String>,
    /// The values as the text shows them.
    pub bindings: Map<String, Value>,
    /// Something in it is fenced.
    pub untrusted: bool,
}

impl Composed {
    /// A text that has no gaps.
    pub fn verbatim(text: &str, known: &[Secret]) -> Self {
        let text = redact(text, known);
        Self { hash: sha256(&text), text, variable_hashes: BTreeMap::new(), bindings: Map::new(), untrusted: false }
    }

    pub fn trust(&self) -> Trust {
        if self.untrusted { Trust::Untrusted } else { Trust::Trusted }
    }
}

/// Fills the gaps of a template. `overrides` are the reference's own and go before everything else.
pub fn compose(
    template: &PromptTemplate,
    overrides: &Map<String, Value>,
    bindings: &Bindings,
) -> Result<Composed, PromptError> {
    let values = bind(template, overrides, bindings)?;
    let mut composed = Composed::verbatim("", &[]);
    let mut gaps = 0;
    for piece in text::pieces(&template.text) {
        let said = match piece {
            Piece::Text(said) => Cow::Owned(redact(said, &bindings.known)),
            Piece::Name(name) => {
                gaps += 1;
                let value = values.get(name);
                composed.untrusted |= value.is_some_and(|value| value.fenced);
                Cow::Borrowed(value.map_or("", |value| value.text.as_str()))
            }
        };
        if gaps > MAX_GAPS || composed.text.len() + said.len() > MAX_COMPOSED_BYTES {
            return Err(too_long(template));
        }
        composed.text.push_str(&said);
    }
    composed.hash = sha256(&composed.text);
    for (name, value) in values {
        composed.variable_hashes.insert(name.clone(), value.hash);
        composed.bindings.insert(name, value.shown);
    }
    Ok(composed)
}

fn too_long(template: &PromptTemplate) -> PromptError {
    PromptError::TooLong { template: template.reference(), limit: MAX_COMPOSED_BYTES }
}

/// A value on its way into a text.
struct Bound {
    text: String,
    shown: Value,
    hash: String,
    fenced: bool,
}

/// Everything that is declared or used, with a value.
fn bind(
    template: &PromptTemplate,
    overrides: &Map<String, Value>,
    bindings: &Bindings,
) -> Result<BTreeMap<String, Bound>, PromptError> {
    let mut values = BTreeMap::new();
    let mut bytes = 0;
    // A value is copied for each name that it has, whether the text shows it or not.
    let mut room = |bound: &Bound| {
        bytes += bound.text.len();
        if bytes > MAX_COMPOSED_BYTES { Err(too_long(template)) } else { Ok(()) }
    };
    for variable in &template.variables {
        let bound = declared(template, variable, overrides, bindings)?;
        room(&bound)?;
        values.insert(variable.name.clone(), bound);
    }
    for name in text::names(&template.text) {
        if !values.contains_key(name) {
            let bound = undeclared(name, overrides, bindings);
            room(&bound)?;
            values.insert(name.to_owned(), bound);
        }
    }
    Ok(values)
}

fn declared(
    template: &PromptTemplate,
    variable: &PromptVariable,
    overrides: &Map<String, Value>,
    bindings: &Bindings,
) -> Result<Bound, PromptError> {
    let unresolved = || PromptError::Unresolved { template: template.reference(), variable: variable.name.clone() };
    if variable.source == VariableSource::Secret {
        return match bindings.secrets.get(&variable.name) {
            Some(id) => Ok(secret(id)),
            None if variable.required => Err(unresolved()),
            None => Ok(plain(None, Says::Vouched, &[])),
        };
    }
    let (value, says) = match overrides.get(&variable.name).filter(|value| !value.is_null()) {
        Some(value) => (Some(value), Says::Vouched),
        None => match find(variable, bindings) {
            Some(value) => {
                let member = variable.extract_path.as_ref().and_then(Path::root).unwrap_or(&variable.name);
                (Some(value), says(&variable.name, member, variable.source, bindings))
            }
            None => (variable.default_value.as_ref(), Says::Vouched),
        },
    };
    match value {
        None if variable.required => Err(unresolved()),
        Some(value) if !variable.kind.fits(value) => Err(PromptError::TypeMismatch {
            template: template.reference(),
            variable: variable.name.clone(),
            wanted: variable.kind.as_str(),
            is: type_of(value),
        }),
        value => Ok(plain(value, says, &bindings.known)),
    }
}

/// A name that nobody declared is an input that may be missing, or one of the names every host knows.
fn undeclared(name: &str, overrides: &Map<String, Value>, bindings: &Bindings) -> Bound {
    let there = |map: &'_ Map<String, Value>| map.get(name).filter(|value| !value.is_null()).cloned();
    let (value, says) = match (there(overrides), there(&bindings.inputs)) {
        (Some(value), _) => (Some(value), Says::Vouched),
        (None, Some(value)) => (Some(value), says(name, name, VariableSource::Input, bindings)),
        (None, None) if CONTEXT_NAMES.contains(&name) => (there(&bindings.context), Says::Vouched),
        (None, None) => (None, Says::Vouched),
    };
    plain(value.as_ref(), says, &bindings.known)
}

/// A path begins at everything its source has; without one the source's member of the same name is meant.
fn find<'b>(variable: &PromptVariable, bindings: &'b Bindings) -> Option<&'b Value> {
    let source = match variable.source {
        VariableSource::Input => &bindings.inputs,
        VariableSource::Variable => &bindings.variables,
        VariableSource::Context => &bindings.context,
        VariableSource::Secret => return None,
    };
    let found = match &variable.extract_path {
        Some(path) => path.find(source),
        None => source.get(&variable.name),
    };
    found.filter(|value| !value.is_null())
}

/// Who says what stands in a gap.
enum Says<'b> {
    /// Somebody vouches for it.
    Vouched,
    Nobody,
    From(&'b Provenance),
}

/// `member` is where the value was found in its source.
fn says<'b>(name: &str, member: &str, source: VariableSource, bindings: &'b Bindings) -> Says<'b> {
    let (whole, origins) = match source {
        VariableSource::Input => (bindings.trust, Some(&bindings.origins.task)),
        VariableSource::Variable => (bindings.trust, Some(&bindings.origins.variables)),
        VariableSource::Context | VariableSource::Secret => (Trust::Trusted, None),
    };
    match origins.and_then(|origins| origins.get(member)) {
        Some(origin) => Says::From(origin),
        None if whole == Trust::Untrusted || bindings.untrusted.contains(name) => Says::Nobody,
        None => Says::Vouched,
    }
}

fn secret(id: &str) -> Bound {
    let marker = format!("[REDACTED:{id}]");
    let hash = sha256(&marker);
    Bound { shown: Value::String(marker.clone()), text: marker, hash, fenced: false }
}

fn plain(value: Option<&Value>, says: Says<'_>, known: &[Secret]) -> Bound {
    let said = match value {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => String::from_utf8(baton_model::json::canonical(other)).unwrap_or_default(),
    };
    let said = redact(&said, known);
    let hash = sha256(&said);
    // A number or a list stays one unless it had to be cleaned.
    let shown = match value {
        Some(value) if !value.is_string() && serde_json::from_str::<Value>(&said).is_ok_and(|read| read == *value) => {
            value.clone()
        }
        _ => Value::String(said.clone()),
    };
    let text = match says {
        Says::Nobody if value.is_some() => fence(&said),
        Says::From(origin) if value.is_some() => origin.fence(&said),
        _ => return Bound { text: said, shown, hash, fenced: false },
    };
    Bound { text, shown, hash, fenced: true }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// `sha256:` and 64 digits, as prompts are named on the wire.
pub fn sha256(text: &str) -> String {
    format!("sha256:{}", Digest::of_bytes(text))
}
