use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, RunStatus, TenantId, Timestamp, WebhookId, WorkflowId};
use baton_store::codec::{integer, ledger_row};
use baton_store::{
    AnnotationRow, Change, DeadLetter, Delivery, Error, InterruptFilter, InterruptRow, LedgerId, LedgerKind, LedgerRow,
    Lens, LetterPlace, Page, Quarantine, Reader, Reply, RunFilter, RunRow, StoredRecord, Usage, Webhook, WebhookLoad,
    WorkflowVersion,
};
use rusqlite::types::Value;
use rusqlite::{Connection, params};

use crate::query::{bound, list, one};
use crate::store::SqliteStore;
use crate::{ledgers, lens, letters, rows, runs, usage};

fn deliveries(narrowed: &str) -> String {
    format!("SELECT {} FROM deliveries {narrowed}", rows::columns::<Delivery>())
}

#[async_trait]
impl Reader for SqliteStore {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        let id = run.clone();
        self.readers().read(move |c| one(c, &runs::BY_ID, [id.as_str()], rows::stored)).await
    }

    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        let id = run.clone();
        let query = move |c: &Connection| {
            list(c, &runs::RECORDS, params![id.as_str(), integer(from), bound(limit)], rows::stored)
        };
        self.readers().read(query).await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow>, Error> {
        let (sql, values) = runs::query(filter);
        let limit = filter.limit;
        let mut found =
            self.readers().read(move |c| list(c, &sql, rusqlite::params_from_iter(values), rows::run)).await?;
        // One more than asked for was fetched, to know whether there is another page.
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|(position, _)| *position);
        Ok(Page { items: found.into_iter().map(|(_, row)| row).collect(), next })
    }

    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        let (tenant, scope) = (tenant.clone(), scope.map(str::to_owned));
        let query = move |c: &Connection| one(c, runs::ACTIVE, params![tenant.as_str(), scope], rows::run_id);
        self.readers().read(query).await
    }

    async fn run_counts(&self, tenant: &TenantId) -> Result<Vec<(RunStatus, u64)>, Error> {
        let tenant = tenant.clone();
        let query = move |c: &Connection| {
            let mut counts = list(c, runs::COUNTS, [tenant.as_str()], |row| {
                rows::fields(row, |row| Ok((row.parsed("status", RunStatus::parse)?, row.count("count")?)))
            })?;
            let all = one(c, runs::TOTAL, [tenant.as_str()], rows::count)?.unwrap_or(0);
            let others: u64 = counts.iter().map(|(_, count)| count).sum();
            counts.push((RunStatus::Completed, all.saturating_sub(others)));
            Ok(counts)
        };
        self.readers().read(query).await
    }

    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error> {
        let run = run.clone();
        let query = move |c: &Connection| list(c, runs::FORKS, [run.as_str()], rows::run_id);
        self.readers().read(query).await
    }

    async fn descendants(&self, root: &RunId) -> Result<u64, Error> {
        let root = root.clone();
        let query = move |c: &Connection| one(c, runs::DESCENDANTS, params![root.as_str()], rows::count);
        Ok(self.readers().read(query).await?.unwrap_or(0))
    }

    async fn unfinished(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, RunId)>, Error> {
        let after = integer(after.unwrap_or(0));
        let query = move |c: &Connection| {
            list(c, runs::UNFINISHED, params![after, bound(limit)], |row| {
                rows::fields(row, |row| Ok((row.count("run")?, RunId::new(row.text("id")?))))
            })
        };
        self.readers().read(query).await
    }

    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(RunId, Timestamp)>, Error> {
        let query = move |c: &Connection| {
            list(c, runs::DUE, params![until.as_micros(), bound(limit)], |row| {
                rows::fields(row, |row| Ok((RunId::new(row.text("id")?), row.time("wake_at")?)))
            })
        };
        self.readers().read(query).await
    }

    async fn ledger_version(&self, ledger: &LedgerId) -> Result<u64, Error> {
        let ledger = ledger.clone();
        let found = self.readers().read(move |c| ledgers::find(c, &ledger)).await?;
        Ok(found.map_or(0, |place| place.version))
    }

    async fn ledger_base(&self, ledger: &LedgerId) -> Result<Option<(LedgerId, u64)>, Error> {
        let ledger = ledger.clone();
        self.readers().read(move |c| ledgers::base(c, &ledger)).await
    }

    async fn ledger_items(&self, ledger: &LedgerId, lens: &Lens) -> Result<Vec<Change>, Error> {
        let (ledger, lens) = (ledger.clone(), lens.clone());
        self.readers().read(move |c| lens::items(c, &ledger, &lens)).await
    }

    async fn ledger_item(&self, ledger: &LedgerId, key: &str, lens: &Lens) -> Result<Option<Change>, Error> {
        let (ledger, key, lens) = (ledger.clone(), key.to_owned(), lens.clone());
        self.readers().read(move |c| lens::item(c, &ledger, &key, &lens)).await
    }

    async fn ledger_count(&self, ledger: &LedgerId, lens: &Lens) -> Result<u64, Error> {
        let (ledger, lens) = (ledger.clone(), lens.clone());
        self.readers().read(move |c| lens::count(c, &ledger, &lens)).await
    }

    async fn ledger_changes(
        &self,
        ledger: &LedgerId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        let (ledger, key) = (ledger.clone(), key.map(str::to_owned));
        let query = move |c: &Connection| lens::changes(c, &ledger, key.as_deref(), before, bound(limit));
        self.readers().read(query).await
    }

    async fn ledgers(&self, tenant: &TenantId, kind: LedgerKind) -> Result<Vec<LedgerRow>, Error> {
        let tenant = tenant.clone();
        let sql = "SELECT scope, version, updated_at FROM ledgers
                   WHERE tenant = ?1 AND kind = ?2
                   AND (base IS NOT NULL OR EXISTS (SELECT 1 FROM changes WHERE changes.ledger = ledgers.ledger))
                   ORDER BY scope";
        self.readers()
            .read(move |c| list(c, sql, [tenant.as_str(), kind.as_str()], |row| rows::fields(row, ledger_row)))
            .await
    }

    async fn ledger_floor(&self, ledger: &LedgerId) -> Result<Option<u64>, Error> {
        let LedgerId { tenant, kind, scope } = ledger.clone();
        let query = move |c: &Connection| {
            let sql = match kind {
                LedgerKind::Memory => runs::MEMORY_FLOOR,
                LedgerKind::Workspace => runs::WORKSPACE_FLOOR,
            };
            let readers = one(c, sql, [tenant.as_str(), &scope], rows::maybe_count)?.flatten();
            let forks = [tenant.as_str(), kind.as_str(), &scope];
            let forked = one(c, runs::FORK_FLOOR, forks, rows::maybe_count)?.flatten();
            Ok([readers, forked].into_iter().flatten().min())
        };
        self.readers().read(query).await
    }

    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let digest = digest.clone();
        let sql = "SELECT bytes FROM blobs WHERE digest = ?1";
        self.readers().read(move |c| one(c, sql, [digest.as_str()], |row| row.get(0))).await
    }

    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let columns = rows::columns::<WorkflowVersion>();
        let sql =
            format!("SELECT {columns} FROM workflows WHERE tenant = ?1 AND id = ?2 ORDER BY version DESC LIMIT 1");
        self.readers().read(move |c| one(c, &sql, [tenant.as_str(), id.as_str()], rows::stored)).await
    }

    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error> {
        let tenant = tenant.clone();
        // With max(), SQLite takes the other columns from the row that has it.
        let sql = "SELECT tenant, id, max(version), digest, name, created_at FROM workflows
                   WHERE tenant = ?1 GROUP BY id ORDER BY id";
        self.readers().read(move |c| list(c, sql, [tenant.as_str()], rows::stored)).await
    }

    async fn workflow_versions(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Vec<WorkflowVersion>, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let columns = rows::columns::<WorkflowVersion>();
        let sql = format!("SELECT {columns} FROM workflows WHERE tenant = ?1 AND id = ?2 ORDER BY version DESC");
        self.readers().read(move |c| list(c, &sql, [tenant.as_str(), id.as_str()], rows::stored)).await
    }

    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        let mut sql = format!("SELECT {} FROM interrupts WHERE true", rows::columns::<InterruptRow>());
        let mut values = Vec::new();
        let mut narrow = |clause: &str, value: Option<&str>| {
            if let Some(value) = value {
                sql.push_str(clause);
                values.push(Value::from(value.to_owned()));
            }
        };
        narrow(" AND tenant = ?", filter.tenant.as_ref().map(TenantId::as_str));
        narrow(" AND run = ?", filter.run.as_ref().map(RunId::as_str));
        narrow(" AND kind = ?", filter.kind.as_deref());
        sql.push_str(" ORDER BY requested_at, run, node LIMIT ?");
        values.push(Value::from(bound(filter.limit)));
        self.readers().read(move |c| list(c, &sql, rusqlite::params_from_iter(values), rows::stored)).await
    }

    async fn open_interrupts(&self, tenant: &TenantId) -> Result<u64, Error> {
        let tenant = tenant.clone();
        let sql = "SELECT count(*) FROM interrupts WHERE tenant = ?1";
        let query = move |c: &Connection| one(c, sql, [tenant.as_str()], rows::count);
        Ok(self.readers().read(query).await?.unwrap_or(0))
    }

    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error> {
        let (run, node) = (run.clone(), node.clone());
        let sql = format!("SELECT {} FROM interrupts WHERE run = ?1 AND node = ?2", rows::columns::<InterruptRow>());
        self.readers().read(move |c| one(c, &sql, [run.as_str(), node.as_str()], rows::stored)).await
    }

    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        let key = key.clone();
        let sql = format!("SELECT {} FROM replies WHERE key = ?1", rows::columns::<Reply>());
        self.readers().read(move |c| one(c, &sql, [key.as_str()], rows::stored)).await
    }

    async fn annotations(&self, run: &RunId, after: Option<&str>, limit: usize) -> Result<Vec<AnnotationRow>, Error> {
        // No id is empty, so the empty one comes before all.
        let (run, after, limit) = (run.clone(), after.unwrap_or_default().to_owned(), bound(limit));
        let sql = format!(
            "SELECT {} FROM annotations WHERE run = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            rows::columns::<AnnotationRow>()
        );
        self.readers().read(move |c| list(c, &sql, params![run.as_str(), after, limit], rows::stored)).await
    }

    async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<AnnotationRow>, Error> {
        let (run, id) = (run.clone(), id.to_owned());
        let sql = format!("SELECT {} FROM annotations WHERE run = ?1 AND id = ?2", rows::columns::<AnnotationRow>());
        self.readers().read(move |c| one(c, &sql, [run.as_str(), &id], rows::stored)).await
    }

    async fn count_annotations(&self, run: &RunId) -> Result<u64, Error> {
        let run = run.clone();
        let sql = "SELECT count(*) FROM annotations WHERE run = ?1";
        Ok(self.readers().read(move |c| one(c, sql, [run.as_str()], rows::count)).await?.unwrap_or(0))
    }

    async fn quarantine(&self, root: &RunId) -> Result<Option<Quarantine>, Error> {
        let root = root.clone();
        let sql = format!("SELECT {} FROM quarantine WHERE root = ?1", rows::columns::<Quarantine>());
        self.readers().read(move |c| one(c, &sql, [root.as_str()], rows::stored)).await
    }

    async fn quarantined(
        &self,
        tenant: Option<&TenantId>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error> {
        let (tenant, columns) = (tenant.cloned(), rows::columns::<Quarantine>());
        let query = move |c: &Connection| {
            let (after, limit) = (after.as_ref().map(RunId::as_str), bound(limit));
            // Only what is asked for, or no index would be used. No id is empty, so the empty one comes before all.
            let (sql, tenant) = match &tenant {
                Some(tenant) => (" AND tenant = ?3", Some(tenant.as_str())),
                None => ("", None),
            };
            let sql = format!("SELECT {columns} FROM quarantine WHERE root > ?1{sql} ORDER BY root LIMIT ?2");
            match tenant {
                Some(tenant) => list(c, &sql, params![after.unwrap_or_default(), limit, tenant], rows::stored),
                None => list(c, &sql, params![after.unwrap_or_default(), limit], rows::stored),
            }
        };
        self.readers().read(query).await
    }

    async fn count_quarantined(&self) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM quarantine";
        Ok(self.readers().read(move |c| one(c, sql, [], rows::count)).await?.unwrap_or(0))
    }

    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error> {
        let (tenant, id) = (tenant.clone(), id.clone());
        let sql = format!("SELECT {} FROM webhooks WHERE id = ?1 AND tenant = ?2", rows::columns::<Webhook>());
        self.readers().read(move |c| one(c, &sql, [id.as_str(), tenant.as_str()], rows::stored)).await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        let sql = format!("SELECT {} FROM webhooks ORDER BY id", rows::columns::<Webhook>());
        self.readers().read(move |c| list(c, &sql, [], rows::stored)).await
    }

    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error> {
        let sql = deliveries("WHERE due_at <= ?1 ORDER BY due_at, webhook, run, seq LIMIT ?2");
        let query = move |c: &Connection| list(c, &sql, params![now.as_micros(), bound(limit)], rows::stored);
        self.readers().read(query).await
    }

    async fn deliveries_of(&self, webhook: &WebhookId, limit: usize) -> Result<Vec<Delivery>, Error> {
        let sql = deliveries("WHERE webhook = ?1 ORDER BY due_at, run, seq LIMIT ?2");
        let webhook = webhook.to_string();
        let query = move |c: &Connection| list(c, &sql, params![webhook, bound(limit)], rows::stored);
        self.readers().read(query).await
    }

    async fn delivery(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<Delivery>, Error> {
        let sql = deliveries("WHERE webhook = ?1 AND run = ?2 AND seq = ?3");
        let (webhook, run) = (webhook.to_string(), run.to_string());
        let query = move |c: &Connection| one(c, &sql, params![webhook, run, integer(seq)], rows::stored);
        self.readers().read(query).await
    }

    async fn webhooks_of(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, Error> {
        let sql = format!(
            "SELECT {} FROM webhooks WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            rows::columns::<Webhook>()
        );
        let (tenant, after) = (tenant.to_string(), after.map(ToString::to_string).unwrap_or_default());
        self.readers().read(move |c| list(c, &sql, params![tenant, after, bound(limit)], rows::stored)).await
    }

    async fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Result<Vec<WebhookLoad>, Error> {
        let (tenant, only) = (tenant.clone(), only.cloned());
        self.readers().read(move |c| letters::loads(c, &tenant, only.as_ref())).await
    }

    async fn dead_letters(
        &self,
        webhook: &WebhookId,
        before: Option<&LetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        let (webhook, before) = (webhook.clone(), before.cloned());
        self.readers().read(move |c| letters::before(c, &webhook, before.as_ref(), limit)).await
    }

    async fn dead_letter(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<DeadLetter>, Error> {
        let (webhook, run) = (webhook.clone(), run.clone());
        self.readers().read(move |c| letters::one_of(c, &webhook, &run, seq)).await
    }

    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, Error> {
        let query = |c: &Connection| {
            one(c, "SELECT at FROM dead_letters ORDER BY at LIMIT 1", [], |row| rows::fields(row, |row| row.time("at")))
        };
        self.readers().read(query).await
    }

    async fn usage(&self) -> Result<Usage, Error> {
        self.readers().read(usage::read).await
    }

    async fn last_probe(&self) -> Result<Option<u64>, Error> {
        let query = |c: &Connection| one(c, "SELECT number FROM canary", [], |row| row.get::<_, i64>(0));
        Ok(self.readers().read(query).await?.map(i64::cast_unsigned))
    }

    async fn ping(&self) -> Result<(), Error> {
        // Touches the file, which a bare `SELECT 1` would not.
        let query = |c: &Connection| one(c, "SELECT run FROM runs LIMIT 1", [], |_| Ok(()));
        self.readers().read(query).await.map(|_found| ())
    }
}
