//! A report for machines that read JUnit's XML.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use baton_cases::{CaseReport, SuiteReport};

pub(super) fn document(report: &SuiteReport) -> String {
    let mut files: BTreeMap<String, Vec<&CaseReport>> = BTreeMap::new();
    for case in &report.cases {
        files.entry(case.file.display().to_string()).or_default().push(case);
    }
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all = report.passed + report.failed;
    let _ = writeln!(
        text,
        "<testsuites name=\"baton\" tests=\"{all}\" failures=\"{}\" time=\"{}\">",
        report.failed,
        seconds(report.millis)
    );
    for (file, cases) in &files {
        let failures = cases.iter().filter(|case| !case.passed).count();
        let millis: u64 = cases.iter().map(|case| case.millis).sum();
        let _ = writeln!(
            text,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" time=\"{}\">",
            escaped(file),
            cases.len(),
            seconds(millis)
        );
        cases.iter().for_each(|case| one(&mut text, file, case));
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn one(text: &mut String, file: &str, case: &CaseReport) {
    let name = case.name.as_deref().unwrap_or("(file)");
    let begin = format!(
        "    <testcase name=\"{}\" classname=\"{}\" file=\"{}\" line=\"{}\" time=\"{}\"",
        escaped(name),
        escaped(file),
        escaped(file),
        case.line,
        seconds(case.millis)
    );
    if case.passed {
        let _ = writeln!(text, "{begin}/>");
        return;
    }
    let first = case.problems.first().map(|problem| problem.message.as_str()).unwrap_or_default();
    let mut all = String::new();
    for problem in &case.problems {
        let _ = writeln!(all, "{}: {}", problem.about, problem.message);
        if let Some(diff) = &problem.diff {
            let _ = writeln!(all, "{diff}");
        }
        if let Some(hint) = &problem.hint {
            let _ = writeln!(all, "hint: {hint}");
        }
    }
    let _ = writeln!(text, "{begin}>");
    let _ = writeln!(text, "      <failure message=\"{}\">{}</failure>", escaped(first), escaped(&all));
    text.push_str("    </testcase>\n");
}

fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

/// What XML keeps for itself is written otherwise, and what it cannot hold at all is left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(letter),
            '\u{fffe}' | '\u{ffff}' => {}
            letter if letter.is_control() => {}
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_case_says_breaks_the_document() {
        let case = CaseReport {
            file: "a.test.yaml".into(),
            name: Some("<b> & \"c\" \u{1b}[1m\u{0}".to_owned()),
            line: 3,
            column: 5,
            passed: false,
            millis: 1234,
            problems: Vec::new(),
        };
        let report = SuiteReport { passed: 0, failed: 1, skipped: 0, millis: 1234, cases: vec![case] };
        let text = document(&report);
        assert!(text.contains("name=\"&lt;b&gt; &amp; &quot;c&quot; [1m\""), "{text}");
        assert!(text.contains("<testsuite name=\"a.test.yaml\" tests=\"1\" failures=\"1\" time=\"1.234\">"), "{text}");
        assert!(!text.contains('\u{1b}') && !text.contains('\u{0}'));
    }
}
