use std::time::Duration;

use serde_json::Value;

use super::finding::{Finding, State};
use crate::config::Config;
use crate::target::Target;

const NAME: &str = "connections";
/// How long the host may take to say: it asks nobody for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How many lines of a server's standard error are repeated.
const LINES: usize = 3;

/// How the links to MCP servers, model providers and other hosts are doing. Only a running host knows: it is that host's
/// processes and requests that matter, and a second set of servers beside them could do harm.
pub(super) async fn check(config: &Config, target: &Target) -> Vec<Finding> {
    let sections = &config.sections;
    let configured = sections.mcp.len() + sections.providers.len() + config.remotes.len();
    if configured == 0 {
        return Vec::new();
    }
    let Ok(client) = target.client() else { return Vec::new() };
    let unknown = |why: &str| vec![Finding::ok(NAME, format!("{configured} configured; {why}"))];
    match tokio::time::timeout(TIMEOUT, client.system_json()).await {
        Ok(Ok(system)) => match system["operator"]["connections"].as_array() {
            Some(shown) => findings(shown),
            None => unknown("only an operator's key is told how they are"),
        },
        Ok(Err(baton_client::Error::Unreachable { .. })) => unknown("how they are shows once a host runs"),
        Ok(Err(error)) => unknown(&format!("how they are was not told: {error}")),
        Err(_) => unknown("the host did not say in time how they are"),
    }
}

fn findings(shown: &[Value]) -> Vec<Finding> {
    let state = |one: &Value| one["state"].as_str().unwrap_or_default().to_owned();
    let mut found: Vec<Finding> = shown.iter().filter(|one| one["failures"].as_u64() > Some(0)).map(failing).collect();
    if found.is_empty() {
        let count = |wanted: &str| shown.iter().filter(|one| state(one) == wanted).count();
        let described = ["connected", "connecting", "idle"].map(|wanted| (count(wanted), wanted));
        let described: Vec<String> =
            described.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
        found.push(Finding::ok(NAME, described.join(", ")));
    }
    found
}

fn failing(one: &Value) -> Finding {
    let text = |key: &str| one[key].as_str().unwrap_or_default();
    let mut described = format!(
        "{} {} fails since {} ({} in a row): {}",
        text("kind"),
        text("name"),
        text("since"),
        one["failures"],
        text("reason")
    );
    let lines: Vec<&str> = one["stderr"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for line in &lines[lines.len().saturating_sub(LINES)..] {
        described.push_str("; it said: ");
        described.push_str(line);
    }
    let fix = match text("kind") {
        "mcp" => "mend the program or the address in [mcp]; the host tries again by itself",
        "provider" => "check its key and its address in [providers], and whether it is up",
        _ => "check that host, and its url and credential in [remotes]",
    };
    Finding::bad(NAME, State::Warning, described, fix)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fails_is_printed_with_its_reason_and_what_works_is_counted() {
        let good = [json!({"kind": "mcp", "name": "a", "state": "connected", "failures": 0}), json!({"state": "idle"})];
        let found = findings(&good);
        assert_eq!((found.len(), found[0].state, found[0].found.as_str()), (1, State::Ok, "1 connected, 1 idle"));
        let bad = json!({
            "kind": "mcp", "name": "files", "state": "failed", "since": "2026-01-01T00:00:00Z", "failures": 7,
            "reason": "its process ended with exit code 3", "stderr": ["one", "two", "three", "no such folder"],
        });
        let found = findings(&[good[0].clone(), bad]);
        assert_eq!((found.len(), found[0].state), (1, State::Warning));
        let described = &found[0].found;
        assert!(
            described.starts_with("mcp files fails since 2026-01-01T00:00:00Z (7 in a row): its process ended"),
            "{described}"
        );
        assert!(described.ends_with("it said: no such folder") && !described.contains("one"), "{described}");
    }
}
