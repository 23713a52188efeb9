//! Who is calling. Order matters and is fixed here: credential, then rate limit, then scope; whether a thing exists is
//! asked only after all three.

pub(crate) mod access;
pub(crate) mod runner;
pub mod scope;
pub(crate) mod step;

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use baton_model::{Principal, Scope, TenantId};

use self::scope::Needs;
use crate::app::App;
use crate::error::ApiError;

/// A caller whose key has the scopes of `S`. A handler that takes one cannot forget to ask for them.
#[derive(Debug)]
pub struct Allowed<S>(Arc<Principal>, PhantomData<fn() -> S>);

/// A caller with any key of the tenant: what is shown needs no scope.
#[derive(Clone, Debug)]
pub struct AnyKey(Arc<Principal>);

/// A caller whose key will be asked for the scopes of `S`, once what it sends can be refused without losing the answer.
/// It shows nothing of the caller until then.
#[derive(Debug)]
pub(crate) struct Unasked<S>(Arc<Principal>, PhantomData<fn() -> S>);

impl<S> Allowed<S> {
    /// Asks for another scope, which only some requests need.
    pub fn also<T: Needs>(&self) -> Result<(), ApiError> {
        ask(&self.0, T::SCOPES)
    }
}

impl<S: Needs> Unasked<S> {
    pub(crate) fn allow(self) -> Result<Allowed<S>, ApiError> {
        ask(&self.0, S::SCOPES)?;
        Ok(Allowed(self.0, PhantomData))
    }
}

fn ask(who: &Principal, scopes: &[Scope]) -> Result<(), ApiError> {
    match scopes.iter().find(|scope| !who.scopes.allow(**scope)) {
        Some(missing) => Err(ApiError::scope_required(*missing)),
        None => Ok(()),
    }
}

/// A tenant named in a request must be the one the key is bound to.
pub(crate) fn check_tenant(who: &Principal, named: Option<&str>) -> Result<(), ApiError> {
    match named {
        Some(tenant) if tenant != who.tenant.as_str() => {
            Err(ApiError::forbidden("This key does not belong to the tenant named in the request."))
        }
        _ => Ok(()),
    }
}

impl<S> Deref for Allowed<S> {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.0
    }
}

impl Deref for AnyKey {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.0
    }
}

impl<S: Needs> FromRequestParts<App> for Allowed<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Unasked(key_or_refusal(parts, app).await?, PhantomData).allow()
    }
}

impl FromRequestParts<App> for AnyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        key_or_refusal(parts, app).await.map(Self)
    }
}

impl<S> FromRequestParts<App> for Unasked<S> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        Ok(Self(key_or_refusal(parts, app).await?, PhantomData))
    }
}

/// Whoever the key belongs to. A token of a runner is known, and opens nothing that a key opens.
async fn key_or_refusal(parts: &Parts, app: &App) -> Result<Arc<Principal>, ApiError> {
    match caller(parts, app) {
        Err(refused) if refused.status == StatusCode::UNAUTHORIZED && is_runner(parts, app).await => {
            Err(ApiError::forbidden("A runner's token opens the channel of runners and nothing else."))
        }
        Err(refused) if refused.status == StatusCode::UNAUTHORIZED && is_step(parts, app) => {
            Err(ApiError::forbidden(STEP_TOKEN))
        }
        found => found,
    }
}

/// Whether a request came with a token of a runner.
async fn is_runner(parts: &Parts, app: &App) -> bool {
    match bearer(&parts.headers) {
        Some(token) => matches!(app.host.runner_bearer(token).await, Ok(Some(_))),
        None => false,
    }
}

const STEP_TOKEN: &str = "A step's token opens the model gateway and the memo of its step, and nothing else.";

/// Whether a request came with a token of a step.
fn is_step(parts: &Parts, app: &App) -> bool {
    bearer(&parts.headers).is_some_and(|token| app.host.step_claims(token).is_some())
}

/// Whose key a request came with, once it was looked up.
#[derive(Clone)]
struct Identified(usize, Arc<Principal>);

/// Looks the key up and remembers it, for whoever asks next. Nobody is refused here.
pub(crate) fn identify(app: &App, request: &mut Request) -> Option<TenantId> {
    let token = bearer(request.headers())?;
    let Some((index, principal)) = app.keys.find(token) else {
        return app.host.runner_tenant(token).or_else(|| Some(app.host.step_claims(token)?.tenant));
    };
    let tenant = principal.tenant.clone();
    request.extensions_mut().insert(Identified(index, principal));
    Some(tenant)
}

/// Whoever the key belongs to, within their rate limit.
fn caller(parts: &Parts, app: &App) -> Result<Arc<Principal>, ApiError> {
    let Identified(index, principal) = match parts.extensions.get::<Identified>() {
        Some(known) => known.clone(),
        None => {
            let key = bearer(&parts.headers)
                .ok_or_else(|| ApiError::unauthenticated("Send an API key as `Authorization: Bearer <key>`."))?;
            let found = app.keys.find(key).map(|(index, principal)| Identified(index, principal));
            found.ok_or_else(|| ApiError::unauthenticated("This API key is not known here."))?
        }
    };
    if let Some(rate_limit) = &app.rate_limit {
        rate_limit.check(index)?;
    }
    if let Some(rate_limit) = &app.tenant_rate_limit {
        rate_limit.check(app.keys.tenant_of(index))?;
    }
    Ok(principal)
}

/// Who is calling where anybody may call: nobody without a key that is known here.
pub(crate) fn known(app: &App, headers: &HeaderMap) -> Option<Arc<Principal>> {
    app.keys.find(bearer(headers)?).map(|(_, principal)| principal)
}

/// The bearer token, if exactly one well-formed credential was sent.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::scope::{MemoryRead, RunsCreate, RunsPrune, RunsRead};
    use super::*;
    use axum::http::HeaderValue;

    /// The caller of the first key in a list.
    pub(crate) fn caller(keys: &str) -> Arc<Principal> {
        let name = keys.split(':').next().unwrap();
        crate::Keys::parse(keys).unwrap().find(name).unwrap().1
    }

    fn allow<S: Needs>(who: &Arc<Principal>) -> Result<Allowed<S>, ApiError> {
        Unasked(Arc::clone(who), PhantomData).allow()
    }

    fn read(values: &[&[u8]]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        bearer(&headers).map(str::to_owned)
    }

    #[test]
    fn only_one_well_formed_bearer_counts() {
        assert_eq!(read(&[b"Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(read(&[b"bearer  abc "]).as_deref(), Some("abc"));
        let bad: [&[&[u8]]; 7] = [
            &[],
            &[b"abc"],
            &[b"Basic abc"],
            &[b"Bearer"],
            &[b"Bearer "],
            &[b"Bearer \xff\xfe"],
            &[b"Bearer a", b"Bearer b"],
        ];
        for values in bad {
            assert_eq!(read(values), None, "{values:?}");
        }
    }

    #[test]
    fn a_scope_or_tenant_that_was_not_given_is_refused() {
        let who = caller("k:acme:runs:read");
        assert_eq!(allow::<RunsRead>(&who).unwrap().tenant.as_str(), "acme");
        assert_eq!(allow::<RunsCreate>(&who).unwrap_err().status, 403);
        assert_eq!(allow::<RunsRead>(&who).unwrap().also::<MemoryRead>().unwrap_err().status, 403);
        assert!(check_tenant(&who, None).is_ok() && check_tenant(&who, Some("acme")).is_ok());
        assert_eq!(check_tenant(&who, Some("other")).unwrap_err().status, 403);
    }

    #[test]
    fn the_first_missing_scope_is_named() {
        let refused = allow::<(RunsRead, RunsPrune, RunsCreate)>(&caller("k:acme:runs:read")).unwrap_err();
        assert_eq!(refused.details["scopeRequired"], "runs:prune");
    }
}
