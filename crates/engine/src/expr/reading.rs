//! Reading a definition: its expressions, patterns and schemas. The parser of expressions recurses deeper than a caller's
//! stack may be, so a whole definition is read on one thread that has room for it; and what is read there is counted, so
//! that a definition of many costly parts is refused before they are read.

use std::cell::Cell;

/// Room for the deepest expression that the scan lets through, without optimisation. Only what is used is taken.
const STACK_BYTES: usize = 64 * 1024 * 1024;
/// Units for what is read of one definition: half a second at most. A unit is the same as for an expression that runs.
const MAX_UNITS: u64 = 2_000_000;
/// Units for parsing one byte of an expression.
pub(crate) const PARSED_BYTE: u64 = 8;

thread_local! {
    /// What has been spent on the definition that this thread reads; none on any other thread.
    static SPENT: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Whether this thread has room for the parser.
pub(crate) fn has_room() -> bool {
    SPENT.get().is_some()
}

/// Pays for something that is about to be read.
pub(crate) fn spend(units: u64) -> Result<(), String> {
    let Some(spent) = SPENT.get() else { return Ok(()) };
    let spent = spent.saturating_add(units);
    if spent > MAX_UNITS {
        return Err(format!(
            "the expressions, patterns and schemas of one definition have {MAX_UNITS} units together, and it needs more"
        ));
    }
    SPENT.set(Some(spent));
    Ok(())
}

/// Does the work on a thread with room. `None` if there is no such thread, or the work panicked.
pub(crate) fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().stack_size(STACK_BYTES);
        let reader = reader.spawn_scoped(scope, || {
            SPENT.set(Some(0));
            work()
        });
        reader.ok()?.join().ok()
    })
}
