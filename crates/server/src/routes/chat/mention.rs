//! Who a message is for, and what it says to them.

use baton_api::Agent;

/// What was found in a message.
#[derive(Debug, PartialEq)]
pub(super) enum Mention {
    /// Nobody is addressed.
    None,
    /// Somebody is, and nobody here is called that.
    Unknown(String),
    /// More than one agent is called that.
    Ambiguous(Vec<String>),
    Agent {
        id: String,
        task: String,
    },
}

/// Finds the first `@name` and the agent that it means: by id, by label, or by the last segment of its id, whichever is
/// the longest that stands there. Case does not matter.
pub(super) fn find(text: &str, agents: &[Agent]) -> Mention {
    let Some((at, rest)) = addressed(text) else { return Mention::None };
    let names = agents.iter().flat_map(|agent| {
        let short = agent.agent_id.rsplit('.').next().unwrap_or_default();
        [agent.agent_id.as_str(), agent.label.as_str(), short].map(|name| (agent.agent_id.as_str(), name))
    });
    let mut longest = 0;
    let mut meant: Vec<&str> = Vec::new();
    for (id, name) in names {
        let Some(length) = begins_with(rest, name) else { continue };
        if length > longest {
            longest = length;
            meant.clear();
        }
        if length == longest && !meant.contains(&id) {
            meant.push(id);
        }
    }
    match meant.as_slice() {
        [] => Mention::Unknown(word(rest).to_owned()),
        [id] => {
            let parts = [text[..at].trim(), rest[longest..].trim_start_matches([',', ':', ';', '.']).trim()];
            let task: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            Mention::Agent { id: (*id).to_owned(), task: task.join(" ") }
        }
        several => Mention::Ambiguous(several.iter().map(|id| (*id).to_owned()).collect()),
    }
}

/// Where the first `@` stands that addresses somebody, and what comes after it. One within a word is part of an address
/// for mail.
fn addressed(text: &str) -> Option<(usize, &str)> {
    text.match_indices('@').find_map(|(at, mark)| {
        let alone = !text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let rest = &text[at + mark.len()..];
        (alone && rest.starts_with(char::is_alphanumeric)).then_some((at, rest))
    })
}

/// How many bytes of the text the name takes, if the text begins with it and it ends there.
fn begins_with(text: &str, name: &str) -> Option<usize> {
    let mut rest = text.char_indices();
    for letter in name.chars() {
        let (_, found) = rest.next()?;
        if !found.to_lowercase().eq(letter.to_lowercase()) {
            return None;
        }
    }
    let after = rest.as_str();
    let mut next = after.chars();
    let goes_on = match next.next() {
        None => false,
        // A full stop may end a sentence, or stand before the next segment of an id.
        Some('.' | '-') => next.next().is_some_and(char::is_alphanumeric),
        Some(letter) => letter.is_alphanumeric() || letter == '_',
    };
    (!goes_on && !name.is_empty()).then_some(text.len() - after.len())
}

/// The name that somebody wrote, as far as one can tell.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '.' | '-' | '_'))).unwrap_or(text.len());
    text[..end].trim_end_matches(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str, label: &str) -> Agent {
        Agent {
            agent_id: id.to_owned(),
            persona: label.to_owned(),
            label: label.to_owned(),
            description: None,
            model_class: "general".to_owned(),
            pack_name: String::new(),
            pack_version: String::new(),
            tool_allowlist: Vec::new(),
            has_handoff_schemas: false,
            memory_shape: None,
            confidence_threshold: None,
            degraded: Vec::new(),
            memory_degraded: false,
            degraded_memory_dimensions: Vec::new(),
        }
    }

    #[test]
    fn agents_are_found_by_any_of_their_names() {
        let agents = [
            agent("vendor.acme.team.editor", "Chief Editor"),
            agent("vendor.acme.team.editor-two", "Second"),
            agent("vendor.acme.other.writer", "Ünder Writer"),
        ];
        let cases = [
            ("@editor fix this", "vendor.acme.team.editor", "fix this"),
            ("@EDITOR: fix this", "vendor.acme.team.editor", "fix this"),
            ("@editor-two fix this", "vendor.acme.team.editor-two", "fix this"),
            ("@chief editor, fix @writer too", "vendor.acme.team.editor", "fix @writer too"),
            ("@vendor.acme.team.editor. Go", "vendor.acme.team.editor", "Go"),
            ("@editor... go", "vendor.acme.team.editor", "go"),
            ("@editor .env is missing", "vendor.acme.team.editor", ".env is missing"),
            ("mail a@editor.example to @writer please", "vendor.acme.other.writer", "mail a@editor.example to please"),
            ("hello (@ünder writer)", "vendor.acme.other.writer", "hello ( )"),
        ];
        for (text, id, task) in cases {
            assert_eq!(find(text, &agents), Mention::Agent { id: id.to_owned(), task: task.to_owned() }, "{text}");
        }
        for text in ["", "hello", "a@editor", "@ editor", "@", "@@"] {
            assert_eq!(find(text, &agents), Mention::None, "{text}");
        }
        for (text, name) in [("@editors x", "editors"), ("@nobody. x", "nobody"), ("@editor.x y", "editor.x")] {
            assert_eq!(find(text, &agents), Mention::Unknown(name.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_name_of_two_agents_is_nobodys() {
        let agents =
            [agent("vendor.a.b.editor", "Anna"), agent("vendor.c.d.editor", "Boris"), agent("vendor.e.f.x", "anna")];
        let both = vec!["vendor.a.b.editor".to_owned(), "vendor.c.d.editor".to_owned()];
        assert_eq!(find("@editor hello", &agents), Mention::Ambiguous(both));
        let annas = vec!["vendor.a.b.editor".to_owned(), "vendor.e.f.x".to_owned()];
        assert_eq!(find("@Anna hello", &agents), Mention::Ambiguous(annas));
        assert!(matches!(find("@boris hello", &agents), Mention::Agent { .. }));
    }
}
