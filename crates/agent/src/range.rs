//! Version ranges as pack authors write them: `>=1.1.0 <2.0.0`, `^1.2`, `1.x || 2.x`.

use semver::{Version, VersionReq};

/// One range; any of its alternatives will do.
#[derive(Clone, Debug)]
pub(crate) struct Range(Vec<VersionReq>);

impl Range {
    pub(crate) fn read(text: &str) -> Option<Self> {
        text.split("||").map(alternative).collect::<Option<Vec<_>>>().map(Self)
    }

    pub(crate) fn admits(&self, version: &Version) -> bool {
        self.0.iter().any(|req| req.matches(version))
    }

    /// Whether some version of this major line is in the range.
    pub(crate) fn touches_major(&self, major: u64) -> bool {
        // A range begins or ends at one of its own versions or just after it, or covers the line from end to end.
        let bounds = self.0.iter().flat_map(|req| &req.comparators).filter(|bound| bound.major == major);
        let near = bounds.flat_map(|bound| {
            let (minor, patch) = (bound.minor.unwrap_or(0), bound.patch.unwrap_or(0));
            [
                Version::new(major, minor, patch),
                Version::new(major, minor, patch.saturating_add(1)),
                Version::new(major, minor.saturating_add(1), 0),
            ]
        });
        near.chain([Version::new(major, 0, 0)]).any(|version| self.admits(&version))
    }
}

/// Comparators joined by blanks all have to hold; a blank after an operator belongs to it.
fn alternative(text: &str) -> Option<VersionReq> {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split([' ', '\t', ',']).filter(|word| !word.is_empty()) {
        match parts.last_mut().filter(|last| last.ends_with(['<', '>', '=', '~', '^'])) {
            Some(last) => last.push_str(word),
            None => parts.push(word.to_owned()),
        }
    }
    VersionReq::parse(&parts.iter().map(|part| exact(part)).collect::<Vec<_>>().join(", ")).ok()
}

/// A whole version without an operator means that version, not everything compatible with it.
fn exact(part: &str) -> String {
    if Version::parse(part).is_ok() { format!("={part}") } else { part.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ranges_mean_what_authors_mean() {
        for (range, version, admitted) in [
            (">=1.1.0 <2.0.0", "1.4.2", true),
            (">=1.1.0 <2.0.0", "2.0.0", false),
            (">=1.0 <2", "1.0.0", true),
            (">= 1.2, < 1.4", "1.3.9", true),
            ("^1.2", "1.9.0", true),
            ("~1.2.3", "1.3.0", false),
            ("1.2.3", "1.2.4", false),
            ("1.x || 3.x", "3.1.0", true),
            ("1.x || 3.x", "2.1.0", false),
            ("*", "0.0.1", true),
        ] {
            assert_eq!(Range::read(range).unwrap().admits(&version.parse().unwrap()), admitted, "{range} {version}");
        }
        for bad in ["one", ">=", "1.0.0 - 2.0.0", ">=x <y"] {
            assert!(Range::read(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_range_may_begin_in_the_middle_of_a_line() {
        for good in [">=1.1.0 <2.0.0", ">=1.50.0 <2", "1.3.7", "*", ">=0.9", ">1.2 <2", "^1.4.2", ">1.2.3", "<1.0.5"] {
            assert!(Range::read(good).unwrap().touches_major(1), "{good}");
        }
        for bad in [">=2", "<1.0.0", "0.x"] {
            assert!(!Range::read(bad).unwrap().touches_major(1), "{bad}");
        }
    }
}
