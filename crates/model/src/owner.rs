use serde::{Deserialize, Serialize};

use crate::{TenantId, tenant_subject};

/// Who owns a run. Opaque ids only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Owner {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub tenant: TenantId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub principal: Option<String>,
    /// On whose behalf the run was started, if not the tenant's as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub subject: Option<String>,
}

impl Owner {
    /// Whose runners do steps of the run.
    pub fn run_subject(&self) -> String {
        self.subject.clone().unwrap_or_else(|| tenant_subject(&self.tenant))
    }
}
