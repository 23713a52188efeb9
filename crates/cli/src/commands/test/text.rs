//! A report as people read it: a line for each file that is fine, and everything about what is not.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use baton_cases::{CaseReport, Problem, SuiteReport};

pub(super) fn shown(report: &SuiteReport) -> String {
    let mut text = String::new();
    let mut files: BTreeMap<&Path, (usize, u64)> = BTreeMap::new();
    for case in &report.cases {
        let (passed, millis) = files.entry(&case.file).or_default();
        *passed += usize::from(case.passed);
        *millis += case.millis;
    }
    for (file, (passed, millis)) in files.iter().filter(|(_, (passed, _))| *passed > 0) {
        let _ = writeln!(text, "ok    {}: {passed} passed ({millis} ms)", file.display());
    }
    for case in report.cases.iter().filter(|case| !case.passed) {
        failed(&mut text, case);
    }
    let skipped = if report.skipped == 0 { String::new() } else { format!(", {} left out", report.skipped) };
    let _ = writeln!(text, "{} passed, {} failed{skipped} in {} ms", report.passed, report.failed, report.millis);
    text
}

fn failed(text: &mut String, case: &CaseReport) {
    let CaseReport { file, line, column, .. } = case;
    let name = case.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    let _ = writeln!(text, "FAIL  {}:{line}:{column}{name}", file.display());
    for problem in &case.problems {
        one(text, problem);
    }
}

fn one(text: &mut String, problem: &Problem) {
    let place = problem.position.map(|place| format!(" (line {})", place.line)).unwrap_or_default();
    let _ = writeln!(text, "      {}{place}: {}", problem.about, problem.message);
    for line in problem.diff.iter().flat_map(|diff| diff.lines()) {
        let _ = writeln!(text, "        {line}");
    }
    if let Some(hint) = &problem.hint {
        let _ = writeln!(text, "      hint: {hint}");
    }
}
