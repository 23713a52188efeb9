//! Exit codes: the part of the command line that scripts read. Each meaning has one number, for ever.

use baton_model::{RunStatus, code};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Ok = 0,
    /// The run failed, or something is wrong with the host.
    Failed = 1,
    Usage = 2,
    NotFound = 3,
    Auth = 4,
    Conflict = 5,
    /// The run waits for a human or another system.
    Waiting = 6,
    /// The run was cancelled, or a step ran out of time.
    Cancelled = 7,
    /// A bound of the run was reached.
    Bound = 8,
    Diverged = 9,
    Unreachable = 10,
    /// The host ended itself because something in it did not get on; whoever supervises it starts it again.
    Stuck = 11,
}

impl Exit {
    /// What a run's end means to a script.
    pub(crate) fn of_run(status: RunStatus, error_code: Option<&str>) -> Self {
        match status {
            RunStatus::Cancelled | RunStatus::Cancelling => Self::Cancelled,
            RunStatus::WaitingApproval
            | RunStatus::WaitingInput
            | RunStatus::WaitingExternal
            | RunStatus::WaitingClarification => Self::Waiting,
            RunStatus::Failed => Self::of_fault(error_code.unwrap_or_default()),
            RunStatus::Completed | RunStatus::Pending | RunStatus::Running | RunStatus::Paused => Self::Ok,
        }
    }

    fn of_fault(error_code: &str) -> Self {
        match error_code {
            code::RUN_TIMEOUT
            | code::RECURSION_LIMIT_EXCEEDED
            | code::LOOP_LIMIT_EXCEEDED
            | code::NESTING_LIMIT_EXCEEDED
            | "budget_exhausted" => Self::Bound,
            code::NODE_TIMEOUT | code::INTERRUPT_TIMEOUT | code::CHILD_CANCELLED => Self::Cancelled,
            other if other.starts_with("replay_diverged") => Self::Diverged,
            _ => Self::Failed,
        }
    }

    /// What a refusal of the host means to a script.
    pub(crate) fn of_client(error: &baton_client::Error) -> Self {
        use baton_client::Error;
        match error {
            Error::Api { code, .. } if code.starts_with("replay_diverged") => Self::Diverged,
            Error::Api { status, .. } => match status {
                401 | 403 => Self::Auth,
                404 => Self::NotFound,
                409 | 410 => Self::Conflict,
                // Pruned: it was there, and is gone for good.
                422 if error.code() == Some(code::REPLAY_MEMORY_SNAPSHOT_UNAVAILABLE) => Self::Conflict,
                422 if error.code().is_some_and(|code| code.starts_with("interrupt_")) => Self::Conflict,
                429 | 502..=504 => Self::Unreachable,
                400..=499 => Self::Usage,
                _ => Self::Failed,
            },
            Error::Unreachable { .. } | Error::Silent { .. } | Error::NotUnderstood { .. } => Self::Unreachable,
            Error::BadUrl { .. } | Error::BadName { .. } | Error::BadKey => Self::Usage,
            Error::Setup { .. } => Self::Failed,
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str) -> u8 {
        let error = baton_client::Error::Api {
            status,
            code: code.to_owned(),
            message: String::new(),
            details: serde_json::Map::new(),
        };
        Exit::of_client(&error) as u8
    }

    #[test]
    fn ends_of_runs() {
        for (status, code, exit) in [
            (RunStatus::Completed, None, 0),
            (RunStatus::Failed, Some("boom"), 1),
            (RunStatus::Failed, None, 1),
            (RunStatus::WaitingApproval, None, 6),
            (RunStatus::WaitingInput, None, 6),
            (RunStatus::WaitingExternal, None, 6),
            (RunStatus::Cancelled, None, 7),
            (RunStatus::Failed, Some("node_timeout"), 7),
            (RunStatus::Failed, Some("run_timeout"), 8),
            (RunStatus::Failed, Some("recursion_limit_exceeded"), 8),
            (RunStatus::Failed, Some("loop_limit_exceeded"), 8),
            (RunStatus::Failed, Some("replay_diverged_at_refusal"), 9),
        ] {
            assert_eq!(Exit::of_run(status, code) as u8, exit, "{status} {code:?}");
        }
    }

    #[test]
    fn refusals() {
        for (status, code, exit) in [
            (400, "validation_error", 2),
            (413, "payload_too_large", 2),
            (422, "validation_error", 2),
            (404, "run_not_found", 3),
            (401, "unauthenticated", 4),
            (403, "forbidden", 4),
            (409, "run_already_active", 5),
            (410, "interrupt_gone", 5),
            (422, "interrupt_cancelled", 5),
            (422, "replay_memory_snapshot_unavailable", 5),
            (422, "invalid_from_seq", 2),
            (500, "internal_error", 1),
            (503, "service_unavailable", 10),
        ] {
            assert_eq!(refused(status, code), exit, "{status} {code}");
        }
    }
}
