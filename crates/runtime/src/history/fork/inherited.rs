//! What a run has by the time it is forked: what its first record says, and what the branches on its way laid over it.

use baton_model::event::{RunSettings, RunStarted};
use baton_model::{Event, Overlay, Owner, Principal, ValueBounds};
use baton_store::RunRow;
use serde_json::{Map, Value};

use crate::Error;
use crate::history::fork::service::Forks;
use crate::run::summary::is_imported;

pub(super) struct Inherited {
    pub(super) started: RunStarted,
    /// Newest first, without those that began only after the fork point.
    overlays: Vec<Overlay>,
    /// Whose run it is, as far as this host knows. What came with a file says so itself, and anybody can write a file.
    owner: Option<Owner>,
}

impl Forks {
    pub(super) async fn inherited(&self, source: &RunRow, from_seq: u64) -> Result<Inherited, Error> {
        let mut row = source.clone();
        let mut overlays = Vec::new();
        let mut owner = None;
        let mut foreign = is_imported(&row);
        while let Some(origin) = row.origin.take() {
            // A fork before the point where its source branched off has nothing of that branch.
            if origin.seq <= from_seq {
                owner = owner.or_else(|| origin.overlay.owner.clone().filter(|_| !foreign));
                overlays.push(origin.overlay);
            }
            row = self.store.run(&origin.source).await?.ok_or_else(Error::run_not_found)?;
            foreign |= is_imported(&row);
        }
        let first = self.log.log(&row, 0, 1).await?.pop().ok_or_else(Error::run_not_found)?.decode(&row.id)?;
        let Event::RunStarted(started) = first.event else { return Err(Error::run_not_found()) };
        // Runs that came in before that was noted down are known by another tenant's name.
        let known = !foreign && started.owner.tenant == source.tenant;
        let owner = owner.or_else(|| known.then(|| started.owner.clone()));
        Ok(Inherited { started, overlays, owner })
    }
}

impl Inherited {
    /// What the latest branch says, else the first record.
    pub(super) fn latest<T>(
        &self,
        of_branch: impl Fn(&Overlay) -> Option<T>,
        of_start: impl Fn(&RunSettings) -> T,
    ) -> T {
        self.overlays.iter().find_map(of_branch).unwrap_or_else(|| of_start(&self.started.private))
    }

    /// The same, of what need not be said at all.
    pub(super) fn latest_said<T>(
        &self,
        of_branch: impl Fn(&Overlay) -> Option<T>,
        of_start: impl Fn(&RunSettings) -> Option<T>,
    ) -> Option<T> {
        self.overlays.iter().find_map(of_branch).or_else(|| of_start(&self.started.private))
    }

    /// The bounds on its values, which a branch keeps.
    pub(super) fn values(&self) -> ValueBounds {
        self.started.private.value_bounds()
    }

    pub(super) fn configurable(&self) -> Map<String, Value> {
        let mut configurable = self.started.private.configurable.clone();
        self.overlays.iter().rev().for_each(|overlay| configurable.extend(overlay.configurable.clone()));
        configurable
    }

    /// Whose a branch is, where that is not what its log says: whoever makes a branch of a run that nobody here
    /// vouches for acts in their own name.
    pub(super) fn owner_of_branch(&self, who: &Principal) -> Option<Owner> {
        let own = || Owner {
            tenant: who.tenant.clone(),
            principal: Some(who.subject.clone()),
            subject: who.acts_for.clone(),
        };
        // Its steps go to the runners of whoever makes it: nobody sends work to somebody else's by a branch.
        let owner = Owner { subject: who.acts_for.clone(), ..self.owner.clone().unwrap_or_else(own) };
        (owner != self.started.owner).then_some(owner)
    }
}
