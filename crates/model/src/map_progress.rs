//! Said of a map in snapshots and in lists of runs.

use serde::{Deserialize, Serialize};

/// How far a map has come through its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MapProgress {
    /// How many items there are.
    pub total: u32,
    pub completed: u32,
    pub failed: u32,
    /// Those that have begun and not ended.
    pub under_way: u32,
}
