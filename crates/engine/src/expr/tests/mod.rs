#![allow(clippy::unwrap_used, clippy::disallowed_types, clippy::cast_possible_truncation)]

mod differential;
mod hostile;
mod memory;
mod oracle;
mod parsers;
mod plain;
mod soup;

use baton_model::ValueBounds;
use serde_json::Value;

use super::{Expression, Failure, Meter, Scope, Strictness, Val};

/// Top-level names from one object.
pub(super) struct Names {
    pub(super) data: Value,
    pub(super) meter: Meter,
    pub(super) bounds: ValueBounds,
}

impl Names {
    pub(super) fn new(data: Value) -> Self {
        Self { data, meter: Meter::default(), bounds: ValueBounds::default() }
    }
}

impl Scope for Names {
    fn lookup<'a>(&'a self, name: &str) -> Option<Val<'a>> {
        self.data.get(name).map(Val::from)
    }

    fn meter(&self) -> &Meter {
        &self.meter
    }

    fn bounds(&self) -> ValueBounds {
        self.bounds
    }
}

pub(super) fn compile(source: &str) -> Result<Expression, String> {
    Expression::compile(source, "here", Strictness::New)
}

pub(super) fn eval(source: &str, data: Value) -> Result<Value, String> {
    compile(source)?.evaluate(&Names::new(data)).map_err(|failure| failure.text().to_owned())
}

/// On a thread with the stack that the test harness and async workers have.
pub(super) fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(work).unwrap();
    thread.join().unwrap()
}

pub(super) fn too_costly(failure: &Failure) -> bool {
    matches!(failure, Failure::TooCostly(_))
}
