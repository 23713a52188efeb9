//! Questions for a `doctor`: does what is stored hold together, and how fast is the way to it?

use std::time::{Duration, Instant};

use baton_store::Error;
use baton_store::codec::versioned_id;
use tokio_postgres::{Client, Row};

use crate::connect::Connector;
use crate::error::{read_error, unavailable};
use crate::settings::Settings;
use crate::{PostgresStore, check_contents, rows};

/// Enough to see what is wrong.
const FINDINGS: i64 = 100;

/// What [`PostgresStore::check`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub server: String,
    /// How long a question and its answer take, on average.
    pub round_trip: Duration,
    /// Nothing has been written there yet.
    pub empty: bool,
    pub runs: u64,
    pub events: u64,
    pub ledgers: u64,
    pub changes: u64,
    /// Hosts that are alive.
    pub hosts: u64,
    /// What does not fit, a sentence each.
    pub problems: Vec<String>,
    /// Whether the server itself notices pages that are damaged (`data_checksums`).
    pub page_checksums: bool,
}

impl PostgresStore {
    /// Reads everything and says what does not fit. Changes nothing, and may run beside hosts that use the database.
    pub async fn check(settings: &Settings) -> Result<Report, Error> {
        let client = Connector::new(settings)?.connect(|_| {}).await?;
        let server: String = one(&client, "SELECT current_setting('server_version')").await?.get(0);
        let start = Instant::now();
        for _ in 0..10 {
            client.simple_query("SELECT 1").await.map_err(read_error)?;
        }
        let round_trip = start.elapsed() / 10;
        let page_checksums = one(&client, "SELECT current_setting('data_checksums') = 'on'").await?.get(0);
        let there =
            one(&client, "SELECT to_regclass('runs') IS NOT NULL AND to_regclass('sessions') IS NOT NULL").await?;
        if !there.get::<_, bool>(0) {
            return Ok(Report { server, round_trip, page_checksums, empty: true, ..Report::default() });
        }
        // One state for all questions, whatever is written meanwhile.
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(read_error)?;
        let count = async |sql: &str| rows::count(&one(&client, sql).await?);
        let mut problems = Vec::new();
        for row in client.query(GAPS, &[&FINDINGS]).await.map_err(read_error)? {
            problems.push(rows::fields(&row, |row| {
                let (run, next, events) = (row.text("id")?, row.count::<u64>("next_seq")?, row.count::<u64>("events")?);
                Ok(format!("{run} has {events} of {next} events"))
            })?);
        }
        for row in client.query(LEDGER_GAPS, &[&FINDINGS]).await.map_err(read_error)? {
            problems.push(rows::fields(&row, |row| {
                let ledger = versioned_id(row)?;
                let (whole, changes) = (row.count::<u64>("version")?, row.count::<u64>("changes")?);
                let (kind, scope, tenant) = (ledger.kind.as_str(), ledger.scope, ledger.tenant);
                Ok(format!("{kind} `{scope}` of {tenant} has {changes} of {whole} changes"))
            })?);
        }
        for row in client.query(SPLIT_TREES, &[&FINDINGS]).await.map_err(read_error)? {
            problems.push(format!("{} is driven by another host than its tree", rows::run_id(&row)?));
        }
        check_contents::all(&client, &mut problems).await?;
        Ok(Report {
            server,
            round_trip,
            page_checksums,
            empty: false,
            runs: count("SELECT count(*) FROM runs").await?,
            events: count("SELECT count(*) FROM events").await?,
            ledgers: count("SELECT count(*) FROM ledgers").await?,
            changes: count("SELECT count(*) FROM changes").await?,
            hosts: count("SELECT count(*) FROM sessions WHERE NOT ended AND lease_until > now()").await?,
            problems,
        })
    }
}

async fn one(client: &Client, sql: &str) -> Result<Row, Error> {
    let mut rows = client.query(sql, &[]).await.map_err(read_error)?;
    rows.pop().ok_or_else(|| unavailable("the database does not answer questions"))
}

/// Runs whose log is not 0, 1, 2, … up to what their row says; a fork's begins where it was forked.
const GAPS: &str = "SELECT id, next_seq - origin_seq, events FROM (
        SELECT id, next_seq, origin_seq, position, (SELECT count(*) FROM events WHERE run = id) AS events,
            (SELECT max(seq) FROM events WHERE run = id) AS last
        FROM runs WHERE NOT pruned_log) logs
    WHERE events + origin_seq <> next_seq OR coalesce(last + 1, origin_seq) <> next_seq ORDER BY position LIMIT $1";
/// Versioned stores whose changes are not every version after `forgotten` up to what their row says.
const LEDGER_GAPS: &str = "SELECT tenant, kind, scope, version - forgotten, changes FROM (
        SELECT tenant, kind, scope, version, forgotten,
            (SELECT count(*) FROM changes c WHERE c.ledger = l.ledger AND c.version > forgotten) AS changes,
            (SELECT max(c.version) FROM changes c WHERE c.ledger = l.ledger AND c.version > forgotten) AS last
        FROM ledgers l) all_ledgers
    WHERE changes <> version - forgotten OR coalesce(last, forgotten) <> version
    ORDER BY tenant, kind, scope LIMIT $1";
const SPLIT_TREES: &str = "SELECT below.id FROM runs below JOIN runs root ON root.id = below.root
    WHERE below.owner <> root.owner LIMIT $1";
