//! Scripts and style sheets as they are sent: without the lines that only people read, which are a fifth of what would
//! go over the wire. Their places stay, empty, so a line number in a browser is the line number in the file.
//!
//! Only whole lines go. What stands between code, such as the type of a cast, is left where it is, and so is everything
//! else: this knows no grammar, and need not.

/// Whether a file of this name has comments that may go.
pub(super) fn may_go(name: &str) -> bool {
    name.ends_with(".js") || name.ends_with(".css")
}

pub(super) fn without(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut inside = false;
    for line in text.split_inclusive('\n') {
        let words = line.trim();
        let opens = !inside && words.starts_with("/*");
        let closed = (inside || opens).then(|| words.split_once("*/")).flatten();
        let goes = match closed {
            Some((_, code)) => code.is_empty(),
            None => inside || opens || words.starts_with("//"),
        };
        inside = (inside || opens) && closed.is_none();
        if goes {
            kept.push_str(if line.ends_with('\n') { "\n" } else { "" });
        } else {
            kept.push_str(line);
        }
    }
    kept
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::Files;
    use super::*;

    #[test]
    fn whole_lines_go_and_their_places_stay() {
        let text = "// one\nlet a = 1; // two\n  /** three */\n/*\n * four\n */\nlet b = /** @type {any} */ (a);\n/** x */ c();";
        assert_eq!(without(text), "\nlet a = 1; // two\n\n\n\n\nlet b = /** @type {any} */ (a);\n/** x */ c();");
        assert_eq!(without("a\n/* b */"), "a\n");
    }

    /// What looks like a comment in a text of several lines is not one.
    #[test]
    fn no_text_of_the_console_loses_a_line() {
        let mut gone = 0;
        for name in Files::iter().filter(|name| may_go(name)) {
            let text = String::from_utf8(Files::get(&name).unwrap().data.into_owned()).unwrap();
            let sent = without(&text);
            assert_eq!(text.matches('\n').count(), sent.matches('\n').count(), "{name}");
            let mut quoting = false;
            for (number, (line, kept)) in text.lines().zip(sent.split('\n')).enumerate() {
                let left_out = !line.trim().is_empty() && kept.is_empty();
                assert!(!(left_out && quoting), "{name}:{}: {line}", number + 1);
                quoting ^= kept.matches('`').count() % 2 == 1;
                gone += usize::from(left_out);
            }
            assert!(!quoting, "{name} has an odd number of backticks: this test cannot tell texts from code");
        }
        assert!(gone > 500, "{gone} lines left out");
    }
}
