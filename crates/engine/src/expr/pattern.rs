//! Patterns. Matching never backtracks, but a pattern that repeats a repetition compiles to as many states as it says,
//! and each byte of a text may be looked at once for each of them. So a pattern is weighed before it is compiled, and a
//! match is paid for by the text's length times the pattern's states. What a class of letters costs was measured.

use std::collections::BTreeMap;
use std::rc::Rc;

use regex::{Regex, RegexBuilder};

use super::meter::{Bound, Gauge, length};

/// The longest pattern in an expression or a condition. An expression can make longer ones than it is itself.
pub(crate) const MAX_BYTES: usize = 4096;
/// The longest pattern in a schema.
pub(crate) const MAX_SCHEMA_BYTES: usize = 8192;
/// States that a pattern may have once its repetitions are written out.
pub(crate) const MAX_STATES: u64 = 4096;
/// The compiled form, as a second fence behind the weight. Sixty-four letters of any alphabet take a little less.
pub(crate) const MAX_COMPILED_BYTES: usize = 4 * 1024 * 1024;
/// What matching may keep beside the compiled form.
pub(crate) const MAX_TABLE_BYTES: usize = 1024 * 1024;
/// Groups in each other: the compiler recurses for them.
const MAX_GROUPS: u32 = 64;
/// Compiled patterns that one evaluation keeps.
const MAX_KEPT: usize = 4;
/// Bytes that are matched against one state for a unit.
const MATCH_BYTES: u64 = 32;

/// Units for each copy of a part. A unit is about a quarter of a microsecond.
mod units {
    pub(super) const LETTER: u64 = 4;
    /// A letter that matches in both cases is a class of two or three.
    pub(super) const FOLDED_LETTER: u64 = 16;
    /// Any letter, or all but some: every length of an encoded letter.
    pub(super) const ANY: u64 = 64;
    pub(super) const SPACE: u64 = 100;
    pub(super) const DIGIT: u64 = 200;
    /// Letters of every alphabet: hundreds of ranges.
    pub(super) const ALPHABETS: u64 = 2800;
    /// Looking up the letters of a class in both cases, for so many letters of it; done once, not per copy.
    pub(super) const FOLDED_PER_UNIT: u64 = 16;
    /// The same for a class that only has a name: it may be all letters there are.
    pub(super) const FOLDED_NAMED: u64 = 80_000;
    /// What each pattern costs.
    pub(super) const LEAST: u64 = 64;
}

/// A pattern that was compiled, with what a match costs.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    states: u64,
}

impl Pattern {
    /// Compiles a pattern that is paid for. `None` if it is no pattern.
    pub(crate) fn compile(pattern: &str, weight: Weight) -> Result<Option<Self>, Bound> {
        let built = RegexBuilder::new(pattern)
            .size_limit(MAX_COMPILED_BYTES)
            .dfa_size_limit(MAX_TABLE_BYTES)
            .nest_limit(MAX_GROUPS)
            .build();
        match built {
            Ok(regex) => Ok(Some(Self { regex, states: weight.states })),
            Err(regex::Error::CompiledTooBig(_)) => Err(Bound::Pattern),
            Err(_) => Ok(None),
        }
    }

    pub(super) fn is_match(&self, text: &str, gauge: &mut Gauge) -> Result<bool, Bound> {
        gauge.charge(length(text.len()).saturating_mul(self.states) / MATCH_BYTES)?;
        Ok(self.regex.is_match(text))
    }
}

/// The patterns of one evaluation.
#[derive(Default)]
pub(super) struct Patterns {
    kept: BTreeMap<String, Option<Rc<Pattern>>>,
}

impl Patterns {
    /// Whether the pattern is found in the text; `None` if it is no pattern.
    pub(super) fn matches(&mut self, text: &str, pattern: &str, gauge: &mut Gauge) -> Result<Option<bool>, Bound> {
        if pattern.len() > MAX_BYTES {
            return Err(Bound::Pattern);
        }
        let found = match self.kept.get(pattern) {
            Some(kept) => kept.clone(),
            None => {
                let weight = weigh(pattern, MAX_BYTES).filter(|weight| weight.states <= MAX_STATES);
                let weight = weight.ok_or(Bound::Pattern)?;
                gauge.charge(weight.compiling())?;
                let made = Pattern::compile(pattern, weight)?.map(Rc::new);
                if self.kept.len() == MAX_KEPT {
                    self.kept.clear();
                }
                self.kept.insert(pattern.to_owned(), made.clone());
                made
            }
        };
        found.map(|pattern| pattern.is_match(text, gauge)).transpose()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Weight {
    pub(crate) states: u64,
    /// Units for compiling each copy of it.
    copies: u64,
    /// Units for reading it, however often it is copied.
    once: u64,
}

impl Weight {
    const NONE: Self = Self { states: 0, copies: 0, once: 0 };

    fn part(copies: u64) -> Self {
        Self { states: 1, copies, once: units::LETTER }
    }

    /// Units for compiling it.
    pub(crate) fn compiling(self) -> u64 {
        self.copies.saturating_add(self.once).max(units::LEAST)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            states: self.states.saturating_add(other.states),
            copies: self.copies.saturating_add(other.copies),
            once: self.once.saturating_add(other.once),
        }
    }

    fn times(self, count: u64) -> Self {
        Self { states: self.states.saturating_mul(count), copies: self.copies.saturating_mul(count), once: self.once }
    }
}

/// What is said about a whole pattern by its flags, wherever they stand.
#[derive(Clone, Copy, Default)]
struct Flags {
    folded: bool,
    verbose: bool,
}

impl Flags {
    fn of(letters: &[char]) -> Self {
        let mut flags = Self::default();
        for (at, two) in letters.windows(2).enumerate() {
            if two == ['(', '?'] {
                let words =
                    letters[at + 2..].iter().take_while(|letter| letter.is_ascii_alphabetic() || **letter == '-');
                for letter in words.take(MAX_FLAGS) {
                    flags.folded |= *letter == 'i';
                    flags.verbose |= *letter == 'x';
                }
            }
        }
        flags
    }
}

/// Flags that one group may have; there are seven, and a sign.
const MAX_FLAGS: usize = 8;

/// About how large a pattern becomes, in one pass over it. `None` for one that is too long, or of a kind that cannot be
/// weighed. Where it is wrong about a strange pattern, the compiled form has its own bound.
pub(crate) fn weigh(pattern: &str, longest: usize) -> Option<Weight> {
    if pattern.len() > longest {
        return None;
    }
    let letters: Vec<char> = pattern.chars().collect();
    let flags = Flags::of(&letters);
    // A comment may hold half a bracket.
    if flags.verbose && letters.contains(&'#') {
        return None;
    }
    let mut words = false;
    // What each open group holds so far without its last part, and that part: a repetition is of the last part only.
    let mut open = vec![(Weight::NONE, Weight::NONE)];
    let mut at = 0;
    while at < letters.len() {
        let (part, end) = match letters[at] {
            '*' | '+' | '?' => {
                if let Some((before, _)) = open.last_mut() {
                    *before = before.plus(Weight::part(units::LETTER));
                }
                (None, at + 1)
            }
            '{' => match repetition(&letters[at..]) {
                Some((count, length)) => {
                    if let Some((before, last)) = open.last_mut() {
                        *last = last.times(count.max(1));
                        *before = before.plus(Weight::part(units::LETTER));
                    }
                    (None, at + length)
                }
                None => (Some(Weight::part(units::LETTER)), at + 1),
            },
            '(' => {
                open.push((Weight::part(units::LETTER), Weight::NONE));
                (None, at + 1)
            }
            ')' if open.len() > 1 => {
                let (before, last) = open.pop().unwrap_or((Weight::NONE, Weight::NONE));
                (Some(before.plus(last)), at + 1)
            }
            '[' => {
                let (weight, length) = class(&letters[at..], flags);
                (Some(weight), at + length)
            }
            '.' => (Some(Weight::part(units::ANY)), at + 1),
            '\\' => {
                words |= matches!(letters.get(at + 1), Some('b' | 'B' | '<' | '>'));
                let (weight, length) = escape(&letters[at..], flags, false);
                (Some(weight), at + length)
            }
            letter => (Some(Weight::part(single(letter, flags))), at + 1),
        };
        if let (Some(part), Some((before, last))) = (part, open.last_mut()) {
            *before = before.plus(*last);
            *last = part;
        }
        at = end.max(at + 1);
    }
    let all = open.into_iter().fold(Weight::NONE, |all, (before, last)| all.plus(before).plus(last));
    // Where words end is told letter by letter, without a table of states.
    let states = if words { all.states.saturating_mul(2) } else { all.states };
    Some(Weight { states: states.max(1), ..all })
}

fn single(letter: char, flags: Flags) -> u64 {
    if flags.folded && letter.is_alphabetic() { units::FOLDED_LETTER } else { units::LETTER }
}

/// `{2,5}`: the larger number, and how long it is. It looks no further than numbers, commas and spaces go, so that what it
/// looked at in vain is looked at once more and no more often.
fn repetition(letters: &[char]) -> Option<(u64, usize)> {
    let (mut most, mut number) = (None, None);
    for (at, letter) in letters.iter().enumerate().skip(1) {
        match letter.to_digit(10) {
            Some(digit) => {
                number = Some(number.unwrap_or(0_u64).saturating_mul(10).saturating_add(u64::from(digit)));
                most = most.max(number);
            }
            None if *letter == '}' => return most.map(|most| (most, at + 1)),
            None if *letter == ',' => number = None,
            None if letter.is_whitespace() => {}
            None => return None,
        }
    }
    None
}

/// A class in brackets, those within it included: what it weighs, and how long it is.
fn class(letters: &[char], flags: Flags) -> (Weight, usize) {
    let mut weight = Weight::part(units::LETTER);
    let mut depth = 0_usize;
    let mut at = 0;
    // The letter before a `-`, where a range may begin.
    let mut from: Option<char> = None;
    let mut ranged = false;
    let add = |weight: &mut Weight, copies: u64, once: u64| {
        weight.copies = weight.copies.saturating_add(copies);
        weight.once = weight.once.saturating_add(once.saturating_add(units::LETTER));
    };
    while let Some(&letter) = letters.get(at) {
        match letter {
            '[' => {
                depth += 1;
                add(&mut weight, units::LETTER, 0);
                let mut first = at + 1;
                if letters.get(first) == Some(&'^') {
                    add(&mut weight, units::ANY, 0);
                    first += 1;
                }
                // A bracket right at the beginning is one of the letters.
                at = if letters.get(first) == Some(&']') { first } else { first - 1 };
                (from, ranged) = (None, false);
            }
            ']' => {
                depth = depth.saturating_sub(1);
                add(&mut weight, 0, 0);
                (from, ranged) = (None, false);
                if depth == 0 {
                    return (weight, at + 1);
                }
            }
            '-' if from.is_some() && !ranged => {
                add(&mut weight, 0, 0);
                ranged = true;
            }
            '\\' => {
                let (inner, length) = escape(&letters[at..], flags, true);
                add(&mut weight, inner.copies, inner.once);
                // What an escape stands for is not looked up: a range from or to one may be as wide as there are letters.
                let wide = ranged || letters.get(at + length) == Some(&'-');
                if wide && flags.folded {
                    add(&mut weight, units::ANY, units::FOLDED_NAMED);
                } else if wide {
                    add(&mut weight, units::ANY, 0);
                }
                (from, ranged) = (None, false);
                at += length.saturating_sub(1);
            }
            letter => {
                let beyond = if letter.is_ascii() { units::LETTER } else { units::FOLDED_LETTER };
                let width = from.filter(|_| ranged).map_or(0, |from| u64::from(letter as u32).abs_diff(from as u64));
                let once = if flags.folded { units::LETTER + width / units::FOLDED_PER_UNIT } else { 0 };
                let copies = if width > ASCII && flags.folded { units::ALPHABETS } else { beyond };
                add(&mut weight, copies, once);
                (from, ranged) = if ranged { (None, false) } else { (Some(letter), false) };
            }
        }
        at += 1;
    }
    (weight, letters.len())
}

/// Letters that take one byte.
const ASCII: u64 = 128;

/// An escape: a letter, or a class of them that may have a name in braces. What it weighs, and how long it is.
fn escape(letters: &[char], flags: Flags, in_class: bool) -> (Weight, usize) {
    let Some(&letter) = letters.get(1) else { return (Weight::part(units::LETTER), 1) };
    let length = match (letter, letters.get(2)) {
        ('p' | 'P' | 'x' | 'u' | 'U' | 'b' | 'k' | 'g', Some('{')) => {
            // A name is letters, numbers and a few signs; what is not closed by then is no name.
            let name =
                letters.iter().skip(3).take_while(|letter| letter.is_alphanumeric() || " _-=:!^&".contains(**letter));
            let end = 3 + name.count();
            if letters.get(end) == Some(&'}') { end + 1 } else { 2 }
        }
        ('p' | 'P', Some(_)) => 3,
        _ => 2,
    };
    let folded = |once: u64| if flags.folded { once } else { 0 };
    let weight = match letter {
        'd' | 'D' => Weight { once: folded(u64::from(in_class) * units::FOLDED_NAMED), ..Weight::part(units::DIGIT) },
        's' | 'S' => Weight { once: folded(u64::from(in_class) * units::FOLDED_NAMED), ..Weight::part(units::SPACE) },
        'w' | 'W' => {
            Weight { once: folded(u64::from(in_class) * units::FOLDED_NAMED), ..Weight::part(units::ALPHABETS) }
        }
        'p' | 'P' => Weight { once: folded(units::FOLDED_NAMED), ..Weight::part(units::ALPHABETS) },
        letter => Weight::part(single(letter, flags)),
    };
    (weight, length)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const MAX_UNITS: u64 = 200_000;

    fn units_for(pattern: &str) -> Option<u64> {
        weigh(pattern, MAX_BYTES).filter(|weight| weight.states <= MAX_STATES).map(Weight::compiling)
    }

    #[test]
    fn ordinary_patterns_fit_into_a_step_and_compile() {
        for pattern in [
            r"^\w{1,64}$",
            r"^\p{L}{1,64}$",
            r"^[\w.-]{1,64}$",
            r"^[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}$",
            r"(?i)^(yes|no|perhaps)\b",
            r"(?i)\p{L}+",
            r"^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2})?Z?)?$",
            r"^.{1,1000}$",
            r"[^\s]+\s*[,;]\s*",
        ] {
            let weight = weigh(pattern, MAX_BYTES).unwrap();
            assert!(weight.states <= MAX_STATES && weight.compiling() < MAX_UNITS, "{pattern}: {weight:?}");
            assert!(Pattern::compile(pattern, weight).unwrap().is_some(), "{pattern}");
        }
    }

    #[test]
    fn what_takes_long_to_compile_weighs_much() {
        // Each of these takes the compiler milliseconds.
        for pattern in [
            r"(?i)\p{any}",
            r"(?i)[\x00-\x{10FFFF}]",
            "(?i)[\u{0}-\u{10ffff}]",
            r"(?i)[\w\s]",
            r"(?is-u:x)(?u:[\W])",
            r"\w{20}",
            r"(\p{Lu}\p{Ll}){10}",
            ".{600}",
        ] {
            assert!(units_for(pattern).is_none_or(|units| units > 30_000), "{pattern}: {:?}", units_for(pattern));
        }
    }

    #[test]
    fn every_letter_weighs_something() {
        for letter in ["(", "*", "+", "?", ")", "[", "]", "{", "}", "|", "\\", "a", "^", "$", "(?:", "[a", "\\p{"] {
            let pattern = letter.repeat(MAX_BYTES / letter.len());
            let weight = weigh(&pattern, MAX_BYTES).unwrap();
            assert!(weight.compiling() >= pattern.len() as u64, "{letter}: {weight:?}");
        }
    }

    #[test]
    fn repetitions_multiply_and_long_patterns_are_not_read() {
        assert!(units_for("(a{100}){100}").is_none());
        assert!(units_for("a{ 1 , 5000 }").is_none());
        assert!(weigh("a{00000000000000000000000000000009999}", MAX_BYTES).unwrap().states > MAX_STATES);
        assert!(weigh("a{99999999999999999999999}", MAX_BYTES).unwrap().states > MAX_STATES);
        assert!(weigh(&"a".repeat(MAX_BYTES + 1), MAX_BYTES).is_none());
        assert!(weigh("(?x) a # [ \n {1000}", MAX_BYTES).is_none());
    }
}
