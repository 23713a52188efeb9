use std::time::Duration;

/// What connections may take. Defaults are generous: they bound what nobody needs.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// Connections at once, of everybody.
    pub total: usize,
    /// Connections at once from one address; 0 means no limit of its own.
    pub per_address: usize,
    /// From the first byte, or from the beginning, to the end of a request's header.
    pub header: Duration,
    /// How long a connection may stay open after an answer until the next request begins.
    pub idle: Duration,
    /// How long a client may take nothing of what is being sent to it.
    pub write: Duration,
    /// How long a request's body may take as a whole, and until its next piece.
    pub body: Duration,
    pub body_idle: Duration,
    /// Requests at once on one HTTP/2 connection.
    pub http2_streams: u32,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            // More than requests and streams together may be in progress, which is 10,000.
            total: 16_384,
            // Half: a proxy has one address, and so has a single bad client.
            per_address: 8_192,
            header: Duration::from_secs(10),
            // Longer than the proxies' own, which is a minute as a rule: whoever opened it closes it first.
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
            body: Duration::from_secs(60),
            body_idle: Duration::from_secs(15),
            http2_streams: 128,
        }
    }
}

/// Descriptors for everything that is no client: the store, packs, calls to models, tools, webhooks and other hosts.
const OTHER_DESCRIPTORS: u64 = 512;

impl ConnectionLimits {
    /// Descriptors that the process should be able to have with these limits.
    pub fn descriptors(&self) -> u64 {
        (self.total as u64).saturating_add(super::reserve::PLACES as u64).saturating_add(OTHER_DESCRIPTORS)
    }

    /// The same limits in a process that can open this many: clients never take what files need.
    #[must_use]
    pub fn within(mut self, descriptors: u64) -> Self {
        // Where there are very few, half of them.
        let others = (OTHER_DESCRIPTORS + super::reserve::PLACES as u64).min(descriptors / 2);
        let most = usize::try_from(descriptors - others).unwrap_or(usize::MAX).max(1);
        self.total = self.total.clamp(1, most);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_never_take_the_descriptors_of_files() {
        let limits = ConnectionLimits::default();
        assert_eq!(limits.clone().within(limits.descriptors()).total, limits.total);
        assert_eq!(limits.clone().within(limits.descriptors() - 1).total, limits.total - 1);
        assert_eq!(limits.clone().within(2048).total, 2048 - 512 - super::super::reserve::PLACES);
        assert_eq!(limits.clone().within(1024).total, 512);
        assert_eq!(limits.clone().within(64).total, 32);
        assert_eq!(limits.clone().within(0).total, 1);
        assert_eq!(limits.clone().within(u64::MAX).total, limits.total);
        assert_eq!(ConnectionLimits { total: 0, ..limits }.within(1024).total, 1);
    }
}
