//! Texts as PostgreSQL takes them. It has no place for the character 0 in a text, and people's texts may have one.
//!
//! 0 is written as 1 1, and 1 as 1 2. Nothing else changes, different texts stay different, their order stays as it
//! was, and so does what starts with what: ranges and prefixes work on the written form.
//!
//! Nor has it room for a long text in an index. What an index knows of a text is its *key*: the written form where that is
//! short, otherwise its beginning, 1 3 (which no written text has) and a digest of the whole.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

/// The longest text that is a key as it stands. An index row has 2704 bytes, and up to three texts and a few numbers.
const KEY_BYTES: usize = 512;
/// How much of a longer text its key begins with, so that ranges and prefixes still find it.
const KEPT_CHARS: usize = 100;

pub(crate) fn written(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte < 2) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}\u{2}").replace('\0', "\u{1}\u{1}"))
}

pub(crate) fn read(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte == 1) {
        return Cow::Borrowed(text);
    }
    let mut read = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1}' => read.push(if letters.next() == Some('\u{1}') { '\0' } else { '\u{1}' }),
            letter => read.push(letter),
        }
    }
    Cow::Owned(read)
}

/// What an index knows of a text. Different texts have different keys.
pub(crate) fn key(text: &str) -> Cow<'_, str> {
    let written = written(text);
    if written.len() <= KEY_BYTES {
        return written;
    }
    let digest: String = Sha256::digest(written.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    Cow::Owned(format!("{}\u{1}\u{3}{digest}", beginning(&written)))
}

/// The whole of a text that is too long to be its own key.
pub(crate) fn long(text: &str) -> Option<Cow<'_, str>> {
    Some(written(text)).filter(|written| written.len() > KEY_BYTES)
}

/// What the keys of all texts begin with that begin with this one. Others may, too.
pub(crate) fn key_prefix(prefix: &str) -> String {
    beginning(&written(prefix)).to_owned()
}

/// Never the half of something that is written otherwise.
fn beginning(written: &str) -> &str {
    let end = written.char_indices().nth(KEPT_CHARS).map_or(written.len(), |(at, _)| at);
    written[..end].trim_end_matches('\u{1}')
}

#[cfg(test)]
mod tests {
    use baton_store::codec::after_prefix;
    use proptest::prelude::*;

    use super::*;

    fn odd(most: usize) -> impl Strategy<Value = String> {
        prop_oneof![
            proptest::collection::vec(prop_oneof!["[\0\u{1}\u{2}\u{3}ab]", "\\PC"], 0..most)
                .prop_map(|all| all.concat()),
            ("[\0\u{1}\u{3}a\u{10FFFF}]", 0..most).prop_map(|(letter, count)| letter.repeat(count)),
        ]
    }

    proptest! {
        #[test]
        fn keys_are_short_and_different_texts_have_different_ones(a in odd(1000), b in odd(1000), same in 0..200_usize) {
            // Two that are alike for long are the hard ones.
            let (a, b) = (format!("{}{a}", "\0".repeat(same)), format!("{}{b}", "\0".repeat(same)));
            let (left, right) = (key(&a), key(&b));
            prop_assert!(left.len() <= KEY_BYTES && !left.contains('\0'));
            prop_assert_eq!(left == right, a == b);
            prop_assert_eq!(long(&a).is_some(), written(&a) != left);
            for at in a.char_indices().map(|(at, _)| at).chain([a.len()]) {
                prop_assert!(left.starts_with(&key_prefix(&a[..at])), "{}", at);
            }
        }

        #[test]
        fn no_short_text_is_the_key_of_a_long_one(long in "[\0\u{1}a]{600}", tail in "[\0\u{1}\u{2}\u{3}]{0,3}") {
            let key = key(&long).into_owned();
            // Whoever wants to be taken for it would have to be written like it.
            let forged = format!("{}{tail}", key);
            let forged = read(&forged).into_owned();
            prop_assert!(super::key(&forged) != key || forged == long);
        }

        #[test]
        fn nothing_is_lost_and_the_order_stays(a in "[\0\u{1}\u{2}ab\u{10FFFF}]{0,6}", b in "[\0\u{1}\u{2}ab\u{10FFFF}]{0,6}") {
            let (left, right) = (written(&a), written(&b));
            prop_assert!(!left.contains('\0'));
            prop_assert_eq!(read(&left), a.clone());
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left.starts_with(&*right), a.starts_with(&b));
            let end = after_prefix(&right);
            let in_range = *left >= *right && end.is_none_or(|end| *left < *end);
            prop_assert_eq!(in_range, a.starts_with(&b));
        }
    }
}
