//! Hunks as `diff -u` writes them.

use owo_colors::OwoColorize as _;

use crate::diff::{Hunk, Op};

/// A hunk of a file: where it stands, its lines, and a word where the text ends without a line break.
pub(crate) fn lines(hunk: &Hunk) -> Vec<String> {
    let Hunk { old_start, old_lines, new_start, new_lines, .. } = hunk;
    let head = format!("@@ -{old_start},{old_lines} +{new_start},{new_lines} @@");
    let mut out = vec![head.cyan().to_string()];
    for line in &hunk.lines {
        out.push(signed(line.op, line.text.trim_end_matches(['\n', '\r'])));
        if !line.text.ends_with('\n') {
            out.push("\\ no line break at the end".to_owned());
        }
    }
    out
}

/// One line with its sign.
pub(crate) fn signed(op: Op, text: &str) -> String {
    let line = format!("{}{text}", op.sign());
    match op {
        Op::Same => line,
        Op::Removed => line.red().to_string(),
        Op::Added => line.green().to_string(),
    }
}
