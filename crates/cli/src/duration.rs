//! Spans of time as people type them: `90s`, `1h30m`, `30d`, `2 weeks`.

use jiff::{Span, SpanRelativeTo};

/// Milliseconds, or what to write instead.
pub(crate) fn millis(text: &str) -> Result<u64, String> {
    parse(text.trim()).ok_or_else(|| "write it like 90s, 10m, 1h30m, 30d or 2w".to_owned())
}

fn parse(text: &str) -> Option<u64> {
    // A day is 24 hours here. Months and years have no length of their own and are refused.
    let span: Span = text.parse().ok()?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    u64::try_from(duration.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_add_up() {
        for (text, span) in [("0s", 0), ("250ms", 250), ("90s", 90_000), ("1h30m", 5_400_000), (" 30d ", 2_592_000_000)]
        {
            assert_eq!(millis(text), Ok(span), "{text}");
        }
    }

    #[test]
    fn units_may_be_words_and_hours_may_have_a_fraction() {
        for (text, span) in [("2w", 1_209_600_000), ("2 weeks", 1_209_600_000), ("1.5h", 5_400_000), ("1 h", 3_600_000)]
        {
            assert_eq!(millis(text), Ok(span), "{text}");
        }
    }

    #[test]
    fn a_number_alone_says_nothing() {
        for text in ["", "30", "d", "1y", "1mo", "-1d", "99999999999999999999d", "9999999999999999w"] {
            assert!(millis(text).is_err(), "{text}");
        }
    }
}
