//! Blobs, and what they are named after.

use baton_model::Digest;

/// What a host kept of an agent that it had installed was once a blob named after more than it held.
const OLDER_MARK: &str = "baton.agent.installed ";

/// Whether a blob is what it is named after.
pub fn is_blob_of(bytes: &[u8], digest: &Digest) -> bool {
    Digest::of_bytes(bytes) == *digest || Digest::of_bytes([OLDER_MARK.as_bytes(), bytes].concat()) == *digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_named_after_what_it_holds() {
        assert!(is_blob_of(b"a", &Digest::of_bytes("a")));
        assert!(!is_blob_of(b"b", &Digest::of_bytes("a")));
        let card = Digest::of_bytes("card").to_string();
        let mark = Digest::of_bytes(format!("baton.agent.installed {card}"));
        assert!(is_blob_of(card.as_bytes(), &mark), "as older versions wrote it");
        assert!(is_blob_of(format!("{OLDER_MARK}{card}").as_bytes(), &mark));
    }
}
