//! What a handler asks of whoever calls it, read off its arguments. No handler is mounted that does not say it, and
//! the OpenAPI document repeats it.

use std::convert::Infallible;

use axum::body::Body;
use axum::extract::{FromRequestParts, Query, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use baton_model::Scope;

use super::runner::RunnerToken;
use super::scope::Needs;
use super::step::{OpenAiStep, StepToken};
use super::{Allowed, AnyKey, Unasked};
use crate::app::App;
use crate::body::Json;
use crate::idempotency::Mutation;
use crate::path::Ids;
use crate::query::Params;
use crate::verb_path::RunBeforeVerb;

/// Anybody may call, with or without a key.
pub(crate) struct Public;

impl FromRequestParts<App> for Public {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, _: &App) -> Result<Self, Infallible> {
        Ok(Self)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Public,
    AnyKey,
    Scopes(&'static [Scope]),
    /// A token of a runner instead of a key.
    Runner,
    /// A token of a step that a runner has in hand.
    Step,
}

/// An argument of a handler, and what it asks of the caller, if it does.
pub trait Argument {
    const ASKS: Option<Access> = None;
}

impl Argument for Public {
    const ASKS: Option<Access> = Some(Access::Public);
}
impl Argument for AnyKey {
    const ASKS: Option<Access> = Some(Access::AnyKey);
}
impl<S: Needs> Argument for Allowed<S> {
    const ASKS: Option<Access> = Some(Access::Scopes(S::SCOPES));
}
impl Argument for RunnerToken {
    const ASKS: Option<Access> = Some(Access::Runner);
}
impl Argument for StepToken {
    const ASKS: Option<Access> = Some(Access::Step);
}
impl Argument for OpenAiStep {
    const ASKS: Option<Access> = Some(Access::Step);
}
impl<S: Needs> Argument for Unasked<S> {
    const ASKS: Option<Access> = Some(Access::Scopes(S::SCOPES));
}

impl Argument for State<App> {}
impl<T> Argument for Ids<T> {}
impl Argument for RunBeforeVerb {}
impl<T> Argument for Json<T> {}
impl<T> Argument for Query<T> {}
impl Argument for Params {}
impl Argument for HeaderMap {}
impl Argument for Method {}
impl Argument for Mutation {}
impl Argument for Body {}

/// All arguments of a handler, in the form in which axum knows them: behind a marker.
pub trait Arguments {
    const ACCESS: Access;
}

macro_rules! arguments {
    ($($name:ident),+) => {
        impl<M, $($name: Argument),+> Arguments for (M, $($name,)+) {
            const ACCESS: Access = only(&[$($name::ASKS),+]);
        }
    };
}

arguments!(A);
arguments!(A, B);
arguments!(A, B, C);
arguments!(A, B, C, D);
arguments!(A, B, C, D, E);
arguments!(A, B, C, D, E, F);

/// The one that asks.
#[expect(clippy::panic, reason = "evaluated by the compiler only: it is how a forgotten scope does not compile")]
const fn only(asks: &[Option<Access>]) -> Access {
    let mut found = None;
    let mut at = 0;
    while at < asks.len() {
        if let Some(access) = asks[at] {
            if found.is_some() {
                panic!("a handler has one argument that says who may call it");
            }
            found = Some(access);
        }
        at += 1;
    }
    match found {
        Some(access) => access,
        None => panic!("a handler says who may call it: Allowed<…>, Unasked<…>, AnyKey, RunnerToken or Public"),
    }
}
