//! Connections and migrations.

use std::time::Duration;

use baton_store::Error;
use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod, Runtime};
use tokio_postgres::{AsyncMessage, Client};

use crate::error::{connect_error, unavailable};
use crate::settings::{Address, Settings};
use crate::tls;

mod embedded {
    refinery::embed_migrations!("migrations");
}

/// How often hosts that start at the same time may get into each other's way.
const ATTEMPTS: u32 = 8;
/// How long a read may wait for a connection that is free.
const WAIT: Duration = Duration::from_secs(10);
/// The same for renewing the lease: it is tried several times before the lease is over.
const LEASE_WAIT: Duration = Duration::from_secs(3);
/// No question asked here takes this long on a database that is well.
const READ: &str = "SET statement_timeout = '30s'; SET lock_timeout = '5s'";
/// What the connection is called that renews the lease.
pub(crate) const LEASE_NAME: &str = "baton-lease";
/// For the same few statements over and over, each of which finds its rows by an index whatever their number: planned once.
/// Planning costs more than running them, and a plan that is made while a table is empty must be right for a full one.
pub(crate) const PLAN_ONCE: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
                         SET enable_hashjoin = off; SET enable_mergejoin = off";

/// What the connections of a pool are for.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    /// Questions of a host.
    Reads,
    /// The few questions that are asked all the time; see [`crate::lookups`].
    Lookups,
    /// Renewing the lease.
    Lease,
    /// Questions that read everything, and take their time.
    Copies,
}

#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) address: Address,
    tls: tokio_postgres_rustls::MakeRustlsConnect,
}

impl Connector {
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let address = Address::parse(&settings.url)?;
        let tls = tls::connector(address.tls, address.roots.as_ref())?;
        Ok(Self { address, tls })
    }

    /// A connection of its own. What the server says unasked goes to `heard`; the connection is gone once this returns
    /// `None` or the client's calls fail.
    pub(crate) async fn connect(
        &self,
        heard: impl Fn(tokio_postgres::Notification) + Send + 'static,
    ) -> Result<Client, Error> {
        // The driver's own limit is for reaching the server; one that is reached may still say nothing.
        let (client, mut connection) = tokio::time::timeout(WAIT, self.address.config.connect(self.tls.clone()))
            .await
            .map_err(|_elapsed| self.silent())?
            .map_err(|error| connect_error(&self.address.place(), error))?;
        tokio::spawn(async move {
            while let Some(message) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                match message {
                    Ok(AsyncMessage::Notification(notification)) => heard(notification),
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "a connection to the database is gone");
                        break;
                    }
                }
            }
        });
        Ok(client)
    }

    /// The connection that writes. Nobody waits for ever for a lock, and should this process freeze inside a
    /// transaction, the server gives up on it before anybody needs what it holds.
    pub(crate) async fn writer(&self, lease: Duration) -> Result<Client, Error> {
        let client = self.connect(|_| {}).await?;
        let idle = (lease / 2).as_millis().max(500);
        let settings = "SET synchronous_commit = on; SET lock_timeout = '5s'; SET statement_timeout = '30s'";
        client.batch_execute(settings).await.map_err(|error| connect_error(&self.address.place(), error))?;
        // Not every database that speaks this protocol knows these, and the first is a courtesy to others.
        let _ = client.batch_execute(&format!("SET idle_in_transaction_session_timeout = '{idle}ms'")).await;
        let _ = client.batch_execute(PLAN_ONCE).await;
        Ok(client)
    }

    pub(crate) fn pool(&self, size: usize, used: Use) -> Result<Pool, Error> {
        let manager = Manager::from_config(
            self.address.config.clone(),
            self.tls.clone(),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let wait = if matches!(used, Use::Lease) { LEASE_WAIT } else { WAIT };
        let settle = Hook::async_fn(move |client, _| {
            Box::pin(async move {
                let settled = tokio::time::timeout(wait, settle(client, used)).await;
                settled
                    .map_err(|_elapsed| HookError::message("the database does not answer"))?
                    .map_err(HookError::Backend)
            })
        });
        Pool::builder(manager)
            .max_size(size.max(1))
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(wait))
            .create_timeout(Some(wait))
            .post_create(settle)
            .build()
            .map_err(|error| unavailable(format!("the pool of connections cannot be made: {error}")))
    }

    fn silent(&self) -> Error {
        unavailable(format!("cannot use {}: the database does not answer", self.address.place()))
    }

    /// Migrations take as long as they take; finding that there is nothing to do does not.
    pub(crate) async fn migrate(&self) -> Result<(), Error> {
        let client = self.connect(|_| {}).await?;
        let latest = embedded::migrations::runner().get_migrations().iter().map(|it| it.version()).max();
        let applied = client.query_one("SELECT max(version)::BIGINT FROM refinery_schema_history", &[]);
        // An empty database has no such table.
        let applied = match tokio::time::timeout(WAIT, applied).await.map_err(|_elapsed| self.silent())? {
            Ok(row) => row.try_get::<_, Option<i64>>(0).ok().flatten(),
            Err(_) => None,
        };
        if applied.is_some() && applied == latest.map(i64::from) {
            return tokio::time::timeout(WAIT, migrate_with(client)).await.map_err(|_elapsed| self.silent())?;
        }
        migrate_with(client).await
    }
}

async fn settle(client: &Client, used: Use) -> Result<(), tokio_postgres::Error> {
    match used {
        Use::Copies => client.batch_execute("SET lock_timeout = '5s'").await,
        Use::Reads => client.batch_execute(READ).await,
        // So that whoever looks at the database's connections knows which one must not be cut.
        Use::Lease => client.batch_execute(&format!("{READ}; SET application_name = '{LEASE_NAME}'")).await,
        Use::Lookups => {
            client.batch_execute(READ).await?;
            // A database that does not know it plans as it likes.
            match client.batch_execute(PLAN_ONCE).await {
                Err(error) if error.is_closed() => Err(error),
                _ => Ok(()),
            }
        }
    }
}

async fn migrate_with(mut client: Client) -> Result<(), Error> {
    use refinery::error::Kind;
    for attempt in 1.. {
        // In one transaction: a host that dies between a migration and the note that it was made would leave a schema that no
        // host can migrate any more.
        match embedded::migrations::runner().set_grouped(true).run_async(&mut client).await {
            Ok(report) => {
                for migration in report.applied_migrations() {
                    tracing::info!(%migration, "migrated");
                }
                break;
            }
            Err(error) => match error.kind() {
                Kind::MissingVersion(..) => {
                    let hint = "run that version here too, or use another database";
                    return Err(Error::Corrupt {
                        reason: format!("the database was migrated by a newer version of Baton ({error}); {hint}"),
                    });
                }
                Kind::DivergentVersion(..) => {
                    let reason = format!("the data was written by another version of Baton: {error}");
                    return Err(Error::Corrupt { reason });
                }
                // Another host may be doing the same thing right now; then it is done the next time.
                _ if attempt < ATTEMPTS => tokio::time::sleep(Duration::from_millis(50) * attempt).await,
                _ => {
                    let reason = format!("cannot migrate: {}", cause(&error));
                    return Err(Error::Unavailable { reason, source: Some(Box::new(error)) });
                }
            },
        }
    }
    Ok(())
}

fn cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", cause(source)),
        None => error.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use baton_model::{NodeId, RunId, TenantId, WorkflowId};
    use baton_store::conformance::sample::{notes, row, submit};
    use baton_store::reads::*;
    use baton_store::{Commit, Journal as _, ReadView, RunFilter, VersionedStoreId, Write};
    use baton_testkit::postgres::Database;
    use refinery::Target;

    use super::*;
    use crate::PostgresStore;

    /// Names that an index had room for, just so, are found under their keys afterwards.
    #[tokio::test]
    async fn a_database_of_the_version_before_long_texts_opens_and_goes_on() {
        let Some(database) = Database::fresh().await else { return };
        let settings = Settings::new(database.url.clone());
        let mut old = Connector::new(&settings).unwrap().connect(|_| {}).await.unwrap();
        embedded::migrations::runner().set_target(Target::Version(5)).run_async(&mut old).await.unwrap();
        // As it was written then: a 0 is 1 1 there.
        let long = format!("{}\0{}", "ü".repeat(99), "y".repeat(900));
        let long_there = long.replace('\0', "\u{1}\u{1}");
        let digest = baton_model::Digest::of_bytes("echo");
        let ledger = VersionedStoreId::memory(&TenantId::new("acme"), &long);
        let (key, digest) = (crate::rows::versioned_key(&ledger), digest.as_str());
        for (sql, values) in [
            (
                "INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, busy, scope, tags)
                 VALUES ('run_a', 'acme', $1, $2, 'running', 1, 1, 0, true, $1, '{}')",
                vec![&long_there as &(dyn tokio_postgres::types::ToSql + Sync), &digest],
            ),
            (
                "INSERT INTO interrupts (run, node, tenant, workflow, interrupt_id, key, kind, data, requested_at)
                 VALUES ('run_a', $1, 'acme', 'echo', 'i', 'k', 'approval', '{}', 1)",
                vec![&long_there],
            ),
            (
                "INSERT INTO workflows (tenant, id, version, digest, name, created_at) VALUES ('acme', $1, 1, $2, 'n', 1)",
                vec![&long_there, &digest],
            ),
            (
                "INSERT INTO ledgers (ledger, tenant, kind, scope, version, updated_at) VALUES ($2, 'acme', 'memory', $1, 1, 1)",
                vec![&long_there, &key],
            ),
            (
                "INSERT INTO changes (ledger, version, key, at, tags, meta, content) VALUES ($2, 1, $1, 1, '{}', '{}', 'c')",
                vec![&long_there, &key],
            ),
        ] {
            old.execute(sql, &values).await.unwrap();
        }
        drop(old);

        let store = PostgresStore::open_alone(&settings).await.unwrap();
        let (tenant, workflow, node) = (TenantId::new("acme"), WorkflowId::new(&*long), NodeId::new(&*long));
        let found = store.run(&RunId::new("run_a")).await.unwrap().unwrap();
        assert_eq!(
            (found.workflow.as_str(), found.scope.as_deref(), &found.memory_scope),
            (&*long, Some(&*long), &long)
        );
        assert_eq!(store.active_run(&tenant, Some(&long)).await.unwrap(), Some(RunId::new("run_a")));
        let filter = RunFilter {
            tenant: Some(tenant.clone()),
            workflow: Some(workflow.clone()),
            limit: 9,
            ..RunFilter::default()
        };
        assert_eq!(store.runs(&filter).await.unwrap().items, [found]);
        assert_eq!(store.interrupt(&RunId::new("run_a"), &node).await.unwrap().unwrap().node, node);
        assert_eq!(store.workflow(&tenant, &workflow).await.unwrap().unwrap().id, workflow);
        let lens = ReadView { version: 1, prefix: Some(long.clone()), ..ReadView::default() };
        assert_eq!(store.versioned_item(&ledger, &long, &lens).await.unwrap().unwrap().key, long);
        assert_eq!(store.versioned_items(&ledger, &lens).await.unwrap().len(), 1);
        assert_eq!(store.ledgers(&tenant, baton_store::VersionedStoreKind::Memory).await.unwrap()[0].scope, long);
        submit(&store, vec![Write::CloseInterrupt { run: RunId::new("run_a"), node: node.clone() }]).await.unwrap();
        assert_eq!(store.interrupt(&RunId::new("run_a"), &node).await.unwrap(), None);
        store
            .submit(Commit::new(1, vec![Write::CreateRun(row("run_b")), Write::DropVersionedStore(notes())]))
            .await
            .unwrap();
        store.close().await;
    }
}
