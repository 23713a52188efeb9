//! Ranges of texts.

/// The first text after all that start with `prefix`; `None` if they go on to the end. A range instead of LIKE: it can
/// use an index, and nothing in a prefix is a wildcard.
pub fn after_prefix(prefix: &str) -> Option<String> {
    let last = prefix.trim_end_matches(char::MAX);
    let letter = last.chars().next_back()?;
    // A range of letters steps over the gap in the middle of them.
    let next = (letter..=char::MAX).nth(1)?;
    Some(format!("{}{next}", &last[..last.len() - letter.len_utf8()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_just_behind_it() {
        let after = |prefix| after_prefix(prefix);
        assert_eq!(after("a"), Some("b".to_owned()));
        assert_eq!(after("notes/"), Some("notes0".to_owned()));
        assert_eq!(after("a\u{D7FF}"), Some("a\u{E000}".to_owned()), "there are no letters in between");
        assert_eq!(after("a\u{10FFFF}\u{10FFFF}"), Some("b".to_owned()), "no letter is larger");
        assert_eq!(after("\u{10FFFF}"), None);
        assert_eq!(after(""), None);
    }
}
