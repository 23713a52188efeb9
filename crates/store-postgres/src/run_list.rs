//! Lists of runs: along one index, newest first, a bounded number of rows; see [`baton_store::run_list`].
//!
//! What drives the search is a subquery with a limit of its own, in the order of the list. What else is asked is judged
//! outside of it, so that no plan can turn the two around.

use baton_model::{RunId, RunStatus, TenantId, WorkflowId};
use baton_store::codec::{Stored as _, after_prefix, integer};
use baton_store::run_list::{Drive, LOOKED_AT, PREFIXED, WORKFLOWS};
use baton_store::{Error, Page, RunFilter, RunPlace, RunRow};
use tokio_postgres::Row;

use crate::conditions::{Query, Value};
use crate::questions::{Questions, bound, whole};
use crate::rows;
use crate::text::{key, key_prefix, written};

pub(crate) async fn page(questions: &Questions, filter: &RunFilter) -> Result<Page<RunRow, RunPlace>, Error> {
    let chosen = choose(questions, filter).await?;
    // One more than asked for tells whether there is another page.
    let wanted = filter.limit.saturating_add(1);
    let (asked, judged) = listed(filter, &chosen, wanted);
    let rows = questions.ask(&asked.sql, &asked.references()).await?;
    let (more, mut last) = (rows.len() == wanted, None);
    let mut items = Vec::new();
    for row in rows.iter().take(filter.limit) {
        let (place, row) = rows::listed(row)?;
        last = Some(place);
        // Whoever asks for a tree must have all of it; a list goes on without what is damaged.
        match filter.root.is_none() && filter.parent.is_none() {
            true => items.extend(whole(RunRow::TABLE, row)),
            false => items.push(row?),
        }
    }
    if more {
        return Ok(Page { items, next: last });
    }
    let mut next = None;
    if judged {
        // How far it has looked, if not to the end. Meanwhile runs may have come, never gone, so this may be less far than
        // what was found.
        let asked = looked_at(filter, &chosen, wanted);
        let reached = questions.one(&asked.sql, &asked.references(), rows::place).await?;
        next = reached.map(|reached| last.map_or(reached, |last| reached.min(last)));
    }
    Ok(Page { items, next })
}

/// An index, and what it is searched for.
#[derive(Clone, Debug, PartialEq)]
enum Source<'a> {
    Ids(&'a [RunId]),
    Parent(&'a RunId),
    Root(&'a RunId),
    Tag(&'a str),
    Diverged,
    OverBudget,
    Status(RunStatus),
    /// Whether only of the tenant. By no index in the order of lists: all of them are fetched and sorted, so there must be
    /// few.
    IdPrefix(&'a str, bool),
    /// As an index knows it.
    Workflow(String),
    Tenant,
    Everything,
}

struct Chosen<'a> {
    drive: Drive<'a>,
    sources: Vec<Source<'a>>,
}

fn text(text: &str) -> Value {
    Box::new(written(text).into_owned())
}

fn number(number: i64) -> Value {
    Box::new(number)
}

impl Source<'_> {
    fn is_sorted(&self) -> bool {
        matches!(self, Self::IdPrefix(..))
    }

    /// Those that are fetched and sorted. What else is asked of them is kept away from the planner, which might go along
    /// another index for its sake.
    fn few(&self, query: &mut Query) -> Option<String> {
        let that = match self {
            Self::Ids(ids) => {
                let ids: Vec<String> = ids.iter().map(|id| written(id.as_str()).into_owned()).collect();
                format!("id = ANY({})", query.value(Box::new(ids)))
            }
            Self::IdPrefix(prefix, _) => {
                let begins = format!("id >= {}", query.value(text(prefix)));
                match after_prefix(&written(prefix)) {
                    Some(end) => format!("{begins} AND id < {}", query.value(Box::new(end))),
                    None => begins,
                }
            }
            _ => return None,
        };
        Some(format!("runs WHERE {that}"))
    }

    /// What follows `FROM`. A tag's own table knows where its runs are in lists.
    fn write(&self, filter: &RunFilter, query: &mut Query) -> String {
        let few = self.few(query);
        let of = if matches!(self, Self::Tag(_)) { "run_tags" } else { "runs" };
        let mut that: Vec<String> = Vec::new();
        let by_tenant = !matches!(
            self,
            Self::Ids(_) | Self::Parent(_) | Self::Root(_) | Self::IdPrefix(_, false) | Self::Everything
        );
        if let Some(tenant) = filter.tenant.as_ref().filter(|_| by_tenant) {
            that.push(format!("{of}.tenant = {}", query.value(text(tenant.as_str()))));
        }
        match self {
            Self::Parent(parent) => {
                that.push(format!("parent = {} AND parent IS NOT NULL", query.value(text(parent.as_str()))));
            }
            Self::Root(root) => {
                that.push(format!("root = {} AND root IS NOT NULL", query.value(text(root.as_str()))));
            }
            Self::Tag(tag) => that.push(format!("run_tags.tag = {}", query.value(Box::new(key(tag).into_owned())))),
            Self::Diverged => that.push("diverged".to_owned()),
            Self::OverBudget => that.push("over_budget".to_owned()),
            Self::Status(status) => {
                that.push(format!("status = {} AND status <> 'completed'", query.value(text(status.as_str()))));
            }
            Self::Workflow(workflow) => that.push(format!("workflow = {}", query.value(Box::new(workflow.clone())))),
            Self::Ids(_) | Self::IdPrefix(..) | Self::Tenant | Self::Everything => {}
        }
        if let Some(from) = filter.created_from {
            that.push(format!("{of}.created_at >= {}", query.value(number(from.as_micros()))));
        }
        if let Some(until) = filter.created_until {
            that.push(format!("{of}.created_at <= {}", query.value(number(until.as_micros()))));
        }
        if let Some(cursor) = filter.cursor {
            let at = query.value(number(cursor.created_at.as_micros()));
            let position = query.value(number(integer(cursor.position)));
            that.push(format!("({of}.created_at, {of}.position) < ({at}, {position})"));
        }
        if that.is_empty() {
            that.push("true".to_owned());
        }
        match few {
            Some(few) => format!("(SELECT * FROM {few} OFFSET 0) runs WHERE {}", that.join(" AND ")),
            None => format!("{of} WHERE {}", that.join(" AND ")),
        }
    }

    /// The first of them in the order of lists.
    fn first(&self, filter: &RunFilter, query: &mut Query, columns: &str, limit: &str) -> String {
        let found = self.write(filter, query);
        let order = "ORDER BY created_at DESC, position DESC LIMIT";
        match self {
            Self::Tag(_) if columns == "*" => format!(
                "(SELECT runs.* FROM (SELECT created_at, position, run FROM {found} {order} {limit}) tagged \
                 JOIN runs ON runs.id = tagged.run)"
            ),
            _ => format!("(SELECT {columns} FROM {found} {order} {limit})"),
        }
    }
}

impl Chosen<'_> {
    /// Those that any source finds, each once.
    fn first(&self, filter: &RunFilter, query: &mut Query, columns: &str, limit: usize) -> String {
        let limit = query.value(number(bound(limit)));
        let each: Vec<String> =
            self.sources.iter().map(|source| source.first(filter, query, columns, &limit)).collect();
        match each.as_slice() {
            [only] => only.clone(),
            // A run may begin with a text that its workflow begins with too; it has one status.
            _ if matches!(self.drive, Drive::Text(_)) => {
                let all = each.join(" UNION ALL ");
                format!(
                    "(SELECT DISTINCT ON (created_at, position) {columns} FROM ({all}) each \
                     ORDER BY created_at DESC, position DESC LIMIT {limit})"
                )
            }
            _ => {
                let all = each.join(" UNION ALL ");
                format!("(SELECT {columns} FROM ({all}) each ORDER BY created_at DESC, position DESC LIMIT {limit})")
            }
        }
    }
}

/// The page, and whether anything had to be judged.
fn listed(filter: &RunFilter, chosen: &Chosen<'_>, wanted: usize) -> (Query, bool) {
    let mut query = Query::default();
    let judged = judged(filter, &chosen.drive, &mut query);
    let looks = if judged.is_empty() { wanted } else { wanted.max(LOOKED_AT) };
    let first = chosen.first(filter, &mut query, "*", looks);
    let that = if judged.is_empty() { "true".to_owned() } else { judged.join(" AND ") };
    let limit = query.value(number(bound(wanted)));
    query.sql = format!(
        "SELECT {}, position FROM {first} runs WHERE {that} ORDER BY created_at DESC, position DESC LIMIT {limit}",
        rows::columns::<RunRow>()
    );
    (query, !judged.is_empty())
}

/// The last one that a page with something to judge looks at.
fn looked_at(filter: &RunFilter, chosen: &Chosen<'_>, wanted: usize) -> Query {
    let (mut query, looks) = (Query::default(), wanted.max(LOOKED_AT));
    let first = chosen.first(filter, &mut query, "created_at, position", looks);
    let skipped = query.value(number(bound(looks - 1)));
    query.sql = format!(
        "SELECT created_at, position FROM {first} runs ORDER BY created_at DESC, position DESC OFFSET {skipped} LIMIT 1"
    );
    query
}

/// What the index does not see to.
fn judged(filter: &RunFilter, drive: &Drive<'_>, query: &mut Query) -> Vec<String> {
    let mut all = Vec::new();
    let mut narrow = |seen: bool, clause: &str, value: Option<Value>| {
        if let Some(value) = value.filter(|_| !seen) {
            all.push(clause.replace('$', &query.value(value)));
        }
    };
    let by_tenant =
        !matches!(drive, Drive::Ids(_) | Drive::Parent(_) | Drive::Root(_) | Drive::IdPrefix(_) | Drive::Everything);
    narrow(by_tenant, "tenant = $", filter.tenant.as_ref().map(TenantId::as_str).map(text));
    let named = |workflow: &str| -> Value { Box::new(key(workflow).into_owned()) };
    let seen = matches!(drive, Drive::Workflow(_));
    narrow(seen, "workflow = $", filter.workflow.as_ref().map(WorkflowId::as_str).map(named));
    let seen = matches!(drive, Drive::Parent(_));
    narrow(seen, "parent = $", filter.parent.as_ref().map(RunId::as_str).map(text));
    let seen = matches!(drive, Drive::Root(_));
    narrow(seen, "root = $", filter.root.as_ref().map(RunId::as_str).map(text));
    narrow(false, "updated_at >= $", filter.updated_from.map(|at| number(at.as_micros())));
    narrow(false, "updated_at <= $", filter.updated_until.map(|at| number(at.as_micros())));
    narrow(false, "cost_usd >= $", filter.cost_usd_from.map(|cost| -> Value { Box::new(cost) }));
    narrow(matches!(drive, Drive::Tag(_)), "$ = ANY(tags)", filter.tag.as_deref().map(text));
    let statuses = || -> Value { Box::new(filter.status.iter().map(|status| status.as_str()).collect::<Vec<_>>()) };
    let seen = matches!(drive, Drive::Statuses(_));
    narrow(seen, "status = ANY($)", (!filter.status.is_empty()).then(statuses));
    let within = |columns: &[&str], prefix: &str, query: &mut Query| {
        let (first, after) = (query.value(text(prefix)), query.value(Box::new(after_prefix(&written(prefix)))));
        let within = |column: &&str| format!("({column} >= {first} AND coalesce({column} < {after}::TEXT, true))");
        format!("({})", columns.iter().map(within).collect::<Vec<_>>().join(" OR "))
    };
    let prefix = |prefix: &Option<String>| prefix.clone().filter(|prefix| !prefix.is_empty());
    if let Some(prefix) = prefix(&filter.id_prefix).filter(|_| !matches!(drive, Drive::IdPrefix(_))) {
        all.push(within(&["id"], &prefix, query));
    }
    if let Some(prefix) = prefix(&filter.text_prefix) {
        // Of a long name the index knows only the beginning.
        if !matches!(drive, Drive::Text(_)) || key_prefix(&prefix) != written(&prefix) {
            all.push(within(&["id", "coalesce(long_workflow, workflow)"], &prefix, query));
        }
    }
    let told = [
        (filter.diverged, "diverged", matches!(drive, Drive::Diverged)),
        (filter.over_budget, "over_budget", matches!(drive, Drive::OverBudget)),
    ];
    for (told, column, seen) in told {
        match told {
            Some(true) if !seen => all.push(column.to_owned()),
            Some(false) => all.push(format!("NOT {column}")),
            _ => {}
        }
    }
    if filter.top_level {
        all.push("parent IS NULL".to_owned());
    }
    all
}

/// The shortest of the indexes that may drive.
async fn choose<'a>(questions: &Questions, filter: &'a RunFilter) -> Result<Chosen<'a>, Error> {
    let drives = filter.drives();
    let rivals = drives.iter().filter(|drive| !drive.is_last()).count() > 1;
    let mut best: Option<(u64, Chosen<'a>)> = None;
    for drive in drives {
        let last = drive.is_last();
        if last && best.is_some() {
            break;
        }
        let Some(sources) = sources(questions, filter, &drive).await? else { continue };
        let (mut count, mut fits) = (0, true);
        for source in sources.iter().filter(|source| rivals || source.is_sorted()) {
            let most = if source.is_sorted() { PREFIXED } else { LOOKED_AT };
            let mut query = Query::default();
            // Only what the index knows counts: what it does not would be looked at in vain.
            let found = source.few(&mut query).unwrap_or_else(|| source.write(filter, &mut query));
            let limit = query.value(number(bound(most + 1)));
            query.sql = format!("SELECT count(*) FROM (SELECT 1 FROM {found} LIMIT {limit}) few");
            let found = questions.one(&query.sql, &query.references(), rows::count).await?.unwrap_or(0);
            fits &= !source.is_sorted() || found <= most as u64;
            count += found;
        }
        if fits && best.as_ref().is_none_or(|(fewest, _)| count < *fewest) {
            best = Some((count, Chosen { drive, sources }));
        }
    }
    let everything = || Chosen { drive: Drive::Everything, sources: vec![Source::Everything] };
    Ok(best.map_or_else(everything, |(_, chosen)| chosen))
}

/// None where this cannot drive.
async fn sources<'a>(
    questions: &Questions,
    filter: &RunFilter,
    drive: &Drive<'a>,
) -> Result<Option<Vec<Source<'a>>>, Error> {
    Ok(Some(match drive {
        Drive::Ids(ids) => vec![Source::Ids(ids)],
        Drive::Parent(parent) => vec![Source::Parent(parent)],
        Drive::Root(root) => vec![Source::Root(root)],
        Drive::Tag(tag) => vec![Source::Tag(tag)],
        Drive::Diverged => vec![Source::Diverged],
        Drive::OverBudget => vec![Source::OverBudget],
        Drive::Statuses(statuses) => {
            let mut statuses = statuses.to_vec();
            statuses.sort_unstable_by_key(|status| status.as_str());
            statuses.dedup();
            statuses.into_iter().map(Source::Status).collect()
        }
        Drive::IdPrefix(prefix) => vec![Source::IdPrefix(prefix, false)],
        Drive::Workflow(workflow) => vec![Source::Workflow(key(workflow.as_str()).into_owned())],
        Drive::Text(prefix) => {
            let Some(named) = workflows(questions, filter, prefix).await? else { return Ok(None) };
            std::iter::once(Source::IdPrefix(prefix, true)).chain(named.into_iter().map(Source::Workflow)).collect()
        }
        Drive::Tenant => vec![Source::Tenant],
        Drive::Everything => vec![Source::Everything],
    }))
}

/// From one name to the next.
const NAMED: &str = "WITH RECURSIVE named AS (
        (SELECT workflow, 1 AS place FROM runs WHERE tenant = $1 AND workflow >= $2 AND workflow < $3::TEXT
            ORDER BY workflow LIMIT 1)
        UNION ALL
        SELECT (SELECT runs.workflow FROM runs WHERE tenant = $1 AND runs.workflow > named.workflow
            AND runs.workflow < $3::TEXT ORDER BY runs.workflow LIMIT 1), place + 1
        FROM named WHERE named.workflow IS NOT NULL AND place < $4
    ) SELECT workflow FROM named WHERE workflow IS NOT NULL";

/// The tenant's workflows that begin with this, as an index knows them; none where there are too many.
async fn workflows(questions: &Questions, filter: &RunFilter, prefix: &str) -> Result<Option<Vec<String>>, Error> {
    let begins = key_prefix(prefix);
    let (Some(tenant), Some(end)) = (&filter.tenant, after_prefix(&begins)) else { return Ok(None) };
    let most = bound(WORKFLOWS + 1);
    let most = i32::try_from(most).unwrap_or(i32::MAX);
    let read = |row: &Row| rows::raw::<String>(row);
    let found = questions.list(NAMED, &[&written(tenant.as_str()), &begins, &end, &most], read).await?;
    Ok(Some(found).filter(|found| found.len() <= WORKFLOWS))
}

#[cfg(test)]
#[path = "list_cost.rs"]
mod list_cost;
