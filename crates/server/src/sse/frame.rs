//! Writing frames. Many frames go into one buffer: a page of events is one write.

use std::io::Write as _;

pub(crate) const KEEPALIVE: &[u8] = b":keepalive\n\n";
/// Sent when there is nothing else yet, so that a reader knows at once that the stream is open.
pub(super) const OPEN: &[u8] = b":open\n\n";

/// `data` must be one line, which JSON written by a serialiser is.
pub(super) fn push(out: &mut Vec<u8>, id: u64, event: &str, data: &[u8]) {
    out.reserve(data.len() + event.len() + 40);
    head(out, id, event);
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// A frame without an id: where a reader resumes does not change.
pub(super) fn push_aside(out: &mut Vec<u8>, event: &str, data: &[u8]) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "event: {event}\ndata: ");
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// Several events in one frame; `id` is the highest sequence among them.
pub(super) fn push_batch(out: &mut Vec<u8>, id: u64, bodies: &[u8]) {
    out.reserve(bodies.len() + 40);
    head(out, id, "batch");
    out.push(b'[');
    out.extend_from_slice(bodies);
    out.extend_from_slice(b"]\n\n");
}

fn head(out: &mut Vec<u8>, id: u64, event: &str) {
    // Writing to a Vec cannot fail.
    let _ = write!(out, "id: {id}\nevent: {event}\ndata: ");
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_id_event_and_one_line_of_data() {
        let mut out = Vec::new();
        push(&mut out, 7, "node.completed", br#"{"a":1}"#);
        push(&mut out, 8, "run.completed", b"{}");
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "id: 7\nevent: node.completed\ndata: {\"a\":1}\n\nid: 8\nevent: run.completed\ndata: {}\n\n");
    }

    #[test]
    fn a_batch_is_an_array_under_its_highest_sequence() {
        let mut out = Vec::new();
        push_batch(&mut out, 9, br#"{"sequence":8},{"sequence":9}"#);
        assert_eq!(out, b"id: 9\nevent: batch\ndata: [{\"sequence\":8},{\"sequence\":9}]\n\n");
    }
}
