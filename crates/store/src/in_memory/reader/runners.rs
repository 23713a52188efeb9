//! What is asked about runners.

use async_trait::async_trait;
use baton_model::Timestamp;

use super::super::store::MemoryStore;
use crate::{Error, RunnerReads, RunnerRow, StepRow, StepState, TokenRow};

#[async_trait]
impl RunnerReads for MemoryStore {
    async fn tokens(&self, limit: usize) -> Result<Vec<TokenRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().tokens.values().take(limit).cloned().collect())
    }

    async fn token(&self, hash: &str) -> Result<Option<TokenRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().tokens.values().find(|row| row.hash == hash).cloned())
    }

    async fn runners(&self, limit: usize) -> Result<Vec<RunnerRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().runners.values().take(limit).cloned().collect())
    }

    async fn step(&self, key: &str) -> Result<Option<StepRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        Ok(self.disk.lock().steps.get(key).cloned())
    }

    async fn steps_of(
        &self,
        owner: &str,
        state: StepState,
        after: Option<(Timestamp, &str)>,
        limit: usize,
    ) -> Result<Vec<StepRow>, Error> {
        let _turn = self.turn().await;
        self.look()?;
        let disk = self.disk.lock();
        let behind = |row: &StepRow| after.is_none_or(|after| (row.at, row.key.as_str()) > after);
        let fits = |row: &&StepRow| row.owner == owner && row.state == state && behind(row);
        let mut rows: Vec<StepRow> = disk.steps.values().filter(fits).cloned().collect();
        rows.sort_by(|a, b| (a.at, &a.key).cmp(&(b.at, &b.key)));
        rows.truncate(limit);
        Ok(rows)
    }
}
