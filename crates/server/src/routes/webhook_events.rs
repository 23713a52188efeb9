//! Which event types a webhook may wait for. A misspelt one would wait for ever and nobody would notice.

use baton_model::event::Event;

use crate::error::ApiError;

/// Families of event types that are the protocol's alone: what it does not name there, nobody sends. In any other family
/// a name that this build does not know may be a vendor's, or newer than this build.
const CLOSED: [&str; 8] = ["run", "node", "approval", "clarification", "interrupt", "cap", "channel", "replay"];

/// Named by the protocol in those families and never written here. A client that asks for all of them means no mistake.
const ELSEWHERE: [&str; 8] = [
    "run.annotated",
    "run.dead_lettered",
    "run.restored-from-snapshot",
    "run.resuming",
    "node.suspend-failed",
    "approval.granted",
    "approval.overridden",
    "approval.rejected",
];

pub(super) fn check_event(name: &str) -> Result<(), ApiError> {
    let known = || Event::TYPE_NAMES.iter().chain(&ELSEWHERE).copied();
    if name == "*" || known().any(|known| known == name) {
        return Ok(());
    }
    let lower = name.to_ascii_lowercase();
    let family = lower.split_once('.').map(|(family, _)| family);
    // Only `*` alone stands for others.
    let possible = !name.contains('*') && family.is_some_and(|family| !CLOSED.contains(&family));
    if possible {
        return Ok(());
    }
    let nearest = family.and_then(|family| nearest(&lower, family.len() + 1, Event::TYPE_NAMES));
    let advice = match nearest {
        Some(nearest) => format!("Did you mean `{nearest}`?"),
        None => "Name types such as `run.completed`, or `*` for all.".to_owned(),
    };
    let error = ApiError::invalid(format!("There is no event type `{name}`. {advice}")).with("event", name);
    Err(match nearest {
        Some(nearest) => error.with("suggestion", nearest),
        None => error,
    })
}

/// The name that begins most like what was typed, if they share more than the first `family` bytes.
fn nearest(typed: &str, family: usize, known: &[&'static str]) -> Option<&'static str> {
    let shared = |name: &str| typed.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    let best = known.iter().copied().max_by_key(|name| (shared(name), std::cmp::Reverse(name.len())))?;
    (shared(best) > family).then_some(best)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_may_come_is_taken() {
        let others = ["*", "run.resuming", "acme.order.paid", "baton.something.new", "agent.verified"];
        for name in Event::TYPE_NAMES.iter().chain(&ELSEWHERE).copied().chain(others) {
            assert!(check_event(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn what_never_comes_is_refused_with_what_was_meant() {
        for (typed, meant) in [
            ("run.complete", Some("run.completed")),
            ("Run.Compelted", Some("run.completed")),
            ("interrupt.request", Some("interrupt.requested")),
            ("run.xyz", None),
            ("run.*", None),
            ("baton.*", None),
            ("completed", None),
        ] {
            let error = check_event(typed).unwrap_err();
            assert_eq!((error.status.as_u16(), error.code), (400, "validation_error"), "{typed}");
            assert!(error.message.contains(&format!("`{typed}`")), "{}", error.message);
            assert_eq!(error.details.get("suggestion").and_then(|value| value.as_str()), meant, "{typed}");
        }
    }
}
