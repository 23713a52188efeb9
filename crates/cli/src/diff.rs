//! A line diff: the fewest lines taken out and put in that make one text of another (Myers 1986), shown in hunks with
//! a little of what surrounds them.

use serde::Serialize;

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// Texts that differ in more lines than this are shown as replaced: finding the smallest difference takes memory that
/// grows with the square of it.
const MOST_EDITS: usize = 2000;

/// A stretch of both texts that holds changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Hunk {
    /// First line of the stretch in either text, counted from 1; 0 if it has no lines there.
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
    let ops = ops(&old, &new);
    let changed: Vec<usize> = (0..ops.len()).filter(|at| ops[*at] != Op::Same).collect();
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for at in changed {
        let (start, end) = (at.saturating_sub(CONTEXT), (at + CONTEXT + 1).min(ops.len()));
        match stretches.last_mut() {
            Some((_, last)) if start <= *last => *last = end,
            _ => stretches.push((start, end)),
        }
    }
    let (mut old_at, mut new_at, mut at) = (0, 0, 0);
    let mut all = Vec::new();
    for (start, end) in stretches {
        // Between two stretches both texts are the same.
        (old_at, new_at, at) = (old_at + start - at, new_at + start - at, end);
        let (old_from, new_from) = (old_at, new_at);
        let mut lines = Vec::new();
        for op in &ops[start..end] {
            let text = if *op == Op::Added { new[new_at] } else { old[old_at] };
            old_at += usize::from(*op != Op::Added);
            new_at += usize::from(*op != Op::Removed);
            lines.push(Line { op: *op, text: text.to_owned() });
        }
        let place = |from: usize, to: usize| (if to > from { from + 1 } else { from }, to - from);
        let ((old_start, old_lines), (new_start, new_lines)) = (place(old_from, old_at), place(new_from, new_at));
        all.push(Hunk { old_start, old_lines, new_start, new_lines, lines });
    }
    all
}

/// What to do line by line: keep, take out, put in.
fn ops(old: &[&str], new: &[&str]) -> Vec<Op> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[..old.len() - tail], &new[..new.len() - tail]);
    let middle =
        shortest(old, new).unwrap_or_else(|| [vec![Op::Removed; old.len()], vec![Op::Added; new.len()]].concat());
    [vec![Op::Same; head], middle, vec![Op::Same; tail]].concat()
}

/// The shortest edit script; `None` if it is too long to look for.
fn shortest(old: &[&str], new: &[&str]) -> Option<Vec<Op>> {
    let most = (old.len() + new.len()).min(MOST_EDITS);
    // `reach[k]` is how far along `old` one gets on diagonal k (old - new, shifted by `most`) with so many edits.
    let mut reach = vec![0usize; 2 * most + 2];
    let mut trace: Vec<Vec<usize>> = Vec::new();
    for edits in 0..=most {
        trace.push(reach[most - edits..=most + edits].to_vec());
        for k in (most - edits..=most + edits).step_by(2) {
            let down = k == most - edits || (k != most + edits && reach[k - 1] < reach[k + 1]);
            let mut x = if down { reach[k + 1] } else { reach[k - 1] + 1 };
            let Some(mut y) = (x + most).checked_sub(k) else { continue };
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            reach[k] = x;
            if x >= old.len() && y >= new.len() {
                return Some(back(&trace, old.len(), new.len()));
            }
        }
    }
    None
}

/// Walks the trace back from the end of both texts.
fn back(trace: &[Vec<usize>], mut x: usize, mut y: usize) -> Vec<Op> {
    let mut ops = Vec::new();
    for (edits, reach) in trace.iter().enumerate().skip(1).rev() {
        // Row `edits` was saved as the diagonals -edits..=edits; this step came from one of the two beside ours.
        let k = x + edits - y;
        let down = k == 0 || (k != 2 * edits && reach[k - 1] < reach[k + 1]);
        let before = if down { k + 1 } else { k - 1 };
        let from_x = reach[before];
        let from_y = from_x + edits - before;
        let (to_x, to_y) = if down { (from_x, from_y + 1) } else { (from_x + 1, from_y) };
        while x > to_x && y > to_y {
            ops.push(Op::Same);
            (x, y) = (x - 1, y - 1);
        }
        ops.push(if down { Op::Added } else { Op::Removed });
        (x, y) = (from_x, from_y);
    }
    ops.extend(std::iter::repeat_n(Op::Same, x));
    ops.reverse();
    ops
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

    /// Applying the script to the old text must give the new one, and no script may be longer than a table of longest
    /// common subsequences says.
    #[test]
    fn scripts_are_right_and_shortest_for_all_short_texts() {
        let words = ["a\n", "b\n", "c\n"];
        let texts: Vec<Vec<&str>> =
            (0..3usize.pow(5)).map(|n| (0..n % 6).map(|at| words[n / 3usize.pow(at as u32) % 3]).collect()).collect();
        for old in &texts {
            for new in &texts {
                let ops = ops(old, new);
                let (mut made, mut at, mut put) = (Vec::new(), 0, 0);
                for op in &ops {
                    match op {
                        Op::Same => made.push(old[at]),
                        Op::Added => made.push(new[put]),
                        Op::Removed => {}
                    }
                    at += usize::from(*op != Op::Added);
                    put += usize::from(*op != Op::Removed);
                }
                assert_eq!((&made, at), (new, old.len()), "{old:?} {new:?} {ops:?}");
                let same = ops.iter().filter(|op| **op == Op::Same).count();
                assert_eq!(same, common(old, new), "{old:?} {new:?} {ops:?}");
            }
        }
    }

    fn common(old: &[&str], new: &[&str]) -> usize {
        let mut row = vec![0; new.len() + 1];
        for a in old {
            let mut diagonal = 0;
            for (at, b) in new.iter().enumerate() {
                let next = if a == b { diagonal + 1 } else { row[at].max(row[at + 1]) };
                diagonal = std::mem::replace(&mut row[at + 1], next);
            }
        }
        row[new.len()]
    }

    #[test]
    fn texts_that_share_nothing_are_replaced_however_long() {
        let (old, new) = (text(0..5000), text(10_000..15_000));
        let all = hunks(&old, &new);
        assert_eq!((all.len(), all[0].old_lines, all[0].new_lines), (1, 5000, 5000));
    }
}
