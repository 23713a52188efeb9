use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Members of a reply that are newer than this client, kept so that what it prints as JSON loses nothing. A host has
/// none to add.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct NewerFields(Map<String, Value>);

impl Deref for NewerFields {
    type Target = Map<String, Value>;
    fn deref(&self) -> &Map<String, Value> {
        &self.0
    }
}
