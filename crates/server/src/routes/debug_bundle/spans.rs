//! As many spans as there is room for: names, times, codes, and nothing that was said.

use baton_model::{RunId, TenantId};
use baton_runtime::Host;
use baton_telemetry::{Detail, Span};
use serde_json::value::{RawValue, to_raw_value};

use crate::error::ApiError;
use crate::spans;

pub(super) struct Spans {
    pub(super) all: Vec<Box<RawValue>>,
    room: usize,
    pub(super) cut: bool,
}

impl Spans {
    /// Of the first `count` records.
    pub(super) async fn read(
        host: &Host,
        tenant: &TenantId,
        run: &RunId,
        count: u64,
        room: usize,
    ) -> Result<Self, ApiError> {
        let mut all = Self { all: Vec::new(), room, cut: false };
        // Tags and scope are somebody else's words, and bundles leave those out.
        let detail = Detail { labels: false, ..Detail::default() };
        spans::each(host, tenant, run, count, detail, |span| all.add(&span)).await?;
        Ok(all)
    }

    fn add(&mut self, span: &Span) -> Result<(), ApiError> {
        let span = to_raw_value(&spans::shown(span)).map_err(|_| unwritable())?;
        // One more for the comma.
        match self.room.checked_sub(span.get().len() + 1).filter(|_| !self.cut) {
            Some(room) => {
                self.room = room;
                self.all.push(span);
            }
            None => self.cut = true,
        }
        Ok(())
    }
}

pub(super) fn unwritable() -> ApiError {
    ApiError::internal("The bundle could not be written.")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use baton_model::Timestamp;
    use baton_telemetry::{Kind, SpanId, Status, TraceId};

    #[test]
    fn spans_that_do_not_fit_are_left_out_from_the_end() {
        let span = Span {
            trace: TraceId([1; 16]),
            id: SpanId([2; 8]),
            parent: None,
            name: "openwop.run".to_owned(),
            kind: Kind::Internal,
            start: Timestamp::from_micros(0),
            end: None,
            attributes: vec![("openwop.run_id", "run_1".into())],
            links: Vec::new(),
            status: Status::Error("flaky".to_owned()),
            sampled: false,
            state: None,
        };
        let mut one = Spans { all: Vec::new(), room: usize::MAX, cut: false };
        one.add(&span).unwrap();
        let mut spans = Spans { all: Vec::new(), room: 2 * (one.all[0].get().len() + 1), cut: false };
        for _ in 0..3 {
            spans.add(&span).unwrap();
        }
        assert_eq!((spans.all.len(), spans.cut), (2, true));
    }
}
