use std::fmt;

use crate::TenantId;

/// One permission. No scope implies another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    ManifestRead,
    RunsCreate,
    RunsRead,
    RunsCancel,
    ArtifactsRead,
    WebhooksManage,
    ApprovalsRespond,
    WorkflowsWrite,
    RunsAnnotate,
    AuditRead,
    WorkspaceRead,
    WorkspaceWrite,
    /// The last three are this host's own.
    MemoryRead,
    MemoryWrite,
    RunsPrune,
}

impl Scope {
    pub const ALL: [Self; 15] = [
        Self::ManifestRead,
        Self::RunsCreate,
        Self::RunsRead,
        Self::RunsCancel,
        Self::ArtifactsRead,
        Self::WebhooksManage,
        Self::ApprovalsRespond,
        Self::WorkflowsWrite,
        Self::RunsAnnotate,
        Self::AuditRead,
        Self::WorkspaceRead,
        Self::WorkspaceWrite,
        Self::MemoryRead,
        Self::MemoryWrite,
        Self::RunsPrune,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ManifestRead => "manifest:read",
            Self::RunsCreate => "runs:create",
            Self::RunsRead => "runs:read",
            Self::RunsCancel => "runs:cancel",
            Self::ArtifactsRead => "artifacts:read",
            Self::WebhooksManage => "webhooks:manage",
            Self::ApprovalsRespond => "approvals:respond",
            Self::WorkflowsWrite => "workflows:write",
            Self::RunsAnnotate => "runs:annotate",
            Self::AuditRead => "audit:read",
            Self::WorkspaceRead => "workspace:read",
            Self::WorkspaceWrite => "workspace:write",
            Self::MemoryRead => "memory:read",
            Self::MemoryWrite => "memory:write",
            Self::RunsPrune => "runs:prune",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of scopes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    pub fn all() -> Self {
        Self(Scope::ALL.to_vec())
    }
    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self(scopes.into_iter().collect())
    }
    /// Their names, as keys and tools spell them.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
    pub fn allow(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }
}

/// Who is calling: the tenant their credential binds them to, and what it lets them do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub tenant: TenantId,
    /// Opaque id of the credential, never the credential itself.
    pub subject: String,
    pub scopes: Scopes,
    /// Test keys may use mock providers and forced engine versions.
    pub test: bool,
}
