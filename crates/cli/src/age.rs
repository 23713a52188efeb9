//! Instants and spans as people say them.

use std::time::{SystemTime, UNIX_EPOCH};

use baton_model::Timestamp;

pub(crate) fn now() -> Timestamp {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// "12s ago".
pub(crate) fn ago(at: Timestamp, now: Timestamp) -> String {
    let millis = now.millis_since(at);
    if millis < 1000 { "just now".to_owned() } else { format!("{} ago", span(millis)) }
}

/// The one or two largest units.
pub(crate) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis}ms"),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_use_the_largest_units() {
        for (millis, text) in
            [(7, "7ms"), (59_999, "59s"), (61_000, "1m01s"), (3_600_000, "1h00m"), (90_000_000, "1d01h")]
        {
            assert_eq!(span(millis), text);
        }
    }

    #[test]
    fn a_clock_that_went_back_is_now() {
        assert_eq!(ago(Timestamp::from_millis(5000), Timestamp::from_millis(1)), "just now");
        assert_eq!(ago(Timestamp::from_millis(1000), Timestamp::from_millis(13_000)), "12s ago");
    }
}
