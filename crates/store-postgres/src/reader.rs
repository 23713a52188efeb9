use async_trait::async_trait;
use baton_model::{Digest, NodeId, RunId, RunStatus, TenantId, Timestamp, WebhookId, WorkflowId};
use baton_store::codec::{integer, ledger_row, webhook_load};
use baton_store::{
    AnnotationRow, Change, DeadLetter, Delivery, Error, InterruptFilter, InterruptRow, LedgerId, LedgerKind, LedgerRow,
    Lens, LetterPlace, Page, Quarantine, Reader, Reply, RunFilter, RunRow, StoredRecord, Usage, Webhook, WebhookLoad,
    WorkflowVersion,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::questions::bound;
use crate::runs::{Query, Value};
use crate::text::{key, written};
use crate::{PostgresStore, lens, rows, runs, usage};

const RUNS_OF_MINE: &str = "EXISTS (SELECT 1 FROM runs WHERE runs.id = deliveries.run AND runs.owner = $3)";

fn deliveries(narrowed: &str) -> String {
    format!("SELECT {} FROM deliveries {narrowed}", rows::columns::<Delivery>())
}

#[async_trait]
impl Reader for PostgresStore {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Error> {
        self.lookups.run(run).await
    }

    async fn records(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<StoredRecord>, Error> {
        self.questions
            .list(&runs::RECORDS, &[&written(run.as_str()), &integer(from), &bound(limit)], rows::stored)
            .await
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Page<RunRow>, Error> {
        let (sql, values) = runs::query(filter);
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        let mut found = self.questions.list(&sql, &values, rows::run).await?;
        // One more than asked for was fetched, to know whether there is another page.
        let more = found.len() > filter.limit;
        found.truncate(filter.limit);
        let next = found.last().filter(|_| more).map(|(position, _)| *position);
        Ok(Page { items: found.into_iter().map(|(_, row)| row).collect(), next })
    }

    async fn active_run(&self, tenant: &TenantId, scope: Option<&str>) -> Result<Option<RunId>, Error> {
        let tenant = written(tenant.as_str());
        match scope {
            Some(scope) => self.questions.one(runs::ACTIVE_IN, &[&tenant, &key(scope)], rows::run_id).await,
            None => self.questions.one(runs::ACTIVE, &[&tenant], rows::run_id).await,
        }
    }

    async fn run_counts(&self, tenant: &TenantId) -> Result<Vec<(RunStatus, u64)>, Error> {
        let sql = "SELECT status, count(*) FROM runs WHERE tenant = $1 GROUP BY status";
        let read =
            |row: &Row| rows::fields(row, |row| Ok((row.parsed("status", RunStatus::parse)?, row.count("count")?)));
        let found = self.questions.list(sql, &[&written(tenant.as_str())], read).await?;
        let count = |status| found.iter().find(|(known, _)| *known == status).map_or(0, |(_, count)| *count);
        Ok(RunStatus::ALL.map(|status| (status, count(status))).to_vec())
    }

    async fn forks(&self, run: &RunId) -> Result<Vec<RunId>, Error> {
        self.questions.list(runs::FORKS, &[&written(run.as_str())], rows::run_id).await
    }

    async fn descendants(&self, root: &RunId) -> Result<u64, Error> {
        let counted = self.questions.one(runs::DESCENDANTS, &[&written(root.as_str())], rows::count).await?;
        Ok(counted.unwrap_or(0))
    }

    async fn unfinished(&self, after: Option<u64>, limit: usize) -> Result<Vec<(u64, RunId)>, Error> {
        let after = integer(after.unwrap_or(0));
        let read = |row: &Row| rows::fields(row, |row| Ok((row.count("position")?, RunId::new(row.text("id")?))));
        self.questions.list(runs::UNFINISHED, &[&self.me(), &after, &bound(limit)], read).await
    }

    async fn due(&self, until: Timestamp, limit: usize) -> Result<Vec<(RunId, Timestamp)>, Error> {
        let read = |row: &Row| rows::fields(row, |row| Ok((RunId::new(row.text("id")?), row.time("wake_at")?)));
        self.questions.list(runs::DUE, &[&self.me(), &until.as_micros(), &bound(limit)], read).await
    }

    async fn ledger_version(&self, ledger: &LedgerId) -> Result<u64, Error> {
        self.lookups.ledger_version(ledger).await
    }

    async fn ledger_base(&self, ledger: &LedgerId) -> Result<Option<(LedgerId, u64)>, Error> {
        let sql =
            "SELECT coalesce(base.long_scope, base.scope), forked.base_version FROM ledgers forked JOIN ledgers base
                   ON base.ledger = forked.base WHERE forked.ledger = $1";
        let read = |row: &Row| {
            rows::fields(row, |row| {
                Ok((LedgerId { scope: row.text("scope")?, ..ledger.clone() }, row.count("base_version")?))
            })
        };
        self.questions.one(sql, &[&rows::ledger_key(ledger)], read).await
    }

    async fn ledger_items(&self, ledger: &LedgerId, lens: &Lens) -> Result<Vec<Change>, Error> {
        lens::items(self, ledger, lens).await
    }

    async fn ledger_item(&self, ledger: &LedgerId, key: &str, lens: &Lens) -> Result<Option<Change>, Error> {
        lens::item(self, ledger, key, lens).await
    }

    async fn ledger_count(&self, ledger: &LedgerId, lens: &Lens) -> Result<u64, Error> {
        lens::count(self, ledger, lens).await
    }

    async fn ledger_changes(
        &self,
        ledger: &LedgerId,
        key: Option<&str>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Change>, Error> {
        lens::changes(self, ledger, key, before, bound(limit)).await
    }

    async fn ledgers(&self, tenant: &TenantId, kind: LedgerKind) -> Result<Vec<LedgerRow>, Error> {
        let sql = "SELECT coalesce(long_scope, scope), version, updated_at FROM ledgers
                   WHERE tenant = $1 AND kind = $2
                   AND (base IS NOT NULL OR EXISTS (SELECT 1 FROM changes WHERE changes.ledger = ledgers.ledger))
                   ORDER BY coalesce(long_scope, scope)";
        self.questions
            .list(sql, &[&written(tenant.as_str()), &kind.as_str()], |row| rows::fields(row, ledger_row))
            .await
    }

    async fn ledger_floor(&self, ledger: &LedgerId) -> Result<Option<u64>, Error> {
        let (tenant, scope) = (written(ledger.tenant.as_str()), written(&ledger.scope));
        let readers = match ledger.kind {
            LedgerKind::Memory => {
                self.questions
                    .one(runs::MEMORY_FLOOR, &[&tenant, &key(&ledger.scope), &scope], rows::maybe_count)
                    .await?
            }
            LedgerKind::Workspace => {
                self.questions.one(runs::WORKSPACE_FLOOR, &[&tenant, &scope], rows::maybe_count).await?
            }
        };
        let readers = readers.flatten();
        let ledger = rows::ledger_key(ledger);
        let forked = self.questions.one(runs::FORK_FLOOR, &[&ledger], rows::maybe_count).await?.flatten();
        Ok([readers, forked].into_iter().flatten().min())
    }

    async fn blob(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Error> {
        let sql = "SELECT bytes FROM blobs WHERE digest = $1";
        self.questions.one(sql, &[&digest.as_str()], rows::raw).await
    }

    async fn workflow(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Option<WorkflowVersion>, Error> {
        self.lookups.workflow(tenant, id).await
    }

    async fn workflows(&self, tenant: &TenantId) -> Result<Vec<WorkflowVersion>, Error> {
        let sql = format!(
            "SELECT {} FROM workflows
             WHERE tenant = $1 AND version = (SELECT max(newest.version) FROM workflows newest
                 WHERE newest.tenant = workflows.tenant AND newest.id = workflows.id)
             ORDER BY coalesce(long_id, id)",
            rows::columns::<WorkflowVersion>()
        );
        self.questions.list(&sql, &[&written(tenant.as_str())], rows::stored).await
    }

    async fn workflow_versions(&self, tenant: &TenantId, id: &WorkflowId) -> Result<Vec<WorkflowVersion>, Error> {
        let sql = format!(
            "SELECT {} FROM workflows WHERE tenant = $1 AND id = $2 ORDER BY version DESC",
            rows::columns::<WorkflowVersion>()
        );
        self.questions.list(&sql, &[&written(tenant.as_str()), &key(id.as_str())], rows::stored).await
    }

    async fn interrupts(&self, filter: &InterruptFilter) -> Result<Vec<InterruptRow>, Error> {
        // Only what is asked for, or no index would be used.
        let text = |text: &str| -> Value { Box::new(written(text).into_owned()) };
        let sql = format!("SELECT {} FROM interrupts WHERE true", rows::columns::<InterruptRow>());
        let mut query = Query { sql, values: Vec::new() };
        query.narrow("tenant = $", filter.tenant.as_ref().map(|tenant| text(tenant.as_str())));
        query.narrow("run = $", filter.run.as_ref().map(|run| text(run.as_str())));
        query.narrow("kind = $", filter.kind.as_deref().map(text));
        query.values.push(Box::new(bound(filter.limit)));
        query
            .sql
            .push_str(&format!(" ORDER BY requested_at, run, coalesce(long_node, node) LIMIT ${}", query.values.len()));
        let values: Vec<&(dyn ToSql + Sync)> =
            query.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        self.questions.list(&query.sql, &values, rows::stored).await
    }

    async fn open_interrupts(&self, tenant: &TenantId) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM interrupts WHERE tenant = $1";
        let counted = self.questions.one(sql, &[&written(tenant.as_str())], rows::count).await?;
        Ok(counted.unwrap_or(0))
    }

    async fn interrupt(&self, run: &RunId, node: &NodeId) -> Result<Option<InterruptRow>, Error> {
        let sql = format!("SELECT {} FROM interrupts WHERE run = $1 AND node = $2", rows::columns::<InterruptRow>());
        self.questions.one(&sql, &[&written(run.as_str()), &key(node.as_str())], rows::stored).await
    }

    async fn reply(&self, key: &Digest) -> Result<Option<Reply>, Error> {
        let sql = format!("SELECT {} FROM replies WHERE key = $1", rows::columns::<Reply>());
        self.questions.one(&sql, &[&key.as_str()], rows::stored).await
    }

    async fn annotations(&self, run: &RunId, after: Option<&str>, limit: usize) -> Result<Vec<AnnotationRow>, Error> {
        let sql = format!(
            "SELECT {} FROM annotations WHERE run = $1 AND id > $2 ORDER BY id LIMIT $3",
            rows::columns::<AnnotationRow>()
        );
        let (run, after, limit) = (written(run.as_str()), written(after.unwrap_or_default()), bound(limit));
        self.questions.list(&sql, &[&run, &after, &limit], rows::stored).await
    }

    async fn annotation(&self, run: &RunId, id: &str) -> Result<Option<AnnotationRow>, Error> {
        let sql = format!("SELECT {} FROM annotations WHERE run = $1 AND id = $2", rows::columns::<AnnotationRow>());
        self.questions.one(&sql, &[&written(run.as_str()), &written(id)], rows::stored).await
    }

    async fn count_annotations(&self, run: &RunId) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM annotations WHERE run = $1";
        let counted = self.questions.one(sql, &[&written(run.as_str())], rows::count).await?;
        Ok(counted.unwrap_or(0))
    }

    async fn quarantine(&self, root: &RunId) -> Result<Option<Quarantine>, Error> {
        let sql = format!("SELECT {} FROM quarantine WHERE root = $1", rows::columns::<Quarantine>());
        self.questions.one(&sql, &[&written(root.as_str())], rows::stored).await
    }

    async fn quarantined(
        &self,
        tenant: Option<&TenantId>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<Quarantine>, Error> {
        // No id is empty, so the empty one comes before all.
        let after = after.map_or_else(String::new, |after| written(after.as_str()).into_owned());
        let (limit, mut sql) =
            (bound(limit), format!("SELECT {} FROM quarantine WHERE root > $1", rows::columns::<Quarantine>()));
        match tenant.map(|tenant| written(tenant.as_str())) {
            Some(tenant) => {
                sql.push_str(" AND tenant = $3 ORDER BY root LIMIT $2");
                self.questions.list(&sql, &[&after, &limit, &tenant], rows::stored).await
            }
            None => {
                sql.push_str(" ORDER BY root LIMIT $2");
                self.questions.list(&sql, &[&after, &limit], rows::stored).await
            }
        }
    }

    async fn count_quarantined(&self) -> Result<u64, Error> {
        let counted = self.questions.one("SELECT count(*) FROM quarantine", &[], rows::count).await?;
        Ok(counted.unwrap_or(0))
    }

    async fn webhook(&self, tenant: &TenantId, id: &WebhookId) -> Result<Option<Webhook>, Error> {
        let sql = format!("SELECT {} FROM webhooks WHERE id = $1 AND tenant = $2", rows::columns::<Webhook>());
        self.questions.one(&sql, &[&written(id.as_str()), &written(tenant.as_str())], rows::stored).await
    }

    async fn webhooks(&self) -> Result<Vec<Webhook>, Error> {
        self.questions
            .list(&format!("SELECT {} FROM webhooks ORDER BY id", rows::columns::<Webhook>()), &[], rows::stored)
            .await
    }

    async fn deliveries(&self, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Error> {
        let (now, limit, order) = (now.as_micros(), bound(limit), "ORDER BY due_at, webhook, run, seq LIMIT $2");
        match self.lease {
            None => {
                let all = deliveries(&format!("WHERE due_at <= $1 {order}"));
                self.questions.list(&all, &[&now, &limit], rows::stored).await
            }
            Some(_) => {
                let mine = deliveries(&format!("WHERE due_at <= $1 AND {RUNS_OF_MINE} {order}"));
                self.questions.list(&mine, &[&now, &limit, &self.me()], rows::stored).await
            }
        }
    }

    async fn deliveries_of(&self, webhook: &WebhookId, limit: usize) -> Result<Vec<Delivery>, Error> {
        let (webhook, limit, order) = (written(webhook.as_str()), bound(limit), "ORDER BY due_at, run, seq LIMIT $2");
        match self.lease {
            None => {
                let all = deliveries(&format!("WHERE webhook = $1 {order}"));
                self.questions.list(&all, &[&webhook, &limit], rows::stored).await
            }
            Some(_) => {
                let mine = deliveries(&format!("WHERE webhook = $1 AND {RUNS_OF_MINE} {order}"));
                self.questions.list(&mine, &[&webhook, &limit, &self.me()], rows::stored).await
            }
        }
    }

    async fn delivery(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<Delivery>, Error> {
        let sql = deliveries("WHERE webhook = $1 AND run = $2 AND seq = $3");
        let (webhook, run) = (written(webhook.as_str()), written(run.as_str()));
        self.questions.one(&sql, &[&webhook, &run, &integer(seq)], rows::stored).await
    }

    async fn webhooks_of(
        &self,
        tenant: &TenantId,
        after: Option<&WebhookId>,
        limit: usize,
    ) -> Result<Vec<Webhook>, Error> {
        let sql = format!(
            "SELECT {} FROM webhooks WHERE tenant = $1 AND id > $2 ORDER BY id LIMIT $3",
            rows::columns::<Webhook>()
        );
        let (tenant, after) = (written(tenant.as_str()), written(after.map_or("", |after| after.as_str())));
        self.questions.list(&sql, &[&tenant, &after, &bound(limit)], rows::stored).await
    }

    async fn webhook_loads(&self, tenant: &TenantId, only: Option<&WebhookId>) -> Result<Vec<WebhookLoad>, Error> {
        let sql = "SELECT id, (SELECT count(*) FROM dead_letters WHERE webhook = id),
                (SELECT count(*) FROM deliveries WHERE webhook = id)
            FROM webhooks WHERE tenant = $1 AND ($2::TEXT IS NULL OR id = $2) ORDER BY id";
        let (tenant, only) = (written(tenant.as_str()), only.map(|only| written(only.as_str())));
        self.questions.list(sql, &[&tenant, &only], |row| rows::fields(row, webhook_load)).await
    }

    async fn dead_letters(
        &self,
        webhook: &WebhookId,
        before: Option<&LetterPlace>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, Error> {
        let older = if before.is_some() { "AND (at, run, seq) < ($3, $4, $5)" } else { "" };
        let sql = format!(
            "SELECT {} FROM dead_letters WHERE webhook = $1 {older} ORDER BY at DESC, run DESC, seq DESC LIMIT $2",
            rows::columns::<DeadLetter>()
        );
        let (webhook, limit) = (written(webhook.as_str()), bound(limit));
        let Some(LetterPlace { at, run, seq }) = before else {
            return self.questions.list(&sql, &[&webhook, &limit], rows::stored).await;
        };
        let (at, run, seq) = (at.as_micros(), written(run.as_str()), integer(*seq));
        self.questions.list(&sql, &[&webhook, &limit, &at, &run, &seq], rows::stored).await
    }

    async fn dead_letter(&self, webhook: &WebhookId, run: &RunId, seq: u64) -> Result<Option<DeadLetter>, Error> {
        let sql = format!(
            "SELECT {} FROM dead_letters WHERE webhook = $1 AND run = $2 AND seq = $3",
            rows::columns::<DeadLetter>()
        );
        let (webhook, run) = (written(webhook.as_str()), written(run.as_str()));
        self.questions.one(&sql, &[&webhook, &run, &integer(seq)], rows::stored).await
    }

    async fn oldest_dead_letter(&self) -> Result<Option<Timestamp>, Error> {
        self.questions
            .one("SELECT at FROM dead_letters ORDER BY at LIMIT 1", &[], |row| rows::fields(row, |row| row.time("at")))
            .await
    }

    async fn usage(&self) -> Result<Usage, Error> {
        Ok(usage::read(self).await)
    }

    async fn last_probe(&self) -> Result<Option<u64>, Error> {
        let sql = "SELECT number FROM canary WHERE epoch = $1";
        let found = self.questions.one(sql, &[&self.me()], rows::raw::<i64>).await?;
        Ok(found.map(i64::cast_unsigned))
    }

    async fn ping(&self) -> Result<(), Error> {
        // Touches a table, which a bare `SELECT 1` would not.
        self.questions.ask("SELECT id FROM runs LIMIT 1", &[]).await.map(|_rows| ())
    }
}
