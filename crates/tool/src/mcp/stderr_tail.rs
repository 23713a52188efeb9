//! The last lines that a server wrote to its standard error: usually they say why it does not work.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use baton_model::{Secret, redact};
use parking_lot::Mutex;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};
use tokio::time::Instant;

/// The target of these lines in the log, so that a host can show them and leave out everything else for debugging.
pub const STDERR_TARGET: &str = "mcp_stderr";
/// How many lines are kept: the end of a stack trace, not a log.
const LINES: usize = 20;
/// How much of a line is kept.
const LINE_CHARS: usize = 500;
/// How much of a line is read at once. What is longer is dropped unread, so that a line without an end costs this much.
const LINE_BYTES: usize = 16 * 1024;
/// What is read in one period, at most. A server that writes more waits, not the host: its pipe is full meanwhile.
const BYTES_PER_PERIOD: usize = 1024 * 1024;
/// Lines in one period, for the same reason: each of them is searched for secrets.
const LINES_PER_PERIOD: usize = 2_000;
const PERIOD: Duration = Duration::from_secs(1);

/// The newest lines, without secrets. Cheap to clone; clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct StderrTail(Arc<Mutex<VecDeque<String>>>);

impl StderrTail {
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }

    fn add(&self, line: String) {
        let mut lines = self.0.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Reads to the end, however much it is, and keeps the newest.
    pub(super) async fn listen(self, server: String, mut stderr: impl AsyncBufRead + Unpin, secrets: Vec<Secret>) {
        let mut line = Vec::new();
        let mut cut = false;
        let (mut period, mut read, mut lines) = (Instant::now(), 0, 0);
        loop {
            let taken = match stderr.fill_buf().await {
                Ok([]) | Err(_) => break,
                Ok(some) => {
                    let end = some.iter().position(|byte| *byte == b'\n');
                    let piece = &some[..end.unwrap_or(some.len())];
                    let room = LINE_BYTES - line.len();
                    cut |= piece.len() > room;
                    line.extend_from_slice(&piece[..piece.len().min(room)]);
                    if end.is_some() {
                        self.told(&server, &line, cut, &secrets);
                        line.clear();
                        cut = false;
                        lines += 1;
                    }
                    end.map_or(some.len(), |end| end + 1)
                }
            };
            stderr.consume(taken);
            read += taken;
            if read >= BYTES_PER_PERIOD || lines >= LINES_PER_PERIOD {
                tokio::time::sleep_until(period + PERIOD).await;
                (period, read, lines) = (Instant::now(), 0, 0);
            }
        }
        if !line.is_empty() {
            self.told(&server, &line, cut, &secrets);
        }
    }

    fn told(&self, server: &str, line: &[u8], cut: bool, secrets: &[Secret]) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end();
        // The end of a line that was cut may be the beginning of a secret.
        let whole = if cut { &text[..baton_model::settled(text, secrets)] } else { text };
        let clean = redact(whole, secrets);
        let text = match clean.char_indices().nth(LINE_CHARS) {
            Some((end, _)) => format!("{}…", &clean[..end]),
            None if cut => format!("{clean}…"),
            None => clean,
        };
        if !text.is_empty() {
            tracing::debug!(target: STDERR_TARGET, server, "{text}");
            self.add(text);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::io::{AsyncReadExt as _, BufReader};

    use super::*;

    async fn heard(text: &[u8], secrets: Vec<Secret>) -> Vec<String> {
        let complaints = StderrTail::default();
        complaints.clone().listen("s".to_owned(), text, secrets).await;
        complaints.lines()
    }

    #[tokio::test]
    async fn the_newest_lines_are_kept_and_none_is_long() {
        let text: String = (0..100).map(|n| format!("line {n}\n\n")).collect();
        let lines = heard(format!("{text}no end").as_bytes(), Vec::new()).await;
        assert_eq!((lines.len(), lines[0].as_str(), lines[LINES - 1].as_str()), (LINES, "line 81", "no end"));
        let long = heard(&[vec![b'x'; 10 * LINE_BYTES], b"\nshort\n".to_vec()].concat(), Vec::new()).await;
        assert_eq!((long.len(), long[0].chars().count(), long[1].as_str()), (2, LINE_CHARS + 1, "short"));
        assert_eq!(heard(b"\xff\xfe broken\n", Vec::new()).await, ["\u{fffd}\u{fffd} broken"]);
    }

    #[tokio::test]
    async fn no_secret_shows_not_even_one_that_is_cut_in_two() {
        let secret = || vec![Secret::new("TOKEN", "s3cr3t-s3cr3t")];
        assert_eq!(heard(b"key s3cr3t-s3cr3t\n", secret()).await, ["key [REDACTED:TOKEN]"]);
        for before in LINE_CHARS - 20..LINE_CHARS + 5 {
            let lines = heard(format!("{}s3cr3t-s3cr3t\n", " x".repeat(before / 2)).as_bytes(), secret()).await;
            assert!(!lines[0].contains("s3c"), "{before}: {}", lines[0]);
        }
        for before in LINE_BYTES - 20..LINE_BYTES + 5 {
            // Mostly other secrets, so that what is cut is near the end of what is shown.
            let mut text = "s3cr3t-s3cr3t".repeat(before / 13);
            text.push_str(&"y".repeat(before % 13));
            let lines = heard(format!("{text}s3cr3t-s3cr3t\n").as_bytes(), secret()).await;
            assert!(!lines[0].contains("s3c"), "{before}");
        }
    }

    /// Time stands still but for whoever sleeps, so what passed is what the reader waited.
    #[tokio::test(start_paused = true)]
    async fn a_flood_is_read_at_a_bounded_rate() {
        let start = Instant::now();
        let flood = tokio::io::repeat(b'x').take(10 * BYTES_PER_PERIOD as u64 + 1);
        StderrTail::default().listen("s".to_owned(), BufReader::new(flood), Vec::new()).await;
        assert_eq!(start.elapsed(), PERIOD * 10);
        // Short lines cost more than their bytes.
        let start = Instant::now();
        let flood = "x\n".repeat(10 * LINES_PER_PERIOD);
        StderrTail::default().listen("s".to_owned(), BufReader::new(flood.as_bytes()), Vec::new()).await;
        assert_eq!(start.elapsed(), PERIOD * 10);
    }
}
