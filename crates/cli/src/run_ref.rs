//! Run ids as people type them: any unique beginning, with or without `run_`.

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
    let mut found = client.runs(&filter).await?.runs;
    match found.len() {
        0 => Err(Failure::new(Exit::NotFound, format!("no run's id starts with `{prefix}`"))
            .hint("`baton run list` shows the runs there are")),
        1 => Ok(found.remove(0).run_id),
        _ => {
            let ids: Vec<String> = found.into_iter().map(|run| run.run_id).collect();
            Err(Failure::usage(format!("`{text}` is the beginning of several ids:\n  {}", ids.join("\n  ")))
                .hint("type one more digit")
                .detail("candidates", ids))
        }
    }
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
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_id_need_not_be_typed() {
        for (typed, meant) in [("run_01", "run_01"), ("01ab", "run_01ab"), ("ru", "ru"), (" run_7 ", "run_7")] {
            assert_eq!(normal(typed), meant);
        }
    }
}
