//! A store in which one record is not what it was.

use std::sync::Arc;

use baton_model::RunId;
use baton_store::{Commit, Journal, MemoryStore, StoredRecord, Write};

use crate::common::World;

/// A copy of everything a run needs, with its records as `forge` leaves them.
pub async fn forged(world: &World, run: &RunId, forge: impl FnOnce(&mut Vec<StoredRecord>)) -> Arc<MemoryStore> {
    let copy = MemoryStore::new();
    let mut row = world.reader.run(run).await.unwrap().unwrap();
    let mut records = world.reader.records(run, 0, usize::MAX).await.unwrap();
    forge(&mut records);
    row.next_seq = records.len() as u64;
    row.chain = baton_store::LogChain::default();
    row.seal(&mut records);
    let bytes = world.reader.blob(&row.digest).await.unwrap().unwrap();
    let writes = vec![
        Write::PutBlob { digest: row.digest.clone(), bytes },
        Write::CreateRun(row.clone()),
        Write::Append { row, expected: 0, records },
    ];
    copy.submit(Commit::new(copy.generation(), writes)).await.unwrap();
    Arc::new(copy)
}
