//! Run ids as people type them: any unique beginning, with or without `run_`.

use std::path::PathBuf;

use baton_client::{Client, RunFilter};

use crate::exit::Exit;
use crate::failure::Failure;

const PREFIX: &str = "run_";
const FULL_LENGTH: usize = 36;
/// Long enough to tell runs of one millisecond's neighbours apart, short enough for a line.
const SHORT_LENGTH: usize = 16;
/// Enough candidates to choose from, few enough to read.
const CANDIDATES: usize = 10;

/// The one run whose id starts with `text`.
pub(crate) async fn find(client: &Client, text: &str) -> Result<String, Failure> {
    let prefix = normal(text);
    if prefix.len() >= FULL_LENGTH {
        return Ok(prefix);
    }
    let filter = RunFilter { id_prefix: Some(prefix.clone()), limit: Some(CANDIDATES), ..RunFilter::default() };
    let mut found = client.runs_filled(&filter).await?.runs;
    match found.len() {
        0 => Err(Failure::new(Exit::NotFound, format!("no run id starts with `{prefix}`"))
            .hint("`baton run list` shows the runs")),
        1 => Ok(found.remove(0).run_id.to_string()),
        _ => {
            let ids: Vec<String> = found.into_iter().map(|run| run.run_id.to_string()).collect();
            Err(Failure::usage(format!("`{text}` matches several runs:\n  {}", ids.join("\n  ")))
                .hint("type more digits of the id")
                .detail("candidates", ids))
        }
    }
}

/// The file a run is written to when nobody says. The id may be a host's word, so it must be nothing but an id.
pub(crate) fn file_name(id: &str) -> Result<PathBuf, Failure> {
    let digits = id.strip_prefix(PREFIX).unwrap_or_default();
    if id.len() == FULL_LENGTH && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(format!("{id}.jsonl").into());
    }
    Err(Failure::usage(format!("`{}` is not a run id, so there is no default file name", id.escape_debug()))
        .hint("use --output FILE"))
}

/// The beginning of an id, as it can be typed.
pub(crate) fn short(id: &str) -> &str {
    id.get(..SHORT_LENGTH).unwrap_or(id)
}

fn normal(text: &str) -> String {
    let text = text.trim();
    if text.starts_with(PREFIX) || PREFIX.starts_with(text) { text.to_owned() } else { format!("{PREFIX}{text}") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_after_an_id_and_nothing_else() {
        let id = format!("run_{}", "0f".repeat(16));
        assert_eq!(file_name(&id).unwrap(), PathBuf::from(format!("{id}.jsonl")));
        let sly = format!("run_{}", "../".repeat(10) + "ab");
        for bad in ["", "run_", "run_01/../../../etc/cron.d/x", "/etc/passwd", sly.as_str(), &format!("{id}0")] {
            assert_eq!(file_name(bad).unwrap_err().exit, Exit::Usage, "{bad}");
        }
    }

    #[test]
    fn the_kind_of_id_need_not_be_typed() {
        for (typed, meant) in [("run_01", "run_01"), ("01ab", "run_01ab"), ("ru", "ru"), (" run_7 ", "run_7")] {
            assert_eq!(normal(typed), meant);
        }
    }
}
