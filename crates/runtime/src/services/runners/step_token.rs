//! Tokens for programs that have a step in hand: `bs_` base64url(claims) `.` base64url(HMAC-SHA256). Nothing is stored of
//! them. A token names one dispatch of one step, and is good for as long as that dispatch has the step.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use baton_model::{Digest, RunId, TenantId};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::Sha256;

const PREFIX: &str = "bs_";
/// Nothing else that the same secrets sign begins like this.
const PURPOSE: &[u8] = b"baton step token\n";

/// A token as its program is given it. It is never printed.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct StepToken(String);

impl StepToken {
    /// For whoever hands it on.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StepToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StepToken(…)")
    }
}

/// Which dispatch of which step a token is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepClaims {
    pub tenant: TenantId,
    pub run_id: RunId,
    pub step_id: String,
    pub runner: String,
    pub seq: u64,
}

impl StepClaims {
    /// The name of the dispatch on the run's log.
    pub(crate) fn dispatch(&self) -> Digest {
        Digest::of_json(&json!([self.runner, self.seq]))
    }
}

fn mac(secret: &[u8], claims: &str) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    mac.update(PURPOSE);
    mac.update(claims.as_bytes());
    Some(mac)
}

/// Signs with the newest secret. Nobody gets a token where there is none.
pub(crate) fn sign(secrets: &[Vec<u8>], claims: &StepClaims) -> Option<StepToken> {
    let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(claims).ok()?);
    let tag = mac(secrets.first()?, &body)?.finalize().into_bytes();
    Some(StepToken(format!("{PREFIX}{body}.{}", URL_SAFE_NO_PAD.encode(tag))))
}

/// The claims, if any of the secrets signed them.
pub(crate) fn verify(secrets: &[Vec<u8>], token: &str) -> Option<StepClaims> {
    let (body, tag) = token.strip_prefix(PREFIX)?.split_once('.')?;
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

    fn claims() -> StepClaims {
        StepClaims {
            tenant: TenantId::new("acme"),
            run_id: RunId::new("run_1"),
            step_id: "a:1:0:0:0".to_owned(),
            runner: "r1".to_owned(),
            seq: 3,
        }
    }

    #[test]
    fn any_current_secret_verifies_and_nothing_else_does() {
        let (old, new) = (vec![1; 32], vec![2; 32]);
        let token = sign(std::slice::from_ref(&old), &claims()).unwrap();
        assert_eq!(verify(&[new.clone(), old.clone()], token.reveal()), Some(claims()));
        assert_eq!(verify(&[new], token.reveal()), None);
        assert_eq!(sign(&[], &claims()), None);
        let other = sign(std::slice::from_ref(&old), &StepClaims { seq: 4, ..claims() }).unwrap();
        let mixed =
            format!("{}.{}", other.reveal().split_once('.').unwrap().0, token.reveal().split_once('.').unwrap().1);
        for bad in [mixed.as_str(), "", "bs_", "bs_a.b", &token.reveal()[PREFIX.len()..]] {
            assert_eq!(verify(std::slice::from_ref(&old), bad), None, "{bad}");
        }
    }

    #[test]
    fn a_link_to_a_question_is_no_token() {
        let body = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&claims()).unwrap());
        let mut plain = Hmac::<Sha256>::new_from_slice(&[1; 32]).unwrap();
        plain.update(body.as_bytes());
        let forged = format!("{PREFIX}{body}.{}", URL_SAFE_NO_PAD.encode(plain.finalize().into_bytes()));
        assert_eq!(verify(&[vec![1; 32]], &forged), None);
    }

    #[test]
    fn it_is_never_printed() {
        let token = sign(&[vec![1; 32]], &claims()).unwrap();
        assert!(!format!("{token:?}").contains(&token.reveal()[3..20]));
    }
}
