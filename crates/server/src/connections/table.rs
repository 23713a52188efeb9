//! The connections that there are, and who gets a place.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::limits::ConnectionLimits;
use super::place::{Place, Why};
use super::reserve;

/// The part of all places that is freed at once where nothing is free: looking for them goes through all of them.
const FREED_AT_ONCE: usize = 64;
/// How often the table is looked through. Deadlines are seconds; with shorter ones it is done more often.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
const SHORTEST_LOOK: Duration = Duration::from_millis(10);

pub(crate) struct Table {
    pub(super) limits: ConnectionLimits,
    epoch: Instant,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    next: u64,
    all: HashMap<u64, Arc<Place>>,
    by_address: HashMap<IpAddr, usize>,
    ordinary: usize,
    in_reserve: usize,
}

/// Gives its place back when it is dropped.
pub(super) struct Admitted {
    pub(super) place: Arc<Place>,
    table: Arc<Table>,
}

impl Table {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, epoch: Instant::now(), places: Mutex::default() })
    }

    /// A place for a new connection, or none.
    pub(super) fn admit(self: &Arc<Self>, peer: SocketAddr) -> Option<Admitted> {
        let address = counted_as(peer.ip());
        let mut places = self.places.lock();
        let crowded = |places: &Places| {
            let there = places.by_address.get(&address).copied().unwrap_or(0);
            self.limits.per_address > 0 && there >= self.limits.per_address
        };
        if crowded(&places) {
            places.evict(1, |place| !place.in_reserve && place.address == address);
        }
        if places.ordinary >= self.limits.total {
            places.evict((self.limits.total / FREED_AT_ONCE).max(1), |place| !place.in_reserve);
        }
        let in_reserve = crowded(&places) || places.ordinary >= self.limits.total;
        if in_reserve && places.in_reserve >= reserve::PLACES {
            places.evict(1, |place| place.in_reserve);
        }
        if in_reserve && places.in_reserve >= reserve::PLACES {
            metrics::counter!("baton_http_connections_refused_total").increment(1);
            return None;
        }
        let place = Arc::new(Place::new(places.next, address, in_reserve, self.epoch));
        places.add(&place);
        drop(places);
        Some(Admitted { place, table: Arc::clone(self) })
    }

    /// Lets go of some that do nothing, as there is nothing left to open new ones with.
    pub(super) fn make_room(&self) {
        let mut places = self.places.lock();
        let some = (places.all.len() / FREED_AT_ONCE).max(1);
        places.evict(some, |_| true);
    }

    /// Closes whatever has had its time, again and again.
    pub(crate) async fn keep(&self) -> std::convert::Infallible {
        let ConnectionLimits { header, idle, write, .. } = self.limits;
        let between = (header.min(idle).min(write) / 4).clamp(SHORTEST_LOOK, LONGEST_LOOK);
        loop {
            tokio::time::sleep(between).await;
            let now = super::place::millis(self.epoch.elapsed());
            let places = self.places.lock();
            for place in places.all.values() {
                if let Some(why) = place.overdue(now, &self.limits) {
                    place.close(why);
                }
            }
            #[expect(clippy::cast_precision_loss, reason = "a gauge")]
            metrics::gauge!("baton_http_connections").set(places.all.len() as f64);
        }
    }

    #[cfg(test)]
    fn counts(&self) -> (usize, usize) {
        let places = self.places.lock();
        (places.ordinary, places.in_reserve)
    }
}

impl Places {
    fn add(&mut self, place: &Arc<Place>) {
        self.next += 1;
        self.all.insert(place.id, Arc::clone(place));
        match place.in_reserve {
            true => self.in_reserve += 1,
            false => {
                self.ordinary += 1;
                *self.by_address.entry(place.address).or_default() += 1;
            }
        }
    }

    fn remove(&mut self, id: u64) {
        let Some(place) = self.all.remove(&id) else { return };
        if place.in_reserve {
            self.in_reserve -= 1;
            return;
        }
        self.ordinary -= 1;
        if let Some(count) = self.by_address.get_mut(&place.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&place.address);
            }
        }
    }

    /// Closes up to `most` of those that do nothing. Their places are free at once.
    fn evict(&mut self, most: usize, among: impl Fn(&Place) -> bool) {
        let quiet = self.all.values().filter(|place| among(place));
        let mut quiet: Vec<_> = quiet.filter_map(|place| Some((place.dispensable()?, place.id))).collect();
        if quiet.len() > most {
            quiet.select_nth_unstable(most);
            quiet.truncate(most);
        }
        for (_, id) in quiet {
            if let Some(place) = self.all.get(&id) {
                place.close(Why::Evicted);
            }
            self.remove(id);
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.table.places.lock().remove(self.place.id);
    }
}

/// One client has one IPv4 address, but as many IPv6 addresses as it likes: those of one network count as one.
fn counted_as(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
        address => address,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn from(text: &str) -> SocketAddr {
        SocketAddr::new(text.parse().unwrap(), 1)
    }

    fn table(total: usize, per_address: usize) -> Arc<Table> {
        Table::new(ConnectionLimits { total, per_address, ..ConnectionLimits::default() })
    }

    #[test]
    fn networks_of_ipv6_count_as_one_address() {
        let count = |text: &str| counted_as(text.parse().unwrap());
        assert_eq!(count("2001:db8:1:2:3::4"), count("2001:db8:1:2:ffff::1"));
        assert_ne!(count("2001:db8:1:2::1"), count("2001:db8:1:3::1"));
        assert_eq!(count("::ffff:10.0.0.1"), count("10.0.0.1"));
        assert_ne!(count("10.0.0.1"), count("10.0.0.2"));
        assert_ne!(count("::1"), count("::2"));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_says_nothing_makes_room_the_oldest_first() {
        let table = table(3, 0);
        let mut idle = Vec::new();
        for _ in 0..3 {
            idle.push(table.admit(from("10.0.0.1")).unwrap());
            tokio::time::advance(Duration::from_millis(5)).await;
        }
        // The oldest asked something once, so the one after it goes.
        drop(idle[0].place.begin(false));
        let newest = table.admit(from("10.0.0.2")).unwrap();
        assert!(!newest.place.in_reserve);
        assert_eq!(idle[1].place.closed().await, Why::Evicted);
        assert_eq!(table.counts(), (3, 0));
        // Its place was given to another one already.
        drop(idle.remove(1));
        assert_eq!(table.counts(), (3, 0));
        drop(idle);
        assert_eq!(table.counts(), (1, 0));
        drop(newest);
        assert_eq!(table.counts(), (0, 0));
        assert!(table.places.lock().by_address.is_empty());
    }

    #[tokio::test]
    async fn above_the_limit_a_few_are_let_in_to_ask_how_it_is() {
        let table = table(2, 0);
        let busy: Vec<_> = (0..2).map(|_| table.admit(from("10.0.0.1")).unwrap()).collect();
        let requests: Vec<_> = busy.iter().map(|admitted| admitted.place.begin(false)).collect();
        let reserve: Vec<_> = (0..reserve::PLACES).map(|_| table.admit(from("10.0.0.2")).unwrap()).collect();
        assert!(reserve.iter().all(|admitted| admitted.place.in_reserve));
        // Silent ones make room there too; those that are being answered do not.
        let asking: Vec<_> = reserve.iter().skip(1).map(|admitted| admitted.place.begin(false)).collect();
        let another = table.admit(from("10.0.0.3")).unwrap();
        assert_eq!(reserve[0].place.closed().await, Why::Evicted);
        let _asking = another.place.begin(false);
        assert!(table.admit(from("10.0.0.3")).is_none());
        drop((asking, requests));
        assert!(table.admit(from("10.0.0.3")).is_some_and(|admitted| !admitted.place.in_reserve));
    }

    #[tokio::test]
    async fn one_address_has_its_own_limit() {
        let table = table(100, 2);
        let crowd: Vec<_> = (0..2).map(|_| table.admit(from("10.0.0.1")).unwrap()).collect();
        let _busy: Vec<_> = crowd.iter().map(|admitted| admitted.place.begin(false)).collect();
        assert!(table.admit(from("10.0.0.1")).unwrap().place.in_reserve);
        assert!(!table.admit(from("10.0.0.2")).unwrap().place.in_reserve);
    }
}
