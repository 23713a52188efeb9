//! Handlers as they are mounted and documented: method and path come from their `utoipa::path`, and what they ask of a
//! key from their arguments. A handler that does not say who may call it does not compile.

use axum::handler::Handler;
use axum::middleware::map_response;
use axum::routing::MethodRouter;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{PathItem, Paths, RefOr, SecurityRequirement};
use utoipa_axum::router::UtoipaMethodRouter;

use crate::app::App;
use crate::auth::access::{Access, Arguments};
use crate::mask;

/// What answers at a path, by method.
pub(crate) struct Operations {
    /// As the document has it.
    pub(crate) path: String,
    /// Whether it answers `GET`.
    pub(crate) reads: bool,
    pub(crate) router: MethodRouter<App>,
    /// Its part of the document is made again when somebody asks for it: all of them together take more memory than
    /// the rest of an idle host.
    documented: Vec<Documented>,
}

struct Documented {
    handler: fn() -> UtoipaMethodRouter<App>,
    access: Access,
}

/// The scheme under which the document knows API keys.
pub(crate) const BEARER: &str = "bearer";
/// The scheme of runners' tokens.
pub(crate) const RUNNER: &str = "runner";
/// The scheme of the tokens of steps.
pub(crate) const STEP: &str = "step";

/// The handlers of one path.
macro_rules! operations {
    ($first:path $(, $more:path)* $(,)?) => {{
        let all = $crate::routes::operations::guarded(|| utoipa_axum::routes!($first), &$first);
        $(let all = all.joined($crate::routes::operations::guarded(|| utoipa_axum::routes!($more), &$more));)*
        all
    }};
}
pub(super) use operations;

/// One handler, and what it asks of a key.
pub(super) fn guarded<H: Handler<T, App>, T: Arguments + 'static>(
    handler: fn() -> UtoipaMethodRouter<App>,
    _: &H,
) -> Operations {
    let (_, paths, router) = handler();
    let (path, item) = paths.paths.into_iter().next().unwrap_or_default();
    let documented = vec![Documented { handler, access: const { T::ACCESS } }];
    Operations { path, reads: item.get.is_some(), router, documented }
}

/// Gives back what somebody put there, letter by letter. Everything else is masked; see [`mask`].
pub(super) fn verbatim(operations: Operations) -> Operations {
    operations.map(|router| router.layer(map_response(mask::verbatim)))
}

impl Operations {
    pub(super) fn joined(mut self, other: Self) -> Self {
        self.documented.extend(other.documented);
        Self { reads: self.reads || other.reads, router: self.router.merge(other.router), ..self }
    }

    pub(crate) fn map(self, change: impl FnOnce(MethodRouter<App>) -> MethodRouter<App>) -> Self {
        Self { router: change(self.router), ..self }
    }

    /// The part of the OpenAPI document that is about these.
    pub(crate) fn document(&self) -> (Vec<(String, RefOr<Schema>)>, Paths) {
        let mut all = (Vec::new(), Paths::new());
        for documented in &self.documented {
            let (schemas, paths) = documented.document();
            all.0.extend(schemas);
            all.1.merge(paths);
        }
        all
    }
}

impl Documented {
    fn document(&self) -> (Vec<(String, RefOr<Schema>)>, Paths) {
        let (schemas, mut paths, _) = (self.handler)();
        let security = match self.access {
            Access::Public => Some(vec![SecurityRequirement::default()]),
            // A key, which the document asks for everywhere.
            Access::AnyKey => None,
            Access::Runner => Some(vec![SecurityRequirement::new(RUNNER, [""; 0])]),
            Access::Step => Some(vec![SecurityRequirement::new(STEP, [""; 0])]),
            Access::Scopes(scopes) => {
                Some(vec![SecurityRequirement::new(BEARER, scopes.iter().map(|scope| scope.as_str()))])
            }
        };
        for operation in paths.paths.values_mut().flat_map(by_method) {
            operation.security.clone_from(&security);
        }
        (schemas, paths)
    }
}

fn by_method(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
}
