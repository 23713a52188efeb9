//! Judging a file as a whole, once all of it is there.

use std::collections::BTreeSet;

use baton_store::reads::*;
use baton_store::{RunRow, VersionedStoreId};

use super::staged::{Staged, StagedDefinition};
use crate::Error;
use crate::history::transfer::line_checks::at;
use crate::steps::pass;

impl Staged {
    pub(super) async fn check(&self) -> Result<(), Error> {
        for top in [&self.run, &self.first] {
            let row = self.store.run(top).await?;
            if row.is_none_or(|row| row.root.is_some() || (top == &self.first && row.origin.is_some())) {
                return Err(at(1, format!("the run {top} is not in the file, or not at the top of its tree")));
            }
        }
        let mut used = Used::default();
        for (run, line) in &self.runs {
            let row = self.store.run(run).await?.ok_or_else(Error::run_not_found)?;
            self.check_family(&row, *line).await?;
            self.check_log(&row, *line).await?;
            used.note(&row);
            pass().await;
        }
        self.check_used(used)
    }

    /// A tree is whole, or it is not a tree.
    async fn check_family(&self, row: &RunRow, line: u64) -> Result<(), Error> {
        let (Some(parent), Some(root)) = (&row.parent, &row.root) else { return Ok(()) };
        let stray = || at(line, format!("the parent of {} is not in the file, or belongs to another tree", row.id));
        let parent = self.store.run(parent).await?.ok_or_else(stray)?;
        if parent.root.as_ref().unwrap_or(&parent.id) == root { Ok(()) } else { Err(stray()) }
    }

    /// The log folds, has ended, and the row says what it says.
    async fn check_log(&self, row: &RunRow, line: u64) -> Result<(), Error> {
        let broken = |error: Error| at(line, format!("the log of {} does not fold", row.id)).because(error);
        let folded = self.log.fold(&row.id).await.map_err(broken)?;
        let Some((state, _)) = folded else { return Err(at(line, format!("the run {} has no log", row.id))) };
        let told = (state.status(), state.current_node(), state.error().map(|error| error.code.as_str()));
        if !state.status().is_terminal() {
            return Err(at(line, format!("the log of {} does not tell of its end", row.id)));
        }
        if told != (row.status, row.current_node.as_ref(), row.error_code.as_deref()) {
            return Err(at(line, format!("the run {} is not what its log says", row.id)));
        }
        Ok(())
    }

    /// Nothing comes along that no run needs.
    fn check_used(&self, mut used: Used) -> Result<(), Error> {
        let unused = self.definitions.iter().find(|definition| !used.definitions.contains(&definition.digest));
        if let Some(StagedDefinition { workflow, .. }) = unused {
            return Err(Error::invalid(format!("No run of the file uses its definition of `{workflow}`.")));
        }
        if let Some(digest) = self.agents.difference(&self.pinned).next() {
            return Err(Error::invalid(format!("No run of the file works with its agent {digest}.")));
        }
        used.ledgers
            .extend(self.ledgers.iter().filter_map(|ledger| ledger.base.as_ref()).map(|(base, _)| base.clone()));
        match self.ledgers.iter().find(|ledger| !used.ledgers.contains(&ledger.id)) {
            Some(ledger) => {
                let (kind, scope) = (ledger.id.kind.as_str(), &ledger.id.scope);
                Err(Error::invalid(format!("No run of the file uses its {kind} `{scope}`.")))
            }
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct Used {
    definitions: BTreeSet<baton_model::Digest>,
    ledgers: BTreeSet<VersionedStoreId>,
}

impl Used {
    fn note(&mut self, row: &RunRow) {
        self.definitions.insert(row.digest.clone());
        self.ledgers.insert(VersionedStoreId::memory(&row.tenant, &row.memory_scope));
        self.ledgers.insert(VersionedStoreId::workspace(&row.tenant, &row.workspace_scope));
    }
}
