//! What an archive gives back, as rows.

use std::slice;

use baton_store::archive::Entry;
use baton_store::codec::{Existing, NewRun, integer};
use rusqlite::{Connection, OptionalExtension as _, params};

use crate::{insert, note, rows, versioned};

/// All of them in one transaction, whose number is given back.
pub(crate) fn restore(connection: &Connection, entries: &[Entry]) -> rusqlite::Result<u64> {
    let transaction = connection.unchecked_transaction()?;
    for entry in entries {
        restore_one(&transaction, entry)?;
    }
    let number = transaction.prepare_cached(note::COUNT)?.query_row([], rows::commits)?;
    transaction.commit()?;
    Ok(number)
}

/// What is there already stays as it is. A record without its run, or a change without its versioned store, has no place and is
/// left out.
fn restore_one(connection: &Connection, entry: &Entry) -> rusqlite::Result<()> {
    const KEEP: Existing = Existing::Keep;
    match entry {
        Entry::Blob { digest, bytes } => insert::blob(connection, digest, bytes),
        Entry::Workflow(row) => insert::row(connection, KEEP, row),
        Entry::Run(row) => insert::run(connection, KEEP, NewRun::of(row)),
        Entry::Record { run: id, record } => {
            let mut find = connection.prepare_cached("SELECT run FROM runs WHERE id = ?1")?;
            let run: Option<i64> = find.query_row([id.as_str()], |row| row.get(0)).optional()?;
            let Some(run) = run else { return Ok(()) };
            insert::records(connection, KEEP, run, slice::from_ref(record))?;
            // The first of a run comes before the others.
            insert::first_versions(connection, run, record)
        }
        Entry::VersionedStore(state) => insert::row(connection, KEEP, state),
        Entry::Base { ledger, base, version } => {
            let mut rebase = connection.prepare_cached(
                "UPDATE ledgers SET base_version = ?5, base =
                     (SELECT b.ledger FROM ledgers b WHERE b.tenant = ?1 AND b.kind = ?2 AND b.scope = ?4)
                 WHERE tenant = ?1 AND kind = ?2 AND scope = ?3",
            )?;
            let (tenant, kind) = (ledger.tenant.as_str(), ledger.kind.as_str());
            rebase.execute(params![tenant, kind, ledger.scope, base.scope, integer(*version)]).map(|_rows| ())
        }
        Entry::Change { ledger, change } => {
            let place = versioned::find(connection, ledger)?;
            place.map_or(Ok(()), |place| insert::change(connection, KEEP, place.ledger, ledger, change))
        }
        Entry::Interrupt(row) => insert::row(connection, KEEP, row),
        Entry::Reply(reply) => insert::row(connection, KEEP, reply),
        Entry::Webhook(row) => insert::row(connection, KEEP, row),
        Entry::Delivery(row) => insert::row(connection, KEEP, row),
        Entry::DeadLetter(row) => insert::row(connection, KEEP, row),
        Entry::Quarantine(row) => insert::row(connection, KEEP, row),
        Entry::Annotation(row) => insert::row(connection, KEEP, row),
        Entry::Token(row) => insert::row(connection, KEEP, row),
        Entry::Runner(row) => insert::row(connection, KEEP, row),
        Entry::RunnerStep(row) => insert::row(connection, KEEP, row),
    }
}
