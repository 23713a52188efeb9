use serde::{Deserialize, Serialize};

/// How much of something: a whole number stays one on the wire, dollars may have a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    Whole(u64),
    Part(f64),
}

impl Amount {
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Whole(n) => n as f64,
            Self::Part(n) => n,
        }
    }
}

impl From<u64> for Amount {
    fn from(n: u64) -> Self {
        Self::Whole(n)
    }
}

impl From<f64> for Amount {
    /// A number without a fraction is a whole one, however it was written.
    fn from(n: f64) -> Self {
        let exact = (0.0..9_007_199_254_740_992.0).contains(&n) && n.fract() == 0.0;
        if exact { Self::Whole(n as u64) } else { Self::Part(n) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_stay_whole_and_old_ones_read_back() {
        let text = |amount: Amount| serde_json::to_string(&amount).unwrap();
        assert_eq!([text(7.into()), text(2.0.into()), text(0.25.into())], ["7", "2", "0.25"]);
        assert_eq!(text(Amount::Whole(u64::MAX)), u64::MAX.to_string());
        let read = |text: &str| serde_json::from_str::<Amount>(text).unwrap();
        assert_eq!((read("7"), read("0.25")), (Amount::Whole(7), Amount::Part(0.25)));
        assert!(serde_json::from_str::<Amount>("\"7\"").is_err());
    }
}
