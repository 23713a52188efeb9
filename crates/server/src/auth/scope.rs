//! Scopes as types, so that the signature of a handler says what a key needs.

use baton_model::Scope;

/// What a key needs: one scope, or several.
pub trait Needs {
    /// In the order in which they are asked for.
    const SCOPES: &'static [Scope];
}

/// A type that stands for one scope.
pub trait Named {
    const SCOPE: Scope;
}

impl<S: Named> Needs for S {
    const SCOPES: &'static [Scope] = &[S::SCOPE];
}

macro_rules! several {
    ($($name:ident),+) => {
        impl<$($name: Named),+> Needs for ($($name,)+) {
            const SCOPES: &'static [Scope] = &[$($name::SCOPE),+];
        }
    };
}

several!(A, B);
several!(A, B, C);
several!(A, B, C, D);

macro_rules! named {
    ($($name:ident),+ $(,)?) => {$(
        #[derive(Debug)]
        pub struct $name;
        impl Named for $name {
            const SCOPE: Scope = Scope::$name;
        }
    )+};
}

named!(
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
    MemoryRead,
    MemoryWrite,
    RunsPrune,
    RunnersManage,
    RunnersManageAny,
    HostOperate,
);
