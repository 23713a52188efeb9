//! One connection's place in the table: what it is doing, as far as it matters to whether it may stay.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::limits::ConnectionLimits;

/// An instant that has not come.
const NEVER: u64 = u64::MAX;

/// Why a connection is closed from this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// No request came, or not all of its header.
    Header,
    /// No further request came.
    Idle,
    /// It does not take what is sent to it.
    NotReading,
    /// It was doing nothing, and others needed its place.
    Evicted,
}

impl Why {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Idle => "idle",
            Self::NotReading => "not_reading",
            Self::Evicted => "evicted",
        }
    }
}

/// Instants are milliseconds since the table was made.
pub(super) struct Place {
    pub(super) id: u64,
    pub(super) address: IpAddr,
    /// It was let in above the limit, to ask how the host is.
    pub(super) in_reserve: bool,
    epoch: Instant,
    /// Requests whose answers are not with the client's socket yet.
    open: AtomicUsize,
    /// All that there were.
    requests: AtomicU64,
    http2: AtomicBool,
    /// Since when there are none.
    quiet_since: AtomicU64,
    /// The first byte since then.
    heard_at: AtomicU64,
    /// Since when the client takes nothing of what is there for it.
    blocked_since: AtomicU64,
    why: OnceLock<Why>,
    closing: CancellationToken,
}

/// A request in progress.
pub(super) struct OpenRequest(Arc<Place>);

impl Place {
    pub(super) fn new(id: u64, address: IpAddr, in_reserve: bool, epoch: Instant) -> Self {
        let place = Self {
            id,
            address,
            in_reserve,
            epoch,
            open: AtomicUsize::new(0),
            requests: AtomicU64::new(0),
            http2: AtomicBool::new(false),
            quiet_since: AtomicU64::new(0),
            heard_at: AtomicU64::new(NEVER),
            blocked_since: AtomicU64::new(NEVER),
            why: OnceLock::new(),
            closing: CancellationToken::new(),
        };
        place.quiet_since.store(place.now(), Ordering::Release);
        place
    }

    pub(super) fn now(&self) -> u64 {
        millis(self.epoch.elapsed())
    }

    /// A request's header is whole.
    pub(super) fn begin(self: &Arc<Self>, http2: bool) -> OpenRequest {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.requests.fetch_add(1, Ordering::AcqRel);
        self.http2.store(http2, Ordering::Release);
        OpenRequest(Arc::clone(self))
    }

    pub(super) fn heard(&self) {
        if self.open.load(Ordering::Acquire) == 0 && self.heard_at.load(Ordering::Acquire) == NEVER {
            self.heard_at.store(self.now(), Ordering::Release);
        }
    }

    pub(super) fn blocked(&self) {
        let _ = self.blocked_since.compare_exchange(NEVER, self.now(), Ordering::AcqRel, Ordering::Acquire);
    }

    pub(super) fn taken(&self) {
        self.blocked_since.store(NEVER, Ordering::Release);
    }

    /// Whether it has had its time, and with what.
    pub(super) fn overdue(&self, now: u64, limits: &ConnectionLimits) -> Option<Why> {
        let over = |since: &AtomicU64, limit: Duration| {
            let since = since.load(Ordering::Acquire);
            since != NEVER && now.saturating_sub(since) >= millis(limit)
        };
        if over(&self.blocked_since, limits.write) {
            return Some(Why::NotReading);
        }
        if self.open.load(Ordering::Acquire) > 0 {
            return None;
        }
        if self.requests.load(Ordering::Acquire) == 0 {
            return over(&self.quiet_since, limits.header).then_some(Why::Header);
        }
        // On HTTP/2 a byte is not the beginning of a request: it may be a ping, or room for what was sent before.
        if !self.http2.load(Ordering::Acquire) && over(&self.heard_at, limits.header) {
            return Some(Why::Header);
        }
        over(&self.quiet_since, limits.idle).then_some(Why::Idle)
    }

    /// Who goes first where somebody has to: whoever never asked anything, then whoever asked nothing for longest. Nobody
    /// goes in the middle of a request.
    pub(super) fn dispensable(&self) -> Option<(bool, u64)> {
        let quiet = self.open.load(Ordering::Acquire) == 0;
        quiet.then(|| (self.requests.load(Ordering::Acquire) > 0, self.quiet_since.load(Ordering::Acquire)))
    }

    /// Waits until nothing is in progress, and a moment more.
    pub(super) async fn over_with(&self, moment: Duration) {
        let quiet = || self.open.load(Ordering::Acquire) == 0 && self.blocked_since.load(Ordering::Acquire) == NEVER;
        let mut was_quiet = false;
        loop {
            let is_quiet = quiet();
            if was_quiet && is_quiet {
                return;
            }
            was_quiet = is_quiet;
            tokio::time::sleep(moment).await;
        }
    }

    /// Only the first reason counts.
    pub(super) fn close(&self, why: Why) {
        if self.why.set(why).is_ok() {
            metrics::counter!("baton_http_connections_closed_total", "why" => why.as_str()).increment(1);
            self.closing.cancel();
        }
    }

    /// Waits until it is to be closed.
    pub(super) async fn closed(&self) -> Why {
        self.closing.cancelled().await;
        self.why.get().copied().unwrap_or(Why::Idle)
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        // Before the count: whoever sees that there are none sees since when.
        self.0.quiet_since.store(self.0.now(), Ordering::Release);
        self.0.heard_at.store(NEVER, Ordering::Release);
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NEVER - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const LIMITS: ConnectionLimits = ConnectionLimits {
        total: 1,
        per_address: 0,
        header: Duration::from_secs(10),
        idle: Duration::from_secs(75),
        write: Duration::from_secs(30),
        body: Duration::from_secs(60),
        body_idle: Duration::from_secs(15),
        http2_streams: 1,
    };

    fn place() -> Arc<Place> {
        Arc::new(Place::new(1, IpAddr::V4(Ipv4Addr::LOCALHOST), false, Instant::now()))
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn overdue(place: &Arc<Place>) -> Option<Why> {
        place.overdue(place.now(), &LIMITS)
    }

    #[tokio::test(start_paused = true)]
    async fn a_header_has_its_time_from_the_beginning_and_then_from_its_first_byte() {
        let place = place();
        pass(9).await;
        // Bytes that trickle in do not give it more.
        place.heard();
        assert_eq!(overdue(&place), None);
        pass(1).await;
        assert_eq!(overdue(&place), Some(Why::Header));
        drop(place.begin(false));
        assert_eq!(overdue(&place), None);
        pass(60).await;
        place.heard();
        pass(9).await;
        place.heard();
        assert_eq!(overdue(&place), None);
        pass(1).await;
        assert_eq!(overdue(&place), Some(Why::Header));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_in_progress_may_take_its_time_and_silence_after_it_may_not() {
        let place = place();
        let request = place.begin(false);
        pass(1000).await;
        assert_eq!((overdue(&place), place.dispensable()), (None, None));
        drop(request);
        pass(74).await;
        assert_eq!(overdue(&place), None);
        pass(1).await;
        assert_eq!(overdue(&place), Some(Why::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_on_http2_are_no_header_and_do_not_keep_it_open() {
        let place = place();
        drop(place.begin(true));
        for _ in 0..7 {
            place.heard();
            pass(10).await;
            assert_eq!(overdue(&place), None);
        }
        place.heard();
        pass(5).await;
        assert_eq!(overdue(&place), Some(Why::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_read_goes_in_the_middle_of_a_request() {
        let place = place();
        let _request = place.begin(false);
        place.blocked();
        pass(29).await;
        place.blocked();
        assert_eq!(overdue(&place), None);
        place.taken();
        pass(29).await;
        assert_eq!(overdue(&place), None);
        place.blocked();
        pass(30).await;
        assert_eq!(overdue(&place), Some(Why::NotReading));
    }
}
