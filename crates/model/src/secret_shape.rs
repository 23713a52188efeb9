//! Text that looks like a credential: keys with a vendor's prefix, signed tokens, private keys.
//!
//! [`secret`](crate::redact) replaces values that somebody named. What a caller pastes into an input is named by nobody,
//! so it is known by its shape alone. A guess may be wrong. That is why it only changes what is shown, and what people
//! write beside a run; never a log. One search for the few prefixes decides whether anything is to be looked at, so
//! that text without them costs next to nothing.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// What stands in the place of such text.
pub const SHAPE_MARK: &str = "[REDACTED:pattern]";

/// How the shapes begin. `BEGIN ` stands for a key in armour; its dashes are looked for backwards.
const PREFIXES: [&str; 17] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "hk_",
    "bk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "AKIA",
    "ASIA",
    "xox",
    "AIza",
    "eyJ",
    "BEGIN ",
];
/// Letters of a key after its prefix. Shorter ones are names (`sk-learn`), not keys.
const SHORTEST_KEY: usize = 16;
const SHORTEST_GITHUB: usize = 20;
const SHORTEST_GOOGLE: usize = 30;
const AMAZON: usize = 16;
const SHORTEST_SLACK: usize = 10;
/// Letters in each part of a signed token.
const SHORTEST_PART: usize = 8;
const DASHES: &[u8] = b"-----";
/// How far a label such as `OPENSSH PRIVATE KEY` is followed.
const LONGEST_LABEL: usize = 64;

/// Constant prefixes always build. Should they not, every position is looked at, which is slow and misses nothing.
static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| AhoCorasick::new(PREFIXES).ok());

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    /// Text within the strings of written JSON: line breaks are two letters, and a quotation mark ends it.
    Json,
}

/// What begins at a place.
enum Found {
    Secret(Range<usize>),
    /// A link of this host, which looks a little like a token. Nothing in it is looked at.
    Link(usize),
}

/// The text without anything that looks like a credential.
pub fn mask_shapes(text: &str) -> Cow<'_, str> {
    match masked(text.as_bytes(), Form::Text) {
        // Shapes begin and end at letters of ASCII, so what is left is text.
        Some(clean) => Cow::Owned(String::from_utf8(clean).unwrap_or_else(|_| SHAPE_MARK.to_owned())),
        None => Cow::Borrowed(text),
    }
}

/// The same for JSON that is written already; `None` where there is nothing to replace.
pub fn mask_shapes_in_json(json: &[u8]) -> Option<Vec<u8>> {
    masked(json, Form::Json)
}

fn masked(bytes: &[u8], form: Form) -> Option<Vec<u8>> {
    let (mut secrets, mut done): (Vec<Range<usize>>, usize) = (Vec::new(), 0);
    let mut words = Words { bytes, start: 0, end: 0, random: None };
    let mut look = |at: usize| {
        if at < done {
            return;
        }
        match found_at(bytes, at, form, &mut words) {
            None => {}
            Some(Found::Link(end)) => done = end,
            Some(Found::Secret(range)) => {
                done = range.end;
                secrets.push(range);
            }
        }
    };
    match &*FINDER {
        Some(finder) => finder.find_iter(bytes).for_each(|found| look(found.start())),
        None => (0..bytes.len()).for_each(&mut look),
    }
    if secrets.is_empty() {
        return None;
    }
    let (mut out, mut from) = (Vec::with_capacity(bytes.len()), 0);
    for secret in secrets {
        out.extend_from_slice(&bytes[from..secret.start.max(from)]);
        out.extend_from_slice(SHAPE_MARK.as_bytes());
        from = secret.end;
    }
    out.extend_from_slice(&bytes[from..]);
    Some(out)
}

/// The word that is being looked at, measured once: a text of nothing but beginnings would be gone through as often as
/// it has any.
struct Words<'a> {
    bytes: &'a [u8],
    start: usize,
    end: usize,
    /// Where its last digit or capital is. Keys have some, names joined with dashes have none.
    random: Option<usize>,
}

impl Words<'_> {
    /// How many letters of a word there are from here on, and whether they look random.
    fn from(&mut self, at: usize) -> (usize, bool) {
        if !(self.start..self.end).contains(&at) {
            let letters = self.bytes[at..].iter().take_while(|byte| is_key(**byte));
            (self.start, self.end, self.random) = (at, at, None);
            for byte in letters {
                if byte.is_ascii_digit() || byte.is_ascii_uppercase() {
                    self.random = Some(self.end);
                }
                self.end += 1;
            }
        }
        (self.end - at, self.random.is_some_and(|random| random >= at))
    }
}

fn found_at(bytes: &[u8], at: usize, form: Form, words: &mut Words<'_>) -> Option<Found> {
    let mut key = |prefix: usize, shortest: usize| {
        let (length, random) = words.from(at + prefix);
        let whole = length >= shortest && random && begins_word(bytes, at, form);
        whole.then(|| Found::Secret(at..at + prefix + length))
    };
    match &bytes[at..] {
        [b's' | b'h' | b'b', b'k', b'-' | b'_', ..] => key(3, SHORTEST_KEY),
        [b'g', b'h', b'p' | b'o' | b'u' | b's' | b'r', b'_', ..] => key(4, SHORTEST_GITHUB),
        [b'g', b'i', b't', b'h', b'u', b'b', b'_', b'p', b'a', b't', b'_', ..] => key(11, SHORTEST_GITHUB),
        [b'A', b'I', b'z', b'a', ..] => key(4, SHORTEST_GOOGLE),
        [b'x', b'o', b'x', b'a'..=b'e' | b'p' | b'r' | b's', b'-', ..] => key(5, SHORTEST_SLACK),
        [b'A', b'K' | b'S', b'I', b'A', rest @ ..] => {
            let capital = |byte: &&u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
            let length = rest.iter().take(AMAZON).take_while(capital).count();
            (length == AMAZON && begins_word(bytes, at, form)).then(|| Found::Secret(at..at + 4 + words.from(at + 4).0))
        }
        [b'e', b'y', b'J', ..] => token(bytes, at, words),
        [b'B', b'E', b'G', b'I', b'N', b' ', ..] => private_key(bytes, at, form),
        _ => None,
    }
}

/// Three parts with dots between them are a signed token. Two are a signed link of ours, and it must stay whole.
fn token(bytes: &[u8], at: usize, words: &mut Words<'_>) -> Option<Found> {
    let (mut end, mut parts) = (at, 0);
    loop {
        let length = words.from(end).0;
        if length < SHORTEST_PART {
            break;
        }
        (parts, end) = (parts + 1, end + length);
        if parts == 3 || bytes.get(end) != Some(&b'.') {
            break;
        }
        end += 1;
    }
    match parts {
        3 => Some(Found::Secret(at..end)),
        2 => Some(Found::Link(end)),
        _ => None,
    }
}

/// From its first dash to its last; without an end, as far as the text goes.
fn private_key(bytes: &[u8], at: usize, form: Form) -> Option<Found> {
    let start = at.checked_sub(DASHES.len()).filter(|start| bytes[*start..].starts_with(DASHES))?;
    let label = &bytes[at..bytes.len().min(at + LONGEST_LABEL)];
    let label = &label[..position(label, DASHES)?];
    position(label, b"PRIVATE KEY")?;
    let body = at + label.len() + DASHES.len();
    let limit = if form == Form::Json { body + string_rest(&bytes[body..]) } else { bytes.len() };
    let rest = &bytes[body..limit];
    let end = position(rest, b"-----END").and_then(|end| {
        let after = end + b"-----END".len();
        position(&rest[after..], DASHES).map(|dashes| body + after + dashes + DASHES.len())
    });
    Some(Found::Secret(start..end.unwrap_or(limit)))
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// How many bytes are left of the JSON string that we are in.
fn string_rest(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Whether nothing of a word stands before: `task-…` is no key. In JSON the letter before may belong to an escape.
fn begins_word(bytes: &[u8], at: usize, form: Form) -> bool {
    let Some((before, rest)) = bytes[..at].split_last() else { return true };
    if !before.is_ascii_alphanumeric() {
        return true;
    }
    let escaped = |head: &[u8]| head.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    form == Form::Json
        && (matches!(before, b'n' | b'r' | b't' | b'b' | b'f') && escaped(rest)
            || matches!(bytes[..at], [ref head @ .., b'u', _, _, _, _] if escaped(head)))
}

#[cfg(test)]
mod tests;
