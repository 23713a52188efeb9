//! Texts as PostgreSQL takes them. It has no place for the character 0 in a text, and people's texts may have one.
//!
//! 0 is written as 1 1, and 1 as 1 2. Nothing else changes, different texts stay different, their order stays as it
//! was, and so does what starts with what: ranges and prefixes work on the written form.

use std::borrow::Cow;

pub(crate) fn written(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte < 2) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}\u{2}").replace('\0', "\u{1}\u{1}"))
}

pub(crate) fn read(text: String) -> String {
    if !text.bytes().any(|byte| byte == 1) {
        return text;
    }
    let mut read = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1}' => read.push(if letters.next() == Some('\u{1}') { '\0' } else { '\u{1}' }),
            letter => read.push(letter),
        }
    }
    read
}

/// The first text after all that start with `prefix`; `None` if they go on to the end. A range instead of LIKE: it can
/// use an index, and nothing in a prefix is a wildcard.
pub(crate) fn after_prefix(prefix: &str) -> Option<String> {
    let last = prefix.trim_end_matches(char::MAX);
    let letter = last.chars().next_back()?;
    // A range of letters steps over the gap in the middle of them.
    let next = (letter..=char::MAX).nth(1)?;
    Some(format!("{}{next}", &last[..last.len() - letter.len_utf8()]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_is_lost_and_the_order_stays(a in "[\0\u{1}\u{2}ab\u{10FFFF}]{0,6}", b in "[\0\u{1}\u{2}ab\u{10FFFF}]{0,6}") {
            let (left, right) = (written(&a), written(&b));
            prop_assert!(!left.contains('\0'));
            prop_assert_eq!(read(left.clone().into_owned()), a.clone());
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left.starts_with(&*right), a.starts_with(&b));
            let end = after_prefix(&right);
            let in_range = *left >= *right && end.is_none_or(|end| *left < *end);
            prop_assert_eq!(in_range, a.starts_with(&b));
        }
    }
}
