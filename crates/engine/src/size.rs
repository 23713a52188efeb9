//! How large values may be: each one, what one node takes or makes at once, and everything that a run keeps together. A value that only grows would
//! one day take the host's memory with it, and every record that carries it.

use baton_model::{Fault, ValueBounds, code};

/// Refuses one value of this size; `name` says which.
pub(crate) fn one(name: &str, size: u64, bounds: ValueBounds) -> Result<(), Fault> {
    let most = bounds.max_value_bytes;
    if size <= bounds.largest_value() {
        return Ok(());
    }
    let message =
        format!("The value of `{name}` has about {size} bytes; at most {most} are allowed (`max_value_bytes`).");
    Err(Fault::new(code::EXPRESSION_TOO_COSTLY, message)
        .with("name", name)
        .with("bytes", size)
        .with("limit", most)
        .with("bound", "max_value_bytes"))
}

/// Refuses that many bytes for one node at once; `what` says what they are.
pub(crate) fn at_once(what: &str, size: u64, bounds: ValueBounds) -> Result<(), Fault> {
    let most = bounds.most_at_once();
    if size <= most {
        return Ok(());
    }
    let message = format!("{what} have more than {most} bytes together, twice `max_value_bytes`.");
    Err(Fault::new(code::EXPRESSION_TOO_COSTLY, message).with("limit", most).with("bound", "max_value_bytes"))
}

/// Adds up what is about to be copied for one node.
pub(crate) struct Copies {
    what: &'static str,
    size: u64,
    bounds: ValueBounds,
}

impl Copies {
    pub(crate) fn new(what: &'static str, bounds: ValueBounds) -> Self {
        Self { what, size: 0, bounds }
    }

    /// Notes one more before it is copied.
    pub(crate) fn add(&mut self, name: &str, size: u64) -> Result<(), Fault> {
        self.size = self.size.saturating_add(name.len() as u64).saturating_add(size);
        at_once(self.what, self.size, self.bounds)
    }
}

/// Refuses that many bytes of everything that a run keeps.
pub(crate) fn together(size: u64, bounds: ValueBounds) -> Result<(), Fault> {
    let most = bounds.max_run_bytes;
    if size <= most {
        return Ok(());
    }
    let message = format!(
        "The run's variables, channels and outputs would have about {size} bytes; at most {most} are allowed \
         (`max_run_bytes`)."
    );
    Err(Fault::new(code::EXPRESSION_TOO_COSTLY, message)
        .with("bytes", size)
        .with("limit", most)
        .with("bound", "max_run_bytes"))
}
