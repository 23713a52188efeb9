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
    /// The rest are this host's own.
    MemoryRead,
    MemoryWrite,
    RunsPrune,
    /// Tokens for runners of the subject of one's own key.
    RunnersManage,
    /// The same for every subject of the tenant.
    RunnersManageAny,
    /// What belongs to the host and not to one tenant: its log, its totals, names that runs bring from elsewhere.
    HostOperate,
}

impl Scope {
    pub const ALL: [Self; 18] = [
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
        Self::RunnersManage,
        Self::RunnersManageAny,
        Self::HostOperate,
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
            Self::RunnersManage => "runners:manage",
            Self::RunnersManageAny => "runners:manage:any",
            Self::HostOperate => "host:operate",
        }
    }

    /// Reaches beyond the tenant, or beyond the subject of a key. No key has such a scope unless it is named.
    pub const fn is_operators(self) -> bool {
        matches!(self, Self::HostOperate | Self::RunnersManageAny)
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
    /// Everything within a tenant: every scope but the operator's.
    pub fn all() -> Self {
        Self(Scope::ALL.into_iter().filter(|scope| !scope.is_operators()).collect())
    }
    pub fn of(scopes: impl IntoIterator<Item = Scope>) -> Self {
        Self(scopes.into_iter().collect())
    }
    /// Their names, as keys and tools spell them.
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(ToString::to_string).collect()
    }
    /// Whether this is everything within a tenant, with or without what reaches beyond it.
    pub fn is_whole_tenant(&self) -> bool {
        self.0.iter().filter(|scope| !scope.is_operators()).eq(Self::all().0.iter())
    }
    pub fn iter(&self) -> impl Iterator<Item = Scope> + '_ {
        self.0.iter().copied()
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
    /// On whose behalf it acts, if not the tenant's as a whole: its runs are that subject's, and its runners do them.
    pub acts_for: Option<String>,
    pub scopes: Scopes,
    /// Test keys may use mock providers and forced engine versions.
    pub test: bool,
}

impl Principal {
    /// Whose runs it starts, and whose runners do their steps.
    pub fn run_subject(&self) -> String {
        self.acts_for.clone().unwrap_or_else(|| tenant_subject(&self.tenant))
    }
}

/// The subject of whatever belongs to a tenant as a whole.
pub fn tenant_subject(tenant: &TenantId) -> String {
    format!("tenant:{tenant}")
}
