//! Where everything stands that commits mention.

use std::collections::BTreeSet;

use baton_model::RunId;
use baton_store::{CommitPart, VersionedStoreId, Write};
use tokio_postgres::Client;

use crate::known::Found;
use crate::rows;
use crate::statement::Statements;
use crate::text;

const RUNS: &str = "SELECT id, next_seq, owner, pruned_log FROM runs WHERE id = ANY($1)";
const FORKS: &str = "SELECT origin_run, id FROM runs
    WHERE origin_run = ANY($1) AND origin_run IS NOT NULL AND NOT pruned_log ORDER BY position";
const LEDGERS: &str = "SELECT ledger, version FROM ledgers WHERE ledger = ANY($1)";
const LETTERS: &str = "SELECT id, answered_at IS NOT NULL FROM inbox WHERE id = ANY($1)";

/// Nothing is locked: should something change meanwhile, the transaction notices.
pub(crate) async fn look(
    client: &Client,
    statements: &mut Statements,
    parts: &[CommitPart<'_>],
) -> Result<Found, tokio_postgres::Error> {
    let (mut runs, mut pruned) = (BTreeSet::new(), BTreeSet::new());
    let (mut ledgers, mut letters) = (BTreeSet::new(), BTreeSet::new());
    for write in parts.iter().flat_map(|part| part.writes) {
        match write {
            Write::CreateRun(row) | Write::Append { row, .. } => {
                runs.insert(&row.id);
                runs.extend(&row.root);
                runs.extend(row.origin.as_ref().map(|origin| &origin.source));
            }
            Write::HandOver { root, .. } => {
                runs.insert(root);
            }
            Write::Prune { run, .. } => {
                pruned.insert(run);
            }
            Write::Change { ledger, .. } | Write::ForkVersionedStore { ledger, .. } => {
                ledgers.insert(ledger);
            }
            Write::AnswerForwarded { id, .. } => {
                letters.insert(id);
            }
            _ => {}
        }
    }
    let mut found = Found::default();
    if !runs.is_empty() {
        let ids: Vec<_> = runs.iter().map(|run| text::written(run.as_str())).collect();
        let prepared = statements.prepare(client, RUNS).await?;
        for row in client.query(&prepared, &[&ids]).await? {
            let (next_seq, owner): (i64, i64) = (row.try_get(1)?, row.try_get(2)?);
            let run = RunId::new(text::read(row.try_get(0)?).into_owned());
            if row.try_get(3)? {
                found.gone.insert(run.clone());
            }
            found.runs.insert(run, (next_seq.cast_unsigned(), owner.cast_unsigned()));
        }
    }
    if !pruned.is_empty() {
        let ids: Vec<_> = pruned.iter().map(|run| text::written(run.as_str())).collect();
        let prepared = statements.prepare(client, FORKS).await?;
        for row in client.query(&prepared, &[&ids]).await? {
            let id = |at| row.try_get(at).map(|id| RunId::new(text::read(id).into_owned()));
            found.forks.push((id(0)?, id(1)?));
        }
    }
    if !ledgers.is_empty() {
        let keys: Vec<(Vec<u8>, &VersionedStoreId)> = ledgers.iter().map(|id| (rows::versioned_key(id), *id)).collect();
        let wanted: Vec<&[u8]> = keys.iter().map(|(key, _)| key.as_slice()).collect();
        let prepared = statements.prepare(client, LEDGERS).await?;
        for row in client.query(&prepared, &[&wanted]).await? {
            let (key, version): (Vec<u8>, i64) = (row.try_get(0)?, row.try_get(1)?);
            let named = keys.iter().filter(|(wanted, _)| *wanted == key);
            found.ledgers.extend(named.map(|(_, ledger)| ((*ledger).clone(), version.cast_unsigned())));
        }
    }
    if !letters.is_empty() {
        let ids: Vec<_> = letters.iter().map(|id| text::written(id)).collect();
        let prepared = statements.prepare(client, LETTERS).await?;
        for row in client.query(&prepared, &[&ids]).await? {
            found.letters.insert(text::read(row.try_get(0)?).into_owned(), row.try_get(1)?);
        }
    }
    Ok(found)
}
