//! Order statistics over measured durations.

use std::time::Duration;

/// Durations in ascending order.
pub(crate) struct Samples(Vec<Duration>);

impl Samples {
    pub(crate) fn new(mut durations: Vec<Duration>) -> Self {
        durations.sort_unstable();
        Self(durations)
    }

    pub(crate) fn into_durations(self) -> Vec<Duration> {
        self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest sample that at least `percent` % of all samples do not exceed; zero if there are none.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }

    pub(crate) fn max(&self) -> Duration {
        self.0.last().copied().unwrap_or_default()
    }
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_use_the_nearest_rank() {
        let samples = Samples::new((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!(samples.median(), Duration::from_millis(50));
        assert_eq!(samples.percentile(99), Duration::from_millis(99));
        assert_eq!(samples.max(), Duration::from_millis(100));
        assert_eq!(Samples::new(vec![Duration::from_millis(7)]).percentile(99), Duration::from_millis(7));
        assert_eq!(Samples::new(Vec::new()).median(), Duration::ZERO);
    }
}
