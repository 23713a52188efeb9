//! Models that were trained to think aloud put it between tags in front of the answer. A server that does not know them
//! hands the tags on, and an answer that begins with one is no JSON.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Takes the thoughts out of a text that comes in pieces. Only a tag at the very beginning counts: later ones belong to
/// the answer.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    state: State,
    /// Not decided yet: it may be a tag, or a part of one.
    held: String,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Start,
    Thinking,
    /// After the closing tag, white space is not part of the answer.
    Between,
    Answering,
}

/// One more piece, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Split {
    pub(crate) thought: String,
    pub(crate) answer: String,
}

impl Splitter {
    pub(crate) fn push(&mut self, piece: &str) -> Split {
        let mut split = Split::default();
        self.held.push_str(piece);
        loop {
            match self.state {
                State::Start => {
                    let begun = self.held.trim_start();
                    if let Some(rest) = begun.strip_prefix(OPEN) {
                        self.held = rest.to_owned();
                        self.state = State::Thinking;
                    } else if OPEN.starts_with(begun) {
                        return split;
                    } else {
                        self.state = State::Answering;
                    }
                }
                State::Thinking => {
                    let Some((thought, rest)) = self.held.split_once(CLOSE) else {
                        let sure = self.held.len() - undecided(&self.held);
                        split.thought.extend(self.held.drain(..sure));
                        return split;
                    };
                    split.thought.push_str(thought);
                    self.held = rest.to_owned();
                    self.state = State::Between;
                }
                State::Between => {
                    self.held = self.held.trim_start().to_owned();
                    if self.held.is_empty() {
                        return split;
                    }
                    self.state = State::Answering;
                }
                State::Answering => {
                    split.answer.push_str(&std::mem::take(&mut self.held));
                    return split;
                }
            }
        }
    }

    /// What was held back, once nothing more comes.
    pub(crate) fn finish(&mut self) -> Split {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Thinking => Split { thought: held, answer: String::new() },
            _ => Split { thought: String::new(), answer: held },
        }
    }
}

/// How much of the end could be the beginning of the closing tag.
fn undecided(text: &str) -> usize {
    (1..CLOSE.len()).rev().find(|length| text.ends_with(&CLOSE[..*length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(pieces: &[&str]) -> (String, String) {
        let mut splitter = Splitter::default();
        let mut all = Split::default();
        let mut add = |split: Split| {
            all.thought.push_str(&split.thought);
            all.answer.push_str(&split.answer);
        };
        for piece in pieces {
            add(splitter.push(piece));
        }
        add(splitter.finish());
        (all.thought, all.answer)
    }

    #[test]
    fn thoughts_in_front_are_taken_out_wherever_the_pieces_break() {
        let cases = [
            ("<think>hm</think>\n\n{\"a\":1}", "hm", "{\"a\":1}"),
            ("\n <think>a < b </thin k</think>c", "a < b </thin k", "c"),
            ("no <think>tags</think> here", "", "no <think>tags</think> here"),
            ("<thinner>", "", "<thinner>"),
            ("<think>cut off", "cut off", ""),
            ("<thi", "", "<thi"),
            ("  spaced ", "", "  spaced "),
            ("<think></think>é", "", "é"),
            ("", "", ""),
        ];
        for (text, thought, answer) in cases {
            let expected = (thought.to_owned(), answer.to_owned());
            assert_eq!(whole(&[text]), expected, "{text:?} at once");
            for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                assert_eq!(whole(&[&text[..at], &text[at..]]), expected, "{text:?} broken at {at}");
            }
            let letters: Vec<String> = text.chars().map(String::from).collect();
            assert_eq!(whole(&letters.iter().map(String::as_str).collect::<Vec<_>>()), expected, "{text:?} by letters");
        }
    }
}
