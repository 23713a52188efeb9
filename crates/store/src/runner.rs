//! Rows of runners: who may be one, who is, and the steps that are given to them.

use baton_model::{RunId, TenantId, Timestamp};

/// A token that the host gave out. Only its hash is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRow {
    pub id: String,
    /// What it opens: `runner` for the channel of runners.
    pub kind: String,
    pub tenant: TenantId,
    /// On whose behalf its bearer acts.
    pub subject: String,
    pub name: String,
    /// SHA-256 of the token, in hexadecimal digits.
    pub hash: String,
    /// What it allows, by name; empty where its kind says all.
    pub scopes: String,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// A runner that signed in. Of two rows of one key the one of the greater version counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnerRow {
    /// Tells it from the runners of everybody else: a digest of tenant, subject and its own id.
    pub key: String,
    pub version: u64,
    /// The session of the host that it is connected to; 0 where there are no sessions.
    pub epoch: u64,
    /// When it was last heard of, as far as it had to be noted.
    pub seen_at: Timestamp,
    /// The rest, as JSON.
    pub body: String,
}

/// Where a step of a run stands that a runner is to do. Of two rows of one key the one of the greater version counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRow {
    /// A digest of the run and the step.
    pub key: String,
    pub run: RunId,
    /// A digest of tenant and subject.
    pub owner: String,
    pub state: StepState,
    pub version: u64,
    pub at: Timestamp,
    /// The rest, as JSON.
    pub body: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepState {
    /// No runner has been given it, or one gave it back undone.
    Queued,
    /// A runner has it, or may have it.
    Leased,
    /// The runner's time is up and nobody knows what became of it.
    Lost,
    /// Its result is on the run's log.
    Done,
}

impl StepState {
    pub const ALL: [Self; 4] = [Self::Queued, Self::Leased, Self::Lost, Self::Done];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Leased => "leased",
            Self::Lost => "lost",
            Self::Done => "done",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A change of what is known of runners.
#[derive(Clone, Debug)]
pub enum RunnerWrite {
    PutToken(TokenRow),
    DeleteToken {
        id: String,
    },
    /// Changes nothing where a row of the same or a greater version is there.
    PutRunner(RunnerRow),
    DeleteRunner {
        key: String,
    },
    /// Changes nothing where a row of the same or a greater version is there.
    PutStep(StepRow),
    DeleteStep {
        key: String,
    },
    /// Forgets at most as many steps that did not change since, of this state if one is named.
    ForgetSteps {
        before: Timestamp,
        state: Option<StepState>,
        limit: u64,
    },
}

impl RunnerWrite {
    pub(crate) fn about(&self) -> &'static str {
        match self {
            Self::PutToken(_) | Self::DeleteToken { .. } => "a token",
            Self::PutRunner(_) | Self::DeleteRunner { .. } => "a runner",
            Self::PutStep(_) | Self::DeleteStep { .. } | Self::ForgetSteps { .. } => "a step of a runner",
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::PutToken(row) => row.subject.len() + row.name.len() + row.scopes.len(),
            Self::PutRunner(row) => row.body.len(),
            Self::PutStep(row) => row.body.len(),
            Self::DeleteToken { .. }
            | Self::DeleteRunner { .. }
            | Self::DeleteStep { .. }
            | Self::ForgetSteps { .. } => 0,
        }
    }
}
