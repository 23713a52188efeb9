//! What tells whether something is as it was written.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// How long a checksum is. Half of what the hash gives: 128 bits are more than damage can meet by chance, and changing a
/// record unseen would take 2^128 tries.
const BYTES: usize = 16;

/// The checksum of a record and of all that came before it in its log.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Checksum([u8; BYTES]);

impl Checksum {
    pub(crate) fn of(hash: &blake3::Hash) -> Self {
        let mut bytes = [0; BYTES];
        bytes.copy_from_slice(&hash.as_bytes()[..BYTES]);
        Self(bytes)
    }

    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As it is written in files.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 2 * BYTES {
            return None;
        }
        let mut bytes = [0; BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |of: u8| char::from(of).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Checksum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Checksum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("a checksum is 32 hexadecimal digits"))
    }
}

/// Where the chain of a log's checksums begins and ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogChain {
    /// What the first record of the run follows: of a fork, the last record of its source that it shares. None for a log
    /// of its own.
    pub base: Option<Checksum>,
    /// Of the last record. None as long as no record has one: it was written before there were checksums.
    pub head: Option<Checksum>,
}

impl LogChain {
    /// The chain of a fork, which goes on from its source's.
    pub const fn after(base: Option<Checksum>) -> Self {
        Self { base, head: base }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_written_and_read() {
        let sum = Checksum::of(&blake3::hash(b"a"));
        assert_eq!(Checksum::parse(&sum.to_string()), Some(sum));
        assert_eq!(Checksum::from_bytes(sum.as_bytes()), Some(sum));
        let text = serde_json::to_string(&sum).unwrap();
        assert_eq!(serde_json::from_str::<Checksum>(&text).unwrap(), sum);
        for wrong in ["", "00", "0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef0"] {
            assert_eq!(Checksum::parse(wrong), None, "{wrong}");
        }
        assert_eq!(Checksum::from_bytes(&[0; 15]), None);
    }
}
