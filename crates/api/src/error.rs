use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The body of every refusal. `error` is one of the codes of `baton_model::code`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct ErrorBody {
    pub error: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}
