//! What people and programs say about runs.

use baton_model::{Annotation, NodeId, Signal};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Annotate))]
pub struct NewAnnotation {
    /// `{kind, rating?, label?, correction?}`
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub signal: Signal,
    #[serde(default)]
    pub target: Target,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The run is the path's.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Target {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub node_id: Option<NodeId>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Annotations))]
pub struct AnnotationList {
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Object>))]
    pub annotations: Vec<Annotation>,
    /// There are more: ask again with `after` set to this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<String>,
}
