//! Handlers as they are mounted and documented: method and path come from their `utoipa::path`, and what they ask of a
//! key from their arguments. A handler that does not say who may call it does not compile.

use axum::handler::Handler;
use axum::middleware::map_response;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{PathItem, SecurityRequirement};
use utoipa_axum::router::{UtoipaMethodRouter, UtoipaMethodRouterExt as _};

use crate::app::App;
use crate::auth::access::{Access, Arguments};
use crate::mask;

/// What answers at a path, by method, with its part of the OpenAPI document.
pub(crate) type Operations = UtoipaMethodRouter<App>;

/// The scheme under which the document knows API keys.
pub(crate) const BEARER: &str = "bearer";

/// The handlers of one path.
macro_rules! operations {
    ($first:path $(, $more:path)* $(,)?) => {{
        let all = $crate::routes::operations::guarded(utoipa_axum::routes!($first), &$first);
        $(let all = $crate::routes::operations::joined(
            all,
            $crate::routes::operations::guarded(utoipa_axum::routes!($more), &$more),
        );)*
        all
    }};
}
pub(super) use operations;

/// One handler, and in the document what it asks of a key.
pub(super) fn guarded<H: Handler<T, App>, T: Arguments + 'static>(operation: Operations, _: &H) -> Operations {
    let (schemas, mut paths, router) = operation;
    let security = match const { T::ACCESS } {
        Access::Public => Some(vec![SecurityRequirement::default()]),
        // A key, which the document asks for everywhere.
        Access::AnyKey => None,
        Access::Scopes(scopes) => {
            Some(vec![SecurityRequirement::new(BEARER, scopes.iter().map(|scope| scope.as_str()))])
        }
    };
    for operation in paths.paths.values_mut().flat_map(by_method) {
        operation.security.clone_from(&security);
    }
    (schemas, paths, router)
}

pub(super) fn joined(one: Operations, other: Operations) -> Operations {
    let (mut schemas, mut paths, router) = one;
    schemas.extend(other.0);
    paths.merge(other.1);
    (schemas, paths, router.merge(other.2))
}

/// Gives back what somebody put there, letter by letter. Everything else is masked; see [`mask`].
pub(super) fn verbatim(operations: Operations) -> Operations {
    operations.layer(map_response(mask::verbatim))
}

fn by_method(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
}
