//! The one thing a template can do: `{{name}}` stands for a value.

use crate::names::is_variable_name;

/// A segment of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Cuts a template into what is said and what is filled in. Anything in braces that is not a bare name is text.
pub(crate) fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let (mut said, mut at) = (0, 0);
    while let Some(open) = template[at..].find("{{").map(|found| at + found) {
        let Some(name) = name_at(&template[open + 2..]) else {
            at = open + 1;
            continue;
        };
        if said < open {
            pieces.push(Piece::Text(&template[said..open]));
        }
        pieces.push(Piece::Name(name));
        at = open + 2 + name.len() + 2;
        said = at;
    }
    if said < template.len() {
        pieces.push(Piece::Text(&template[said..]));
    }
    pieces
}

/// The name that `text` begins with, if the braces close right after it.
fn name_at(text: &str) -> Option<&str> {
    // No further than a name can reach: a text full of braces is looked at once, not once for each.
    let end = text.bytes().take(65).take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let (name, rest) = text.split_at(end);
    (is_variable_name(name) && rest.starts_with("}}")).then_some(name)
}

/// The names a template fills in, each once, in the order of their first use.
pub(crate) fn names(template: &str) -> Vec<&str> {
    let (mut names, mut seen) = (Vec::new(), std::collections::BTreeSet::new());
    for piece in pieces(template) {
        if let Piece::Name(name) = piece
            && seen.insert(name)
        {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::Piece::{Name, Text};
    use super::*;

    #[test]
    fn only_bare_names_in_double_braces_count() {
        for (template, expected) in [
            ("", vec![]),
            ("plain", vec![Text("plain")]),
            ("a{{b}}c", vec![Text("a"), Name("b"), Text("c")]),
            ("{{a}}{{b}}", vec![Name("a"), Name("b")]),
            ("{{{a}}}", vec![Text("{"), Name("a"), Text("}")]),
            ("{{ a }}", vec![Text("{{ a }}")]),
            ("{{a.b}} {{#if x}} {{>p}} {{}} {{a", vec![Text("{{a.b}} {{#if x}} {{>p}} {{}} {{a")]),
            ("{{1}} {{ä}} {{a}}", vec![Text("{{1}} {{ä}} "), Name("a")]),
            ("{{a {{b}}", vec![Text("{{a "), Name("b")]),
        ] {
            assert_eq!(pieces(template), expected, "{template}");
        }
        assert_eq!(names("{{b}} {{a}} {{b}}"), ["b", "a"]);
    }
}
