use serde::{Deserialize, Serialize};

use crate::TenantId;

/// Who owns a run. Opaque ids only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    pub tenant: TenantId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}
