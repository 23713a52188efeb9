//! Memory scopes and workspaces, and what a view shows of them.

use baton_model::{RunId, TenantId};

use super::sample::{append, at, attempt, changes, delete, listen, next_seq, notes, put, row, start, write};
use crate::{
    Change, Commit, CommitError, CommitReceipt, Item, Meta, ReadView, Store, VersionedStoreCommitted, VersionedStoreId,
    VersionedStoreKind, VersionedStoreRow, Write,
};

/// The versions a view shows, checked against what the other questions say about it.
async fn shown(store: &impl Store, ledger: &VersionedStoreId, lens: &ReadView) -> Vec<u64> {
    let items = store.versioned_items(ledger, lens).await.expect("items can be read");
    if lens.limit.is_none() {
        let count = store.versioned_count(ledger, lens).await.expect("items can be counted");
        assert_eq!(count, items.len() as u64, "as many are counted as are shown: {lens:?}");
    }
    for item in &items {
        let alone = store.versioned_item(ledger, &item.key, lens).await.expect("an item can be read");
        assert_eq!(alone.as_ref(), Some(item), "one key shows what the list shows: {lens:?}");
    }
    items.into_iter().map(|change| change.version).collect()
}

async fn keys(store: &impl Store, lens: ReadView) -> Vec<String> {
    let items = store.versioned_items(&notes(), &lens).await.expect("items can be read");
    items.into_iter().map(|change| change.key).collect()
}

fn version(version: u64) -> ReadView {
    ReadView { version, ..ReadView::default() }
}

fn by(run: &str, change: Change) -> Change {
    Change { run: Some(RunId::new(run)), ..change }
}

fn tagged(tags: &[&str], mut change: Change) -> Change {
    if let Some(item) = &mut change.item {
        item.meta.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    }
    change
}

fn expiring(end: i64, mut change: Change) -> Change {
    if let Some(item) = &mut change.item {
        item.expires_at = Some(at(end));
    }
    change
}

pub(super) async fn an_unknown_versioned_store_is_empty(store: impl Store) {
    let lens = ReadView { own: Some((RunId::new("run_a"), 9)), ..version(u64::MAX) };
    assert_eq!(store.versioned_head(&notes()).await.expect("readable"), 0);
    assert_eq!(shown(&store, &notes(), &lens).await, [0; 0]);
    assert_eq!(store.versioned_item(&notes(), "k", &lens).await.expect("readable"), None);
    assert_eq!(store.versioned_changes(&notes(), None, None, 10).await.expect("readable"), []);
    assert_eq!(store.ledgers(&notes().tenant, VersionedStoreKind::Memory).await.expect("readable"), []);
    assert_eq!(store.versioned_floor(&notes()).await.expect("readable"), None);
    // What is not there can be forgotten.
    write(&store, vec![Write::ForgetHistory { ledger: notes(), below: 9 }, Write::DropVersionedStore(notes())]).await;
    assert_eq!(store.versioned_head(&notes()).await.expect("readable"), 0);
    write(&store, changes(&notes(), [put(1, "k")])).await;
    assert_eq!(shown(&store, &notes(), &lens).await, [1]);
}

pub(super) async fn changes_read_back_newest_first(store: impl Store) {
    let file = Change {
        version: 1,
        key: "notes/ü \0'\";--.md".to_owned(),
        at: at(-5),
        run: Some(RunId::new("run_a")),
        item: Some(Item {
            content: "日本語 🦀\0".to_owned() + &"x".repeat(256 * 1024),
            expires_at: Some(at(77)),
            meta: Meta {
                tags: vec!["red".to_owned(), "ü\"%".to_owned()],
                version: Some(7),
                etag: Some("\"7\"".to_owned()),
                content_type: Some("text/plain".to_owned()),
            },
        }),
    };
    let empty = Change { item: Some(Item { content: String::new(), ..item(&put(2, "")) }), ..put(2, "") };
    let gone = by("run_b", delete(3, "never there"));
    let all = [file, empty, gone];
    write(&store, changes(&notes(), all.clone())).await;

    let [file, empty, gone] = all;
    let history = store.versioned_changes(&notes(), None, None, 10).await.expect("readable");
    assert_eq!(history, [gone, empty.clone(), file.clone()], "as written, newest first, deletions too");
    let items = store.versioned_items(&notes(), &version(3)).await.expect("readable");
    assert_eq!(items, [empty.clone(), file.clone()], "an empty text is a text");
    let bare = ReadView { bare: true, ..version(3) };
    let without = |change: Change| Change { item: Some(Item { content: String::new(), ..item(&change) }), ..change };
    let expected = [without(empty), without(file)];
    assert_eq!(store.versioned_items(&notes(), &bare).await.expect("readable"), expected, "all but the content");
    let alone = store.versioned_item(&notes(), &expected[1].key, &bare).await.expect("readable");
    assert_eq!(alone.as_ref(), Some(&expected[1]));
    assert_eq!(store.versioned_item(&notes(), "never there", &bare).await.expect("readable"), None);
    assert_eq!(store.versioned_head(&notes()).await.expect("readable"), 3);
    let rows = store.ledgers(&notes().tenant, VersionedStoreKind::Memory).await.expect("readable");
    assert_eq!(rows, [VersionedStoreRow { scope: "notes".to_owned(), version: 3, updated_at: at(3) }]);
}

fn item(change: &Change) -> Item {
    change.item.clone().expect("a change that puts something")
}

pub(super) async fn a_change_out_of_turn_is_refused(store: impl Store) {
    let refused = |wanted, actual| Err(CommitError::VersionConflict { ledger: notes(), wanted, actual });
    assert_eq!(attempt(&store, changes(&notes(), [put(2, "k")])).await, refused(2, 0), "nothing was there yet");
    write(&store, changes(&notes(), [put(1, "k"), put(2, "k")])).await;
    for (bad, actual) in [(2, 2), (4, 2), (0, 2)] {
        assert_eq!(attempt(&store, changes(&notes(), [put(bad, "no")])).await, refused(bad, actual));
    }
    let gap = [put(3, "k"), put(5, "k")];
    assert_eq!(attempt(&store, changes(&notes(), gap)).await, refused(5, 3), "a gap inside a commit");
    assert_eq!(shown(&store, &notes(), &version(9)).await, [2], "a refused commit leaves nothing behind");
    write(&store, changes(&notes(), [put(3, "k")])).await;
    assert_eq!(store.versioned_head(&notes()).await.expect("readable"), 3);
}

pub(super) async fn a_mixed_commit_is_all_or_nothing(store: impl Store) {
    start(&store, row("run_a"), 1).await;
    let other = VersionedStoreId::workspace(&notes().tenant, "default");
    let writes = |expected, version| {
        let mut writes = changes(&other, [put(1, "fresh")]);
        writes.push(append(row("run_a"), expected, 1));
        writes.extend(changes(&notes(), [put(1, "k"), put(version, "k")]));
        writes.push(Write::CreateRun(row("run_b")));
        writes
    };
    let untouched = async |what: &str| {
        assert_eq!(next_seq(&store, "run_a").await, Some(1), "{what}");
        assert_eq!(next_seq(&store, "run_b").await, None, "{what}");
        for ledger in [&other, &notes()] {
            assert_eq!(store.versioned_head(ledger).await.expect("readable"), 0, "{what}");
            assert_eq!(store.versioned_changes(ledger, None, None, 9).await.expect("readable"), [], "{what}");
        }
    };
    let error = attempt(&store, writes(1, 7)).await.expect_err("a bad change");
    assert_eq!(error, CommitError::VersionConflict { ledger: notes(), wanted: 7, actual: 1 });
    untouched("a bad change refuses the record beside it").await;
    let error = attempt(&store, writes(5, 2)).await.expect_err("a bad record");
    assert_eq!(error, CommitError::Conflict { run: RunId::new("run_a"), expected: 5, actual: 1 });
    untouched("a bad record refuses the change beside it").await;

    write(&store, writes(1, 2)).await;
    assert_eq!(next_seq(&store, "run_a").await, Some(2));
    assert_eq!(next_seq(&store, "run_b").await, Some(0));
    assert_eq!(store.versioned_head(&other).await.expect("readable"), 1);
    assert_eq!(shown(&store, &notes(), &version(2)).await, [2]);
}

pub(super) async fn changes_happen_in_submit_order(store: impl Store) {
    let generation = store.generation();
    let submit = |writes| store.submit(Commit::new(generation, writes));
    let other = VersionedStoreId::memory(&notes().tenant, "other");
    let mut tickets: Vec<CommitReceipt> = Vec::new();
    for version in 1..=300 {
        tickets.push(submit(changes(&notes(), [put(version, &format!("k{}", version % 7))])));
        tickets.push(submit(changes(&other, [put(version, "k")])));
    }
    let failing = submit(changes(&other, [put(7, "k")]));
    let behind = submit(changes(&notes(), [put(301, "k")]));
    for (place, ticket) in tickets.into_iter().enumerate() {
        ticket.await.unwrap_or_else(|error| panic!("commit {place} depends only on earlier ones: {error}"));
    }
    assert_eq!(failing.await, Err(CommitError::VersionConflict { ledger: other.clone(), wanted: 7, actual: 300 }));
    assert_eq!(behind.await, Ok(()), "another store is none the worse for it");
    for (ledger, next) in [(&notes(), 302), (&other, 301)] {
        write(&store, changes(ledger, [put(next, "k")])).await;
        let all = store.versioned_changes(ledger, None, None, usize::MAX).await.expect("readable");
        let versions: Vec<_> = all.iter().map(|change| change.version).collect();
        assert_eq!(versions, (1..=next).rev().collect::<Vec<_>>(), "no gap, none twice");
    }
}

pub(super) async fn a_lens_shows_one_version(store: impl Store) {
    let all = [put(1, "a"), put(2, "b"), put(3, "a"), delete(4, "b"), put(5, "c"), put(6, "b"), delete(7, "a")];
    write(&store, changes(&notes(), all)).await;
    let expected: [&[u64]; 9] = [&[], &[1], &[2, 1], &[3, 2], &[3], &[5, 3], &[6, 5, 3], &[6, 5], &[6, 5]];
    for (upto, expected) in (0..).zip(expected) {
        assert_eq!(shown(&store, &notes(), &version(upto)).await, expected, "as of {upto}");
        for limit in 0..4 {
            let limited = ReadView { limit: Some(limit), ..version(upto) };
            let most = expected.len().min(limit);
            assert_eq!(shown(&store, &notes(), &limited).await, expected[..most], "{limit} as of {upto}");
            let counted = store.versioned_count(&notes(), &limited).await.expect("readable");
            assert_eq!(counted, expected.len() as u64, "a count has no limit");
        }
    }
    assert_eq!(shown(&store, &notes(), &version(u64::MAX)).await, [6, 5], "far beyond the end is the end");
    let gone = store.versioned_item(&notes(), "a", &version(7)).await.expect("readable");
    assert_eq!(gone, None, "a deleted key shows nothing");
    let before = store.versioned_item(&notes(), "a", &version(6)).await.expect("readable");
    assert_eq!(before, Some(put(3, "a")), "but it did before");
    let unlimited = ReadView { limit: Some(0), ..version(6) };
    assert_eq!(store.versioned_item(&notes(), "a", &unlimited).await.expect("readable"), Some(put(3, "a")));
}

pub(super) async fn a_lens_shows_own_writes(store: impl Store) {
    let all = [
        put(1, "a"),
        by("run_a", put(2, "b")),
        by("run_b", put(3, "a")),
        by("run_a", put(4, "a")),
        by("run_a", put(5, "a")),
        by("run_b", put(6, "a")),
        put(7, "c"),
        by("run_a", delete(8, "b")),
        by("run_a", put(9, "d")),
    ];
    write(&store, changes(&notes(), all)).await;
    let own = async |upto, run: &str, own| {
        shown(&store, &notes(), &ReadView { own: Some((RunId::new(run), own)), ..version(upto) }).await
    };
    assert_eq!(own(1, "run_a", 1).await, [1], "nothing of its own yet");
    assert_eq!(own(1, "run_a", 3).await, [2, 1], "its own, and not the other's");
    assert_eq!(own(1, "run_a", 7).await, [5, 2], "its latest own hides what everybody sees");
    assert_eq!(own(1, "run_a", 8).await, [5], "its own deletion counts");
    assert_eq!(own(1, "run_a", u64::MAX).await, [9, 5]);
    assert_eq!(own(6, "run_a", 9).await, [9, 6], "what everybody sees hides an older own write");
    assert_eq!(own(7, "run_a", 3).await, [7, 6, 2], "an end before the version changes nothing");
    assert_eq!(own(2, "run_b", 9).await, [6, 2]);
    assert_eq!(own(2, "run_c", 9).await, [2, 1], "a run that wrote nothing");
    assert_eq!(own(0, "run_b", 9).await, [6]);
    let limited = ReadView { own: Some((RunId::new("run_a"), 9)), limit: Some(2), ..version(7) };
    assert_eq!(shown(&store, &notes(), &limited).await, [9, 7], "newest first across both");
    let first = ReadView { limit: Some(1), ..limited };
    assert_eq!(shown(&store, &notes(), &first).await, [9]);
    let gone = ReadView { own: Some((RunId::new("run_a"), 8)), ..version(7) };
    assert_eq!(store.versioned_item(&notes(), "b", &gone).await.expect("readable"), None);
}

pub(super) async fn a_lens_leaves_out_what_has_expired(store: impl Store) {
    let all = [put(1, "a"), expiring(50, put(2, "b")), put(3, "c"), expiring(60, put(4, "c"))];
    write(&store, changes(&notes(), all)).await;
    let alive = async |now| shown(&store, &notes(), &ReadView::at(4, at(now))).await;
    assert_eq!(alive(49).await, [4, 2, 1]);
    assert_eq!(alive(50).await, [4, 1], "gone at the very instant it expires");
    assert_eq!(alive(60).await, [1], "what an expired item replaced does not come back");
    assert_eq!(shown(&store, &notes(), &version(4)).await, [4, 2, 1], "without an instant nothing expires");
    assert_eq!(store.versioned_item(&notes(), "b", &ReadView::at(4, at(50))).await.expect("readable"), None);
    assert_eq!(store.versioned_count(&notes(), &ReadView::at(4, at(50))).await.expect("readable"), 2);
    let limited = ReadView { limit: Some(1), ..ReadView::at(4, at(60)) };
    assert_eq!(shown(&store, &notes(), &limited).await, [1], "what has expired does not use up the limit");
}

pub(super) async fn a_lens_narrows(store: impl Store) {
    let all = [
        tagged(&["red", "ü\"%"], put(1, "a/1")),
        tagged(&["blue"], put(2, "a/2")),
        tagged(&["red"], put(3, "b")),
        tagged(&["redder"], put(4, "A/1")),
        tagged(&["red"], put(5, "a/\u{10FFFF}x")),
        tagged(&["red"], by("run_a", put(6, "a%"))),
        tagged(&["blue"], put(7, "b")),
        put(8, "a"),
    ];
    write(&store, changes(&notes(), all)).await;
    let tag = |tag: &str| ReadView { tag: Some(tag.to_owned()), ..version(8) };
    let prefix = |prefix: &str| ReadView { prefix: Some(prefix.to_owned()), ..version(8) };
    assert_eq!(shown(&store, &notes(), &tag("red")).await, [6, 5, 1], "by the tags an item has now");
    assert_eq!(shown(&store, &notes(), &tag("ü\"%")).await, [1]);
    assert_eq!(shown(&store, &notes(), &tag("%")).await, [0; 0], "a tag is compared whole");
    assert_eq!(shown(&store, &notes(), &ReadView { version: 6, ..tag("red") }).await, [6, 5, 3, 1]);
    assert_eq!(shown(&store, &notes(), &prefix("a/")).await, [5, 2, 1], "by prefix, letters as they are");
    assert_eq!(shown(&store, &notes(), &prefix("a/\u{10FFFF}")).await, [5], "up to the last letter there is");
    assert_eq!(shown(&store, &notes(), &prefix("a%")).await, [6], "a prefix is no pattern");
    assert_eq!(shown(&store, &notes(), &prefix("a/1")).await, [1], "a whole key");
    assert_eq!(shown(&store, &notes(), &prefix("")).await, [8, 7, 6, 5, 4, 2, 1], "an empty prefix");
    assert_eq!(shown(&store, &notes(), &prefix("c")).await, [0; 0]);
    let both = ReadView { tag: Some("red".to_owned()), limit: Some(1), ..prefix("a/") };
    assert_eq!(shown(&store, &notes(), &both).await, [5]);
    let own = ReadView { version: 1, own: Some((RunId::new("run_a"), 8)), ..tag("red") };
    assert_eq!(shown(&store, &notes(), &own).await, [6, 1]);
    assert_eq!(shown(&store, &notes(), &ReadView { prefix: Some("a/".to_owned()), ..own }).await, [1]);
    let untagged = store.versioned_item(&notes(), "a", &tag("red")).await.expect("readable");
    assert_eq!(untagged, None, "a lens narrows a single key too");
}

pub(super) async fn a_limit_finds_what_lies_far_back(store: impl Store) {
    let first = (1..=3).map(|n| put(n, &format!("old {n}")));
    let busy = (4..=600).map(|n| if n % 50 == 0 { delete(n, "busy") } else { put(n, "busy") });
    write(&store, changes(&notes(), first.chain(busy))).await;
    let limited = |limit, upto| ReadView { limit: Some(limit), ..version(upto) };
    assert_eq!(shown(&store, &notes(), &limited(1, 599)).await, [599]);
    assert_eq!(shown(&store, &notes(), &limited(3, 599)).await, [599, 3, 2], "behind all that was replaced");
    assert_eq!(shown(&store, &notes(), &limited(9, 600)).await, [3, 2, 1], "behind all that was deleted");
    assert_eq!(shown(&store, &notes(), &limited(2, 400)).await, [3, 2]);
    assert_eq!(keys(&store, ReadView { prefix: Some("old".to_owned()), ..limited(1, 600) }).await, ["old 3"]);
}

pub(super) async fn history_is_paged(store: impl Store) {
    let key = |n: u64| if n.is_multiple_of(3) { "a" } else { "b" };
    write(&store, changes(&notes(), (1..=10).map(|n| if n == 6 { delete(n, "a") } else { put(n, key(n)) }))).await;
    let page = async |key: Option<&str>, before, limit| {
        let found = store.versioned_changes(&notes(), key, before, limit).await.expect("readable");
        found.into_iter().map(|change| (change.version, change.item.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(page(None, None, 3).await, [(10, true), (9, true), (8, true)]);
    assert_eq!(page(None, Some(8), 2).await, [(7, true), (6, false)], "what was just shown is not shown again");
    assert_eq!(page(Some("a"), None, 9).await, [(9, true), (6, false), (3, true)], "deletions are history too");
    assert_eq!(page(Some("a"), Some(9), 1).await, [(6, false)]);
    assert_eq!(page(Some("a"), Some(3), 9).await, []);
    assert_eq!(page(Some("c"), None, 9).await, []);
    assert_eq!(page(None, Some(u64::MAX), 1).await, [(10, true)]);
}

pub(super) async fn tenants_kinds_and_scopes_are_apart(store: impl Store) {
    let (acme, other) = (TenantId::new("acme"), TenantId::new("other"));
    let ledgers = [
        VersionedStoreId::memory(&acme, "s"),
        VersionedStoreId::memory(&other, "s"),
        VersionedStoreId::workspace(&acme, "s"),
        VersionedStoreId::memory(&acme, "a"),
    ];
    for (count, ledger) in (1..).zip(&ledgers) {
        write(&store, changes(ledger, (1..=count).map(|n| put(n, &format!("{count}"))))).await;
    }
    for (count, ledger) in (1..).zip(&ledgers) {
        let items = store.versioned_items(ledger, &version(99)).await.expect("readable");
        assert_eq!(items, [put(count, &format!("{count}"))], "only its own: {ledger:?}");
        assert_eq!(store.versioned_head(ledger).await.expect("readable"), count);
    }
    let list = async |tenant, kind| {
        let rows = store.ledgers(tenant, kind).await.expect("readable");
        rows.into_iter().map(|row| (row.scope, row.version)).collect::<Vec<_>>()
    };
    assert_eq!(list(&acme, VersionedStoreKind::Memory).await, [("a".to_owned(), 4), ("s".to_owned(), 1)], "by scope");
    assert_eq!(list(&acme, VersionedStoreKind::Workspace).await, [("s".to_owned(), 3)]);
    assert_eq!(list(&other, VersionedStoreKind::Memory).await, [("s".to_owned(), 2)]);
    assert_eq!(list(&other, VersionedStoreKind::Workspace).await, []);
}

pub(super) async fn the_observer_hears_of_versioned_stores(store: impl Store) {
    let heard = listen(&store);
    let last = || heard.ledgers.lock().last().cloned();
    let told = |version| Some(VersionedStoreCommitted { ledger: notes(), version });
    write(&store, changes(&notes(), [put(1, "k"), put(2, "k")])).await;
    assert_eq!(last(), told(2), "told before the ticket resolves, without a run in the commit");
    let mut mixed = changes(&notes(), [put(3, "k")]);
    mixed.extend([Write::CreateRun(row("run_a")), append(row("run_a"), 0, 1)]);
    write(&store, mixed).await;
    assert_eq!(last(), told(3));
    assert_eq!(heard.committed.lock().last().map(|told| told.next_seq), Some(1), "told of both");
    let count = heard.ledgers.lock().len();
    write(&store, vec![append(row("run_a"), 1, 1)]).await;
    let error = attempt(&store, changes(&notes(), [put(9, "k")])).await.expect_err("a conflict");
    assert_eq!(heard.ledgers.lock().len(), count, "nothing is told of that did not happen");
    assert_eq!(heard.lost.lock().iter().map(|lost| &lost.error).collect::<Vec<_>>(), [&error]);
}
