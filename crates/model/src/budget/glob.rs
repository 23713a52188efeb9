//! Patterns over names of models: `*` stands for any text, `?` for one character.

/// Whether a pattern names this model, be it with its provider in front.
pub(super) fn names(pattern: &str, provider: &str, model: &str) -> bool {
    fits(pattern.as_bytes(), model.as_bytes())
        || pattern.split_once('/').is_some_and(|(before, after)| {
            fits(before.as_bytes(), provider.as_bytes()) && fits(after.as_bytes(), model.as_bytes())
        })
}

/// Goes back to the last star only, so that no pattern takes long.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                t += 1;
            }
            Some(byte) if byte.eq_ignore_ascii_case(&text[t]) => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    p = at + 1;
                    t = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}
