//! The record of a branch that was approved anew.

use baton_model::event::{ForkApproved, ForkChanges, RestsOn};
use baton_model::{Event, NodeId, RunId};
use serde_json::json;

use crate::support::schemas;

#[test]
fn it_fits_its_schema_and_reads_back_whatever_it_rests_on() {
    let (run_id, node_id) = (RunId::new("run_1"), NodeId::new("gate"));
    let reasons = [
        RestsOn::Answer {
            run_id: run_id.clone(),
            node_id: node_id.clone(),
            interrupt_id: Some("int:gate:1".to_owned()),
        },
        RestsOn::Answer { run_id: run_id.clone(), node_id: node_id.clone(), interrupt_id: None },
        RestsOn::OpenQuestion { run_id: run_id.clone(), node_id, interrupt_id: "int:gate:1".to_owned() },
        RestsOn::OtherHost { run_id: run_id.clone() },
        RestsOn::Imported { run_id: run_id.clone() },
        RestsOn::Unknown,
    ];
    let named = ForkChanges { inputs: vec!["a".to_owned()], variables: vec!["b".to_owned()], configurable: Vec::new() };
    for rests_on in reasons {
        for changed in [ForkChanges::default(), named.clone()] {
            let event = Event::from(ForkApproved {
                source_run_id: run_id.clone(),
                from_seq: 3,
                approved_by: "key_1".to_owned(),
                rests_on: rests_on.clone(),
                changed,
            });
            let kind = event.type_name();
            let mut payload = serde_json::to_value(event.payload()).unwrap();
            assert_eq!(schemas::payload_violation(kind, &payload), None);
            assert_eq!(Event::decode(kind, &payload.to_string(), None).unwrap(), event);
            payload["restsOn"]["surprise"] = json!(1);
            assert!(schemas::payload_violation(kind, &payload).is_some(), "the schema is closed");
        }
    }
}
