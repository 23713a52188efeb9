//! What must hold of every disk, by the rows of the table in ARCHITECTURE.md.

mod effects;
mod logs;
mod promises;
mod stores;

use crate::clients::Acknowledged;
use crate::disk::Observer;
use crate::peers::Outside;

/// Every violation, by the invariant that it is one of.
pub(crate) fn all(disk: &Observer, known: &Acknowledged, outside: &Outside) -> Vec<String> {
    let mut found = Vec::new();
    for row in disk.runs() {
        logs::check(disk, &row, &mut found);
        effects::check(disk, &row, &mut found);
    }
    effects::check_done(disk, outside, &mut found);
    effects::check_budgets(disk, known, &mut found);
    promises::check(disk, known, &mut found);
    stores::check(disk, known, &mut found);
    found
}
