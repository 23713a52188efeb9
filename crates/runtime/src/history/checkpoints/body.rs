//! What lies in a checkpoint's body: which record it comes after, and the state, compressed.

use std::io::{Read as _, Write as _};

use baton_model::Digest;
use baton_store::StoredRecord;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// More than a state can be whose parts are within their bounds. What unpacks to more was not packed here.
pub(super) const MOST_UNPACKED: usize = 64 * 1024 * 1024;
/// How long a digest is in letters.
const DIGEST: usize = 64;

/// `None` if it is too much to keep.
pub(super) fn pack(last: &Digest, state: &[u8]) -> Option<Vec<u8>> {
    (state.len() <= MOST_UNPACKED).then_some(())?;
    deflate(last.as_str().as_bytes().to_vec(), state)
}

/// The digest of the record before it, and the state.
pub(super) fn unpack(body: &[u8]) -> Option<(Digest, Vec<u8>)> {
    let (last, state) = body.split_at_checked(DIGEST)?;
    Some((Digest::parse(str::from_utf8(last).ok()?)?, inflate(state)?))
}

pub(super) fn deflate(head: Vec<u8>, bytes: &[u8]) -> Option<Vec<u8>> {
    // Names and places repeat so much that little effort makes it several times smaller.
    let mut encoder = DeflateEncoder::new(head, Compression::fast());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

pub(super) fn inflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let read = DeflateDecoder::new(bytes).take(MOST_UNPACKED as u64 + 1).read_to_end(&mut all).ok()?;
    (read <= MOST_UNPACKED).then_some(all)
}

/// A log that was cut and has grown again has other records: what was made of the old ones is not used with the new.
pub(super) fn digest_of(record: &StoredRecord) -> Digest {
    let private = record.private.as_deref();
    let facts = (record.seq, record.at.as_micros(), &record.kind, &record.body, private);
    // Numbers and texts: serialisation cannot fail.
    Digest::of_bytes(serde_json::to_vec(&facts).unwrap_or_default())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_packed_and_unpacked() {
        let last = Digest::of_bytes("last");
        let packed = pack(&last, &[7; 10_000]).unwrap();
        assert!(packed.len() < 500, "{}", packed.len());
        assert_eq!(unpack(&packed), Some((last, vec![7; 10_000])));
        assert_eq!(unpack(&packed[..40]), None);
        assert_eq!(unpack(&[b'x'; 100]), None);
    }

    #[test]
    fn what_unpacks_to_more_than_any_state_is_none() {
        let packed = deflate(Vec::new(), &vec![0; MOST_UNPACKED + 1]).unwrap();
        assert_eq!(inflate(&packed), None);
        assert_eq!(pack(&Digest::of_bytes(""), &vec![0; MOST_UNPACKED + 1]), None);
    }
}
