//! A look at an expression's tokens before the parser sees it. The parser recurses for each bracket and each `?`, and
//! its tree nests for each operator of a chain; whoever walks or drops such a tree recurses too. So both are bounded
//! here, by a scan that never recurses and never guesses too low.

const MAX_SOURCE_BYTES: usize = 4096;
/// Brackets and conditionals in each other: what the parser recurses for.
const MAX_NESTING: usize = 48;
/// Levels of the tree: what walking and dropping it recurses for.
const MAX_LEVELS: usize = 1024;
/// Levels that a call may add by itself: a macro becomes a loop, its step, a list and the item.
const CALL_LEVELS: usize = 4;
/// Levels of a chain of `&&` or `||`, which is balanced, however long: the source's length bounds it.
const LOGIC_LEVELS: usize = 12;

/// What is wrong with an expression before it is parsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    OverBound(String),
    /// A text without an end, or with a line break or an escape that the language does not have. The parser would read
    /// some of these, and then read other tokens than this scan.
    BrokenText(String),
}

/// Says which bound an expression breaks.
pub(super) fn check(source: &str) -> Result<(), Found> {
    let over = |bound: String| Err(Found::OverBound(bound));
    if source.len() > MAX_SOURCE_BYTES {
        return over(format!("the expression is longer than {MAX_SOURCE_BYTES} bytes"));
    }
    let mut scan = Scan { nesting: 0, deepest: 0, open: vec![Level::default()], broken_text: None };
    scan.read(source.as_bytes());
    if scan.deepest > MAX_NESTING {
        return over(format!("the expression nests more than {MAX_NESTING} brackets"));
    }
    if scan.levels() > MAX_LEVELS {
        return over(format!("the expression chains or nests more than {MAX_LEVELS} operators"));
    }
    match scan.broken_text {
        Some(at) => Err(Found::BrokenText(broken_text(source, at))),
        None => Ok(()),
    }
}

fn broken_text(source: &str, at: usize) -> String {
    let before = source.get(..at).unwrap_or_default();
    let (line, start) = (before.matches('\n').count() + 1, before.rfind('\n').map_or(0, |end| end + 1));
    let column = before.get(start..).map_or(0, |text| text.chars().count()) + 1;
    format!("line {line}, column {column}: this text has no end, or holds a line break or an unknown escape")
}

/// Between two brackets.
#[derive(Default)]
struct Level {
    /// Operators since the last comma, `&&`, `||`, `?` or `:`.
    operators: usize,
    /// Levels of the deepest bracket among their operands.
    inner: usize,
    /// The same for what came before.
    before: usize,
    conditionals: usize,
    logic: bool,
    /// The bracket that ends it.
    closer: u8,
}

impl Level {
    fn levels(&self) -> usize {
        let own = self.before.max(self.operators + self.inner);
        own + self.conditionals + if self.logic { LOGIC_LEVELS } else { 0 }
    }

    /// An operand of a weaker operator ends: what follows does not stand above it.
    fn part(&mut self) {
        self.before = self.before.max(self.operators + self.inner);
        (self.operators, self.inner) = (0, 0);
    }

    /// An element ends.
    fn element(&mut self) {
        *self = Self { before: self.levels(), closer: self.closer, ..Self::default() };
    }
}

struct Scan {
    nesting: usize,
    deepest: usize,
    open: Vec<Level>,
    /// Where the first text begins that is none.
    broken_text: Option<usize>,
}

impl Scan {
    fn read(&mut self, source: &[u8]) {
        let mut at = 0;
        while let Some(&byte) = source.get(at) {
            at += match byte {
                b'/' if source.get(at + 1) == Some(&b'/') => {
                    source[at..].iter().position(|&byte| byte == b'\n').unwrap_or(source.len() - at)
                }
                b'\'' | b'"' => string(&source[at..]).unwrap_or_else(|| {
                    self.broken_text.get_or_insert(at);
                    1
                }),
                byte if byte.is_ascii_alphabetic() || byte == b'_' => self.word(&source[at..]),
                byte if byte.is_ascii_digit() => self.number(&source[at..]),
                byte => self.symbol(byte, source.get(at + 1).copied()),
            };
        }
    }

    fn levels(&self) -> usize {
        // Brackets that are never closed still count.
        self.open.iter().rev().fold(0, |inner, level| level.levels() + inner + CALL_LEVELS)
    }

    fn top(&mut self) -> Option<&mut Level> {
        self.open.last_mut()
    }

    fn deeper(&mut self) {
        self.nesting += 1;
        self.deepest = self.deepest.max(self.nesting);
    }

    fn word(&mut self, rest: &[u8]) -> usize {
        // A prefix of a string is read with it, if it is one.
        let quoted = |byte: Option<&u8>| matches!(byte, Some(b'\'' | b'"'));
        let prefix = match rest {
            [b'b' | b'B', b'r' | b'R', more @ ..] if quoted(more.first()) => Some((2, true)),
            [b'r' | b'R', more @ ..] if quoted(more.first()) => Some((1, true)),
            [b'b' | b'B', more @ ..] if quoted(more.first()) => Some((1, false)),
            _ => None,
        };
        if let Some((length, raw)) = prefix
            && let Some(end) = if raw { raw_string(&rest[length..]) } else { string(&rest[length..]) }
        {
            return length + end;
        }
        let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_').unwrap_or(rest.len());
        if &rest[..end] == b"in"
            && let Some(level) = self.top()
        {
            level.operators += 1;
        }
        end
    }

    /// A number up to its dot or sign. Letters may be glued to it, and among them the operator `in`.
    fn number(&mut self, rest: &[u8]) -> usize {
        let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
        if rest[..end].iter().any(u8::is_ascii_alphabetic)
            && let Some(level) = self.top()
        {
            level.operators += 1;
        }
        let fraction = rest.get(end) == Some(&b'.') && rest.get(end + 1).is_some_and(u8::is_ascii_digit);
        if fraction { end + 1 } else { end }
    }

    fn symbol(&mut self, byte: u8, next: Option<u8>) -> usize {
        match byte {
            b'(' | b'[' | b'{' => {
                if let Some(level) = self.top() {
                    level.operators += 1;
                }
                let closer = match byte {
                    b'(' => b')',
                    b'[' => b']',
                    _ => b'}',
                };
                self.open.push(Level { closer, ..Level::default() });
                self.deeper();
            }
            // One that does not fit closes nothing: the parser may go on with the brackets that are open.
            b')' | b']' | b'}' if self.top().is_some_and(|level| level.closer == byte) => {
                if let Some(level) = self.open.pop() {
                    self.nesting = self.nesting.saturating_sub(1 + level.conditionals);
                    let levels = level.levels() + CALL_LEVELS;
                    if let Some(around) = self.top() {
                        around.inner = around.inner.max(levels);
                    }
                }
            }
            b',' => {
                let ended = self.top().map_or(0, |level| level.conditionals);
                self.nesting = self.nesting.saturating_sub(ended);
                if let Some(level) = self.top() {
                    level.element();
                }
            }
            b'?' => {
                if let Some(level) = self.top() {
                    level.part();
                    level.conditionals += 1;
                }
                self.deeper();
            }
            b':' => {
                if let Some(level) = self.top() {
                    level.part();
                }
            }
            b'&' | b'|' => {
                if let Some(level) = self.top() {
                    level.part();
                    level.logic = true;
                }
                return if next == Some(byte) { 2 } else { 1 };
            }
            b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'.' => {
                if let Some(level) = self.top() {
                    level.operators += 1;
                }
                return if next == Some(b'=') && byte != b'.' { 2 } else { 1 };
            }
            _ => {}
        }
        1
    }
}

/// The length of a string literal that begins here; `None` if none does, and then its text is read as tokens, as the
/// parser does.
fn string(rest: &[u8]) -> Option<usize> {
    triple(rest, false).or_else(|| {
        let quote = *rest.first()?;
        let mut at = 1;
        loop {
            match *rest.get(at)? {
                byte if byte == quote => return Some(at + 1),
                b'\n' | b'\r' => return None,
                b'\\' => at += escape(&rest[at..])?,
                _ => at += 1,
            }
        }
    })
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    triple(rest, true).or_else(|| {
        let quote = *rest.first()?;
        let end = rest.iter().skip(1).position(|byte| *byte == quote || matches!(byte, b'\n' | b'\r'))? + 1;
        (rest[end] == quote).then_some(end + 1)
    })
}

fn triple(rest: &[u8], raw: bool) -> Option<usize> {
    let quote = *rest.first()?;
    let is_mark = |at: usize| rest.get(at..at + 3).is_some_and(|three| three.iter().all(|byte| *byte == quote));
    if !is_mark(0) {
        return None;
    }
    let mut at = 3;
    while at < rest.len() {
        if is_mark(at) {
            return Some(at + 3);
        }
        at += if rest[at] == b'\\' && !raw { escape(&rest[at..])? } else { 1 };
    }
    None
}

/// The length of an escape; `None` if the language has none like it.
fn escape(rest: &[u8]) -> Option<usize> {
    let hexes = |count: usize| {
        let digits = rest.get(2..2 + count)?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(2 + count)
    };
    match rest.get(1)? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => Some(2),
        b'x' | b'X' => hexes(2),
        b'u' => hexes(4),
        b'U' => hexes(8),
        b'0'..=b'3' => rest.get(2..4)?.iter().all(|byte| (b'0'..=b'7').contains(byte)).then_some(4),
        _ => None,
    }
}
