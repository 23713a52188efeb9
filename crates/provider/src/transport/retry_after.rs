//! When a server wants to be asked again.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SpanRound, Timestamp, Unit};
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// In milliseconds where the server is that exact, in seconds, or as a date.
pub(super) fn read(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<u64>().ok()) {
        return Some(Duration::from_millis(millis));
    }
    parse(text(RETRY_AFTER.as_str())?, Timestamp::now())
}

fn parse(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = DateTimeParser::new().parse_timestamp(text).ok()?;
    let left = date.since(now).ok()?.round(SpanRound::new().largest(Unit::Second)).ok()?;
    // A moment that has passed is now.
    Some(Duration::try_from(left).unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let cases = [
            ("0", Some(0)),
            ("12", Some(12_000)),
            ("1.5", Some(1_500)),
            ("-1", None),
            ("soon", None),
            ("", None),
            ("1e300", None),
            ("Mon, 16 Nov 2026 10:00:30 GMT", Some(30_000)),
            ("Mon, 16 Nov 2026 09:00:00 GMT", Some(0)),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text, now), millis.map(Duration::from_millis), "{text}");
        }
    }
}
