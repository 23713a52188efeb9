//! A line diff: the fewest lines taken out and put in that make one text of another, shown in hunks with a little of
//! what surrounds them.

use std::time::{Duration, Instant};

use serde::Serialize;
use similar::{Algorithm, ChangeTag, DiffOp, capture_diff_slices_deadline, group_diff_ops};

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// The search takes time that grows with the square of the difference. After this long, what is left is shown as
/// replaced.
const LONGEST_SEARCH: Duration = Duration::from_secs(2);

/// A segment of both texts that holds changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hunk {
    /// First line of the segment in either text, counted from 1; 0 if it has no lines there.
    pub(crate) old_start: usize,
    pub(crate) old_lines: usize,
    pub(crate) new_start: usize,
    pub(crate) new_lines: usize,
    pub(crate) lines: Vec<Line>,
}

/// One line, with the line break it has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Line {
    pub(crate) op: Op,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Op {
    Same,
    Removed,
    Added,
}

impl Op {
    pub(crate) const fn sign(self) -> char {
        match self {
            Self::Same => ' ',
            Self::Removed => '-',
            Self::Added => '+',
        }
    }
}

/// What changed from `old` to `new`; nothing if they are equal.
pub(crate) fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let deadline = Instant::now() + LONGEST_SEARCH;
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    group_diff_ops(ops, CONTEXT).iter().filter_map(|group| hunk(group, &old, &new)).collect()
}

/// `None` if nothing changes in it.
fn hunk(group: &[DiffOp], old: &[&str], new: &[&str]) -> Option<Hunk> {
    let (first, last) = (group.first()?, group.last()?);
    let lines: Vec<Line> = group.iter().flat_map(|op| op.iter_changes(old, new)).map(Line::from).collect();
    if lines.iter().all(|line| line.op == Op::Same) {
        return None;
    }
    let place = |from: usize, to: usize| (if to > from { from + 1 } else { from }, to - from);
    let (old_start, old_lines) = place(first.old_range().start, last.old_range().end);
    let (new_start, new_lines) = place(first.new_range().start, last.new_range().end);
    Some(Hunk { old_start, old_lines, new_start, new_lines, lines })
}

impl From<similar::Change<&str>> for Line {
    fn from(change: similar::Change<&str>) -> Self {
        let op = match change.tag() {
            ChangeTag::Equal => Op::Same,
            ChangeTag::Delete => Op::Removed,
            ChangeTag::Insert => Op::Added,
        };
        Self { op, text: change.value().to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(old: &str, new: &str) -> Vec<String> {
        let mut out = Vec::new();
        for hunk in hunks(old, new) {
            out.push(format!("@@ {},{} {},{}", hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines));
            out.extend(hunk.lines.iter().map(|line| format!("{}{}", line.op.sign(), line.text.trim_end())));
        }
        out
    }

    fn text(lines: impl IntoIterator<Item = u32>) -> String {
        lines.into_iter().map(|n| format!("{n}\n")).collect()
    }

    #[test]
    fn a_change_stands_in_its_surroundings() {
        let old = text(1..=20);
        assert_eq!(
            shown(&old, &old.replace("10\n", "ten\n")),
            ["@@ 7,7 7,7", " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13"]
        );
        assert_eq!(shown(&old, &old), Vec::<String>::new());
        assert_eq!(shown("", "a\nb\n"), ["@@ 0,0 1,2", "+a", "+b"]);
        assert_eq!(shown("a\n", ""), ["@@ 1,1 0,0", "-a"]);
    }

    #[test]
    fn near_changes_share_a_hunk_and_far_ones_do_not() {
        let old = text(1..=30);
        let new = old.replace("\n5\n", "\nfive\n").replace("\n9\n", "\n").replace("\n25\n", "\n25\nmore\n");
        let shown = shown(&old, &new);
        let heads: Vec<&String> = shown.iter().filter(|line| line.starts_with("@@")).collect();
        assert_eq!(heads, ["@@ 2,11 2,10", "@@ 23,6 22,7"]);
    }

    #[test]
    fn a_missing_line_break_at_the_end_is_a_difference() {
        assert_eq!(hunks("a\nb\n", "a\nb")[0].lines.len(), 3);
    }

    #[test]
    fn texts_that_share_nothing_are_replaced_however_long() {
        let (old, new) = (text(0..5000), text(10_000..15_000));
        let all = hunks(&old, &new);
        assert_eq!((all.len(), all[0].old_lines, all[0].new_lines), (1, 5000, 5000));
    }
}
