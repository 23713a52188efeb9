//! A tree of runs with box characters, one line a run.

use baton_model::Timestamp;

use super::usage;
use crate::age::ago;
use crate::run_ref::short;
use crate::terminal::cut;
use crate::tree::Branch;

/// The lines of a tree. Too wide for the terminal: columns close up, then lines are cut.
pub(crate) fn lines(root: &Branch, now: Timestamp, width: Option<usize>) -> Vec<String> {
    let mut rows = Vec::new();
    collect(root, "", "", now, &mut rows);
    let mut widths = [0; COLUMNS];
    for row in &rows {
        for (column, cell) in widths.iter_mut().zip(row) {
            *column = (*column).max(cell.chars().count());
        }
    }
    let aligned: Vec<String> = rows.iter().map(|row| align(row, &widths)).collect();
    if width.is_none_or(|width| aligned.iter().all(|line| line.chars().count() <= width)) {
        return aligned;
    }
    rows.iter().map(|row| cut(&close_up(row), width)).collect()
}

/// One run in one line, for a change that is told instead of drawn.
pub(crate) fn change(branch: &Branch) -> String {
    let words = [short(&branch.run_id).to_owned(), branch.workflow_id.clone(), branch.status.to_string()];
    let more = [place(branch), branch.error.clone().unwrap_or_default()];
    words.into_iter().chain(more).filter(|word| !word.is_empty()).collect::<Vec<_>>().join("  ")
}

const COLUMNS: usize = 7;
type Row = [String; COLUMNS];

fn collect(branch: &Branch, here: &str, below: &str, now: Timestamp, rows: &mut Vec<Row>) {
    rows.push([
        format!("{here}{}", branch.workflow_id),
        branch.status.to_string(),
        short(&branch.run_id).to_owned(),
        place(branch),
        ago(branch.created_at, now),
        used(branch),
        branch.error.clone().unwrap_or_default(),
    ]);
    let last = branch.children.len().saturating_sub(1);
    for (index, child) in branch.children.iter().enumerate() {
        let (corner, bar) = if index == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        collect(child, &format!("{below}{corner}"), &format!("{below}{bar}"), now, rows);
    }
}

/// What a run and everything below it have used.
fn used(branch: &Branch) -> String {
    let Some(tree) = branch.tree_usage else { return String::new() };
    let more = if branch.usage == Some(tree) { "" } else { " in all" };
    format!("{}{more}", usage::short(tree))
}

fn place(branch: &Branch) -> String {
    match &branch.place {
        Some(place) => match place.turn {
            Some(turn) => format!("turn {turn} at {}", place.node_id),
            None => format!("at {}", place.node_id),
        },
        None => String::new(),
    }
}

fn align(row: &Row, widths: &[usize; COLUMNS]) -> String {
    let mut line = String::new();
    for (cell, &width) in row.iter().zip(widths).filter(|(_, width)| **width > 0) {
        line.push_str(&format!("{cell:<width$}  "));
    }
    line.trim_end().to_owned()
}

/// Without the age and the tokens: in a narrow terminal they are what is missed least.
fn close_up(row: &Row) -> String {
    let [name, status, id, place, _, _, error] = row;
    [name, status, id, place, error].into_iter().filter(|cell| !cell.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use baton_model::{RunStatus, UsageSummary};

    use super::*;
    use crate::tree::tests::run;

    fn family() -> Branch {
        let mut root = run("run_00000000000000aa", "team", RunStatus::WaitingApproval, None);
        let mut first = run("run_00000000000100aa", "research", RunStatus::Failed, Some(("hand-over", 1)));
        first.error = Some("boom".to_owned());
        first.children.push(run("run_00000000000200aa", "look-up", RunStatus::Completed, Some(("fetch", 1))));
        root.children = vec![first, run("run_00000000000300aa", "review", RunStatus::Running, Some(("hand-over", 12)))];
        root
    }

    #[test]
    fn boxes_and_columns() {
        assert_eq!(
            lines(&family(), Timestamp::from_millis(13_000), None),
            [
                "team           waiting-approval  run_000000000000                        12s ago",
                "├─ research    failed            run_000000000001  turn 1 at hand-over   12s ago  boom",
                "│  └─ look-up  completed         run_000000000002  turn 1 at fetch       12s ago",
                "└─ review      running           run_000000000003  turn 12 at hand-over  12s ago",
            ]
        );
    }

    #[test]
    fn a_line_says_what_its_runs_have_used() {
        let some = |tokens| Some(UsageSummary { input_tokens: tokens, output_tokens: 0, cost_usd: None });
        let mut root = run("run_00000000000000aa", "team", RunStatus::Completed, None);
        let child = run("run_00000000000100aa", "look-up", RunStatus::Completed, None);
        root.children.push(Branch { usage: some(18), tree_usage: some(18), ..child });
        root.tree_usage = some(18);
        assert_eq!(
            lines(&root, Timestamp::from_millis(13_000), None),
            [
                "team        completed  run_000000000000  12s ago  18 tokens in all",
                "└─ look-up  completed  run_000000000001  12s ago  18 tokens",
            ]
        );
    }

    #[test]
    fn a_narrow_terminal_loses_the_age_then_the_end() {
        let now = Timestamp::from_millis(13_000);
        assert_eq!(lines(&family(), now, Some(80))[1], "├─ research failed run_000000000001 turn 1 at hand-over boom");
        assert_eq!(lines(&family(), now, Some(30))[1], "├─ research failed run_000000…");
    }

    #[test]
    fn a_change_is_one_line() {
        assert_eq!(change(&family().children[0]), "run_000000000001  research  failed  turn 1 at hand-over  boom");
        assert_eq!(change(&family()), "run_000000000000  team  waiting-approval");
    }
}
