//! How much room there is to write in. A pipe has as much as it needs.

use std::io::IsTerminal as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// Whether what was written can be drawn over: somebody is looking, and escape codes are not unwelcome.
pub(crate) fn can_draw_over() -> bool {
    let stdout = std::io::stdout();
    stdout.is_terminal() && anstream::AutoStream::choice(&stdout) != anstream::ColorChoice::Never
}

/// The size of the terminal behind stdout, if there is one.
pub(crate) fn room() -> Option<Room> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    let (columns, rows) = (usize::from(size.ws_col), usize::from(size.ws_row));
    (columns > 0 && rows > 0).then_some(Room { columns, rows })
}

/// How long a line may be: what `COLUMNS` says, else what the terminal says.
pub(crate) fn width() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|columns| *columns > 0);
    asked.or_else(|| room().map(|room| room.columns))
}

/// A line that does not wrap.
pub(crate) fn cut(line: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if line.chars().count() > width => {
            line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_room_there_is() {
        assert_eq!(cut("abcdef", Some(4)), "abc…");
        assert_eq!(cut("abcd", Some(4)), "abcd");
        assert_eq!(cut("abcdef", None), "abcdef");
    }
}
