//! "Did you mean": the known name nearest to a misspelt one.

/// The nearest candidate, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let reach = (typed.chars().count() / 3).clamp(1, 4);
    known
        .map(|name| (strsim::levenshtein(typed, name), name))
        .filter(|(distance, _)| *distance <= reach)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["listen", "data", "limits.max_nesting_depth"];
        assert_eq!(nearest("lisen", known.into_iter()), Some("listen"));
        assert_eq!(nearest("limits.max_nesting", known.into_iter()), None);
        assert_eq!(nearest("colour", known.into_iter()), None);
    }
}
