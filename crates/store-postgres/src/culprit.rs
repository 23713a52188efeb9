//! Which write of a part it is that the database does not take.

use std::time::{Duration, Instant};

use baton_store::{CommitPart, Write};
use tokio_postgres::Client;

use crate::error::{ATTEMPTS, is_duplicate, is_of_the_data, is_retryable};
use crate::known::{Found, Known};
use crate::look::look;
use crate::plan::Plan;
use crate::statement::{Failure, Statements, is_miscounted};

/// Ever closer beginnings of the part are tried and undone: the last write of the shortest that is refused is the one.
/// There are few tries, however long the part is. `None` if it cannot be told, or not until then.
pub(crate) async fn find_culprit<'a>(
    client: &Client,
    statements: &mut Statements,
    me: u64,
    part: CommitPart<'a>,
    until: Instant,
) -> Option<&'a Write> {
    let found = look(client, statements, &[part]).await.ok()?;
    let mut search = Search { client, statements, me, part, found, until };
    let (mut taken, mut refused) = (0, part.writes.len());
    if !search.is_refused(part.writes).await? {
        // It may be somebody else's row that was in the way, and is gone.
        return None;
    }
    while refused - taken > 1 {
        let middle = taken + (refused - taken) / 2;
        if search.is_refused(&part.writes[..middle]).await? {
            refused = middle;
        } else {
            taken = middle;
        }
    }
    part.writes.get(taken)
}

struct Search<'a> {
    client: &'a Client,
    statements: &'a mut Statements,
    me: u64,
    part: CommitPart<'a>,
    found: Found,
    until: Instant,
}

impl Search<'_> {
    /// Whether the database refuses these for what they are; `None` if that cannot be found out.
    async fn is_refused(&mut self, writes: &[Write]) -> Option<bool> {
        for attempt in 1..=ATTEMPTS {
            let mut plan = Plan::new(self.me);
            plan.add(writes, &Known::new(self.me, Some(&self.found)));
            let rehearsed = self.statements.rehearse(self.client, &plan.statements(), self.until).await;
            let Err(Failure { error, .. }) = rehearsed else {
                // One that there was no time for was not taken.
                return (Instant::now() < self.until).then_some(false);
            };
            if is_retryable(&error) {
                tokio::time::sleep(Duration::from_millis(u64::from(attempt) * (1 + self.me % 4))).await;
            } else if is_miscounted(&error) || is_duplicate(&error) {
                // Unless somebody else has changed what these build on.
                let now = look(self.client, self.statements, &[self.part]).await.ok()?;
                return (now == self.found).then_some(true);
            } else {
                return is_of_the_data(&error).then_some(true);
            }
        }
        None
    }
}
