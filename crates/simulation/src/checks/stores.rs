//! Of memory and workspaces.

use baton_model::RunId;
use baton_store::reads::*;
use baton_store::{VersionedStoreId, VersionedStoreKind};

use crate::clients::Acknowledged;
use crate::disk::{Observer, at_once};
use crate::workflows::tenants;

pub(crate) fn check(disk: &Observer, known: &Acknowledged, found: &mut Vec<String>) {
    for tenant in tenants() {
        for kind in [VersionedStoreKind::Memory, VersionedStoreKind::Workspace] {
            for row in at_once(disk.store().ledgers(&tenant, kind)) {
                let store = VersionedStoreId { tenant: tenant.clone(), kind, scope: row.scope.clone() };
                let mut changes = disk.changes(&store);
                changes.reverse();
                let versions: Vec<u64> = changes.iter().map(|change| change.version).collect();
                // Pruning forgets; what is left keeps its order and ends with the newest.
                // A fork goes on from where its source was.
                let is_fork = disk.run(&RunId::new(&row.scope)).is_some_and(|run| run.origin.is_some());
                let first = if is_fork { row.version + 1 - versions.len() as u64 } else { 1 };
                let whole = known.pruned || versions.iter().copied().eq(first..=row.version);
                let ordered = versions.is_sorted_by(|a, b| a < b);
                if !whole || !ordered || versions.last().is_some_and(|last| *last > row.version) {
                    found.push(format!(
                        "versions of memory and files are consecutive: {store:?} is at {}: {versions:?}",
                        row.version
                    ));
                }
            }
        }
    }
}
