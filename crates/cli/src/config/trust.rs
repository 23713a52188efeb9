//! Whose packs are trusted: public keys with the names their owners have for them. Nothing here is a secret.

use std::path::PathBuf;

use baton_agent::{Checks, TrustedKey};

/// The largest file that is taken for a key; a PEM block has about a hundred bytes.
const LARGEST_KEY_FILE: u64 = 4096;

/// Where a key is.
enum Source {
    Text(String),
    File(PathBuf),
}

/// Reads `ID=KEY` or `ID=file:PATH`.
fn parse(line: &str) -> Option<(&str, Source)> {
    let (id, value) = line.split_once('=')?;
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if id.is_empty() || id.len() > 64 || !id.chars().all(letter) {
        return None;
    }
    match value.strip_prefix("file:") {
        Some("") => None,
        Some(path) => Some((id, Source::File(PathBuf::from(path)))),
        None => Some((id, Source::Text(value.to_owned()))),
    }
}

/// Whether each line is a key and no id is there twice. Files are read by whoever uses the keys.
pub(super) fn is_list(lines: &[String]) -> bool {
    let mut ids = Vec::new();
    lines.iter().all(|line| {
        parse(line).is_some_and(|(id, source)| {
            let new = !ids.contains(&id);
            ids.push(id);
            new && match source {
                Source::Text(text) => TrustedKey::read(id, &text).is_ok(),
                Source::File(_) => true,
            }
        })
    })
}

/// What packs have to pass here, or what is wrong with it.
pub(crate) fn checks(lines: &[String], require_signed: bool) -> Result<Checks, String> {
    let mut keys = Vec::new();
    for line in lines {
        let Some((id, source)) = parse(line) else {
            return Err("`trusted_keys`: each is ID=KEY or ID=file:PATH".to_owned());
        };
        let text = match source {
            Source::Text(text) => text,
            Source::File(path) => {
                read(&path).map_err(|why| format!("`trusted_keys.{id}`: {}: {why}", path.display()))?
            }
        };
        keys.push(TrustedKey::read(id, &text).map_err(|why| format!("`trusted_keys.{id}`: {why}"))?);
    }
    if require_signed && keys.is_empty() {
        return Err("`require_signed` needs somebody to trust: set `trusted_keys`".to_owned());
    }
    Ok(Checks { keys, require_signed })
}

fn read(path: &std::path::Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?.take(LARGEST_KEY_FILE).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const KEY: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    #[test]
    fn a_list_of_keys() {
        let line = |id: &str| format!("{id}={KEY}");
        assert!(is_list(&[line("acme-1"), line("acme-2"), "other=file:/keys/other.pub".to_owned()]));
        assert!(!is_list(&[line("acme-1"), line("acme-1")]), "an id names one key");
        for bad in ["", "acme", "acme=", "acme=AAAA", "=x", "acme=file:", &format!("a b={KEY}"), KEY] {
            assert!(!is_list(&[bad.to_owned()]), "{bad}");
        }
        let read = checks(&[line("acme-1")], true).unwrap();
        assert_eq!((read.keys[0].id(), read.require_signed), ("acme-1", true));
        assert!(checks(&[], false).unwrap().keys.is_empty());
        assert!(checks(&[], true).unwrap_err().contains("`trusted_keys`"));
    }

    #[test]
    fn a_key_in_a_file_is_a_pem_block_or_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("acme.pub");
        let line = [format!("acme=file:{}", path.display())];
        assert!(checks(&line, false).unwrap_err().contains("`trusted_keys.acme`"), "it is not there");
        std::fs::write(&path, format!("{KEY}\n")).unwrap();
        assert_eq!(checks(&line, false).unwrap().keys.len(), 1);
        std::fs::write(&path, "no key").unwrap();
        assert!(checks(&line, false).unwrap_err().contains("base64"));
    }
}
