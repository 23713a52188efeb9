//! Counters of the server under measurement, from its Prometheus page.

use anyhow::{Context, Result};

use crate::http::Connection;

/// Transactions the store has made durable: one sync each.
pub(crate) const COMMITS: &str = "baton_commits_total";

/// The current value of a counter without labels; one that never counted is not on the page.
pub(crate) async fn counter(connection: &mut Connection, name: &str) -> Result<u64> {
    let response = connection.get("/metrics").await?;
    response.expect(200, "read metrics")?;
    let page = std::str::from_utf8(response.body).context("the metrics page is not text")?;
    parse_counter(page, name).with_context(|| format!("the metrics page has no {name}"))
}

fn parse_counter(page: &str, name: &str) -> Option<u64> {
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_found_by_its_whole_name() {
        let page = "# TYPE commits_total counter\ncommits_total_more 7\ncommits_total{a=\"b\"} 8\ncommits_total 42\n";
        assert_eq!(parse_counter(page, "commits_total"), Some(42));
        assert_eq!(parse_counter(page, "commits"), None);
        assert_eq!(parse_counter("", "commits_total"), None);
    }
}
