//! How long to be patient: with one delivery (a few retries, further and further apart) and with one subscriber (a
//! circuit that opens after failures in a row, and gives up when a week brings too many, until somebody resumes it).

use baton_model::Timestamp;
use baton_store::{Attempt, FailurePolicy, Webhook, WebhookStatus};

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Pauses after the first, second, … failed attempt of a delivery. When none is left, it is a dead letter.
const RETRY_AFTER: [u64; 5] = [SECOND, 5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE];
/// This many failures in a row open the circuit.
const OPENS_AT: u32 = 4;
const OPEN_FOR: u64 = HOUR;
/// After this many failures within one window the subscription is given up until somebody resumes it.
const GIVES_UP_AT: u32 = 100;
const WINDOW: u64 = 7 * 24 * HOUR;

/// When to try a delivery again that has now failed `attempts` times.
pub(crate) fn retry_at(attempts: u32, now: Timestamp) -> Option<Timestamp> {
    let pause = RETRY_AFTER.get(usize::try_from(attempts).ok()?.checked_sub(1)?)?;
    Some(now.plus_millis(*pause))
}

/// Until when this subscriber must be left alone, if it must.
pub(crate) fn closed_until(webhook: &Webhook, now: Timestamp) -> Option<Timestamp> {
    webhook.open_until.filter(|until| webhook.status == WebhookStatus::Open && *until > now)
}

/// A failure, and how many of them are too many. A failed probe opens the circuit again at once, because the count is
/// still high.
pub(crate) fn failed(at: Timestamp, status: Option<u16>) -> Attempt {
    let (opens_at, gives_up_at) = (OPENS_AT, GIVES_UP_AT);
    let policy = FailurePolicy { opens_at, open_ms: OPEN_FOR, gives_up_at, window_ms: WINDOW };
    Attempt::Failed { at, status, policy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_model::{TenantId, WebhookId};

    const START: Timestamp = Timestamp::from_millis(1_000_000);

    fn failed(webhook: &mut Webhook, at: Timestamp) {
        webhook.note(&super::failed(at, None));
    }

    fn succeeded(webhook: &mut Webhook) -> bool {
        webhook.note(&Attempt::Succeeded)
    }

    fn webhook() -> Webhook {
        Webhook {
            id: WebhookId::new("wh"),
            tenant: TenantId::new("t"),
            url: String::new(),
            events: Vec::new(),
            tags: Vec::new(),
            secret: String::new(),
            status: WebhookStatus::Active,
            consecutive_failures: 0,
            failures: 0,
            window_start: START,
            open_until: None,
            created_at: START,
            last_failure: None,
            letters_dropped: 0,
        }
    }

    #[test]
    fn a_delivery_is_retried_five_times() {
        let pauses: Vec<_> =
            (1..=5).map(|attempts| retry_at(attempts, START).map(|at| at.millis_since(START))).collect();
        assert_eq!(pauses, [1_000, 5_000, 30_000, 120_000, 600_000].map(Some));
        assert_eq!(retry_at(6, START), None);
    }

    #[test]
    fn four_failures_in_a_row_open_the_circuit_and_a_success_closes_it() {
        let mut webhook = webhook();
        for _ in 0..3 {
            failed(&mut webhook, START);
        }
        assert!(succeeded(&mut webhook), "the count was reset");
        assert!(!succeeded(&mut webhook), "nothing left to reset");
        for _ in 0..3 {
            failed(&mut webhook, START);
            assert_eq!(closed_until(&webhook, START), None);
        }
        failed(&mut webhook, START);
        let until = START.plus_millis(3_600_000);
        assert_eq!(closed_until(&webhook, START), Some(until));
        assert_eq!(closed_until(&webhook, until), None, "time for a probe");
        failed(&mut webhook, until);
        assert_eq!(closed_until(&webhook, until), Some(until.plus_millis(3_600_000)));
        assert!(succeeded(&mut webhook));
        assert_eq!((webhook.status, webhook.open_until), (WebhookStatus::Active, None));
    }

    #[test]
    fn a_hundred_failures_in_a_week_are_the_end_and_in_two_weeks_are_not() {
        let mut patient = webhook();
        let mut ended = webhook();
        for n in 0..100 {
            failed(&mut ended, START.plus_millis(n * HOUR));
            succeeded(&mut patient);
            failed(&mut patient, START.plus_millis(n * 4 * HOUR));
            assert_eq!(ended.status == WebhookStatus::Failed, n == 99);
        }
        assert_eq!(patient.status, WebhookStatus::Active);
        assert!(patient.failures < 100);
    }
}
