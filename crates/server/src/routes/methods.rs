//! Handlers by method, each with what it asks of the caller. The same as axum's functions of these names, for handlers
//! that say so.

use axum::handler::Handler;
use axum::routing::{self, MethodFilter, MethodRouter};

use crate::app::App;
use crate::auth::access::{Access, Arguments};

pub(crate) struct Methods {
    pub(crate) router: MethodRouter<App>,
    pub(super) access: Vec<(&'static str, Access)>,
}

pub(crate) fn get<H: Handler<T, App>, T: Arguments + 'static>(handler: H) -> Methods {
    Methods { router: routing::get(handler), access: vec![("get", const { T::ACCESS })] }
}

pub(crate) fn post<H: Handler<T, App>, T: Arguments + 'static>(handler: H) -> Methods {
    Methods { router: routing::post(handler), access: vec![("post", const { T::ACCESS })] }
}

pub(super) fn delete<H: Handler<T, App>, T: Arguments + 'static>(handler: H) -> Methods {
    Methods { router: routing::delete(handler), access: vec![("delete", const { T::ACCESS })] }
}

impl Methods {
    pub(super) fn post<H: Handler<T, App>, T: Arguments + 'static>(self, handler: H) -> Self {
        self.on(MethodFilter::POST, "post", handler)
    }

    pub(super) fn put<H: Handler<T, App>, T: Arguments + 'static>(self, handler: H) -> Self {
        self.on(MethodFilter::PUT, "put", handler)
    }

    pub(super) fn delete<H: Handler<T, App>, T: Arguments + 'static>(self, handler: H) -> Self {
        self.on(MethodFilter::DELETE, "delete", handler)
    }

    fn on<H: Handler<T, App>, T: Arguments + 'static>(
        mut self,
        filter: MethodFilter,
        name: &'static str,
        handler: H,
    ) -> Self {
        self.router = self.router.on(filter, handler);
        self.access.push((name, const { T::ACCESS }));
        self
    }
}
