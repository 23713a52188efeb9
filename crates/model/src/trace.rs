use serde::{Deserialize, Serialize};

/// W3C trace context as it arrived. Kept to be handed on; it identifies and allows nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    pub parent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl TraceContext {
    /// Longer vendor lists than anybody has to forward.
    const MAX_STATE_CHARS: usize = 512;

    /// What is malformed is as good as absent: a trace must never stop a run.
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let mut parts = parent.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let hex = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let named = |text: &str| text.bytes().any(|byte| byte != b'0');
        let well_formed = hex(version, 2) && hex(trace, 32) && hex(span, 16) && hex(flags, 2);
        // Later versions may add parts; the first one has none, and `ff` will never be one.
        let known = version != "ff" && (version != "00" || parts.next().is_none());
        if !(well_formed && known && named(trace) && named(span)) {
            return None;
        }
        let sendable = |text: &&str| {
            !text.is_empty() && text.len() <= Self::MAX_STATE_CHARS && text.bytes().all(|b| (b' '..=b'~').contains(&b))
        };
        // What later versions added is theirs to understand: only the known part is handed on.
        let parent = format!("00-{trace}-{span}-{flags}");
        Some(Self { parent, state: state.map(str::trim).filter(sendable).map(str::to_owned) })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_trace_is_taken_as_it_is_written_down_in_the_standard() {
        let trace = TraceContext::parse(PARENT, Some(" a=1,b=2 ")).unwrap();
        assert_eq!((trace.parent.as_str(), trace.state.as_deref()), (PARENT, Some("a=1,b=2")));
        let newer = PARENT.replace("00-4b", "01-4b") + "-what-is-this";
        assert_eq!(TraceContext::parse(&newer, None).unwrap().parent, PARENT, "only the part that is known goes on");
    }

    #[test]
    fn what_is_malformed_is_as_good_as_absent() {
        let upper = PARENT.to_uppercase();
        let bad = [
            "",
            "-",
            upper.as_str(),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
        ];
        for parent in bad {
            assert_eq!(TraceContext::parse(parent, Some("a=1")), None, "{parent}");
        }
        for state in ["", " ", "a=\u{e4}", "a=1\r\nx: y", &"a".repeat(513)] {
            assert_eq!(TraceContext::parse(PARENT, Some(state)).unwrap().state, None, "{state}");
        }
    }
}
