//! Signed links to one interrupt: `base64url(claims) "." base64url(HMAC-SHA256)`. The link is the credential, so it
//! expires, is checked in constant time, and dies with the question it belongs to.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_model::{NodeId, RunId, Timestamp};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// How long a link lives when its interrupt has no deadline of its own.
pub(crate) const DEFAULT_TTL_MS: u64 = 30 * 60 * 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Intent {
    Resolve,
    Inspect,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LinkClaims {
    pub(crate) run_id: RunId,
    pub(crate) node_id: NodeId,
    pub(crate) interrupt_id: String,
    pub(crate) expires_at: Timestamp,
    pub(crate) intent: Intent,
}

fn mac(secret: &[u8], claims: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    mac.update(claims.as_bytes());
    Some(mac)
}

/// Signs with the newest secret.
pub(crate) fn sign(secrets: &[Vec<u8>], claims: &LinkClaims) -> Option<String> {
    let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(claims).ok()?);
    let tag = mac(secrets.first()?, &body)?.finalize().into_bytes();
    Some(format!("{body}.{}", URL_SAFE_NO_PAD.encode(tag)))
}

/// The claims, if any of the secrets signed them. Expiry is the caller's to judge.
pub(crate) fn verify(secrets: &[Vec<u8>], token: &str) -> Option<LinkClaims> {
    let (body, tag) = token.split_once('.')?;
    let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
    // `verify_slice` compares in constant time.
    let signed = secrets.iter().any(|secret| mac(secret, body).is_some_and(|mac| mac.verify_slice(&tag).is_ok()));
    if !signed {
        return None;
    }
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(body).ok()?).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn claims() -> LinkClaims {
        LinkClaims {
            run_id: RunId::new("run_1"),
            node_id: NodeId::new("gate"),
            interrupt_id: "int:gate:1".to_owned(),
            expires_at: Timestamp::from_millis(1),
            intent: Intent::Resolve,
        }
    }

    #[test]
    fn any_current_secret_verifies_and_nothing_else_does() {
        let (old, new) = (vec![1; 32], vec![2; 32]);
        let token = sign(std::slice::from_ref(&old), &claims()).unwrap();
        assert_eq!(verify(&[new.clone(), old], &token), Some(claims()));
        assert_eq!(verify(&[new], &token), None);
    }

    #[test]
    fn a_changed_link_is_worthless() {
        let secrets = [vec![7; 32]];
        let token = sign(&secrets, &claims()).unwrap();
        let mut forged = claims();
        forged.node_id = NodeId::new("other");
        let other = sign(&[vec![8; 32]], &forged).unwrap();
        let mixed = format!("{}.{}", other.split_once('.').unwrap().0, token.split_once('.').unwrap().1);
        for bad in [mixed.as_str(), "", ".", "a.b", "no-dot"] {
            assert_eq!(verify(&secrets, bad), None, "{bad}");
        }
    }
}
