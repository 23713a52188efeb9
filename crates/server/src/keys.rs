//! API keys. Only their SHA-256 is kept, and looking one up takes the same time whichever key it is.

use std::sync::Arc;

use baton_model::json::hex;
use baton_model::{Principal, Scope, Scopes, TenantId};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// Keys with this prefix may use mock providers and forced engine versions.
pub const TEST_KEY_PREFIX: &str = "hk_test_";

/// In a scope list: everything within the tenant, as without a list.
const EVERY_TENANT_SCOPE: &str = "*";

/// Behind a tenant: the subject on whose behalf a key acts.
const SUBJECT: char = '/';

/// The keys a host accepts, written `key:tenant[/subject][:scope+scope…]`, comma separated. A subject of its own has runs
/// and runners of its own. No scope list means
/// every scope within the tenant, and so does `*` in a list; scopes of the operator have to be named.
#[derive(Clone, Debug, Default)]
pub struct Keys(Vec<Entry>);

#[derive(Clone, Debug)]
struct Entry {
    digest: [u8; 32],
    principal: Arc<Principal>,
}

/// Why a key list was refused. Positions count from 1; the key itself is never repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeysError {
    #[error("API key {position} is not written `key:tenant[/subject][:scope+scope]`")]
    Malformed { position: usize },
    #[error("API key {position} names the unknown scope `{scope}`; known scopes: {known}")]
    UnknownScope { position: usize, scope: String, known: String },
    #[error("API key {position} was already given")]
    Duplicate { position: usize },
}

impl Keys {
    pub fn parse(text: &str) -> Result<Self, KeysError> {
        let mut keys = Self::default();
        let given = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        for (position, part) in given.enumerate().map(|(index, part)| (index + 1, part)) {
            let mut fields = part.splitn(3, ':');
            let (Some(key), Some(tenant)) = (fields.next(), fields.next()) else {
                return Err(KeysError::Malformed { position });
            };
            let (tenant, acts_for) = match tenant.split_once(SUBJECT) {
                Some((tenant, subject)) => (tenant, Some(subject.to_owned())),
                None => (tenant, None),
            };
            if acts_for.as_deref() == Some("") {
                return Err(KeysError::Malformed { position });
            }
            if key.is_empty() || tenant.is_empty() || key.contains(char::is_whitespace) {
                return Err(KeysError::Malformed { position });
            }
            let scopes = match fields.next() {
                Some(list) => Scopes::of(parse_scopes(position, list)?),
                None => Scopes::all(),
            };
            if keys.find(key).is_some() {
                return Err(KeysError::Duplicate { position });
            }
            keys.add(key, TenantId::new(tenant), acts_for, scopes);
        }
        Ok(keys)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is anybody whose runs somebody else could ask about.
    pub(crate) fn has_several_tenants(&self) -> bool {
        self.0.windows(2).any(|pair| pair[0].principal.tenant != pair[1].principal.tenant)
    }

    /// Where a key's tenant has its first key: one number for all keys of a tenant.
    pub(crate) fn tenant_of(&self, index: usize) -> usize {
        let Some(own) = self.0.get(index) else { return index };
        self.0.iter().position(|entry| entry.principal.tenant == own.principal.tenant).unwrap_or(index)
    }

    fn add(&mut self, key: &str, tenant: TenantId, acts_for: Option<String>, scopes: Scopes) {
        let digest: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        let subject = format!("key_{}", hex(&digest[..6]));
        let principal = Principal { tenant, subject, acts_for, scopes, test: key.starts_with(TEST_KEY_PREFIX) };
        self.0.push(Entry { digest, principal: Arc::new(principal) });
    }

    /// Whose key this is, and its position. Every entry is compared, so timing says nothing about which one matched.
    pub(crate) fn find(&self, key: &str) -> Option<(usize, Arc<Principal>)> {
        let digest: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        let mut found = None;
        for (index, entry) in self.0.iter().enumerate() {
            if bool::from(entry.digest.ct_eq(&digest)) {
                found = Some((index, Arc::clone(&entry.principal)));
            }
        }
        found
    }

    /// The same keys, all of them counting as test keys.
    pub(crate) fn all_test(mut self) -> Self {
        for entry in &mut self.0 {
            Arc::make_mut(&mut entry.principal).test = true;
        }
        self
    }
}

fn parse_scopes(position: usize, list: &str) -> Result<Vec<Scope>, KeysError> {
    let unknown = |scope: &str| KeysError::UnknownScope {
        position,
        scope: scope.to_owned(),
        known: Scope::ALL.map(Scope::as_str).join(", "),
    };
    let mut scopes = Vec::new();
    for name in list.split('+').map(str::trim) {
        match name {
            EVERY_TENANT_SCOPE => scopes.extend(Scopes::all().iter()),
            name => scopes.push(Scope::parse(name).ok_or_else(|| unknown(name))?),
        }
    }
    Ok(scopes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_binds_a_tenant_and_scopes() {
        let keys = Keys::parse("alpha:acme, beta:beta-co:runs:read+runs:create ,").unwrap();
        assert_eq!(keys.len(), 2);
        let (index, alpha) = keys.find("alpha").unwrap();
        assert_eq!((index, alpha.tenant.as_str(), alpha.test), (0, "acme", false));
        assert!(Scope::ALL.iter().all(|scope| alpha.scopes.allow(*scope) != scope.is_operators()));
        let (_, operator) = Keys::parse("k:acme:*+host:operate+runners:manage:any").unwrap().find("k").unwrap();
        assert!(Scope::ALL.iter().all(|scope| operator.scopes.allow(*scope)) && operator.scopes.is_whole_tenant());
        let three = Keys::parse("a:x,b:y,c:x").unwrap();
        assert_eq!([0, 1, 2].map(|index| three.tenant_of(index)), [0, 1, 0]);
        let (index, beta) = keys.find("beta").unwrap();
        assert_eq!((index, beta.tenant.as_str()), (1, "beta-co"));
        assert!(beta.scopes.allow(Scope::RunsRead) && beta.scopes.allow(Scope::RunsCreate));
        assert!(!beta.scopes.allow(Scope::RunsCancel));
        assert_eq!(keys.find("gamma"), None);
        assert_eq!(keys.find(""), None);
    }

    #[test]
    fn a_key_may_act_for_a_subject_of_its_own() {
        let keys = Keys::parse("alpha:acme/ann,beta:acme/bob:runs:read,gamma:acme").unwrap();
        let who = |key: &str| keys.find(key).unwrap().1;
        assert_eq!((who("alpha").tenant.as_str(), who("alpha").run_subject()), ("acme", "ann".to_owned()));
        assert_eq!(
            (who("beta").run_subject(), who("beta").scopes.names()),
            ("bob".to_owned(), vec!["runs:read".into()])
        );
        assert_eq!(who("gamma").run_subject(), "tenant:acme");
        assert_eq!(Keys::parse("a:acme/").unwrap_err(), KeysError::Malformed { position: 1 });
        assert_eq!(Keys::parse("a:/ann").unwrap_err(), KeysError::Malformed { position: 1 });
    }

    #[test]
    fn test_keys_are_known_by_prefix_or_by_mode() {
        let keys = Keys::parse("hk_test_1:t,live:t").unwrap();
        let is_test = |keys: &Keys, key: &str| keys.find(key).unwrap().1.test;
        assert!(is_test(&keys, "hk_test_1"));
        assert!(!is_test(&keys, "live"));
        assert!(is_test(&keys.all_test(), "live"));
    }

    #[test]
    fn mistakes_are_named_without_repeating_the_key() {
        assert_eq!(Keys::parse("secret-key").unwrap_err(), KeysError::Malformed { position: 1 });
        assert_eq!(Keys::parse("a:t,:t").unwrap_err(), KeysError::Malformed { position: 2 });
        assert_eq!(Keys::parse("a:t,a:u").unwrap_err(), KeysError::Duplicate { position: 2 });
        let error = Keys::parse("secret-key:t:runs:fly").unwrap_err().to_string();
        assert!(
            error.contains("`runs:fly`") && error.contains("runs:read") && !error.contains("secret-key"),
            "{error}"
        );
    }

    #[test]
    fn nothing_printable_holds_the_key() {
        let keys = Keys::parse("very-secret:acme").unwrap();
        assert!(!format!("{keys:?}").contains("very-secret"));
    }
}
