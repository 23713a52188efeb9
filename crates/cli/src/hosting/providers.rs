//! What opens a provider: its key and its headers, read from where they are, and told to whoever keeps secrets out of
//! what is stored.

use baton_model::Secret;
use baton_provider::ProviderSettings;
use secrecy::{ExposeSecret as _, SecretString};

use super::secrets::value;
use crate::config::ProviderSection;
use crate::failure::Failure;

/// How a word in the name of a header begins that opens something. What is written for any other in the configuration
/// itself is no secret: taking a version, a title or the name of a route out of everything would shred ordinary text.
const OPENING: [&str; 9] =
    ["apikey", "auth", "cookie", "credential", "key", "password", "secret", "signature", "token"];

/// The settings with everything in them, and what of it is a secret.
pub(super) fn opened(name: &str, section: &ProviderSection) -> Result<(ProviderSettings, Vec<Secret>), Failure> {
    let mut settings = section.settings.clone();
    let mut secrets = Vec::new();
    if let Some(reference) = &section.api_key {
        let key = value(reference, &format!("[providers.{name}]"))?.text;
        secrets.push(Secret::new(&reference.id, &key));
        settings.api_key = Some(SecretString::from(key));
    }
    for (header, reference) in &section.headers {
        let text = value(reference, &format!("`headers` of [providers.{name}]"))?.text;
        secrets.extend(secrets_of(&reference.id, &text));
        settings.headers.insert(header.clone(), SecretString::from(text));
    }
    for (header, text) in section.settings.headers.iter().filter(|(header, _)| opens(header)) {
        secrets.extend(secrets_of(&ProviderSection::header_id(name, header), text.expose_secret()));
    }
    Ok((settings, secrets))
}

fn opens(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    header.split(['-', '_']).any(|word| OPENING.iter().any(|opening| word.starts_with(opening)))
}

/// A value, and what is left of it without the scheme in front: `Bearer sk-1` gives away as much as `sk-1`.
fn secrets_of(id: &str, text: &str) -> Vec<Secret> {
    let bare = text.split_once(' ').map(|(_, bare)| bare.trim()).filter(|bare| !bare.contains(' '));
    [Some(text), bare].into_iter().flatten().map(|text| Secret::new(id, text)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use baton_model::redact;

    use super::*;
    use crate::config::{Place, Reference};

    fn section(headers: &[(&str, &str)], referred: &[(&str, Place)]) -> ProviderSection {
        let mut settings = ProviderSettings::default();
        for (name, text) in headers {
            settings.headers.insert((*name).to_owned(), SecretString::from((*text).to_owned()));
        }
        let referred = referred.iter().map(|(name, place)| {
            let reference = Reference { id: ProviderSection::header_id("gate", name), place: place.clone() };
            ((*name).to_owned(), reference)
        });
        ProviderSection { settings, api_key: None, headers: referred.collect() }
    }

    #[test]
    fn what_a_header_says_is_a_secret_where_its_name_or_its_place_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key");
        std::fs::write(&file, "from-a-file-1\n").unwrap();
        let section = section(
            &[
                ("X-Portkey-Api-Key", "hdr-secret-98765432"),
                ("Authorization", "Bearer tok-55e0aa77"),
                ("Anthropic-Version", "2023-06-01"),
                ("x-portkey-provider", "anthropic"),
            ],
            &[("user-agent", Place::File(file))],
        );
        let (settings, secrets) = opened("gate", &section).unwrap();
        assert_eq!(settings.headers["user-agent"].expose_secret(), "from-a-file-1");
        let described = "hdr-secret-98765432, tok-55e0aa77, 2023-06-01, anthropic, from-a-file-1";
        let clean = "[REDACTED:provider-gate-x-portkey-api-key], [REDACTED:provider-gate-authorization], 2023-06-01, anthropic, \
                     [REDACTED:provider-gate-user-agent]";
        assert_eq!(redact(described, &secrets), clean);
        assert_eq!(redact("Bearer tok-55e0aa77", &secrets), "[REDACTED:provider-gate-authorization]");
    }

    #[test]
    fn a_header_that_cannot_be_read_stops_the_start() {
        let place = Place::Variable("BATON_TEST_NOWHERE_SET".to_owned());
        let error = opened("gate", &section(&[], &[("x-key", place)])).map(|_| ()).unwrap_err();
        assert!(error.message().unwrap().contains("BATON_TEST_NOWHERE_SET, which is not set"));
    }
}
