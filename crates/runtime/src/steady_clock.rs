//! The time of the host: named like the wall clock's, driven by a clock that nobody sets.
//!
//! A wall clock jumps: somebody sets it, a virtual machine is moved, a time server corrects it. A delay of three seconds
//! must take three seconds all the same. So the host reads the wall clock when it starts and counts on by itself, time
//! that the machine sleeps included. A difference that stays is made up for slowly, as time servers do it: an hour is off by
//! less than two seconds while that goes on, and a restart follows the machine at once. A clock that was never set, and so
//! says that it is long ago, is followed in one step once it has been right for a minute.

use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;

/// How often the wall clock is looked at.
const LOOK_US: i64 = 1_000_000;
/// How much faster or slower the host's time may go than real time: one part in so many. A timer of an hour is off by less
/// than two seconds.
const SLEW: i64 = 2_000;
/// Before 2020 nobody ran this: a clock that says so was never set.
const NEVER_SET_US: i64 = 1_577_836_800 * 1_000_000;
/// How long it must stay so before the host believes it.
const STAYS_US: i64 = 60 * 1_000_000;
/// A difference that is worth a line in the log.
const NOTEWORTHY_US: i64 = 2_000_000;

/// Where time comes from, in microseconds.
pub(crate) trait TimeSource: Send + Sync {
    /// Since 1970, as the machine says now. It may jump.
    fn wall(&self) -> i64;
    /// Since some moment. It counts on while the machine sleeps, and never jumps.
    fn elapsed(&self) -> i64;
}

pub(crate) struct SteadyClock<S> {
    source: S,
    /// What is added to the time that has elapsed.
    offset: AtomicI64,
    looks: Mutex<Looks>,
}

struct Looks {
    /// When the wall clock was last looked at, by the time that has elapsed.
    last: i64,
    /// Since when it has been set, while the host's time was made from one that was not.
    off_since: Option<i64>,
    /// The last difference that was told of.
    told: i64,
}

impl<S: TimeSource> SteadyClock<S> {
    pub(crate) fn new(source: S) -> Self {
        let elapsed = source.elapsed();
        let offset = AtomicI64::new(source.wall().saturating_sub(elapsed));
        Self { source, offset, looks: Mutex::new(Looks { last: elapsed, off_since: None, told: 0 }) }
    }

    /// Microseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        let elapsed = self.source.elapsed();
        // Whoever comes while another one looks goes by what was known before.
        if let Some(mut looks) = self.looks.try_lock()
            && elapsed.saturating_sub(looks.last) >= LOOK_US
        {
            self.look(&mut looks, elapsed);
        }
        elapsed.saturating_add(self.offset.load(Ordering::Relaxed))
    }

    fn look(&self, looks: &mut Looks, elapsed: i64) {
        let offset = self.offset.load(Ordering::Relaxed);
        let ahead = self.source.wall().saturating_sub(elapsed.saturating_add(offset));
        let was_set_now = elapsed.saturating_add(offset) < NEVER_SET_US && self.source.wall() >= NEVER_SET_US;
        let passed = elapsed.saturating_sub(looks.last);
        looks.last = elapsed;
        looks.off_since = match looks.off_since {
            since if was_set_now => since.or(Some(elapsed)),
            _ => None,
        };
        let step = if looks.off_since.is_some_and(|since| elapsed - since >= STAYS_US) {
            tracing::warn!(seconds = ahead / 1_000_000, "the machine's clock was set; the host follows it");
            ahead
        } else {
            ahead.clamp(-passed / SLEW, passed / SLEW)
        };
        if (ahead - looks.told).saturating_abs() >= NOTEWORTHY_US {
            looks.told = ahead;
            let seconds = ahead / 1_000_000;
            tracing::warn!(seconds, "the machine's clock has jumped; the host goes by time that has passed");
        }
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        metrics::gauge!("baton_clock_offset_seconds").set((ahead - step) as f64 / 1e6);
        self.offset.store(offset.saturating_add(step), Ordering::Relaxed);
    }
}

/// The machine's clocks.
pub(crate) struct Machine;

impl TimeSource for Machine {
    fn wall(&self) -> i64 {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX)
    }

    fn elapsed(&self) -> i64 {
        // Elsewhere the monotonic clock counts sleep too, or there is no better one.
        #[cfg(target_os = "linux")]
        let which = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let which = rustix::time::ClockId::Monotonic;
        let at = rustix::time::clock_gettime(which);
        at.tv_sec.saturating_mul(1_000_000).saturating_add(at.tv_nsec / 1000)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const SECOND: i64 = 1_000_000;
    const HOUR: i64 = 3600 * SECOND;
    const NOON: i64 = 1_800_000_000 * SECOND;

    #[derive(Default)]
    struct Hands {
        wall: AtomicI64,
        elapsed: AtomicI64,
    }

    impl TimeSource for Arc<Hands> {
        fn wall(&self) -> i64 {
            self.wall.load(Ordering::Relaxed)
        }
        fn elapsed(&self) -> i64 {
            self.elapsed.load(Ordering::Relaxed)
        }
    }

    fn at_noon() -> (Arc<Hands>, SteadyClock<Arc<Hands>>) {
        let hands = Arc::new(Hands { wall: AtomicI64::new(NOON), elapsed: AtomicI64::new(7 * SECOND) });
        let clock = SteadyClock::new(Arc::clone(&hands));
        (hands, clock)
    }

    impl Hands {
        fn jump(&self, micros: i64) {
            self.wall.fetch_add(micros, Ordering::Relaxed);
        }
    }

    /// Lets time pass in small steps. Says how much the clock says has passed.
    fn pass(hands: &Hands, clock: &SteadyClock<Arc<Hands>>, micros: i64) -> i64 {
        let before = clock.now();
        for _ in 0..micros / (SECOND / 10) {
            hands.wall.fetch_add(SECOND / 10, Ordering::Relaxed);
            hands.elapsed.fetch_add(SECOND / 10, Ordering::Relaxed);
            let last = clock.now();
            assert!(last >= before, "it never goes back");
        }
        clock.now() - before
    }

    #[test]
    fn it_names_the_same_instants_as_the_wall_clock() {
        let (hands, clock) = at_noon();
        assert_eq!(clock.now(), NOON);
        assert_eq!(pass(&hands, &clock, 90 * SECOND), 90 * SECOND);
        assert_eq!(clock.now(), NOON + 90 * SECOND);
    }

    #[test]
    fn an_hour_back_forward_and_back_again_moves_nothing() {
        let (hands, clock) = at_noon();
        for jump in [-HOUR, 2 * HOUR, -HOUR, -HOUR, HOUR] {
            hands.jump(jump);
            let passed = pass(&hands, &clock, 3 * SECOND);
            assert!((passed - 3 * SECOND).abs() <= 3 * SECOND / SLEW + SLEW, "three seconds took {passed}");
        }
        assert!((clock.now() - NOON - 15 * SECOND).abs() <= SECOND / 4);
    }

    #[test]
    fn a_difference_that_stays_is_made_up_for_slowly() {
        let (hands, clock) = at_noon();
        hands.jump(30 * SECOND);
        let passed = pass(&hands, &clock, 3600 * SECOND);
        assert!((1..2 * SECOND).contains(&(passed - 3600 * SECOND)), "{passed}");
        pass(&hands, &clock, 60_000 * SECOND);
        assert_eq!(clock.now(), hands.wall(), "and is gone in the end");
    }

    /// Whoever sets a clock that was right before moves no timer, however far it is set and however long it stays so.
    #[test]
    fn days_forward_and_back_move_no_timer() {
        for jump in [48 * HOUR, -48 * HOUR, -1_800_000_000 * SECOND] {
            let (hands, clock) = at_noon();
            hands.jump(jump);
            let passed = pass(&hands, &clock, 600 * SECOND);
            assert!((passed - 600 * SECOND).abs() <= SECOND, "ten minutes took {passed}");
        }
    }

    #[test]
    fn a_clock_that_was_never_set_is_followed_once_it_is() {
        let hands = Arc::new(Hands::default());
        let clock = SteadyClock::new(Arc::clone(&hands));
        hands.jump(NOON);
        pass(&hands, &clock, 30 * SECOND);
        assert!(clock.now() < 60 * SECOND, "not at once: it may jump back");
        pass(&hands, &clock, 40 * SECOND);
        assert_eq!(clock.now(), hands.wall());
    }

    #[test]
    fn time_that_the_machine_sleeps_has_passed() {
        let (hands, clock) = at_noon();
        hands.jump(8 * HOUR);
        hands.elapsed.fetch_add(8 * HOUR, Ordering::Relaxed);
        assert_eq!(clock.now(), NOON + 8 * HOUR);
    }

    #[test]
    fn the_machines_clocks_agree_with_themselves() {
        let clock = SteadyClock::new(Machine);
        let (first, wall) = (clock.now(), Machine.wall());
        assert!((first - wall).abs() < HOUR && clock.now() >= first);
    }
}

#[cfg(test)]
#[path = "steady_clock_host_tests.rs"]
mod host_tests;
