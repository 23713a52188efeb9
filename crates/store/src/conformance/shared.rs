//! Several hosts on one store.

use baton_model::{RunId, WebhookId};

use super::forks::fork_of;
use super::sample::{append, at, attempt, listen, next_seq, row, seqs, start, write};
use crate::reads::*;
use crate::{
    Claim, ClusterEvent, Commit, CommitError, Delivery, ForwardedCommand, Journal as _, Owner, Pruned, Recipient,
    RunRow, Shared, Store, Write,
};

/// A store that hosts can join, and a way to let one of them fall silent.
#[expect(async_fn_in_trait, reason = "for tests, which need no bounds on it")]
pub trait Hosts {
    type Store: Store;
    /// One more host, with a session of its own. Its lease must last longer than a test.
    async fn join(&self) -> Self::Store;
    /// Lets the lease of this session be over, by the store's own clock.
    async fn lapse(&self, epoch: u64);
}

pub(super) fn of(store: &impl Store) -> &dyn Shared {
    store.shared().expect("a shared store")
}

async fn owner(store: &impl Store, id: &str) -> Option<u64> {
    of(store).owner(&RunId::new(id)).await.expect("an owner can be read")
}

pub(super) async fn adopted(store: &impl Store, limit: usize) -> Vec<String> {
    let trees = of(store).adopt(at(1000), limit).await.expect("trees can be taken over");
    trees.into_iter().map(|run| run.to_string()).collect()
}

pub(super) async fn adopt_tree(store: &impl Store, id: &str) -> Option<Owner> {
    of(store).adopt_tree(&RunId::new(id)).await.expect("a tree can be taken over")
}

async fn claim(store: &impl Store, name: &str) -> Claim {
    of(store).claim(name).await.expect("a claim can be asked for")
}

fn foreign(id: &str) -> Result<(), CommitError> {
    Err(CommitError::Foreign { run: RunId::new(id) })
}

pub(super) fn below(id: &str, root: &str) -> RunRow {
    RunRow { parent: Some(RunId::new(root)), root: Some(RunId::new(root)), ..row(id) }
}

pub(super) fn forwarded(id: &str, to: Recipient) -> ForwardedCommand {
    ForwardedCommand { id: id.to_owned(), to, body: format!("{{\"of\":\"{id}\"}}") }
}

pub(super) fn to_run(id: &str) -> Recipient {
    Recipient::Run(RunId::new(id))
}

async fn unanswered(store: &impl Store) -> Vec<String> {
    let forwarded_commands = of(store).forwarded_commands(100).await.expect("letters can be read");
    forwarded_commands.into_iter().map(|forwarded| forwarded.id).collect()
}

async fn answer_of(store: &impl Store, id: &str) -> Option<String> {
    of(store).forwarded(id).await.expect("a letter can be read").and_then(|(_, answer)| answer)
}

fn answer(id: &str, body: &str) -> Write {
    Write::AnswerForwarded { id: id.to_owned(), body: body.to_owned() }
}

pub(super) async fn every_session_has_its_own_number(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    let first = of(&a).epoch();
    assert!(first < of(&b).epoch(), "numbers rise");
    assert!(of(&a).renew(7).await.expect("renews"));
    let sessions = of(&b).sessions().await.expect("sessions can be listed");
    let seen: Vec<_> = sessions.iter().map(|session| (session.epoch, session.load, session.lapsed)).collect();
    assert_eq!(seen, [(first, 7, false), (of(&b).epoch(), 0, false)]);

    a.close().await;
    assert_eq!(of(&b).sessions().await.expect("listed").len(), 1, "who closes is gone at once");
    let c = hosts.join().await;
    assert!(of(&c).epoch() > of(&b).epoch(), "no number comes twice");
}

pub(super) async fn a_lapsed_session_is_ended_once(hosts: impl Hosts) {
    let (a, b, c) = (hosts.join().await, hosts.join().await, hosts.join().await);
    let heard = listen(&a);
    start(&a, row("run_a"), 1).await;
    assert_eq!(of(&b).end_lapsed().await.expect("looks"), [0_u64; 0], "everybody is well");
    hosts.lapse(of(&a).epoch()).await;
    write(&a, vec![append(row("run_a"), 1, 1)]).await;
    assert!(of(&a).renew(0).await.expect("renews"), "late, but nobody has ended it");
    assert_eq!(of(&b).end_lapsed().await.expect("looks"), [0_u64; 0]);

    hosts.lapse(of(&a).epoch()).await;
    let old = of(&a).epoch();
    assert_eq!(of(&b).end_lapsed().await.expect("ends it"), [old]);
    assert_eq!(of(&c).end_lapsed().await.expect("looks"), [0_u64; 0], "once");
    assert!(!of(&a).renew(0).await.expect("an answer"), "over is over");
    assert_eq!(attempt(&a, vec![append(row("run_a"), 2, 1)]).await, Err(CommitError::Fenced));
    assert_eq!(attempt(&a, vec![append(row("run_a"), 2, 1)]).await, Err(CommitError::Stale), "the generation is over");
    assert_eq!(*heard.failed.lock(), [(1, CommitError::Fenced)]);
    of(&a).claim("x").await.expect_err("a session that has ended claims nothing");

    assert_eq!(a.recover().await.expect("starts over"), 2);
    assert!(of(&a).epoch() > of(&c).epoch(), "a new life, a new number");
    assert_eq!(attempt(&a, vec![append(row("run_a"), 2, 1)]).await, foreign("run_a"), "what it had is not its own");
    assert_eq!(adopt_tree(&a, "run_a").await, Some(Owner::Taken));
    assert_eq!(adopt_tree(&a, "run_a").await, Some(Owner::Me));
    write(&a, vec![append(row("run_a"), 2, 1)]).await;
    assert_eq!(seqs(&a, "run_a").await, [0, 1, 2]);
    let epochs = of(&b).epochs(&RunId::new("run_a"), 1, 10).await.expect("known");
    assert_eq!(epochs, [(1, old), (2, of(&a).epoch())], "who wrote what");
}

pub(super) async fn recovery_is_a_new_session(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    start(&a, row("run_a"), 1).await;
    let old = of(&a).epoch();
    hosts.lapse(old).await;
    of(&b).end_lapsed().await.expect("ends it");
    attempt(&a, vec![append(row("run_a"), 1, 1)]).await.expect_err("its session is over");
    a.recover().await.expect("recovers");
    assert_ne!(of(&a).epoch(), old, "whatever is still under way of the old one must not arrive");
    let live: Vec<_> = of(&b).sessions().await.expect("listed").into_iter().map(|session| session.epoch).collect();
    assert_eq!(live, [of(&b).epoch(), of(&a).epoch()]);
    assert_eq!(adopted(&b, 10).await, ["run_a"], "anybody may go on with it");
}

pub(super) async fn a_run_takes_records_from_its_owner_only(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    start(&a, row("run_a"), 1).await;
    assert_eq!(owner(&b, "run_a").await, Some(of(&a).epoch()));
    assert_eq!(owner(&b, "run_x").await, None);
    assert_eq!(adopt_tree(&b, "run_a").await, Some(Owner::Other(of(&a).epoch())), "its owner is alive");
    assert_eq!(adopt_tree(&a, "run_a").await, Some(Owner::Me));
    assert_eq!(adopt_tree(&a, "run_x").await, None);
    assert_eq!(attempt(&b, vec![append(row("run_a"), 1, 1)]).await, foreign("run_a"));
    let child = vec![Write::CreateRun(below("run_c", "run_a")), append(below("run_c", "run_a"), 0, 1)];
    assert_eq!(attempt(&b, child).await, foreign("run_c"), "nor children under it");
    assert_eq!(next_seq(&b, "run_a").await, Some(1), "reading is for everybody");
    assert_eq!(next_seq(&b, "run_c").await, None);
}

pub(super) async fn a_refusal_alone_ends_nothing(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    let heard = listen(&b);
    start(&a, row("run_a"), 1).await;
    start(&b, row("run_b"), 1).await;
    let alone = b.submit(Commit::new(1, vec![append(row("run_b"), 1, 1), append(row("run_a"), 1, 1)]));
    let next = b.submit(Commit::new(1, vec![append(row("run_b"), 1, 1)]));
    assert_eq!(alone.await, foreign("run_a"));
    assert_eq!(next.await, Ok(()), "the generation goes on");
    let conflict = b.submit(Commit::new(1, vec![append(row("run_b"), 7, 1)])).await;
    assert!(matches!(conflict, Err(CommitError::Conflict { .. })));
    assert_eq!(b.generation(), 1);
    assert!(heard.failed.lock().is_empty());
    hosts.lapse(of(&b).epoch()).await;
    of(&a).end_lapsed().await.expect("ends it");
    assert_eq!(b.submit(Commit::new(1, Vec::new())).await, Err(CommitError::Fenced));
    assert_eq!(heard.failed.lock().len(), 1, "to be fenced is no refusal");
}

pub(super) async fn trees_of_the_dead_are_taken_over(hosts: impl Hosts) {
    let (a, b, c) = (hosts.join().await, hosts.join().await, hosts.join().await);
    let quiet = |id: &str| RunRow { busy: false, ..row(id) };
    start(&a, quiet("run_parent"), 1).await;
    start(&a, below("run_child", "run_parent"), 2).await;
    start(&a, quiet("run_waits"), 1).await;
    start(&a, RunRow { busy: false, ..below("run_waits_too", "run_waits") }, 1).await;
    start(&a, RunRow { wake_at: Some(at(500)), ..quiet("run_soon") }, 1).await;
    start(&a, RunRow { wake_at: Some(at(5000)), ..quiet("run_later") }, 1).await;
    start(&a, quiet("run_asked"), 1).await;
    start(&a, quiet("run_tells"), 1).await;
    let delivery =
        Delivery { webhook: WebhookId::new("hook"), run: RunId::new("run_tells"), seq: 0, attempts: 0, due_at: at(0) };
    write(&a, vec![Write::PutDelivery(delivery)]).await;
    of(&b).send(forwarded("l1", to_run("run_asked"))).await.expect("sent");
    assert_eq!(adopted(&b, 10).await, [""; 0], "its owner is alive");
    assert_eq!(b.unfinished(None, 10).await.expect("read").len(), 0, "what is another's is not ours to do");
    assert_eq!(b.due(at(9999), 10).await.expect("read").len(), 0);
    assert_eq!(b.deliveries(at(9999), 10).await.expect("read").len(), 0);
    assert_eq!(a.unfinished(None, 10).await.expect("read").len(), 1);
    assert_eq!(a.due(at(9999), 10).await.expect("read").len(), 2);
    assert_eq!(a.deliveries(at(9999), 10).await.expect("read").len(), 1);
    let before = seqs(&b, "run_child").await;

    hosts.lapse(of(&a).epoch()).await;
    assert_eq!(adopted(&b, 10).await, [""; 0], "lapsed is not ended");
    of(&b).end_lapsed().await.expect("ends it");
    let mut trees = adopted(&b, 1).await;
    assert_eq!(trees.len(), 1, "as many as were asked for");
    let others = adopted(&c, 10).await;
    assert!(!others.contains(&trees[0]), "each by one host");
    trees.extend(others);
    trees.sort();
    assert_eq!(trees, ["run_asked", "run_parent", "run_soon", "run_tells"]);
    assert_eq!(owner(&b, "run_child").await, owner(&b, "run_parent").await, "a tree stays together");
    assert_eq!(seqs(&b, "run_child").await, before, "and gets no record by it");
    assert_eq!(owner(&b, "run_waits").await, Some(of(&a).epoch()), "who only waits can wait");
    assert_eq!(adopt_tree(&c, "run_waits_too").await, Some(Owner::Taken), "until somebody wants something of it");
    assert_eq!(owner(&b, "run_waits").await, Some(of(&c).epoch()));
    assert_eq!(adopt_tree(&b, "run_waits").await, Some(Owner::Other(of(&c).epoch())));
    write(&c, vec![append(quiet("run_waits"), 1, 1)]).await;
    let mine = [&b, &c].map(|store| store.unfinished(None, 10));
    let busy = [mine].into_iter().flatten();
    let mut found = 0;
    for reading in busy {
        found += reading.await.expect("read").len();
    }
    assert_eq!(found, 1, "the busy child is somebody's to do");
}

pub(super) async fn asking_for_a_tree_ends_its_lapsed_owner(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    start(&a, row("run_a"), 1).await;
    hosts.lapse(of(&a).epoch()).await;
    assert_eq!(adopt_tree(&b, "run_a").await, Some(Owner::Taken));
    assert_eq!(attempt(&a, vec![append(row("run_a"), 1, 1)]).await, Err(CommitError::Fenced));
}

pub(super) async fn a_tree_is_handed_over(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    let mut news = of(&b).news();
    start(&a, row("run_a"), 1).await;
    start(&a, below("run_c", "run_a"), 1).await;
    let to = of(&b).epoch();
    let give = || Write::HandOver { root: RunId::new("run_a"), to };
    let late = Commit::new(1, vec![give(), append(row("run_a"), 1, 1)]);
    assert_eq!(a.submit(late).await, foreign("run_a"), "nothing comes after it");
    write(&a, vec![append(row("run_a"), 1, 1), give()]).await;
    assert_eq!((owner(&a, "run_a").await, owner(&a, "run_c").await), (Some(to), Some(to)));
    assert_eq!(a.submit(Commit::new(1, vec![append(row("run_a"), 2, 1)])).await, foreign("run_a"));
    assert_eq!(a.submit(Commit::new(1, vec![give()])).await, foreign("run_a"), "one gives what one has");
    write(&b, vec![append(row("run_a"), 2, 1), append(below("run_c", "run_a"), 1, 1)]).await;
    assert_eq!(seqs(&b, "run_a").await, [0, 1, 2]);
    heard(&mut news, &ClusterEvent::HandedOver { to }).await;
}

pub(super) async fn a_claim_has_one_holder(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    assert_eq!(claim(&a, "x").await, Claim::Mine);
    assert_eq!(claim(&a, "x").await, Claim::Mine, "twice is once");
    assert_eq!(claim(&b, "x").await, Claim::Held(of(&a).epoch()));
    assert_eq!(claim(&b, "y").await, Claim::Mine);
    let let_go = || Write::ReleaseClaim { name: "x".to_owned() };
    write(&b, vec![let_go()]).await;
    assert_eq!(claim(&b, "x").await, Claim::Held(of(&a).epoch()), "one lets go what one has");
    write(&a, vec![let_go()]).await;
    assert_eq!(claim(&b, "x").await, Claim::Mine);
    hosts.lapse(of(&b).epoch()).await;
    assert_eq!(claim(&a, "x").await, Claim::Held(of(&b).epoch()), "lapsed is not ended");
    of(&a).end_lapsed().await.expect("ends it");
    assert_eq!(claim(&a, "x").await, Claim::Mine);
    a.close().await;
    assert_eq!(claim(&hosts.join().await, "x").await, Claim::Mine);
}

pub(super) async fn a_letter_finds_the_owner_and_is_answered_once(hosts: impl Hosts) {
    let (a, b, c) = (hosts.join().await, hosts.join().await, hosts.join().await);
    let mut news = of(&b).news();
    start(&a, row("run_a"), 1).await;
    of(&b).send(forwarded("l1", to_run("run_a"))).await.expect("sent");
    of(&b).send(forwarded("l2", Recipient::Session(of(&a).epoch()))).await.expect("sent");
    of(&b)
        .send(ForwardedCommand { body: "another".to_owned(), ..forwarded("l1", to_run("run_a")) })
        .await
        .expect("sent");
    assert_eq!(unanswered(&a).await, ["l1", "l2"]);
    assert_eq!(unanswered(&b).await, [""; 0]);
    let first = of(&c).forwarded("l1").await.expect("read").expect("known");
    assert_eq!(first, (forwarded("l1", to_run("run_a")), None), "the first of its name counts");
    assert_eq!(of(&b).forwarded("l9").await.expect("read"), None);

    hosts.lapse(of(&a).epoch()).await;
    of(&c).end_lapsed().await.expect("ends it");
    assert_eq!(of(&b).forwarded("l2").await.expect("read"), None, "a letter to the dead is nobody's");
    assert_eq!(adopted(&c, 10).await, ["run_a"]);
    assert_eq!(unanswered(&c).await, ["l1"], "whoever drives the run has its letters");
    write(&c, vec![append(row("run_a"), 1, 1), answer("l1", "done")]).await;
    assert_eq!(answer_of(&b, "l1").await.as_deref(), Some("done"));
    assert_eq!(unanswered(&c).await, [""; 0]);
    let again = Commit::new(1, vec![append(row("run_a"), 2, 1), answer("l1", "again")]);
    assert_eq!(c.submit(again).await, Err(CommitError::Answered { id: "l1".to_owned() }));
    assert_eq!(next_seq(&c, "run_a").await, Some(2), "what it would have done has not happened");
    assert_eq!(answer_of(&b, "l1").await.as_deref(), Some("done"));
    write(&c, vec![answer("l9", "nobody asked")]).await;
    heard(&mut news, &ClusterEvent::Answered { id: "l1".to_owned() }).await;
}

pub(super) async fn a_letter_that_was_answered_makes_way_for_the_next(hosts: impl Hosts) {
    let (a, b, c) = (hosts.join().await, hosts.join().await, hosts.join().await);
    start(&a, row("run_a"), 1).await;
    of(&b).send(forwarded("l1", to_run("run_a"))).await.expect("sent");
    let forget = async |answer: &str| of(&b).forget_forwarded("l1", answer).await.expect("forgotten, or left");
    forget("no").await;
    assert_eq!(unanswered(&a).await, ["l1"], "there is no answer yet");
    write(&a, vec![answer("l1", "no")]).await;
    forget("yes").await;
    assert_eq!(answer_of(&c, "l1").await.as_deref(), Some("no"), "not this one");
    forget("no").await;
    forget("no").await;
    assert_eq!(of(&c).forwarded("l1").await.expect("read"), None);
    let next = ForwardedCommand { body: "another".to_owned(), ..forwarded("l1", to_run("run_a")) };
    of(&c).send(next.clone()).await.expect("sent");
    assert_eq!(of(&a).forwarded_commands(9).await.expect("read"), std::slice::from_ref(&next));
    write(&a, vec![answer("l1", "yes")]).await;
    hosts.lapse(of(&b).epoch()).await;
    of(&c).end_lapsed().await.expect("ends it");
    let _ = of(&b).forget_forwarded("l1", "yes").await;
    assert_eq!(
        of(&c).forwarded("l1").await.expect("read"),
        Some((next, Some("yes".to_owned()))),
        "the dead change nothing"
    );
}

pub(super) async fn news_of_a_run_reach_the_others(hosts: impl Hosts) {
    let (a, b) = (hosts.join().await, hosts.join().await);
    let mut news = of(&b).news();
    start(&a, row("run_a"), 3).await;
    heard(&mut news, &ClusterEvent::Grew { run: RunId::new("run_a"), next_seq: 3 }).await;
    a.close().await;
    heard(&mut news, &ClusterEvent::Ended { epoch: of(&a).epoch() }).await;
}

/// News may be lost, but a store on which none ever arrives tells nobody anything: some within a minute is asked for.
async fn heard(news: &mut tokio::sync::broadcast::Receiver<ClusterEvent>, wanted: &ClusterEvent) {
    let found = async {
        loop {
            match news.recv().await {
                Ok(ClusterEvent::Missed) => return,
                Ok(heard) if heard == *wanted => return,
                Ok(_) => {}
                Err(error) => panic!("no news of {wanted:?}: {error}"),
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), found).await.expect("news arrive");
}

pub(super) async fn a_log_is_not_dropped_under_a_fork(hosts: impl Hosts) {
    let (a, b, c) = (hosts.join().await, hosts.join().await, hosts.join().await);
    for n in 0..20 {
        let (source, fork) = (format!("run_{n}"), format!("fork_{n}"));
        start(&a, row(&source), 3).await;
        let create = Write::CreateRun(fork_of(&source, &fork, 2));
        let prune = Write::Prune { run: RunId::new(&source), pruned: Pruned { at: at(9), log: true } };
        let forked = b.submit(Commit::new(b.generation(), vec![create]));
        let pruned = c.submit(Commit::new(c.generation(), vec![prune]));
        let (source, fork) = (RunId::new(&source), RunId::new(&fork));
        match (forked.await, pruned.await) {
            (Ok(()), Err(error)) => {
                assert_eq!(error, CommitError::LogNeeded { run: source.clone(), fork: fork.clone() })
            }
            (Err(error), Ok(())) => assert_eq!(error, CommitError::LogGone { run: source.clone() }),
            both => panic!("one of them must give way: {both:?}"),
        }
        let there = a.run(&fork).await.expect("readable").is_some();
        let records = a.records(&source, 0, 9).await.expect("readable").len();
        assert_eq!(records, if there { 3 } else { 0 });
    }
}
