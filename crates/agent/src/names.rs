//! How things are named. One function a pattern, so that a refusal can say which rule was broken.

/// Whether `text` is `<tier>.<owner>.<name>…`: the owner in lower case, whatever follows beginning in lower case.
fn dotted(text: &str, tiers: &[&str]) -> bool {
    let mut segments = text.split('.');
    let (Some(tier), Some(owner)) = (segments.next(), segments.next()) else { return false };
    let begins = |segment: &str| segment.starts_with(|c: char| c.is_ascii_lowercase());
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let mixed = |c: char| lower(c) || c.is_ascii_uppercase();
    let mut rest = 0;
    let named = segments.all(|segment| {
        rest += 1;
        begins(segment) && segment.chars().all(mixed)
    });
    tiers.contains(&tier) && begins(owner) && owner.chars().all(lower) && named && rest > 0
}

pub(crate) const PACK_NAME: &str =
    "is `core`, `vendor`, `community` or `private`, an owner and a name, joined by dots: `vendor.acme.writers`";

pub(crate) fn is_pack_name(text: &str) -> bool {
    dotted(text, &["core", "vendor", "community", "private"])
}

pub(crate) const AGENT_ID: &str = "is the pack's name, a dot and one more segment, such as `vendor.acme.writers.editor`; `host:` ids are not for packs";

pub(crate) fn is_agent_id(text: &str) -> bool {
    dotted(text, &["core", "vendor", "community", "private", "local"])
}

/// Whether `agent` is `pack` and exactly one segment.
pub(crate) fn belongs(agent: &str, pack: &str) -> bool {
    let own = agent.strip_prefix(pack).and_then(|rest| rest.strip_prefix('.'));
    own.is_some_and(|segment| !segment.is_empty() && !segment.contains('.'))
}

/// A tenant whose packs lie in a folder of its own.
pub(crate) const TENANT_FOLDER: &str =
    "has 1 to 128 of `a-z A-Z 0-9 . _ -`, begins with a letter or a digit and does not end in a dot";

/// Whether a tenant's name can be the name of a folder: never a way to another one, and the same on every disk.
pub(crate) fn is_tenant_folder(text: &str) -> bool {
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    begins && !text.ends_with('.') && text.len() <= 128 && text.chars().all(ok)
}

pub(crate) const TEMPLATE_ID: &str = "has 1 to 128 of `a-z 0-9 . _ -` and begins with a letter or a digit";

/// Ids of templates and of libraries.
pub(crate) fn is_template_id(text: &str) -> bool {
    let ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    begins && text.len() <= 128 && text.chars().all(ok)
}

pub(crate) const VARIABLE_NAME: &str = "has 1 to 64 letters, digits and underscores and does not begin with a digit";

pub(crate) fn is_variable_name(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && text.len() <= 64 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(crate) const TOOL_ID: &str = "is `scope:tool`, for example `openwop:http.fetch` or `mcp:search`";

pub(crate) fn is_tool_id(text: &str) -> bool {
    let word = |part: &str| !part.is_empty() && !part.chars().any(|c| c.is_whitespace() || c.is_control());
    text.split_once(':').is_some_and(|(scope, tool)| word(scope) && word(tool))
}

pub(crate) const URI: &str = "is an absolute address, such as `https://example.com/packs`";

pub(crate) fn is_uri(text: &str) -> bool {
    let scheme = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    let clean = !text.chars().any(|c| c.is_whitespace() || c.is_control());
    clean && text.split_once(':').is_some_and(|(before, after)| scheme(before) && !after.is_empty())
}

pub(crate) const VERSION: &str = "is a semantic version, such as `1.4.0`";

pub(crate) fn is_version(text: &str) -> bool {
    semver::Version::parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_ids_and_pack_names() {
        for good in ["core.openwop.examples", "vendor.acme.a", "vendor.acme.writers.chiefEditor", "private.x-1.y_2"] {
            assert!(is_pack_name(good) && is_agent_id(good), "{good}");
        }
        for bad in [
            "",
            "vendor",
            "vendor.acme",
            "host:x",
            "Vendor.acme.a",
            "vendor.Acme.a",
            "vendor.acme.1a",
            "vendor..a",
            "vendor.acme.a.",
            "vendor.acme.ä",
            "other.acme.a",
            " vendor.acme.a",
        ] {
            assert!(!is_pack_name(bad) && !is_agent_id(bad), "{bad:?}");
        }
        assert!(is_agent_id("local.me.a") && !is_pack_name("local.me.a"), "local packs are not published");
    }

    #[test]
    fn an_agent_belongs_to_its_pack() {
        assert!(belongs("vendor.acme.writers.editor", "vendor.acme.writers"));
        for bad in ["vendor.acme.writers", "vendor.acme.writersx.editor", "vendor.acme.writers.a.b", "vendor.acme.b.c"]
        {
            assert!(!belongs(bad, "vendor.acme.writers"), "{bad}");
        }
    }

    #[test]
    fn a_tenant_is_a_name_and_no_path() {
        for good in ["acme", "Acme-2", "acme.example", "0", "a..b", &"a".repeat(128)] {
            assert!(is_tenant_folder(good), "{good}");
        }
        let long = "a".repeat(129);
        for bad in [
            "",
            ".",
            "..",
            "...",
            ".a",
            "a.",
            "-a",
            "_a",
            "/",
            "/etc",
            "a/b",
            "../../evil",
            "a/../b",
            "a\\b",
            "C:evil",
            "a\0b",
            "a b",
            "a\n",
            "~",
            "@a",
            "аcme",
            "acme\u{2215}b",
            "acme\u{ff0f}b",
            "e\u{301}",
            "%2e%2e",
            &long,
        ] {
            assert!(!is_tenant_folder(bad), "{bad:?}");
        }
    }

    #[test]
    fn other_names() {
        assert!(is_tool_id("openwop:http.fetch") && is_tool_id("acme.host:do"));
        assert!(!is_tool_id("fetch") && !is_tool_id(":x") && !is_tool_id("a:") && !is_tool_id("a:b c"));
        assert!(is_template_id("a") && is_template_id(&"a".repeat(128)) && !is_template_id(&"a".repeat(129)));
        assert!(!is_template_id("A") && !is_template_id(".a") && !is_template_id(""));
        assert!(is_variable_name("_a1") && !is_variable_name("1a") && !is_variable_name("a-b"));
        assert!(is_uri("https://example.com") && !is_uri("example.com") && !is_uri("https:") && !is_uri("a b:c"));
        assert!(is_version("1.0.0-rc.1+x") && !is_version("1.0") && !is_version("v1.0.0"));
    }
}
