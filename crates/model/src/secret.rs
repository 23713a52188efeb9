//! Keeping secrets out of what is stored: plain substring replacement, so that nothing depends on guessing what a
//! secret looks like.

/// Shorter values are not treated as secrets: replacing them would shred ordinary text.
pub const MIN_SECRET_BYTES: usize = 8;

/// A value that must never be stored or shown, and the id that stands for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    pub id: String,
    value: String,
}

impl Secret {
    pub fn new(id: impl Into<String>, value: impl Into<String>) -> Self {
        Self { id: id.into(), value: value.into() }
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({})", self.id)
    }
}

/// The text with every secret replaced by `[REDACTED:<id>]`, longest first, so that a secret inside a longer one
/// does not leave the rest of it behind.
pub fn redact(text: &str, secrets: &[Secret]) -> String {
    redact_counted(text, secrets).0
}

/// The same, with how many occurrences were replaced.
pub fn redact_counted(text: &str, secrets: &[Secret]) -> (String, usize) {
    let mut found: Vec<&Secret> =
        secrets.iter().filter(|s| s.value.len() >= MIN_SECRET_BYTES && text.contains(&s.value)).collect();
    found.sort_by(|a, b| b.value.len().cmp(&a.value.len()).then_with(|| a.id.cmp(&b.id)));
    let (mut clean, mut count) = (text.to_owned(), 0);
    for secret in found {
        count += clean.matches(&secret.value).count();
        clean = clean.replace(&secret.value, &format!("[REDACTED:{}]", secret.id));
    }
    (clean, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_secret_goes_first_and_short_ones_are_left_alone() {
        let secrets =
            [Secret::new("part", "sk-live-1234"), Secret::new("whole", "sk-live-1234-abcdef"), Secret::new("x", "the")];
        let clean = redact("the key sk-live-1234-abcdef, the prefix sk-live-1234", &secrets);
        assert_eq!(clean, "the key [REDACTED:whole], the prefix [REDACTED:part]");
        assert!(!format!("{secrets:?}").contains("1234"));
    }

    #[test]
    fn eight_bytes_make_a_secret_and_every_occurrence_goes() {
        let secrets = [Secret::new("seven", "1234567"), Secret::new("eight", "abcdefgh"), Secret::new("ä", "ääää")];
        assert_eq!(redact("1234567 abcdefghabcdefgh", &secrets), "1234567 [REDACTED:eight][REDACTED:eight]");
        assert_eq!(redact_counted("1234567 abcdefghabcdefgh ääää", &secrets).1, 3);
        assert_eq!(redact("ääää", &secrets), "[REDACTED:ä]", "bytes count, not letters");
        assert_eq!(redact("nothing here", &secrets), "nothing here");
        assert_eq!(redact("abcdefgh", &[]), "abcdefgh");
    }
}
