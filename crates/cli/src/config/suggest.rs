//! "Did you mean": the known name nearest to a misspelt one.

/// The nearest candidate, if it is near enough to be what was meant.
pub(crate) fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let reach = (typed.chars().count() / 3).clamp(1, 4);
    known
        .map(|name| (distance(typed, name), name))
        .filter(|(distance, _)| *distance <= reach)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Levenshtein distance, one row at a time.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, d) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("listen", "lisen", 1)] {
            assert_eq!((distance(a, b), distance(b, a)), (d, d), "{a} {b}");
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["listen", "data", "limits.max_nesting_depth"];
        assert_eq!(nearest("lisen", known.into_iter()), Some("listen"));
        assert_eq!(nearest("limits.max_nesting", known.into_iter()), None);
        assert_eq!(nearest("colour", known.into_iter()), None);
    }
}
