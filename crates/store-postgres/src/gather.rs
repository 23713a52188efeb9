//! What many want to know at the same time, asked once.
//!
//! While a question is on its way, whoever comes meanwhile waits, and all of them are the next question. Nobody is answered
//! by a question that was sent before they asked, so nobody sees anything older than by asking alone.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::hash::Hash;
use std::sync::Arc;

use baton_store::Error;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::unavailable;

/// Keys per question: beyond this the way there and back is shared widely enough.
const MOST: usize = 256;

/// How several things of one kind are found at once.
pub(crate) trait Lookup: Send + Sync + Sized + 'static {
    type Key: Clone + Eq + Hash + Send + Sync + 'static;
    type Value: Clone + Send + 'static;

    /// Those of them that are there. One that does not read back is no trouble of the others.
    fn look(&self, keys: Vec<Self::Key>) -> impl Future<Output = Result<Found<Self>, Error>> + Send;
}

pub(crate) type Found<L> = HashMap<<L as Lookup>::Key, Result<<L as Lookup>::Value, Error>>;
type Reply<L> = oneshot::Sender<Result<Option<<L as Lookup>::Value>, Error>>;

pub(crate) struct Gather<L: Lookup>(Arc<Line<L>>);

struct Line<L: Lookup> {
    lookup: L,
    queue: Mutex<Queue<L>>,
}

struct Queue<L: Lookup> {
    waiting: Vec<(L::Key, Reply<L>)>,
    /// Somebody is asking, and will ask for all who wait as well.
    asking: bool,
}

impl<L: Lookup> Gather<L> {
    pub(crate) fn new(lookup: L) -> Self {
        Self(Arc::new(Line { lookup, queue: Mutex::new(Queue { waiting: Vec::new(), asking: false }) }))
    }

    /// What finds them.
    pub(crate) fn lookup(&self) -> &L {
        &self.0.lookup
    }

    pub(crate) async fn ask(&self, key: L::Key) -> Result<Option<L::Value>, Error> {
        let (reply, answer) = oneshot::channel();
        let first = {
            let mut queue = self.0.queue.lock();
            queue.waiting.push((key, reply));
            !std::mem::replace(&mut queue.asking, true)
        };
        if first {
            // Not in this task: whoever asked may go away, and the others still want to know.
            tokio::spawn(serve(Arc::clone(&self.0)));
        }
        answer.await.unwrap_or_else(|_dropped| Err(unavailable("nobody is left to ask the database")))
    }
}

async fn serve<L: Lookup>(line: Arc<Line<L>>) {
    let mut leave = Leave { line: &line, done: false };
    loop {
        // Whoever is about to ask may do so first.
        tokio::task::yield_now().await;
        let askers = {
            let mut queue = line.queue.lock();
            if queue.waiting.is_empty() {
                queue.asking = false;
                leave.done = true;
                return;
            }
            let some = queue.waiting.len().min(MOST);
            queue.waiting.drain(..some).collect::<Vec<_>>()
        };
        let keys: HashSet<L::Key> = askers.iter().map(|(key, _)| key.clone()).collect();
        let found = line.lookup.look(keys.into_iter().collect()).await;
        for (key, reply) in askers {
            let answer = match &found {
                Ok(found) => match found.get(&key) {
                    Some(Ok(value)) => Ok(Some(value.clone())),
                    Some(Err(error)) => Err(again(error)),
                    None => Ok(None),
                },
                Err(error) => Err(again(error)),
            };
            // Who has gone away does not mind.
            let _ = reply.send(answer);
        }
    }
}

/// Should the asking be cut short, who waits is told, and the next one begins again.
struct Leave<'a, L: Lookup> {
    line: &'a Line<L>,
    done: bool,
}

impl<L: Lookup> Drop for Leave<'_, L> {
    fn drop(&mut self) {
        if !self.done {
            let mut queue = self.line.queue.lock();
            queue.asking = false;
            queue.waiting.clear();
        }
    }
}

/// The same error for one more. Its source has been told once; the reason says it too.
fn again(error: &Error) -> Error {
    match error {
        Error::Unavailable { reason, .. } => unavailable(reason.clone()),
        Error::Corrupt { reason } => Error::Corrupt { reason: reason.clone() },
        Error::Damaged { run, seq, reason } => Error::damaged(run, *seq, reason),
        Error::Locked { path, pid } => Error::Locked { path: path.clone(), pid: pid.clone() },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    /// Answers with what `now` is when it looks, after it was let.
    struct Clock {
        now: Arc<AtomicU64>,
        looked: Arc<AtomicU64>,
        lets: Arc<Semaphore>,
    }

    impl Lookup for Clock {
        type Key = &'static str;
        type Value = u64;

        async fn look(&self, keys: Vec<&'static str>) -> Result<Found<Self>, Error> {
            self.looked.fetch_add(1, Ordering::SeqCst);
            let now = self.now.load(Ordering::SeqCst);
            self.lets.acquire().await.map_err(|_closed| unavailable("closed"))?.forget();
            let answer = |key| match key {
                "torn" => Err(Error::Corrupt { reason: "torn".to_owned() }),
                _ => Ok(now),
            };
            Ok(keys.into_iter().filter(|key| *key != "nowhere").map(|key| (key, answer(key))).collect())
        }
    }

    struct Scene {
        gather: Arc<Gather<Clock>>,
        now: Arc<AtomicU64>,
        looked: Arc<AtomicU64>,
        lets: Arc<Semaphore>,
    }

    impl Scene {
        fn new() -> Self {
            let (now, looked) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(0)));
            let lets = Arc::new(Semaphore::new(0));
            let clock = Clock { now: Arc::clone(&now), looked: Arc::clone(&looked), lets: Arc::clone(&lets) };
            Self { gather: Arc::new(Gather::new(clock)), now, looked, lets }
        }

        /// Asks, and comes back when the question is in line or on its way.
        async fn ask(&self, key: &'static str) -> tokio::task::JoinHandle<Result<Option<u64>, Error>> {
            let gather = Arc::clone(&self.gather);
            let asked = tokio::spawn(async move { gather.ask(key).await });
            // More often than anything between here and there stands aside.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            asked
        }
    }

    #[tokio::test]
    async fn nobody_is_answered_by_a_question_that_was_under_way() {
        let scene = Scene::new();
        let first = scene.ask("a").await;
        assert_eq!(scene.looked.load(Ordering::SeqCst), 1);
        scene.now.store(2, Ordering::SeqCst);
        let late = [scene.ask("a").await, scene.ask("b").await, scene.ask("a").await, scene.ask("nowhere").await];
        scene.lets.add_permits(2);
        assert_eq!(first.await.unwrap().unwrap(), Some(1));
        let mut answers = Vec::new();
        for asked in late {
            answers.push(asked.await.unwrap().unwrap());
        }
        assert_eq!(answers, [Some(2), Some(2), Some(2), None]);
        assert_eq!(scene.looked.load(Ordering::SeqCst), 2, "those who waited were one question");
    }

    #[tokio::test]
    async fn what_does_not_read_back_is_no_trouble_of_others() {
        let scene = Scene::new();
        let first = scene.ask("a").await;
        let (torn, whole) = (scene.ask("torn").await, scene.ask("b").await);
        scene.lets.add_permits(2);
        assert_eq!(first.await.unwrap().unwrap(), Some(1));
        assert!(matches!(torn.await.unwrap(), Err(Error::Corrupt { .. })));
        assert_eq!(whole.await.unwrap().unwrap(), Some(1));
    }

    #[tokio::test]
    async fn whoever_goes_away_leaves_the_others_their_answer() {
        let scene = Scene::new();
        let first = scene.ask("a").await;
        let second = scene.ask("b").await;
        first.abort();
        scene.lets.add_permits(2);
        assert_eq!(second.await.unwrap().unwrap(), Some(1));
        scene.lets.close();
        assert!(scene.ask("a").await.await.unwrap().is_err(), "all hear of a failure");
        assert!(scene.ask("a").await.await.unwrap().is_err(), "and the next question is asked again");
    }
}
