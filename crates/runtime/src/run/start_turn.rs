//! Starting the next turn of a conversation: one at a time, under its name.

use std::sync::Arc;

use baton_engine::{Plan, Start};
use baton_model::event::RunSettings;
use baton_model::{ConversationTurn, Principal};

use crate::journal::lane::Lane;
use crate::run::start::{Launch, RunStarter};
use crate::services::conversations::{Noted, busy};
use crate::{Error, Idempotent, StartedRun};

impl RunStarter {
    /// Begins the next turn of a conversation.
    pub(crate) async fn start_turn(
        self: &Arc<Self>,
        who: &Principal,
        id: String,
        plan: Arc<Plan>,
        start: Start,
        idempotent: Option<Idempotent<StartedRun>>,
    ) -> Result<StartedRun, Error> {
        let who = who.clone();
        self.tasks
            .see_through_steps(self, |room| async move {
                let name = format!("conversation:{}/{id}", who.tenant);
                // Held until the run is durable, so that whoever comes next sees it.
                let _one_at_a_time = room.exclusive.lock(&name).await;
                let next = async {
                    if let Some(active) = room.conversations.open_turn(&who.tenant, &id).await? {
                        return Err(busy(&id, &active));
                    }
                    let run = room.ids.run();
                    let agent =
                        start.settings.agents.keys().next().filter(|_| start.settings.source.is_some()).cloned();
                    let turn =
                        room.conversations.note_turn(&who.tenant, &id, Noted { run: run.clone(), agent }).await?;
                    let conversation = Some(Box::new(ConversationTurn { conversation: id.clone(), turn }));
                    let settings = Box::new(RunSettings { conversation, ..*start.settings });
                    let start = Start { settings, ..start };
                    room.launch(&who, Launch { idempotent, held: Some(&name), ..Launch::new(run, plan, start) }).await
                };
                room.claims.alone(&name, Lane::Of(&who.tenant), next).await
            })
            .await
    }
}
