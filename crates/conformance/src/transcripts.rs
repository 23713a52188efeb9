//! What a supervisor was told in one turn of the turns before, read off what that turn and those before it recorded.

use baton_engine::Transcript;
use baton_model::{Event, RunId, TenantId, code};
use baton_runtime::{Error, ErrorKind, Host};

/// Records that are read at once.
const PAGE: usize = 1000;

pub(crate) async fn transcript_window(
    host: &Host,
    tenant: &TenantId,
    run: &RunId,
    turn: u64,
) -> Result<Transcript, Error> {
    let mut window = Transcript::default();
    let mut next = 0;
    loop {
        let page = host.log(tenant, run, next, PAGE).await?.records;
        let read = page.len();
        for record in page {
            if let Event::NodeStarted(start) = record.event
                && let Some(change) = start.private.transcript
            {
                window.take(&change);
                if change.iteration == turn {
                    return Ok(window);
                }
            }
        }
        next += read as u64;
        if read < PAGE {
            let message = format!("The run has recorded no turn {turn} with a transcript.");
            let error = Error::new(ErrorKind::Unprocessable, code::VALIDATION_ERROR, message);
            return Err(error.with("iteration", turn));
        }
    }
}
