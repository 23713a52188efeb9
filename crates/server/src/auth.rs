//! Who is calling. Order matters and is fixed here: credential, then rate limit, then scope; whether a thing exists is
//! asked only after all three.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use baton_model::{Principal, Scope, TenantId};

use crate::app::App;
use crate::error::ApiError;

/// An authenticated caller within their rate limit. Scopes are still to be checked with [`Caller::need`].
#[derive(Clone, Debug)]
pub(crate) struct Caller(Arc<Principal>);

impl Caller {
    pub(crate) fn need(&self, scope: Scope) -> Result<&TenantId, ApiError> {
        if self.0.scopes.allow(scope) { Ok(&self.0.tenant) } else { Err(ApiError::scope_required(scope)) }
    }

    /// A tenant named in a request must be the one the key is bound to.
    pub(crate) fn check_tenant(&self, named: Option<&str>) -> Result<(), ApiError> {
        match named {
            Some(tenant) if tenant != self.0.tenant.as_str() => {
                Err(ApiError::forbidden("This key does not belong to the tenant named in the request."))
            }
            _ => Ok(()),
        }
    }
}

impl Deref for Caller {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.0
    }
}

impl FromRequestParts<App> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let key = bearer(&parts.headers)
            .ok_or_else(|| ApiError::unauthenticated("Send an API key as `Authorization: Bearer <key>`."))?;
        let (index, principal) =
            app.keys.find(key).ok_or_else(|| ApiError::unauthenticated("This API key is not known here."))?;
        if let Some(rate_limit) = &app.rate_limit {
            rate_limit.check(index)?;
        }
        Ok(Self(principal))
    }
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
    use super::*;
    use axum::http::HeaderValue;

    /// The caller of the first key in a list.
    pub(crate) fn caller(keys: &str) -> Caller {
        let name = keys.split(':').next().unwrap();
        Caller(crate::Keys::parse(keys).unwrap().find(name).unwrap().1)
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
        let caller = caller("k:acme:runs:read");
        assert_eq!(caller.need(Scope::RunsRead).unwrap().as_str(), "acme");
        assert_eq!(caller.need(Scope::RunsCreate).unwrap_err().status, 403);
        assert!(caller.check_tenant(None).is_ok() && caller.check_tenant(Some("acme")).is_ok());
        assert_eq!(caller.check_tenant(Some("other")).unwrap_err().status, 403);
    }
}
