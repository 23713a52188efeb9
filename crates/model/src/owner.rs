use serde::{Deserialize, Serialize};

use crate::TenantId;

/// Who owns a run. Opaque ids only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Owner {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub tenant: TenantId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub principal: Option<String>,
}
