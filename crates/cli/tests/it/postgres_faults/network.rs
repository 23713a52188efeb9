//! The network between one host and the database, in the test's hands.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::support::rng::Rng;

/// What becomes of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Whole,
    Cut,
    /// The host is told that nothing more comes; what it says still arrives.
    ClosedToHost,
    /// The other way round.
    ClosedToDatabase,
    /// What the database says is lost without a word. A commit may be durable and nobody hears of it.
    NoSink,
    /// What the host says is lost without a word.
    Mute,
}

impl Fate {
    fn stops(self, to_host: bool) -> bool {
        self == Self::Cut || self == if to_host { Self::ClosedToHost } else { Self::ClosedToDatabase }
    }

    fn swallows(self, to_host: bool) -> bool {
        self == if to_host { Self::NoSink } else { Self::Mute }
    }
}

/// Where the database is; it moves when another server takes over.
pub type Upstream = Arc<Mutex<SocketAddr>>;

/// All connections of one host.
pub struct Line {
    pub port: u16,
    links: Arc<Mutex<Vec<watch::Sender<Fate>>>>,
    held_until: watch::Sender<Instant>,
}

impl Line {
    pub async fn open(upstream: Upstream) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let links: Arc<Mutex<Vec<watch::Sender<Fate>>>> = Arc::default();
        let (held_until, held) = watch::channel(Instant::now());
        let new_links = Arc::clone(&links);
        tokio::spawn(async move {
            let mut refused = 0;
            while let Ok((host, _)) = listener.accept().await {
                let address = *upstream.lock().unwrap();
                // A host that cannot be connected sees its connection close, as with a server that is not there.
                let database = match TcpStream::connect(address).await {
                    Ok(database) => database,
                    Err(error) => {
                        refused += 1;
                        if refused % 100 == 0 {
                            eprintln!("{refused} times no database at {address}: {error}");
                        }
                        continue;
                    }
                };
                let _ = (host.set_nodelay(true), database.set_nodelay(true));
                let (fate, seen) = watch::channel(Fate::Whole);
                let (from_host, to_host) = host.into_split();
                let (from_database, to_database) = database.into_split();
                tokio::spawn(carry(from_host, to_database, seen.clone(), held.clone(), false));
                tokio::spawn(carry(from_database, to_host, seen, held.clone(), true));
                let mut links = new_links.lock().unwrap();
                links.retain(|link| !link.is_closed());
                links.push(fate);
            }
        });
        Self { port, links, held_until }
    }

    /// Lets something happen to one of the connections. False if there is none.
    pub fn strike(&self, rng: &mut Rng, fate: Fate) -> bool {
        let mut links = self.links.lock().unwrap();
        links.retain(|link| !link.is_closed());
        if links.is_empty() {
            return false;
        }
        let link = &links[rng.below(links.len() as u64) as usize];
        let was = link.send_replace(fate);
        // One that has lost a direction already may still lose the other, which is no fault of its own.
        was == Fate::Whole
    }

    pub fn strike_all(&self, fate: Fate) -> bool {
        let links = self.links.lock().unwrap();
        let mut hit = false;
        for link in links.iter().filter(|link| !link.is_closed()) {
            link.send_replace(fate);
            hit = true;
        }
        hit
    }

    /// Holds back everything, in both directions.
    pub fn hold(&self, time: Duration) {
        self.held_until.send_modify(|until| *until = (*until).max(Instant::now() + time));
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut fate: watch::Receiver<Fate>,
    held: watch::Receiver<Instant>,
    to_host: bool,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = tokio::select! {
            read = from.read(&mut buffer) => read,
            _ = fate.wait_for(|fate| fate.stops(to_host)) => break,
        };
        let Ok(length @ 1..) = read else { break };
        let until = *held.borrow();
        tokio::time::sleep_until(until).await;
        let now = *fate.borrow();
        if now.stops(to_host) {
            break;
        }
        if !now.swallows(to_host) && to.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
    // With its half goes the direction; with the other one the connection.
}
