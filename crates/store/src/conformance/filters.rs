//! Lists as a whole: whatever is asked finds what looking at every run would find, each once, in order, page by page.

use baton_model::{RunId, RunStatus, TenantId, WorkflowId};

use super::sample::{append, at, row, start, write};
use crate::run_list::LOOKED_AT;
use crate::{KeptTree, Pruned, RunFilter, RunPlace, RunRow, Store, Write};

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

const TENANTS: [&str; 2] = ["acme", "other"];
const WORKFLOWS: [&str; 4] = ["echo", "echo.two", "loop", "ümlaut"];
const TAGS: [&str; 4] = ["a", "ab", "ü\"%", "a long tag: lorem ipsum"];
const SUMMARIES: [&str; 4] = [
    r#"{"diverged":true}"#,
    r#"{"overBudget":true}"#,
    r#"{"usage":{"inputTokens":1,"outputTokens":2,"costUsd":0.5}}"#,
    r#"{"usage":{"inputTokens":1,"outputTokens":2,"costUsd":2.0},"diverged":true,"overBudget":true}"#,
];
const RUNS: u64 = 150;

fn some_row(dice: &mut Dice, number: u64) -> RunRow {
    let prefix = dice.of(&["run_a", "run_b", "echo"]);
    let mut row = row(&format!("{prefix}{number:03}"));
    row.tenant = TenantId::new(dice.of(&TENANTS));
    row.workflow = WorkflowId::new(dice.of(&WORKFLOWS));
    row.status = if dice.one_in(2) { RunStatus::Completed } else { dice.of(&RunStatus::ALL) };
    // Not in the order in which they come, and often at the same instant.
    row.created_at = at(dice.below(40).cast_signed());
    row.tags = TAGS.iter().filter(|_| dice.one_in(4)).map(|tag| (*tag).to_owned()).collect();
    if !row.tags.is_empty() && dice.one_in(5) {
        row.tags.push(row.tags[0].clone());
    }
    if number > 10 && dice.one_in(3) {
        let top = RunId::new(format!("top_{}", dice.below(3)));
        (row.parent, row.root) = (Some(top.clone()), Some(top));
    }
    row.summary = dice.one_in(3).then(|| dice.of(&SUMMARIES).into());
    row.memory_scope = row.root.as_ref().map_or(row.id.as_str(), RunId::as_str).to_owned();
    row
}

fn some_filter(dice: &mut Dice) -> RunFilter {
    let mut filter = RunFilter { limit: 1 + dice.below(9) as usize, ..RunFilter::default() };
    // What callers send always names one.
    filter.tenant = (!dice.one_in(8)).then(|| TenantId::new(dice.of(&TENANTS)));
    for _ in 0..1 + dice.below(3) {
        match dice.below(14) {
            0 => filter.status = vec![dice.of(&RunStatus::ALL)],
            1 => filter.status = (0..4).map(|_| dice.of(&RunStatus::ALL)).collect(),
            2 => filter.workflow = Some(WorkflowId::new(dice.of(&WORKFLOWS))),
            3 => filter.tag = Some(dice.of(&TAGS).to_owned()),
            4 => filter.parent = Some(RunId::new(format!("top_{}", dice.below(4)))),
            5 => filter.root = Some(RunId::new(format!("top_{}", dice.below(4)))),
            6 => filter.id_prefix = Some(dice.of(&["", "run_", "run_a0", "run_b1", "e", "\u{10FFFF}"]).to_owned()),
            7 => filter.text_prefix = Some(dice.of(&["", "echo", "echo.", "l", "run_a", "ü", "none"]).to_owned()),
            8 => filter.created_from = Some(at(dice.below(40).cast_signed())),
            9 => filter.created_until = Some(at(dice.below(40).cast_signed())),
            10 => {
                filter.updated_from = dice.one_in(2).then(|| at(dice.below(4).cast_signed()));
                filter.updated_until = dice.one_in(2).then(|| at(dice.below(4).cast_signed()));
            }
            11 => filter.diverged = Some(dice.one_in(2)),
            12 => filter.over_budget = Some(dice.one_in(2)),
            _ if dice.one_in(2) => filter.cost_usd_from = Some(1.0),
            _ => filter.top_level = true,
        }
    }
    filter
}

async fn walk(store: &impl Store, filter: &RunFilter) -> (Vec<RunRow>, usize) {
    let (mut all, mut pages, mut cursor): (Vec<RunRow>, usize, Option<RunPlace>) = (Vec::new(), 0, None);
    loop {
        let page = store.runs(&RunFilter { cursor, ..filter.clone() }).await.expect("runs can be listed");
        assert!(page.items.len() <= filter.limit, "no more than asked: {filter:?}");
        assert!(page.next.is_none() || page.next < cursor || cursor.is_none(), "the place goes down: {filter:?}");
        all.extend(page.items);
        pages += 1;
        cursor = page.next;
        if cursor.is_none() {
            return (all, pages);
        }
    }
}

pub(super) async fn any_filter_finds_what_is_there(store: impl Store) {
    let mut dice = Dice(7);
    let mut rows = Vec::new();
    for number in 0..RUNS {
        let row = some_row(&mut dice, number);
        start(&store, row.clone(), 1 + number % 3).await;
        rows.push(store.run(&row.id).await.expect("readable").expect("was written"));
    }
    let mut newest_first: Vec<(usize, &RunRow)> = rows.iter().enumerate().collect();
    newest_first.sort_by_key(|(place, row)| std::cmp::Reverse((row.created_at, *place)));
    let mut found_any = 0;
    for _ in 0..400 {
        let filter = some_filter(&mut dice);
        let expected: Vec<&RunRow> =
            newest_first.iter().map(|(_, row)| *row).filter(|row| filter.matches(row)).collect();
        let (found, _) = walk(&store, &filter).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
        found_any += usize::from(!found.is_empty());
    }
    assert!(found_any > 100, "the filters are not all for nothing: {found_any}");
    let tenants = store.tenants(None, 9).await.expect("readable");
    assert_eq!(tenants, TENANTS.map(TenantId::new), "each once, in order");
    assert_eq!(store.tenants(Some(&tenants[0]), 9).await.expect("readable"), tenants[1..]);
    for tenant in tenants {
        let counts = store.run_counts(&tenant).await.expect("readable");
        for status in RunStatus::ALL {
            let of = |counts: &[(RunStatus, u64)]| {
                counts.iter().filter(|(counted, _)| *counted == status).map(|(_, count)| *count).sum::<u64>()
            };
            let expected = rows.iter().filter(|row| row.tenant == tenant && row.status == status).count() as u64;
            assert_eq!(of(&counts), expected, "{tenant} {status}");
        }
    }
}

/// More than a page may look at lies before the only one that is as asked.
pub(super) async fn what_is_rare_is_found_in_short_pages(store: impl Store) {
    let rare = r#"{"usage":{"inputTokens":1,"outputTokens":2,"costUsd":3.0}}"#;
    start(&store, RunRow { summary: Some(rare.into()), ..row("run_rare") }, 1).await;
    let many = 2 * LOOKED_AT + 10;
    for first in (0..many).step_by(500) {
        let rows = (first..many.min(first + 500))
            .map(|number| RunRow { created_at: at(1 + number as i64), ..row(&format!("run_{number:05}")) });
        write(&store, rows.map(Write::CreateRun).collect()).await;
    }
    let acme = RunFilter { tenant: Some(TenantId::new("acme")), limit: 10, ..RunFilter::default() };
    let (found, pages) = walk(&store, &RunFilter { cost_usd_from: Some(1.0), ..acme.clone() }).await;
    assert_eq!(found.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["run_rare"]);
    assert!(pages <= 4, "no shorter than it has to be: {pages}");
    let (found, _) = walk(&store, &RunFilter { limit: LOOKED_AT * 3, ..acme.clone() }).await;
    assert_eq!(found.len(), many + 1, "a page may be as long as it likes");
    let by_id = RunFilter { text_prefix: Some("run_rare".to_owned()), ..acme.clone() };
    let page = store.runs(&by_id).await.expect("readable");
    assert_eq!((page.items.len(), page.next), (1, None), "an id is found at once");
    let by_id = RunFilter { id_prefix: Some("run_".to_owned()), ..acme };
    let page = store.runs(&by_id).await.expect("readable");
    assert_eq!(page.items.first().map(|row| row.id.to_string()), Some(format!("run_{:05}", many - 1)), "newest first");
}

pub(super) async fn trees_with_a_log_are_listed_newest_first(store: impl Store) {
    for (number, id) in ["run_a", "run_b", "run_c", "run_d"].into_iter().enumerate() {
        start(&store, RunRow { created_at: at(number as i64), ..row(id) }, 2).await;
    }
    let below = |id: &str, root: &str| RunRow {
        root: Some(RunId::new(root)),
        parent: Some(RunId::new(root)),
        memory_scope: root.to_owned(),
        ..row(id)
    };
    start(&store, below("run_b1", "run_b"), 3).await;
    start(&store, below("run_b2", "run_b"), 4).await;
    start(&store, RunRow { tenant: TenantId::new("other"), ..row("run_foreign") }, 1).await;
    let done = RunRow { status: RunStatus::Completed, busy: false, ..row("run_a") };
    write(&store, vec![append(done, 2, 1)]).await;
    let prune = |id: &str, log| Write::Prune { run: RunId::new(id), pruned: Pruned { at: at(9), log } };
    write(&store, vec![prune("run_c", true), prune("run_d", false)]).await;
    let acme = TenantId::new("acme");
    let kept = store.kept_trees(&acme, None, 9).await.expect("readable");
    let told: Vec<_> =
        kept.iter().map(|KeptTree { id, runs, records, status, .. }| (id.as_str(), *runs, *records, *status)).collect();
    let running = RunStatus::Running;
    let expected = [("run_d", 1, 2, running), ("run_b", 3, 9, running), ("run_a", 1, 3, RunStatus::Completed)];
    assert_eq!(told, expected, "with what is below them; a log that is gone is not there");
    let rest = store.kept_trees(&acme, Some(kept[0].place), 1).await.expect("readable");
    assert_eq!(rest, kept[1..2], "after a place, and no more than asked");
}
