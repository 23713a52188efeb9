//! What hosts that share the database want of it beside the log; see [`Shared`].
//!
//! Whatever changes something here does so for the session, in one statement or one short transaction that locks the
//! session's row as the writer does: once the session has ended, it changes nothing.

use std::time::Duration;

use async_trait::async_trait;
use baton_model::{RunId, Timestamp};
use baton_store::codec::{Fields, Source, Unreadable, integer};
use baton_store::{
    Claim, ClusterEvent, Error, ForwardedCommand, KEEP_ANSWERS, Owner, Recipient, Session, Shared, Suspect,
};
use tokio::sync::broadcast;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};

use crate::error::{is_retryable, read_error, unavailable};
use crate::questions::bound;
use crate::session::{SESSION, millis};
use crate::text::{key, written};
use crate::{PostgresStore, rows};

/// How often a transaction may come again because somebody else was in its way.
const ATTEMPTS: usize = 10;

const RENEW: &str = "UPDATE sessions SET lease_until = now() + $2::BIGINT * INTERVAL '1 millisecond', load = $3
    WHERE epoch = $1 AND NOT ended
    RETURNING EXISTS (SELECT 1 FROM sessions others WHERE NOT others.ended AND others.epoch <> $1)";

/// Of those who freeze in the middle of a transaction, the row is locked until the server gives up on them, which is
/// before their lease is over; so nobody is passed over for long.
const END_LAPSED: &str = "UPDATE sessions SET ended = true, died = true, ended_at = now() WHERE epoch IN (
    SELECT epoch FROM sessions WHERE NOT ended AND lease_until < now() ORDER BY epoch FOR UPDATE SKIP LOCKED)
    RETURNING epoch";
const END_ONE_LAPSED: &str = "UPDATE sessions SET ended = true, died = true, ended_at = now() WHERE epoch IN (
    SELECT epoch FROM sessions WHERE epoch = $1 AND NOT ended AND lease_until < now() FOR UPDATE SKIP LOCKED)
    RETURNING epoch";
/// How long it can be looked up which host a session was, once nothing is left to take over from it.
const KEEP_SESSIONS: Duration = Duration::from_secs(30 * 24 * 3600);
const FORGET_SESSIONS: &str = "DELETE FROM sessions
    WHERE ended AND ended_at < now() - $1::BIGINT * INTERVAL '1 millisecond'
    AND NOT EXISTS (SELECT 1 FROM runs WHERE owner = epoch AND busy)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE owner = epoch AND wake_at IS NOT NULL)";
const FORGET: [&str; 5] = [
    "DELETE FROM suspects WHERE NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = suspects.root
     AND runs.status NOT IN ('completed', 'failed', 'cancelled'))",
    "DELETE FROM canary WHERE epoch <> 0
     AND NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.epoch = canary.epoch AND NOT ended)",
    "DELETE FROM inbox WHERE session IS NOT NULL
     AND NOT EXISTS (SELECT 1 FROM sessions WHERE epoch = inbox.session AND NOT ended)",
    "DELETE FROM claims WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.epoch = claims.epoch AND NOT ended)",
    "DELETE FROM inbox WHERE answered_at IS NOT NULL AND answered_at < now() - $1::BIGINT * INTERVAL '1 millisecond'",
];

/// Trees of the dead in which something is to be done by then. 0 has never been alive, and of sessions that are forgotten
/// nothing is busy or due. Owner by owner and no more than wanted, so that it costs nothing how many others there are.
const ORPHANS: &str = "WITH dead AS (SELECT epoch FROM sessions WHERE ended UNION ALL SELECT 0)
    SELECT tree FROM (
        SELECT unfinished.* FROM dead, LATERAL (
            SELECT coalesce(root, id) AS tree, position FROM runs WHERE owner = dead.epoch AND busy
            ORDER BY position LIMIT $2) unfinished
        UNION ALL
        SELECT tree, position FROM dead, LATERAL (
            SELECT coalesce(root, id) AS tree, position, wake_at FROM runs
            WHERE owner = dead.epoch AND wake_at IS NOT NULL AND wake_at <= $1
            ORDER BY wake_at, position LIMIT $2) due
        UNION ALL
        SELECT tree, position FROM deliveries, LATERAL (
            SELECT coalesce(root, id) AS tree, position, owner FROM runs WHERE id = deliveries.run LIMIT 1) sender
        WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE epoch = owner AND NOT ended)
        UNION ALL
        SELECT tree, addressee.position FROM inbox, LATERAL (
            SELECT coalesce(root, id) AS tree, position, owner FROM runs WHERE id = inbox.run LIMIT 1) addressee
        WHERE answered_at IS NULL AND NOT EXISTS (SELECT 1 FROM sessions WHERE epoch = owner AND NOT ended)
    ) wanted GROUP BY tree ORDER BY min(position) LIMIT $2";
/// Those of them that nobody is taking right now.
/// And whether the owner may have died of it.
const TAKE: &str = "SELECT id, owner, EXISTS (SELECT 1 FROM sessions WHERE epoch = runs.owner AND died)
        AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.root = runs.id) AND (
            EXISTS (SELECT 1 FROM suspects WHERE suspects.root = runs.id AND marked_by = runs.owner)
            OR EXISTS (SELECT 1 FROM (
                SELECT tree.id, tree.owner, tree.busy, tree.wake_at FROM runs tree WHERE tree.id = runs.id
                UNION ALL
                SELECT tree.id, tree.owner, tree.busy, tree.wake_at FROM runs tree
                WHERE tree.root = runs.id AND tree.root IS NOT NULL) tree
            WHERE tree.owner = runs.owner AND (busy
                OR wake_at <= (extract(epoch FROM now()) * 1000000)::BIGINT
                OR EXISTS (SELECT 1 FROM inbox WHERE inbox.run = tree.id AND answered_at IS NULL))))
    FROM runs WHERE id = ANY($1)
    AND NOT EXISTS (SELECT 1 FROM sessions WHERE epoch = runs.owner AND NOT ended)
    ORDER BY position FOR UPDATE OF runs SKIP LOCKED";
const TAKE_ROOT: &str = "UPDATE runs SET owner = $3 WHERE id = $1 AND owner = $2";
const TAKE_BELOW: &str = "UPDATE runs SET owner = $3 WHERE root = $1 AND root IS NOT NULL AND owner = $2";

const NO_LONGER_MARKED: &str = "UPDATE suspects SET marked_by = NULL WHERE root = ANY($1) AND marked_by IS NOT NULL";
const SUSPECT: &str = "INSERT INTO suspects (root, takeovers)
    SELECT root, 1 FROM unnest($1::TEXT[], $2::BIGINT[]) AS taken (root, dead)
    ON CONFLICT (root) DO UPDATE SET takeovers = suspects.takeovers + 1";
const DEATHS: &str = "UPDATE suspects SET deaths = deaths + 1
    FROM unnest($1::TEXT[], $2::BIGINT[]) AS taken (root, dead)
    WHERE suspects.root = taken.root AND suspects.marked_by = taken.dead";
const SUSPECTS: &str = "SELECT suspects.root, takeovers, deaths FROM suspects JOIN runs ON runs.id = suspects.root
    WHERE runs.owner = $1 ORDER BY suspects.root";
const MARK: &str = "INSERT INTO suspects (root, marked_by)
    SELECT runs.id, $2 FROM runs WHERE id = $1 AND owner = $2
        AND EXISTS (SELECT 1 FROM sessions WHERE epoch = $2 AND NOT ended FOR KEY SHARE)
    ON CONFLICT (root) DO UPDATE SET marked_by = excluded.marked_by
    RETURNING root";
const UNMARK: &str = "UPDATE suspects SET marked_by = NULL WHERE root = $1 AND marked_by = $2";
/// One that is being stepped again stays until that is over.
const CLEAR: &str = "DELETE FROM suspects WHERE root = $1 AND marked_by IS NULL
    AND EXISTS (SELECT 1 FROM runs WHERE id = $1 AND owner = $2)
    AND EXISTS (SELECT 1 FROM sessions WHERE epoch = $2 AND NOT ended FOR KEY SHARE)";

const CLAIM: &str = "INSERT INTO claims (name, epoch)
    SELECT $1, epoch FROM sessions WHERE epoch = $2 AND NOT ended FOR KEY SHARE
    ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch WHERE claims.epoch = excluded.epoch
        OR NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.epoch = claims.epoch AND NOT ended)
    RETURNING epoch";
const SEND: &str = "INSERT INTO inbox (id, run, session, body)
    SELECT $1, $2, $3, $4 FROM sessions WHERE epoch = $5 AND NOT ended FOR KEY SHARE
    ON CONFLICT (id) DO NOTHING";
const FORGET_LETTER: &str = "DELETE FROM inbox WHERE id = $1 AND answered_at IS NOT NULL AND answer = $2
    AND EXISTS (SELECT 1 FROM sessions WHERE epoch = $3 AND NOT ended FOR KEY SHARE)";

fn over() -> Error {
    unavailable("this session has ended")
}

fn epoch_of(row: &Row) -> Result<u64, Error> {
    rows::count(row)
}

fn forwarded(row: &Row) -> Result<ForwardedCommand, Error> {
    rows::fields(row, read_forwarded)
}

fn read_forwarded(row: &mut Fields<'_, impl Source>) -> Result<ForwardedCommand, Unreadable> {
    let (id, run) = (row.text("id")?, row.maybe_text("run")?);
    let to = match run {
        Some(run) => {
            row.maybe_integer("session")?;
            Recipient::Run(RunId::new(run))
        }
        None => Recipient::Session(row.count("session")?),
    };
    Ok(ForwardedCommand { id, to, body: row.text("body")? })
}

impl PostgresStore {
    /// Which of these trees this session has then taken over.
    async fn take(&self, roots: &[String]) -> Result<Vec<RunId>, Error> {
        for _ in 0..ATTEMPTS {
            let mut client = self.questions.connection().await?;
            let taking = take_once(&mut client, roots, self.me());
            match tokio::time::timeout(self.questions.policy, taking).await {
                Ok(Ok(taken)) => return taken.ok_or_else(over),
                Ok(Err(error)) if is_retryable(&error) => {}
                Ok(Err(error)) => return Err(read_error(error)),
                Err(_elapsed) => {
                    drop(deadpool_postgres::Client::take(client));
                    return Err(unavailable("the database does not answer"));
                }
            }
        }
        Err(unavailable("other hosts were in the way too often"))
    }

    async fn is_live(&self, epoch: u64) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM sessions WHERE epoch = $1 AND NOT ended";
        Ok(!self.questions.ask(sql, &[&integer(epoch)]).await?.is_empty())
    }

    async fn tree_of(&self, run: &RunId) -> Result<Option<(String, u64)>, Error> {
        let sql = "SELECT coalesce(root, id), owner FROM runs WHERE id = $1";
        let read = |row: &Row| {
            let (root, owner) = rows::fields(row, |row| Ok((row.text("root")?, row.count("owner")?)))?;
            // As the database has it.
            Ok((written(&root).into_owned(), owner))
        };
        self.questions.one(sql, &[&written(run.as_str())], read).await
    }
}

/// `None` once the session has ended.
async fn take_once(
    client: &mut deadpool_postgres::Client,
    roots: &[String],
    me: i64,
) -> Result<Option<Vec<RunId>>, tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    let taken = take_within(&transaction, roots, me).await?;
    transaction.commit().await?;
    Ok(taken)
}

async fn take_within(
    transaction: &Transaction<'_>,
    roots: &[String],
    me: i64,
) -> Result<Option<Vec<RunId>>, tokio_postgres::Error> {
    if transaction.query(SESSION, &[&me]).await?.is_empty() {
        return Ok(None);
    }
    let (mut taken, mut suspects, mut dead_owners) = (Vec::new(), Vec::new(), Vec::new());
    for row in transaction.query(TAKE, &[&roots]).await? {
        let (root, dead, suspect): (String, i64, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        if transaction.execute(TAKE_ROOT, &[&root, &dead, &me]).await? == 1 {
            transaction.execute(TAKE_BELOW, &[&root, &dead, &me]).await?;
            if suspect {
                suspects.push(root.clone());
                dead_owners.push(dead);
            }
            taken.push(root);
        }
    }
    if !suspects.is_empty() {
        transaction.execute(SUSPECT, &[&suspects, &dead_owners]).await?;
        transaction.execute(DEATHS, &[&suspects, &dead_owners]).await?;
    }
    if !taken.is_empty() {
        transaction.execute(NO_LONGER_MARKED, &[&taken]).await?;
    }
    Ok(Some(taken.into_iter().map(|root| RunId::new(crate::text::read(&root).into_owned())).collect()))
}

#[async_trait]
impl Shared for PostgresStore {
    fn epoch(&self) -> u64 {
        self.public.epoch()
    }

    fn lease(&self) -> Duration {
        self.lease.unwrap_or(Duration::MAX)
    }

    async fn renew(&self, load: u64) -> Result<bool, Error> {
        let values = (self.me(), millis(self.lease()), integer(load));
        let values: [&(dyn ToSql + Sync); 3] = [&values.0, &values.1, &values.2];
        let renewed = self.renewals.one(RENEW, &values, rows::raw::<bool>).await?;
        if let Some(others) = renewed {
            self.desk.others(others);
        }
        Ok(renewed.is_some())
    }

    async fn sessions(&self) -> Result<Vec<Session>, Error> {
        let sql = "SELECT epoch, host, load, lease_until < now() FROM sessions WHERE NOT ended ORDER BY epoch";
        let read = |row: &Row| {
            rows::fields(row, |row| {
                let (epoch, host, load) = (row.count("epoch")?, row.text("host")?, row.count("load")?);
                Ok(Session { epoch, host, load, lapsed: row.flag("lapsed")? })
            })
        };
        self.questions.list(sql, &[], read).await
    }

    async fn end_lapsed(&self) -> Result<Vec<u64>, Error> {
        let mut ended = self.questions.list(END_LAPSED, &[], epoch_of).await?;
        ended.sort_unstable();
        for epoch in &ended {
            self.desk.publish(ClusterEvent::Ended { epoch: *epoch });
        }
        let [rest @ .., answered] = FORGET;
        for useless in rest {
            self.questions.ask(useless, &[]).await?;
        }
        self.questions.ask(answered, &[&millis(KEEP_ANSWERS)]).await?;
        self.questions.ask(FORGET_SESSIONS, &[&millis(KEEP_SESSIONS)]).await?;
        Ok(ended)
    }

    async fn adopt(&self, until: Timestamp, limit: usize) -> Result<Vec<RunId>, Error> {
        // More than are wanted: some may be somebody else's by then.
        let look = bound(limit.saturating_mul(2));
        let orphans: Vec<String> = self.questions.list(ORPHANS, &[&until.as_micros(), &look], rows::raw).await?;
        let mut taken = Vec::new();
        for page in orphans.chunks(limit.max(1)) {
            let missing = limit - taken.len();
            if missing == 0 {
                break;
            }
            taken.extend(self.take(&page[..page.len().min(missing)]).await?);
        }
        Ok(taken)
    }

    async fn adopt_tree(&self, run: &RunId) -> Result<Option<Owner>, Error> {
        for _ in 0..ATTEMPTS {
            let Some((root, owner)) = self.tree_of(run).await? else { return Ok(None) };
            if owner == self.epoch() {
                return Ok(Some(Owner::Me));
            }
            if self.is_live(owner).await? {
                if self.questions.ask(END_ONE_LAPSED, &[&integer(owner)]).await?.is_empty() {
                    return Ok(Some(Owner::Other(owner)));
                }
                self.desk.publish(ClusterEvent::Ended { epoch: owner });
            }
            if !self.take(&[root]).await?.is_empty() {
                return Ok(Some(Owner::Taken));
            }
            // Somebody else took it just now, or is about to.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Err(unavailable("other hosts were in the way too often"))
    }

    async fn suspects(&self) -> Result<Vec<Suspect>, Error> {
        let read = |row: &Row| {
            rows::fields(row, |row| {
                let root = RunId::new(row.text("root")?);
                Ok(Suspect { root, takeovers: row.count("takeovers")?, deaths: row.count("deaths")? })
            })
        };
        self.questions.list(SUSPECTS, &[&self.me()], read).await
    }

    async fn mark_suspect(&self, root: &RunId) -> Result<(), Error> {
        if self.questions.ask(MARK, &[&written(root.as_str()), &self.me()]).await?.is_empty() {
            let live = self.is_live(self.epoch()).await?;
            return Err(if live { unavailable("the tree belongs to another host") } else { over() });
        }
        Ok(())
    }

    async fn unmark_suspect(&self, root: &RunId) -> Result<(), Error> {
        self.questions.ask(UNMARK, &[&written(root.as_str()), &self.me()]).await.map(drop)
    }

    async fn clear_suspect(&self, root: &RunId) -> Result<(), Error> {
        self.questions.ask(CLEAR, &[&written(root.as_str()), &self.me()]).await?;
        if self.is_live(self.epoch()).await? { Ok(()) } else { Err(over()) }
    }

    async fn owner(&self, run: &RunId) -> Result<Option<u64>, Error> {
        Ok(self.tree_of(run).await?.map(|(_, owner)| owner))
    }

    async fn claim(&self, name: &str) -> Result<Claim, Error> {
        let holder = "SELECT epoch FROM claims WHERE name = $1";
        for _ in 0..ATTEMPTS {
            if !self.questions.ask(CLAIM, &[&key(name), &self.me()]).await?.is_empty() {
                return Ok(Claim::Mine);
            }
            if !self.is_live(self.epoch()).await? {
                return Err(over());
            }
            // Whoever held it may have let go meanwhile; then it is worth another try.
            let held = self.questions.one(holder, &[&key(name)], epoch_of).await?;
            if let Some(epoch) = held.filter(|epoch| *epoch != self.epoch()) {
                return Ok(Claim::Held(epoch));
            }
        }
        Err(unavailable("other hosts were in the way too often"))
    }

    async fn send(&self, forwarded: ForwardedCommand) -> Result<(), Error> {
        let (run, session) = match &forwarded.to {
            Recipient::Run(run) => (Some(written(run.as_str())), None),
            Recipient::Session(epoch) => (None, Some(integer(*epoch))),
        };
        self.questions
            .ask(SEND, &[&written(&forwarded.id), &run, &session, &written(&forwarded.body), &self.me()])
            .await?;
        if self
            .questions
            .one("SELECT 1 FROM inbox WHERE id = $1", &[&written(&forwarded.id)], |_| Ok(()))
            .await?
            .is_none()
        {
            return Err(over());
        }
        self.desk.publish(ClusterEvent::ForwardedCommand);
        Ok(())
    }

    async fn forwarded_commands(&self, limit: usize) -> Result<Vec<ForwardedCommand>, Error> {
        let sql = "SELECT inbox.id, inbox.run, inbox.session, inbox.body FROM inbox
                   LEFT JOIN runs ON runs.id = inbox.run
                   WHERE answered_at IS NULL AND (inbox.session = $1 OR runs.owner = $1)
                   ORDER BY inbox.position LIMIT $2";
        self.questions.list(sql, &[&self.me(), &bound(limit)], forwarded).await
    }

    async fn forwarded(&self, id: &str) -> Result<Option<(ForwardedCommand, Option<String>)>, Error> {
        let sql = "SELECT id, run, session, body, answer FROM inbox WHERE id = $1";
        self.questions
            .one(sql, &[&written(id)], |row| {
                rows::fields(row, |row| Ok((read_forwarded(row)?, row.maybe_text("answer")?)))
            })
            .await
    }

    async fn forget_forwarded(&self, id: &str, answer: &str) -> Result<(), Error> {
        self.questions.ask(FORGET_LETTER, &[&written(id), &written(answer), &self.me()]).await?;
        Ok(())
    }

    fn news(&self) -> broadcast::Receiver<ClusterEvent> {
        self.desk.subscribe()
    }

    async fn epochs(&self, run: &RunId, from: u64, limit: usize) -> Result<Vec<(u64, u64)>, Error> {
        let sql = "SELECT seq, epoch FROM events WHERE run = $1 AND seq >= $2 ORDER BY seq LIMIT $3";
        let read = |row: &Row| rows::fields(row, |row| Ok((row.count("seq")?, row.count("epoch")?)));
        self.questions.list(sql, &[&written(run.as_str()), &integer(from), &bound(limit)], read).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use baton_store::Journal as _;
    use baton_testkit::postgres::Database;

    use super::*;
    use crate::Settings;
    use crate::connect::LEASE_NAME;

    /// Whoever is alive says so, whatever everybody else wants to know.
    #[tokio::test]
    async fn the_lease_is_renewed_while_all_readers_are_taken() {
        let Some(database) = Database::fresh().await else { return };
        let settings = Settings { pool_size: 2, ..Settings::new(database.url.clone()) };
        let store = PostgresStore::open(&settings).await.unwrap();
        let taken = [store.questions.connection().await.unwrap(), store.questions.connection().await.unwrap()];
        let waiting = store.questions.pool.clone();
        let reader = tokio::spawn(async move { waiting.get().await.is_ok() });
        for load in 1..=3 {
            assert!(store.renew(load).await.unwrap());
        }
        let load = taken[0].query_one("SELECT load FROM sessions WHERE epoch = $1", &[&store.me()]).await.unwrap();
        assert_eq!(load.get::<_, i64>(0), 3);
        drop(taken);
        assert!(reader.await.unwrap());
        store.close().await;
    }

    /// The connection that renews may be cut; the next renewal makes another.
    #[tokio::test]
    async fn the_lease_is_renewed_over_a_new_connection_when_the_old_one_is_gone() {
        let Some(database) = Database::fresh().await else { return };
        let store = PostgresStore::open(&Settings::new(database.url.clone())).await.unwrap();
        for _ in 0..3 {
            assert!(store.renew(1).await.unwrap());
            let cut = format!(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = '{LEASE_NAME}'"
            );
            let cut = store.questions.ask(&cut, &[]).await.unwrap();
            assert_eq!(cut.len(), 1, "there is one, and it has a name");
        }
        assert!(store.renew(1).await.unwrap());
        store.close().await;
    }
}
