//! `/v1/runs/{runId}:verb`. Routers see one segment there, so the verb is split off by hand. Run ids never contain a
//! colon, which makes the last one unambiguous.

/// A run address: the id and, behind the last colon, what to do with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    pub(crate) run: &'a str,
    pub(crate) verb: Option<Verb>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Pause,
    Resume,
    Diff,
    Fork,
    Prune,
    Unknown,
}

impl<'a> Target<'a> {
    pub(crate) fn split(segment: &'a str) -> Self {
        let Some((run, verb)) = segment.rsplit_once(':') else { return Self { run: segment, verb: None } };
        let verb = match verb {
            "pause" => Verb::Pause,
            "resume" => Verb::Resume,
            "diff" => Verb::Diff,
            "fork" => Verb::Fork,
            "prune" => Verb::Prune,
            _ => Verb::Unknown,
        };
        Self { run, verb: Some(verb) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_colon_separates_the_verb() {
        let cases = [
            ("run_1", "run_1", None),
            ("run_1:pause", "run_1", Some(Verb::Pause)),
            ("run_1:resume", "run_1", Some(Verb::Resume)),
            ("run_1:fork", "run_1", Some(Verb::Fork)),
            ("run_1:prune", "run_1", Some(Verb::Prune)),
            ("run_1:diff", "run_1", Some(Verb::Diff)),
            ("run_1:rewind", "run_1", Some(Verb::Unknown)),
            ("run_1:Pause", "run_1", Some(Verb::Unknown)),
            ("run_1:", "run_1", Some(Verb::Unknown)),
            (":pause", "", Some(Verb::Pause)),
            ("a:b:pause", "a:b", Some(Verb::Pause)),
            ("", "", None),
        ];
        for (segment, run, verb) in cases {
            assert_eq!(Target::split(segment), Target { run, verb }, "{segment:?}");
        }
    }
}
