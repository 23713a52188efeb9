//! Who made a pack: an Ed25519 signature over its `pack.json`.
//!
//! A signature says something only where somebody is trusted. With trusted keys, one that fits none of them refuses the
//! pack: whoever changed a signed manifest and whoever signed it with a key of their own look the same. Without any, a
//! signature is looked at and not believed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_model::code;
use ed25519_dalek::{Signature, VerifyingKey};

use crate::files::{Files, Inside, Unreadable};
use crate::pack::{MANIFEST, PackManifest, SignedBy};
use crate::problem::Problem;

/// Where a signature lies unless the manifest says otherwise: at the root, or among the keys, as public archives have it.
const PLACES: [&str; 2] = ["pack.json.sig", "keys/pack.json.sig"];

/// A public key that packs may be signed with, and what its owner calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedKey {
    id: String,
    key: VerifyingKey,
}

/// What a key in the usual text form begins with, before its 32 bytes.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

impl TrustedKey {
    /// Reads a key: base64 of its 32 bytes, or `-----BEGIN PUBLIC KEY-----`.
    pub fn read(id: &str, text: &str) -> Result<Self, String> {
        let body: String = text.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
        let bytes = BASE64.decode(body).map_err(|_| "A key is base64 text or a PEM block.".to_owned())?;
        let bytes = bytes.strip_prefix(&SPKI_PREFIX).unwrap_or(&bytes);
        let bytes: [u8; 32] = bytes.try_into().map_err(|_| "An Ed25519 public key has 32 bytes.".to_owned())?;
        let key = VerifyingKey::from_bytes(&bytes).map_err(|_| "These bytes are no Ed25519 public key.".to_owned())?;
        // Such a key "signs" everything.
        if key.is_weak() {
            return Err("This key is weak: anybody can sign with it.".to_owned());
        }
        Ok(Self { id: id.to_owned(), key })
    }

    pub fn id(&self) -> &str {
        &self.id
    }
}

/// What every pack has to pass.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// Whoever may sign packs.
    pub keys: Vec<TrustedKey>,
    /// Packs that none of them signed are not taken.
    pub require_signed: bool,
}

/// What is known of who made a pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Provenance {
    #[default]
    Unsigned,
    /// It has a signature, and there is no key to hold against it.
    Unchecked,
    /// The trusted key of this id signed it.
    Signed(String),
}

impl Provenance {
    /// `signed`, `unchecked` or `unsigned`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned",
            Self::Unchecked => "unchecked",
            Self::Signed(_) => "signed",
        }
    }

    /// Whose key it was.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Signed(key) => Some(key),
            Self::Unsigned | Self::Unchecked => None,
        }
    }

    /// What somebody who takes the pack should know.
    pub fn note(&self) -> Option<&'static str> {
        match self {
            Self::Unsigned => Some("it is not signed: nobody vouches for it"),
            Self::Unchecked => Some("its signature was not checked: no trusted key can say whose it is"),
            Self::Signed(_) => None,
        }
    }
}

/// Holds a manifest's signature against the keys. `bytes` are those of the manifest.
pub(crate) fn check(
    manifest: &PackManifest,
    bytes: &[u8],
    files: &Files,
    checks: &Checks,
) -> Result<Provenance, Problem> {
    let refuse = |message: String| Problem::new(code::PACK_SIGNATURE_INVALID, MANIFEST, message);
    let found = match &manifest.signed_by {
        SignedBy::Sigstore if checks.require_signed => {
            return Err(refuse("The pack is signed with sigstore, and this host checks Ed25519 only.".to_owned()));
        }
        SignedBy::Sigstore => return Ok(Provenance::Unchecked),
        SignedBy::File(path) => vec![named(path, files).map_err(refuse)?],
        SignedBy::Unsaid => usual(files).map_err(refuse)?,
    };
    if found.is_empty() {
        return match checks.require_signed {
            true => Err(refuse(format!(
                "The pack has no signature ({}), and this host takes signed packs only. Sign it, or set \
                 `require_signed = false`.",
                PLACES.map(|place| format!("`{place}`")).join(" or ")
            ))),
            false => Ok(Provenance::Unsigned),
        };
    }
    if checks.keys.is_empty() {
        return match checks.require_signed {
            true => Err(refuse("This host takes signed packs only and trusts no key; set `trusted_keys`.".to_owned())),
            false => Ok(Provenance::Unchecked),
        };
    }
    let fits =
        |signature: &Signature| checks.keys.iter().find(|trusted| trusted.key.verify_strict(bytes, signature).is_ok());
    match found.iter().find_map(|(_, signature)| fits(signature)) {
        Some(trusted) => Ok(Provenance::Signed(trusted.id.clone())),
        None => {
            let places: Vec<String> = found.iter().map(|(place, _)| format!("`{place}`")).collect();
            let ids: Vec<&str> = checks.keys.iter().map(TrustedKey::id).collect();
            Err(refuse(format!(
                "None of the trusted keys ({}) signed this: {} does not fit `{MANIFEST}`. The manifest was changed \
                 after it was signed, or somebody else signed it.",
                ids.join(", "),
                places.join(" or ")
            )))
        }
    }
}

type Found = (String, Signature);

/// The signature that a manifest names. It has to be there.
fn named(path: &str, files: &Files) -> Result<Found, String> {
    let inside = Inside::read(path).map_err(|why| format!("The path of the signature {why}."))?;
    let bytes = files.bytes(&inside).map_err(|why| format!("`{path}`, which `signing` names, {why}."))?;
    Ok((path.to_owned(), read(path, &bytes)?))
}

/// The signatures where they usually are. What is there and is none refuses the pack, whatever lies beside it.
fn usual(files: &Files) -> Result<Vec<Found>, String> {
    let mut found = Vec::new();
    for place in PLACES {
        let inside = Inside::read(place).map_err(|why| format!("The path of the signature {why}."))?;
        match files.bytes(&inside) {
            Err(Unreadable::Missing) => {}
            Err(why) => return Err(format!("`{place}` {why}.")),
            Ok(bytes) => found.push((place.to_owned(), read(place, &bytes)?)),
        }
    }
    Ok(found)
}

/// 64 bytes, or base64 of them.
fn read(place: &str, bytes: &[u8]) -> Result<Signature, String> {
    let raw = <[u8; 64]>::try_from(bytes).ok().or_else(|| {
        let text = std::str::from_utf8(bytes).ok()?;
        BASE64.decode(text.trim()).ok()?.try_into().ok()
    });
    raw.map(|raw| Signature::from_bytes(&raw)).ok_or_else(|| {
        format!("`{place}` is no signature: it has 64 bytes, or base64 of them. Sign `{MANIFEST}` again.")
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ed25519_dalek::SigningKey;

    #[test]
    fn keys_come_in_two_forms() {
        let raw = SigningKey::from_bytes(&[7; 32]).verifying_key().to_bytes();
        let plain = TrustedKey::read("a", &BASE64.encode(raw)).unwrap();
        let spki = BASE64.encode([SPKI_PREFIX.as_slice(), &raw].concat());
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{spki}\n-----END PUBLIC KEY-----\n");
        assert_eq!(TrustedKey::read("a", &pem).unwrap(), plain);
        assert_eq!(TrustedKey::read("a", &spki).unwrap(), plain);
        // The point of order one: a signature of zeros fits every message under it.
        let mut weak = [0; 32];
        weak[0] = 1;
        for bad in ["", "x", "AAAA", "-----BEGIN PUBLIC KEY-----", &BASE64.encode(weak)] {
            assert!(TrustedKey::read("a", bad).is_err(), "{bad}");
        }
    }
}
