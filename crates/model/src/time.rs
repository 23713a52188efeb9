use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant, in whole microseconds since the Unix epoch. On the wire RFC 3339, in storage an integer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1000))
    }
    pub const fn as_micros(self) -> i64 {
        self.0
    }
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1000)
    }
    pub const fn plus_millis(self, millis: u64) -> Self {
        let millis = if millis > i64::MAX as u64 / 1000 { i64::MAX / 1000 } else { millis as i64 };
        Self(self.0.saturating_add(millis * 1000))
    }
    /// Whole milliseconds from `earlier` to here; zero if the clock went backwards.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        let micros = self.0.saturating_sub(earlier.0);
        if micros < 0 { 0 } else { micros as u64 / 1000 }
    }
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|t| Self(t.as_microsecond()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(at) => write!(f, "{at:.6}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("not an RFC 3339 instant: {text}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_wire() {
        let at = Timestamp::from_micros(1_763_234_567_123_456);
        assert_eq!(at.to_string(), "2025-11-15T19:22:47.123456Z");
        assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::from_micros(5).millis_since(Timestamp::from_micros(9_000_000)), 0);
        assert!(Timestamp::from_micros(0).plus_millis(u64::MAX) > Timestamp::from_micros(0));
    }
}
