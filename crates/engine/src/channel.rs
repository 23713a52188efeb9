//! Channels: shared values that grow by reducers. Folding uses the reducer recorded on the write and the write's own
//! instant, so a log folds the same whenever it is read.

use baton_model::Timestamp;
use baton_model::json::size as size_of_json;
use baton_model::workflow::Reducer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// What stands around a value that expires: `{"value": …, "_ts": …}`.
const TIMED_BYTES: u64 = 28;

/// A channel's folded state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ChannelState {
    Single(Value),
    /// Entries with their instants; `timed` channels show them as `{value, _ts}`.
    List {
        entries: Vec<(i64, Value)>,
        timed: bool,
    },
}

impl ChannelState {
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Single(value) => value.clone(),
            Self::List { entries, timed: false } => entries.iter().map(|(_, value)| value.clone()).collect(),
            Self::List { entries, timed: true } => {
                entries.iter().map(|(at, value)| json!({"value": value, "_ts": at})).collect()
            }
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Single(value) => size_of_json(value),
            Self::List { entries, timed } => {
                let around = if *timed { TIMED_BYTES } else { 1 };
                entries.iter().map(|(_, value)| size_of_json(value) + around).sum::<u64>() + 2
            }
        }
    }
}

/// The state after one write.
pub(crate) fn reduce(
    before: Option<&ChannelState>,
    value: &Value,
    reducer: Reducer,
    ttl_ms: Option<u64>,
    max_size: Option<usize>,
    at: Timestamp,
) -> Result<ChannelState, String> {
    match reducer {
        Reducer::Replace => Ok(ChannelState::Single(value.clone())),
        Reducer::Merge => {
            let Value::Object(new) = value else { return Err("a merge channel takes objects".to_owned()) };
            let mut merged = match before.map(ChannelState::value) {
                Some(Value::Object(map)) => map,
                _ => Map::new(),
            };
            merged.extend(new.clone());
            if max_size.is_some_and(|most| merged.len() > most) {
                return Err(format!("the channel holds at most {} keys", max_size.unwrap_or(0)));
            }
            Ok(ChannelState::Single(Value::Object(merged)))
        }
        Reducer::Counter => {
            let step = value.as_f64().ok_or("a counter channel takes numbers")?;
            let sum = match before.map(ChannelState::value) {
                Some(Value::Number(number)) => match (number.as_i64(), value.as_i64()) {
                    (Some(a), Some(b)) => a.checked_add(b).map(Value::from),
                    _ => number.as_f64().map(|n| json!(n + step)),
                },
                _ => Some(value.clone()),
            };
            sum.map(ChannelState::Single).ok_or_else(|| "the counter overflowed".to_owned())
        }
        Reducer::Append | Reducer::Feedback | Reducer::Message | Reducer::Votes => {
            append(before, value, reducer, ttl_ms, max_size, at)
        }
    }
}

fn append(
    before: Option<&ChannelState>,
    value: &Value,
    reducer: Reducer,
    ttl_ms: Option<u64>,
    max_size: Option<usize>,
    at: Timestamp,
) -> Result<ChannelState, String> {
    let now = at.as_millis();
    let mut entries = match before {
        Some(ChannelState::List { entries, .. }) => entries.clone(),
        Some(ChannelState::Single(Value::Array(items))) => items.iter().map(|item| (now, item.clone())).collect(),
        _ => Vec::new(),
    };
    // Expiry is judged before the write, by the write's own instant.
    if let Some(ttl) = ttl_ms {
        let oldest = now.saturating_sub(i64::try_from(ttl).unwrap_or(i64::MAX));
        entries.retain(|(at, _)| *at >= oldest);
    }
    let same = |key: &str, entry: &Value| entry.get(key).is_some() && entry.get(key) == value.get(key);
    match reducer {
        // Seen before: a message is delivered once.
        Reducer::Message if entries.iter().any(|(_, entry)| same("messageId", entry)) => {}
        Reducer::Votes => {
            entries.retain(|(_, entry)| !same("userId", entry));
            entries.push((now, value.clone()));
        }
        _ => entries.push((now, value.clone())),
    }
    if let Some(most) = max_size.filter(|&most| entries.len() > most) {
        if reducer == Reducer::Message {
            return Err(format!("the channel holds at most {most} messages"));
        }
        entries.drain(..entries.len() - most);
    }
    Ok(ChannelState::List { entries, timed: ttl_ms.is_some() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn fold(reducer: Reducer, ttl: Option<u64>, max: Option<usize>, writes: &[(i64, Value)]) -> Value {
        let mut state = None;
        for (at, value) in writes {
            let next = reduce(state.as_ref(), value, reducer, ttl, max, Timestamp::from_millis(*at)).unwrap();
            state = Some(next);
        }
        state.unwrap().value()
    }

    #[test]
    fn each_reducer_folds_its_way() {
        let two = |a: Value, b: Value| vec![(1, a), (2, b)];
        assert_eq!(fold(Reducer::Replace, None, None, &two(json!(1), json!(2))), json!(2));
        assert_eq!(fold(Reducer::Append, None, None, &two(json!(1), json!(2))), json!([1, 2]));
        assert_eq!(fold(Reducer::Counter, None, None, &two(json!(1), json!(2))), json!(3));
        assert_eq!(fold(Reducer::Merge, None, None, &two(json!({"a": 1}), json!({"b": 2}))), json!({"a": 1, "b": 2}));
        let votes = two(json!({"userId": "u", "v": 1}), json!({"userId": "u", "v": 2}));
        assert_eq!(fold(Reducer::Votes, None, None, &votes), json!([{"userId": "u", "v": 2}]));
        let same = two(json!({"messageId": "m", "v": 1}), json!({"messageId": "m", "v": 2}));
        assert_eq!(fold(Reducer::Message, None, None, &same), json!([{"messageId": "m", "v": 1}]));
    }

    #[test]
    fn expiry_comes_before_the_write_and_size_after() {
        let writes = [(0, json!("a")), (50, json!("b")), (300, json!("d"))];
        assert_eq!(fold(Reducer::Append, Some(200), None, &writes), json!([{"value": "d", "_ts": 300}]));
        assert_eq!(fold(Reducer::Append, None, Some(2), &writes), json!(["b", "d"]));
    }

    #[test]
    fn a_write_that_does_not_fit_is_refused() {
        let at = Timestamp::default();
        assert!(reduce(None, &json!("x"), Reducer::Counter, None, None, at).is_err());
        assert!(reduce(None, &json!(1), Reducer::Merge, None, None, at).is_err());
    }
}
