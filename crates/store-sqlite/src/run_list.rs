//! Lists of runs: along one index, newest first, a bounded number of rows; see [`baton_store::run_list`].
//!
//! Conditions are spelled as in the partial indexes they rely on, or SQLite would not use them. What the index does not
//! know is a column of the answer, so that a row that is left out costs one step and no more.

use baton_model::{RunId, RunStatus, TenantId, Timestamp, WorkflowId};
use baton_store::codec::{Stored as _, after_prefix, integer};
use baton_store::run_list::{Drive, LOOKED_AT, PREFIXED, WORKFLOWS};
use baton_store::{Error, Page, RunFilter, RunPlace, RunRow};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Rows, params_from_iter};

use crate::query::left_out;
use crate::rows;

pub(crate) fn page(connection: &Connection, filter: &RunFilter) -> rusqlite::Result<Page<RunRow, RunPlace>> {
    let chosen = choose(connection, filter)?;
    let judged = chosen.judged(filter);
    // What needs no judging is taken as it comes, and one more tells whether there is another page.
    let wanted = filter.limit.saturating_add(1);
    let looks = if judged.is_empty() { wanted } else { wanted.max(LOOKED_AT) };
    let asked: Vec<Sql> = chosen.sources.iter().map(|source| source.rows(filter, &judged, looks)).collect();
    let mut statements =
        asked.iter().map(|asked| connection.prepare_cached(&asked.text)).collect::<Result<Vec<_>, _>>()?;
    let mut sources = Vec::with_capacity(statements.len());
    for (statement, asked) in statements.iter_mut().zip(asked) {
        sources.push(Ahead::of(statement.query(params_from_iter(asked.values))?)?);
    }
    let (mut found, mut looked, mut last): (Vec<(RunPlace, RunRow)>, usize, Option<RunPlace>) = (Vec::new(), 0, None);
    while let Some(newest) =
        sources.iter_mut().max_by_key(|source| source.place()).filter(|source| source.next.is_some())
    {
        let Some((place, row)) = newest.take()? else { break };
        // One that two sources know is the same both times.
        if last != Some(place) {
            looked += 1;
            let row = match row {
                // Whoever asks for a tree must have all of it; a list goes on without.
                Err(error) if filter.root.is_none() && filter.parent.is_none() => {
                    left_out(RunRow::TABLE, &error);
                    None
                }
                row => row?,
            };
            if let (Some(row), Some(tag)) = (&row, &filter.tag)
                && !row.tags.contains(tag)
            {
                let reason = format!("the index of tags leads from {tag:?} to {}, which does not have it", row.id);
                return Err(rows::damaged(Error::Corrupt { reason }));
            }
            found.extend(row.map(|row| (place, row)));
            last = Some(place);
        }
        if found.len() == wanted || looked == looks {
            break;
        }
    }
    let next = if found.len() == wanted {
        found.truncate(filter.limit);
        found.last().map(|(place, _)| *place)
    } else {
        last.filter(|_| looked == looks)
    };
    Ok(Page { items: found.into_iter().map(|(_, row)| row).collect(), next })
}

/// What a source has next.
struct Ahead<'s> {
    rows: Rows<'s>,
    /// The run is there if it is as asked.
    next: Option<(RunPlace, rusqlite::Result<Option<RunRow>>)>,
}

impl<'s> Ahead<'s> {
    fn of(rows: Rows<'s>) -> rusqlite::Result<Self> {
        let mut source = Self { rows, next: None };
        source.take()?;
        Ok(source)
    }

    fn place(&self) -> Option<RunPlace> {
        self.next.as_ref().map(|(place, _)| *place)
    }

    fn take(&mut self) -> rusqlite::Result<Option<(RunPlace, rusqlite::Result<Option<RunRow>>)>> {
        let taken = self.next.take();
        if let Some(row) = self.rows.next()? {
            self.next = Some(rows::listed(row)?);
        }
        Ok(taken)
    }
}

/// Part of a statement, and its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sql {
    pub(crate) text: String,
    pub(crate) values: Vec<Value>,
}

impl Sql {
    fn and(&mut self, clause: &str, values: impl IntoIterator<Item = Value>) {
        if !self.text.is_empty() {
            self.text.push_str(" AND ");
        }
        self.text.push_str(clause);
        self.values.extend(values);
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}

/// Runs that one index finds in the order of lists.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    from: &'static str,
    /// Whose columns say where a run is in lists.
    places: &'static str,
    found: Sql,
    /// By no index in the order of lists: all of them are fetched and sorted, so there must be few.
    sorted: bool,
    /// Of one tenant, which the index does not know.
    only_of: Option<Value>,
}

#[derive(Debug)]
pub(crate) struct Chosen<'a> {
    drive: Drive<'a>,
    pub(crate) sources: Vec<Source>,
}

impl Source {
    fn runs() -> Self {
        Self { from: "runs", places: "runs", found: Sql::default(), sorted: false, only_of: None }
    }

    fn that(mut self, clause: &str, values: impl IntoIterator<Item = Value>) -> Self {
        self.found.and(clause, values);
        self
    }

    fn within(&self, filter: &RunFilter) -> Sql {
        let (mut sql, of) = (self.found.clone(), self.places);
        if let Some(tenant) = &self.only_of {
            sql.and("+tenant = ?", [tenant.clone()]);
        }
        if let Some(from) = filter.created_from {
            sql.and(&format!("{of}.created_at >= ?"), [time(from)]);
        }
        if let Some(until) = filter.created_until {
            sql.and(&format!("{of}.created_at <= ?"), [time(until)]);
        }
        if let Some(cursor) = filter.cursor {
            let values = [time(cursor.created_at), Value::from(integer(cursor.position))];
            sql.and(&format!("({of}.created_at, {of}.run) < (?, ?)"), values);
        }
        if sql.is_empty() {
            sql.and("true", []);
        }
        sql
    }

    /// Where each run is, whether it is as asked, and the run.
    pub(crate) fn rows(&self, filter: &RunFilter, judged: &Sql, limit: usize) -> Sql {
        let (within, of, from) = (self.within(filter), self.places, self.from);
        let judge = if judged.is_empty() { "true" } else { judged.text.as_str() };
        let columns = columns();
        let text = format!(
            "SELECT {of}.created_at, {of}.run, coalesce(({judge}), false), {columns} FROM {from} WHERE {} \
             ORDER BY {of}.created_at DESC, {of}.run DESC LIMIT ?",
            within.text
        );
        let mut values = judged.values.clone();
        values.extend(within.values);
        values.push(bound(limit));
        Sql { text, values }
    }

    /// How many there are, up to a bound. Only what the index knows counts: what it does not would be looked at in vain.
    pub(crate) fn count(&self, filter: &RunFilter, most: usize) -> Sql {
        let mut within = if self.sorted { self.found.clone() } else { self.within(filter) };
        let from = if self.places == "run_tags" { "run_tags" } else { self.from };
        within.values.push(bound(most));
        Sql { text: format!("SELECT count(*) FROM (SELECT 1 FROM {from} WHERE {} LIMIT ?)", within.text), ..within }
    }
}

impl Chosen<'_> {
    /// What the index does not see to.
    fn judged(&self, filter: &RunFilter) -> Sql {
        let mut sql = Sql::default();
        let drive = &self.drive;
        let by_tenant = matches!(
            drive,
            Drive::Tag(_)
                | Drive::Diverged
                | Drive::OverBudget
                | Drive::Statuses(_)
                | Drive::Workflow(_)
                | Drive::Text(_)
                | Drive::Tenant
        );
        let mut narrow = |seen: bool, clause: &str, value: Option<Value>| {
            if let Some(value) = value.filter(|_| !seen) {
                sql.and(clause, [value]);
            }
        };
        narrow(by_tenant, "runs.tenant = ?", filter.tenant.as_ref().map(TenantId::as_str).map(text));
        let seen = matches!(drive, Drive::Workflow(_));
        narrow(seen, "workflow = ?", filter.workflow.as_ref().map(WorkflowId::as_str).map(text));
        let seen = matches!(drive, Drive::Parent(_));
        narrow(seen, "parent = ?", filter.parent.as_ref().map(RunId::as_str).map(text));
        let seen = matches!(drive, Drive::Root(_));
        narrow(seen, "root = ?", filter.root.as_ref().map(RunId::as_str).map(text));
        narrow(false, "updated_at >= ?", filter.updated_from.map(time));
        narrow(false, "updated_at <= ?", filter.updated_until.map(time));
        narrow(false, "summary ->> '$.usage.costUsd' >= ?", filter.cost_usd_from.map(Value::from));
        let seen = matches!(drive, Drive::Tag(_));
        narrow(seen, "EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)", filter.tag.as_deref().map(text));
        let prefix = |prefix: &Option<String>| prefix.clone().filter(|prefix| !prefix.is_empty());
        if let Some(prefix) = prefix(&filter.id_prefix).filter(|_| !matches!(drive, Drive::IdPrefix(_))) {
            sql.and("id >= ?", [text(&prefix)]);
            sql.and("coalesce(id < ?, true)", [end_of(&prefix)]);
        }
        if let Some(prefix) = prefix(&filter.text_prefix).filter(|_| !matches!(drive, Drive::Text(_))) {
            let either = "((id >= ? AND coalesce(id < ?, true)) OR (workflow >= ? AND coalesce(workflow < ?, true)))";
            sql.and(either, [text(&prefix), end_of(&prefix), text(&prefix), end_of(&prefix)]);
        }
        if !filter.status.is_empty() && !matches!(drive, Drive::Statuses(_)) {
            let places = vec!["?"; filter.status.len()].join(", ");
            sql.and(&format!("status IN ({places})"), filter.status.iter().map(|status| text(status.as_str())));
        }
        let told = [
            (filter.diverged, "'$.diverged'", matches!(drive, Drive::Diverged)),
            (filter.over_budget, "'$.overBudget'", matches!(drive, Drive::OverBudget)),
        ];
        for (told, path, seen) in told {
            match told {
                Some(true) if !seen => sql.and(&format!("coalesce(summary ->> {path}, 0)"), []),
                Some(false) => sql.and(&format!("NOT coalesce(summary ->> {path}, 0)"), []),
                _ => {}
            }
        }
        if filter.top_level {
            sql.and("parent IS NULL", []);
        }
        sql
    }
}

/// The shortest of the indexes that may drive.
fn choose<'a>(connection: &Connection, filter: &'a RunFilter) -> rusqlite::Result<Chosen<'a>> {
    let drives = filter.drives();
    let rivals = drives.iter().filter(|drive| !drive.is_last()).count() > 1;
    let mut best: Option<(usize, Chosen<'a>)> = None;
    for drive in drives {
        let last = drive.is_last();
        if last && best.is_some() {
            break;
        }
        let Some(sources) = sources(connection, filter, &drive)? else { continue };
        let mut count = 0;
        let mut fits = true;
        for source in sources.iter().filter(|source| rivals || source.sorted) {
            let most = if source.sorted { PREFIXED } else { LOOKED_AT };
            let Sql { text, values } = source.count(filter, most + 1);
            let found = connection.prepare_cached(&text)?.query_row(params_from_iter(values), rows::count)?;
            let found = usize::try_from(found).unwrap_or(usize::MAX);
            fits &= !source.sorted || found <= most;
            count += found;
        }
        if fits && best.as_ref().is_none_or(|(fewest, _)| count < *fewest) {
            best = Some((count, Chosen { drive, sources }));
        }
    }
    let everything = || Chosen { drive: Drive::Everything, sources: vec![Source::runs()] };
    Ok(best.map_or_else(everything, |(_, chosen)| chosen))
}

/// None where this cannot drive.
fn sources(connection: &Connection, filter: &RunFilter, drive: &Drive<'_>) -> rusqlite::Result<Option<Vec<Source>>> {
    let tenant = || filter.tenant.as_ref().map_or(Value::Null, |tenant| text(tenant.as_str()));
    let runs = Source::runs;
    let by_tenant = || runs().that("tenant = ?", [tenant()]);
    Ok(Some(match drive {
        Drive::Ids(ids) => {
            let places = vec!["?"; ids.len()].join(", ");
            vec![runs().that(&format!("id IN ({places})"), ids.iter().map(|id| text(id.as_str())))]
        }
        Drive::Parent(parent) => vec![runs().that("parent = ?", [text(parent.as_str())])],
        Drive::Root(root) => vec![runs().that("root = ?", [text(root.as_str())])],
        Drive::Tag(tag) => {
            let tagged =
                Source { from: "run_tags CROSS JOIN runs ON runs.run = run_tags.run", places: "run_tags", ..runs() };
            vec![tagged.that("run_tags.tenant = ? AND run_tags.tag = ?", [tenant(), text(tag)])]
        }
        Drive::Diverged => vec![by_tenant().that("summary ->> '$.diverged'", [])],
        Drive::OverBudget => vec![by_tenant().that("summary ->> '$.overBudget'", [])],
        Drive::Statuses(statuses) => {
            let of =
                |status: &RunStatus| by_tenant().that("status = ? AND status <> 'completed'", [text(status.as_str())]);
            let mut statuses = statuses.to_vec();
            statuses.sort_unstable_by_key(|status| status.as_str());
            statuses.dedup();
            statuses.iter().map(of).collect()
        }
        Drive::IdPrefix(prefix) => vec![by_id(prefix)],
        Drive::Workflow(workflow) => vec![by_tenant().that("workflow = ?", [text(workflow.as_str())])],
        Drive::Text(prefix) => {
            let Some(named) = workflows(connection, &tenant(), prefix)? else { return Ok(None) };
            let each = named.into_iter().map(|name| by_tenant().that("workflow = ?", [Value::from(name)]));
            std::iter::once(Source { only_of: Some(tenant()), ..by_id(prefix) }).chain(each).collect()
        }
        Drive::Tenant => vec![by_tenant()],
        Drive::Everything => vec![runs()],
    }))
}

fn by_id(prefix: &str) -> Source {
    let begins = Source { sorted: true, ..Source::runs() }.that("id >= ?", [text(prefix)]);
    match after_prefix(prefix) {
        Some(end) => begins.that("id < ?", [Value::from(end)]),
        None => begins,
    }
}

/// The tenant's workflows that begin with this, from one to the next; none where there are too many.
fn workflows(connection: &Connection, tenant: &Value, prefix: &str) -> rusqlite::Result<Option<Vec<String>>> {
    let mut names: Vec<String> = Vec::new();
    loop {
        let (sql, after) = match names.last() {
            None => (NEXT_WORKFLOW_FROM, prefix),
            Some(last) => (NEXT_WORKFLOW, last.as_str()),
        };
        let values = params_from_iter([tenant.clone(), text(after)]);
        let next: Option<String> = connection.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
        match next.filter(|name| name.starts_with(prefix)) {
            None => return Ok(Some(names)),
            Some(_) if names.len() == WORKFLOWS => return Ok(None),
            Some(name) => names.push(name),
        }
    }
}

pub(crate) const NEXT_WORKFLOW_FROM: &str =
    "SELECT workflow FROM runs WHERE tenant = ?1 AND workflow >= ?2 ORDER BY workflow LIMIT 1";
pub(crate) const NEXT_WORKFLOW: &str =
    "SELECT workflow FROM runs WHERE tenant = ?1 AND workflow > ?2 ORDER BY workflow LIMIT 1";

fn columns() -> String {
    let of_runs: Vec<String> = rows::columns::<RunRow>().split(", ").map(|name| format!("runs.{name}")).collect();
    of_runs.join(", ")
}

/// What comes after all that begin with a prefix; nothing if they go on to the end.
fn end_of(prefix: &str) -> Value {
    after_prefix(prefix).map_or(Value::Null, Value::from)
}

fn text(text: &str) -> Value {
    Value::from(text.to_owned())
}

fn time(at: Timestamp) -> Value {
    Value::from(at.as_micros())
}

fn bound(limit: usize) -> Value {
    Value::from(i64::try_from(limit).unwrap_or(i64::MAX))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::open;

    fn empty() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        open::migrate(&mut connection).unwrap();
        connection
    }

    type Part = fn(&mut RunFilter);

    /// What callers can ask for, one by one.
    const PARTS: [(&str, Part); 18] = [
        ("failed", |f| f.status = vec![RunStatus::Failed]),
        ("waiting", |f| f.status = RunStatus::ALL.into_iter().filter(|status| status.is_waiting()).collect()),
        ("completed", |f| f.status = vec![RunStatus::Completed]),
        ("ended", |f| f.status = vec![RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled]),
        ("workflow", |f| f.workflow = Some(WorkflowId::new("w"))),
        ("tag", |f| f.tag = Some("t".to_owned())),
        ("parent", |f| f.parent = Some(RunId::new("p"))),
        ("root", |f| f.root = Some(RunId::new("r"))),
        ("id prefix", |f| f.id_prefix = Some("run_".to_owned())),
        ("text", |f| f.text_prefix = Some("run_".to_owned())),
        ("created", |f| {
            f.created_from = Some(Timestamp::from_micros(1));
            f.created_until = Some(Timestamp::from_micros(2));
        }),
        ("updated", |f| {
            f.updated_from = Some(Timestamp::from_micros(1));
            f.updated_until = Some(Timestamp::from_micros(2));
        }),
        ("diverged", |f| f.diverged = Some(true)),
        ("not diverged", |f| f.diverged = Some(false)),
        ("over budget", |f| f.over_budget = Some(true)),
        ("cost", |f| f.cost_usd_from = Some(1.0)),
        ("top level", |f| f.top_level = true),
        ("cursor", |f| f.cursor = Some(RunPlace { created_at: Timestamp::from_micros(9), position: 9 })),
    ];

    /// Every two and every three of them together.
    fn filters() -> Vec<(String, RunFilter)> {
        let base = || RunFilter { tenant: Some(TenantId::new("t")), limit: 50, ..RunFilter::default() };
        let mut all = vec![("nothing".to_owned(), base())];
        for (first, (a, part_a)) in PARTS.iter().enumerate() {
            for (second, (b, part_b)) in PARTS.iter().enumerate().skip(first) {
                for (c, part_c) in PARTS.iter().skip(second) {
                    let mut filter = base();
                    part_a(&mut filter);
                    part_b(&mut filter);
                    part_c(&mut filter);
                    all.push((format!("{a}, {b}, {c}"), filter));
                }
            }
        }
        all.push(("ids".to_owned(), RunFilter { ids: vec![RunId::new("a"), RunId::new("b")], ..base() }));
        all
    }

    fn plan(connection: &Connection, sql: &Sql) -> String {
        let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {}", sql.text)).unwrap();
        let steps = explain.query_map(params_from_iter(&sql.values), |row| row.get::<_, String>(3)).unwrap();
        steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn no_list_goes_through_all_runs_and_none_is_sorted_by_hand() {
        let connection = empty();
        let all = filters();
        assert!(all.len() > 1000, "{}", all.len());
        for (name, filter) in all {
            for drive in filter.drives() {
                let sources = sources(&connection, &filter, &drive).unwrap().unwrap();
                let chosen = Chosen { drive, sources };
                let judged = chosen.judged(&filter);
                for source in &chosen.sources {
                    let found = plan(&connection, &source.rows(&filter, &judged, 9));
                    let few = source.sorted || matches!(chosen.drive, Drive::Ids(_));
                    let scans = |plan: &str| {
                        plan.split("; ").any(|step| step.starts_with("SCAN") && !step.contains("json_each"))
                    };
                    assert!(!scans(&found), "{name} by {:?}: {found}", chosen.drive);
                    assert!(few || !found.contains("TEMP B-TREE"), "{name} by {:?}: {found}", chosen.drive);
                    let counted = plan(&connection, &source.count(&filter, 9));
                    assert!(!counted.replace("SCAN (subquery", "").contains("SCAN runs"), "{name}: {counted}");
                }
            }
        }
    }

    /// A database of so many runs. One in a thousand has a tag of its own, one in a hundred failed.
    fn filled(runs: usize) -> Connection {
        let connection = empty();
        let fill = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
            INSERT INTO runs (id, tenant, workflow, digest, status, created_at, updated_at, next_seq, busy, tags, root, parent)
            SELECT printf('run_%08d', n), 't', iif(n % 3, 'w', 'v'), ?2, iif(n % 100, 'completed', 'failed'), n, n, 1, 0,
                iif(n % 1000, '[]', '[\"t\"]'), iif(n % 7, NULL, 'r'), iif(n % 7, NULL, 'p') FROM n";
        let digest = baton_model::Digest::of_bytes("w");
        connection.execute(fill, rusqlite::params![runs as i64, digest.as_str()]).unwrap();
        let tags = "INSERT INTO run_tags SELECT tenant, value, created_at, run FROM runs, json_each(tags)";
        connection.execute(tags, []).unwrap();
        connection
    }

    fn steps(connection: &mut Connection, filter: &RunFilter) -> u64 {
        let taken = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&taken);
        let count_one = move || {
            counter.fetch_add(1, Ordering::Relaxed);
            false
        };
        connection.progress_handler(1, Some(count_one)).unwrap();
        page(connection, filter).unwrap();
        connection.progress_handler(1, None::<fn() -> bool>).unwrap();
        taken.load(Ordering::Relaxed)
    }

    /// Counted in steps of SQLite's machine. Going through all runs, be it only through an index, would cost several times
    /// as much.
    #[test]
    fn a_page_costs_a_bounded_number_of_steps_whatever_is_asked() {
        let mut connection = filled(30 * LOOKED_AT);
        let worst = filters().into_iter().map(|(name, filter)| (steps(&mut connection, &filter), name)).max().unwrap();
        assert!(worst.0 <= 100 * LOOKED_AT as u64, "{worst:?}");
    }
}
