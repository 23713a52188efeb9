//! Paths that are no part of the API and that the OpenAPI document leaves out. Their handlers say all the same who may
//! call them, or they do not compile.

use axum::handler::Handler;
use axum::routing::{self, MethodRouter};

use crate::app::App;
use crate::auth::access::Arguments;

pub fn get<H: Handler<T, App>, T: Arguments + 'static>(handler: H) -> MethodRouter<App> {
    const { T::ACCESS };
    routing::get(handler)
}

pub fn post<H: Handler<T, App>, T: Arguments + 'static>(handler: H) -> MethodRouter<App> {
    const { T::ACCESS };
    routing::post(handler)
}
