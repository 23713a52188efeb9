//! Who made a pack: an Ed25519 signature over its `pack.json`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, VerifyingKey};

/// A public key that packs may be signed with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey(VerifyingKey);

/// What a key in the usual text form begins with, before its 32 bytes.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

impl TrustedKey {
    /// Reads a key: base64 of its 32 bytes, or `-----BEGIN PUBLIC KEY-----`.
    pub fn read(text: &str) -> Result<Self, String> {
        let body: String = text.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
        let bytes = BASE64.decode(body).map_err(|_| "A key is base64 text or a PEM block.".to_owned())?;
        let bytes = bytes.strip_prefix(&SPKI_PREFIX).unwrap_or(&bytes);
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| "An Ed25519 public key has 32 bytes.".to_owned())?;
        VerifyingKey::from_bytes(&bytes).map(Self).map_err(|_| "These bytes are no Ed25519 public key.".to_owned())
    }
}

/// Whether one of the keys made this signature. It is 64 bytes, or base64 of them.
pub(crate) fn is_signed(message: &[u8], signature: &[u8], keys: &[TrustedKey]) -> bool {
    let bytes = match <[u8; 64]>::try_from(signature) {
        Ok(bytes) => Some(bytes),
        Err(_) => std::str::from_utf8(signature)
            .ok()
            .and_then(|text| BASE64.decode(text.trim()).ok())
            .and_then(|bytes| bytes.try_into().ok()),
    };
    bytes.is_some_and(|bytes| {
        let signature = Signature::from_bytes(&bytes);
        keys.iter().any(|key| key.0.verify_strict(message, &signature).is_ok())
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ed25519_dalek::{Signer as _, SigningKey};

    #[test]
    fn signatures_and_keys_come_in_two_forms() {
        let signer = SigningKey::from_bytes(&[7; 32]);
        let raw = signer.verifying_key().to_bytes();
        let plain = TrustedKey::read(&BASE64.encode(raw)).unwrap();
        let spki = BASE64.encode([SPKI_PREFIX.as_slice(), &raw].concat());
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{spki}\n-----END PUBLIC KEY-----\n");
        assert_eq!(TrustedKey::read(&pem).unwrap(), plain);
        let other =
            TrustedKey::read(&BASE64.encode(SigningKey::from_bytes(&[8; 32]).verifying_key().to_bytes())).unwrap();

        let signature = signer.sign(b"{}").to_bytes();
        let text = format!("{}\n", BASE64.encode(signature));
        for form in [signature.as_slice(), text.as_bytes()] {
            assert!(is_signed(b"{}", form, &[other.clone(), plain.clone()]));
            assert!(!is_signed(b"{} ", form, std::slice::from_ref(&plain)), "another message");
            assert!(!is_signed(b"{}", form, std::slice::from_ref(&other)), "another key");
            assert!(!is_signed(b"{}", form, &[]));
        }
        assert!(!is_signed(b"{}", b"short", &[plain]));
        for bad in ["", "x", "AAAA", "-----BEGIN PUBLIC KEY-----"] {
            assert!(TrustedKey::read(bad).is_err(), "{bad}");
        }
    }
}
