//! Plays a finished reply as if it arrived word by word.

use baton_model::ModelReply;

use crate::{Delta, DeltaSink};

/// Word by word, as a model would.
pub fn stream_reply(reply: &ModelReply, sink: &dyn DeltaSink) {
    for thought in reply.reasoning.iter().flat_map(|text| text.split_inclusive(' ')) {
        sink.push(Delta::Reasoning(thought.to_owned()));
    }
    for word in reply.content.split_inclusive(' ') {
        sink.push(Delta::Text(word.to_owned()));
    }
}
