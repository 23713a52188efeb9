//! What a checkpoint is made of, field by field. If this fails, what is kept has changed: raise
//! [`super::CHECKPOINT_FORMAT`], so that nobody reads what an older build wrote for something that it is not, and write the
//! new shape down here.

use serde::Deserializer;
use serde::de::{DeserializeOwned, Error as _, Visitor, value::Error};

use super::*;
use crate::envelope::Asked;
use crate::invocation::{Call, Invocation, Round, Thinking};
use crate::orchestration::{Stage, Worker};
use crate::state::{ItemError, ItemRun, ItemWork, Planned, Verdict};
use crate::step_work::{Answered, StepWork};

/// Asked to read a type, it says what the type's fields are.
struct Shape;

fn shape_of<T: DeserializeOwned>() -> String {
    match T::deserialize(Shape) {
        Ok(_) => String::new(),
        Err(shape) => shape.to_string(),
    }
}

impl<'de> Deserializer<'de> for Shape {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("?"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(Error::custom(format!("{name}: {}", fields.join(" "))))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(Error::custom(format!("{name}: {}", variants.join(" "))))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map identifier ignored_any
    }
}

#[test]
fn what_is_kept_changes_with_the_number_of_the_format() {
    let shape = [
        format!("format {CHECKPOINT_FORMAT}"),
        shape_of::<KeptRead>(),
        shape_of::<BeginningRead>(),
        shape_of::<NodeRun>(),
        shape_of::<EdgeState>(),
        shape_of::<Ready>(),
        shape_of::<Verdict>(),
        shape_of::<Phase>(),
        shape_of::<Interrupt>(),
        shape_of::<Child>(),
        shape_of::<Planned>(),
        shape_of::<Writer>(),
        shape_of::<Decided>(),
        shape_of::<WorkerBatch>(),
        shape_of::<Worker>(),
        shape_of::<Stage>(),
        shape_of::<Invocation>(),
        shape_of::<Thinking>(),
        shape_of::<Round>(),
        shape_of::<Call>(),
        shape_of::<StepWork>(),
        shape_of::<Answered>(),
        shape_of::<Asked>(),
        shape_of::<ReadVersion>(),
        shape_of::<ChannelState>(),
        shape_of::<Transcript>(),
        shape_of::<MapListsRead>(),
        shape_of::<MapRun>(),
        shape_of::<ItemRun>(),
        shape_of::<ItemWork>(),
        shape_of::<ItemEnd>(),
        shape_of::<ItemError>(),
    ];
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&shape.join("\n")), words(SHAPE), "{}", shape.join("\n"));
}

const SHAPE: &str = "
format 2
KeptRead: start outputs children decisions maps nodes run next_seq last_at phase edges ready active variables
    writers read_version workspace channels executions interrupts settled live turns decision transcript reported
    agent worker cost dispatches batch error cancelled_by_parent reserved bytes
BeginningRead: at event settings
NodeRun: status visit attempt outputs error started_at started_seq wake_at deadline child held snapshot call
    reply replied asked calls broken not_before since left invocation handed_to effect tool map waits over_budget refine
    looping earlier_visits chunks answered
EdgeState: Pending Open Closed Failed
Ready: node verdict
Verdict: Run Skip Again
Phase: New Active Paused Ending Ended
Interrupt: node kind key interrupt_id data resume_schema timeout_ms requested_at expires_at bearer_only hidden
    votes
Child: plan node status error dispatched live planned remote iteration worker
Planned: seq at
Writer: Node Answer Hand
Decided: decision iteration seq
WorkerBatch: node iteration workers ended announced joined
Worker: id stage child last_seq outputs attestation error harvested
Stage: Pending Dispatching Running Completed Harvested Withheld Failed Cancelled Refused
Invocation: id brief rule transcript rounds over thinking reasoned
Thinking: pieces text
Round: reply calls
Call: id seq asked outcome unknown again verify waits told_waiting work
StepWork: answers memo memo_bytes
Answered: request dispatch seq
Asked: before room nudge prose
ReadVersion: version own
ChannelState: Single List
Transcript: entries chars shortened
MapListsRead: node items ends
MapRun: tool next under_way completed failed bytes stopping
ItemRun: attempt work wake_at deadline
ItemWork: Call Child Waits
ItemEnd: Done Failed
ItemError: code message
";
