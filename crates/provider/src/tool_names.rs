//! Vendors take tool names of a few plain letters; ours are canonical ids such as `openwop:http.fetch`. Each request has
//! its own map between the two, and no two tools ever share a name in it.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::{Digest, SemanticRequest};
use serde_json::Value;

/// What every vendor takes.
const LONGEST: usize = 64;
/// How much of a digest tells two names apart that look alike otherwise.
const DIGEST_CHARS: usize = 8;

/// Canonical id ↔ vendor's name, for the tools of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    ours: BTreeMap<String, String>,
    theirs: BTreeMap<String, String>,
}

impl Names {
    /// For the tools that are offered, and those that the conversation only remembers.
    pub(crate) fn of(request: &SemanticRequest) -> Self {
        let offered = request.tools.iter().filter_map(|tool| tool.get("name"));
        let asked = request.messages.iter().filter_map(|message| message.get("toolCalls")?.as_array()).flatten();
        let asked = asked.filter_map(|call| call.get("name"));
        let answered = request.messages.iter().filter(|message| message.role() == "tool");
        let answered = answered.filter_map(|message| message.get("name"));
        Self::from_ids(offered.chain(asked).chain(answered).filter_map(Value::as_str))
    }

    pub(crate) fn from_ids<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        // Sorted, so that the order in which tools are listed does not matter.
        let ids: BTreeSet<&str> = ids.into_iter().collect();
        let (plain, other): (Vec<&str>, Vec<&str>) = ids.into_iter().partition(|id| acceptable(id));
        let mut names = Self::default();
        // First those that can stay as they are: nobody else may take their place.
        for id in plain {
            names.pair(id, id.to_owned());
        }
        for id in other {
            let name = names.free(id);
            names.pair(id, name);
        }
        names
    }

    /// What the vendor calls this tool.
    pub(crate) fn theirs<'a>(&'a self, id: &'a str) -> &'a str {
        self.theirs.get(id).map_or(id, String::as_str)
    }

    /// Which tool the vendor means. A name that nobody gave it is handed on as it is: whoever checks what may be called
    /// will not find it.
    pub(crate) fn ours<'a>(&'a self, name: &'a str) -> &'a str {
        self.ours.get(name).map_or(name, String::as_str)
    }

    fn pair(&mut self, id: &str, name: String) {
        self.ours.insert(name.clone(), id.to_owned());
        self.theirs.insert(id.to_owned(), name);
    }

    fn free(&self, id: &str) -> String {
        let plain = plain(id);
        let digest = Digest::of_bytes(id);
        // Readable if it can be; with more and more of its digest if it must be. Two ids have two digests, so one of
        // these is free unless more ids than there are names were made up.
        let marked = (DIGEST_CHARS..LONGEST).map(|length| {
            let mark = &digest.as_str()[..length];
            let room = LONGEST - 1 - length;
            format!("{}_{mark}", &plain[..plain.len().min(room)])
        });
        let mut candidates = std::iter::once(plain.clone()).chain(marked).map(|name| started(&name));
        candidates.find(|name| !self.ours.contains_key(name)).unwrap_or_else(|| started(digest.as_str()))
    }
}

/// Whether every vendor takes this name. One of them wants it to start like a word.
fn acceptable(name: &str) -> bool {
    let fits = (1..=LONGEST).contains(&name.len()) && name.bytes().all(allowed);
    fits && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

const fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The id with `_` for everything that is not allowed.
fn plain(id: &str) -> String {
    let letter = |c: char| if c.is_ascii() && allowed(c as u8) { c } else { '_' };
    id.chars().map(letter).take(LONGEST).collect()
}

fn started(name: &str) -> String {
    if acceptable(name) { name.to_owned() } else { format!("t_{name}").chars().take(LONGEST).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_stay_readable_and_apart() {
        let names = Names::from_ids(["openwop:http.fetch", "openwop_http_fetch", "openwop.http:fetch", "9lives", ""]);
        assert_eq!(names.theirs("openwop_http_fetch"), "openwop_http_fetch");
        let (one, other) = (names.theirs("openwop:http.fetch"), names.theirs("openwop.http:fetch"));
        assert_ne!(one, other);
        assert!(one.starts_with("openwop_http_fetch_") && other.starts_with("openwop_http_fetch_"), "{one} {other}");
        assert_eq!(names.theirs("9lives"), "t_9lives");
        assert_eq!((names.theirs(""), names.ours("t_")), ("t_", ""));
        assert_eq!(Names::from_ids(["a:b"]).theirs("a:b"), "a_b");
    }

    #[test]
    fn an_unknown_name_is_handed_on() {
        let names = Names::from_ids(["a:b"]);
        assert_eq!((names.ours("a_b"), names.ours("a:b"), names.ours("made_up")), ("a:b", "a:b", "made_up"));
    }

    /// Ids that collide easily: few letters, many separators, long common beginnings.
    fn id() -> impl Strategy<Value = String> {
        prop_oneof!["[ab:._-]{0,4}", "[a-z]{1,8}:[a-z._]{1,12}", "x{60,70}[:._]{0,3}", "\\PC{0,80}"]
    }

    proptest! {
        #[test]
        fn the_map_is_a_bijection(ids in prop::collection::vec(id(), 0..40)) {
            let names = Names::from_ids(ids.iter().map(String::as_str));
            let distinct: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
            let given: BTreeSet<&str> = distinct.iter().map(|id| names.theirs(id)).collect();
            prop_assert_eq!(given.len(), distinct.len());
            for id in &distinct {
                prop_assert!(acceptable(names.theirs(id)), "{:?}", names.theirs(id));
                prop_assert_eq!(&names.ours(names.theirs(id)), id);
            }
            let mut turned = ids.clone();
            turned.reverse();
            prop_assert_eq!(names, Names::from_ids(turned.iter().map(String::as_str)));
        }
    }
}
