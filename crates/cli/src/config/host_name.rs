//! What a host may be called.

/// Something that can stand in a URL, a log line and a file name alike.
pub(crate) fn is_host_id(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    (1..=255).contains(&text.len()) && text.chars().all(fits)
}
