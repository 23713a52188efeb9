//! What was measured, beside what it should be: an aligned table for people and JSON for machines.

use std::fmt::Write as _;

use serde::Serialize;

/// The target a figure is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(limit) => format!("<= {}", number(limit)),
            Self::AtLeast(limit) => format!(">= {}", number(limit)),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figure {
    workload: &'static str,
    name: String,
    value: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<Bound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<bool>,
    /// What the bound was computed from, or how the value was taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// All figures of one run, in the order they were measured.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    quick: bool,
    figures: Vec<Figure>,
}

/// Collects the figures of one workload.
pub(crate) struct Section<'a> {
    report: &'a mut Report,
    workload: &'static str,
}

impl Report {
    pub(crate) fn new(quick: bool) -> Self {
        Self { quick, figures: Vec::new() }
    }

    pub(crate) fn section(&mut self, workload: &'static str) -> Section<'_> {
        Section { report: self, workload }
    }

    /// How many judged figures miss their bound.
    pub(crate) fn misses(&self) -> usize {
        self.figures.iter().filter(|figure| figure.ok == Some(false)).count()
    }

    pub(crate) fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    pub(crate) fn table(&self) -> String {
        let rows: Vec<[String; 6]> = self.figures.iter().map(Figure::row).collect();
        let header = ["", "figure", "value", "bound", "", "note"].map(str::to_owned);
        let mut widths = [0; 6];
        for row in rows.iter().chain([&header]) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        let mut section = "";
        for (index, row) in [&header].into_iter().chain(&rows).enumerate() {
            let workload = index.checked_sub(1).map_or("", |i| self.figures[i].workload);
            if workload != section {
                section = workload;
                text.push('\n');
            }
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                // Numbers line up on their right, words on their left.
                let _ = match column {
                    2 | 3 => write!(line, "{cell:>width$}  "),
                    _ => write!(line, "{cell:<width$}  "),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let judged = self.figures.iter().filter(|figure| figure.ok.is_some()).count();
        let _ = write!(text, "\n{} of {judged} judged figures hold", judged - self.misses());
        if self.quick {
            text.push_str(" (quick run: sizes are reduced, so take the verdicts as a hint)");
        }
        text.push_str(".\n");
        text
    }
}

impl Section<'_> {
    /// A figure that is only shown.
    pub(crate) fn show(&mut self, name: impl Into<String>, value: f64, unit: &'static str) -> &mut Self {
        self.push(name.into(), value, unit, None)
    }

    /// A figure that is held against a bound.
    pub(crate) fn judge(&mut self, name: impl Into<String>, value: f64, unit: &'static str, bound: Bound) -> &mut Self {
        self.push(name.into(), value, unit, Some(bound))
    }

    /// Explains the figure added last.
    pub(crate) fn note(&mut self, note: impl Into<String>) -> &mut Self {
        if let Some(figure) = self.report.figures.last_mut() {
            figure.note = Some(note.into());
        }
        self
    }

    fn push(&mut self, name: String, value: f64, unit: &'static str, bound: Option<Bound>) -> &mut Self {
        let ok = bound.map(|bound| bound.holds(value));
        self.report.figures.push(Figure { workload: self.workload, name, value, unit, bound, ok, note: None });
        self
    }
}

impl Figure {
    fn row(&self) -> [String; 6] {
        let verdict = match self.ok {
            None => "",
            Some(true) => "ok",
            Some(false) => "MISS",
        };
        [
            self.workload.to_owned(),
            self.name.clone(),
            format!("{} {}", number(self.value), self.unit).trim_end().to_owned(),
            self.bound.map(Bound::text).unwrap_or_default(),
            verdict.to_owned(),
            self.note.clone().unwrap_or_default(),
        ]
    }
}

/// A number of clients in words.
pub(crate) fn clients(count: usize) -> String {
    format!("{count} client{}", if count == 1 { "" } else { "s" })
}

/// Three significant digits for small values, whole numbers with separators for large ones.
fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => thousands(value.round()),
        v if v >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_beyond_its_bound_is_a_miss() {
        let mut report = Report::new(false);
        let mut section = report.section("W1");
        section.judge("runs", 4000.0, "/s", Bound::AtLeast(4000.0)).judge("p50", 2.01, "ms", Bound::AtMost(2.0));
        section.show("p99", 9.0, "ms");
        assert_eq!(report.misses(), 1);
        let table = report.table();
        assert!(table.contains("MISS"), "{table}");
        assert!(table.contains("1 of 2 judged figures hold."), "{table}");
    }

    #[test]
    fn columns_line_up() {
        let mut report = Report::new(false);
        report.section("W1").show("short", 1.0, "ms").show("much longer name", 12345.0, "ms");
        let table = report.table();
        let ends: Vec<usize> = table.lines().filter_map(|line| line.find(" ms")).collect();
        assert_eq!(ends.len(), 2, "{table}");
        assert_eq!(ends[0], ends[1], "{table}");
    }

    #[test]
    fn numbers_keep_what_matters() {
        assert_eq!(number(1234567.4), "1,234,567");
        assert_eq!(number(0.1234), "0.12");
        assert_eq!(number(45.678), "45.7");
        assert_eq!(number(999.6), "1000");
        assert_eq!(number(200.0), "200");
    }
}
