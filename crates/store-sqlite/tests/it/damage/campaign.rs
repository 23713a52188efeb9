//! Many random changes of a directory, each of which must be noticed or do no harm. Every case is told with its seed;
//! other and more of them: `BATON_SEED=7 BATON_DAMAGE_CASES=5000 cargo test -p baton-store-sqlite --test it campaign`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_store::Journal as _;
use baton_store_sqlite::{SqliteOptions, SqliteStore};

use super::served::{Served, copy, everything_of, fill, silent};

/// As many as take some seconds.
const CASES: u64 = 200;
/// The same everywhere, unless somebody says otherwise.
const SEED: u64 = 1;
const WORKERS: usize = 4;

/// Numbers from a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }
}

/// Changes one file, and says how.
fn spoil(dir: &Path, numbers: &mut Numbers, with_log: bool) -> (String, String) {
    let name = match (with_log, numbers.below(10)) {
        (true, 0..=5) => "baton.db-wal",
        (_, 9) => "baton.commits",
        _ => "baton.db",
    };
    let path = dir.join(name);
    let mut bytes = std::fs::read(&path).unwrap();
    // A third of them where a blob lies: most of the file is that of no one in particular.
    let blob = (name == "baton.db" && numbers.below(3) == 0).then(|| {
        let marks: Vec<usize> = (0..bytes.len().saturating_sub(16))
            .step_by(8)
            .filter(|at| bytes[*at..at + 16].iter().filter(|byte| **byte == 0).count() == 12)
            .collect();
        marks.get(numbers.below(marks.len())).copied()
    });
    let at = blob.flatten().unwrap_or_else(|| numbers.below(bytes.len()));
    let how = match numbers.below(4) {
        0 | 1 => {
            let bit = numbers.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
        2 => {
            let end = (at + 1 + numbers.below(64)).min(bytes.len());
            for byte in &mut bytes[at..end] {
                *byte = numbers.next().to_le_bytes()[0];
            }
            format!("bytes {at} to {end} overwritten")
        }
        _ => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
    };
    std::fs::write(&path, bytes).unwrap();
    (name.to_owned(), how)
}

fn is_sound(dir: &Path) -> bool {
    SqliteStore::check(dir).is_ok_and(|report| report.is_sound())
}

/// What became of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    NoticedAtOpen,
    NoticedOnRead,
    Harmless,
}

/// As the host opens it, and as it opens what is too large to be gone through at once: then what is silent must be found
/// by a check.
async fn judge(dir: &Path, truth: &Served, case: &str) -> Verdict {
    let sound = is_sound(dir);
    let late = tempfile::tempdir().unwrap();
    copy(dir, late.path());
    let all = SqliteOptions { refuse_damage: false, ..SqliteOptions::default() };
    if let Ok(store) = SqliteStore::open_with(late.path(), all) {
        let found = everything_of(&store).await;
        store.close().await;
        let wrong = silent(truth, &found, true);
        assert!(wrong.is_empty() || !sound, "{case}: served, and no check finds it: {wrong:#?}");
        assert!(found.values().all(Result::is_ok) || !sound, "{case}: noticed on read, and no check finds it");
    }
    let Ok(store) = SqliteStore::open(dir) else {
        assert!(!sound, "{case}: does not open, and no check says why");
        return Verdict::NoticedAtOpen;
    };
    let found = everything_of(&store).await;
    store.close().await;
    let wrong = silent(truth, &found, sound);
    assert!(wrong.is_empty(), "{case}: served silently: {wrong:#?}");
    match found.values().any(Result::is_err) {
        true => Verdict::NoticedOnRead,
        false => Verdict::Harmless,
    }
}

#[test]
fn campaign() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let cases = std::env::var("BATON_DAMAGE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    let seed: u64 = std::env::var("BATON_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    let (live, closed, running) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let truth = runtime.block_on(async {
        let store = SqliteStore::open(live.path()).unwrap();
        fill(&store).await;
        let truth = everything_of(&store).await;
        assert!(truth.len() > 300 && truth.values().all(Result::is_ok), "{}", truth.len());
        // Nothing is under way, so this is what a killed process leaves behind.
        copy(live.path(), running.path());
        store.close().await;
        copy(live.path(), closed.path());
        truth
    });

    // On several threads: a case mostly waits for the disk.
    let (next, told) = (AtomicU64::new(0), Mutex::new(BTreeMap::<(String, Verdict), u64>::new()));
    let worker = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        loop {
            let case = next.fetch_add(1, Ordering::Relaxed);
            if case >= cases {
                return;
            }
            let mut numbers = Numbers(seed.wrapping_mul(1_000_003).wrapping_add(case));
            let with_log = case % 2 == 0;
            let dir = tempfile::tempdir().unwrap();
            copy(if with_log { running.path() } else { closed.path() }, dir.path());
            let (file, how) = spoil(dir.path(), &mut numbers, with_log);
            let verdict =
                runtime.block_on(judge(dir.path(), &truth, &format!("seed {seed}, case {case}: {file}, {how}")));
            eprintln!("{case:>4} {file:<13} {verdict:?}: {how}");
            *told.lock().unwrap().entry((file, verdict)).or_default() += 1;
        }
    };
    std::thread::scope(|all| (0..WORKERS).for_each(|_| drop(all.spawn(worker))));
    for ((file, verdict), count) in told.into_inner().unwrap() {
        eprintln!("{file:<13} {verdict:?}: {count}");
    }
}
