use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The body of every refusal. `error` is a code that stays; `message` is for people.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Error))]
pub struct ErrorBody {
    pub error: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub details: Map<String, Value>,
}
