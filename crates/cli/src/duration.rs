//! Spans of time as people type them: `90s`, `1h30m`, `30d`.

/// Milliseconds, or what to write instead.
pub(crate) fn millis(text: &str) -> Result<u64, String> {
    parse(text.trim()).ok_or_else(|| "write it like 90s, 10m, 1h30m, 30d or 2w".to_owned())
}

fn parse(mut text: &str) -> Option<u64> {
    let mut total: u64 = 0;
    loop {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = text.split_at(digits);
        let letters = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphabetic()).len();
        let (unit, rest) = rest.split_at(letters);
        let unit = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        if rest.is_empty() {
            return Some(total);
        }
        text = rest;
    }
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
    fn a_number_alone_says_nothing() {
        for text in ["", "30", "d", "1y", "-1d", "1.5h", "1 h", "99999999999999999999d", "9999999999999999w"] {
            assert!(millis(text).is_err(), "{text}");
        }
    }
}
