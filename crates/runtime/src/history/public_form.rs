//! A record's public face is kept as text and served as it is, while everything that folds or replays a log reads the
//! record. Here both are held against each other.

use baton_model::{Event, Record, RunId};
use baton_store::StoredRecord;
use serde_json::{Map, Value};

/// What the text says, compared with what the record says.
#[derive(Debug, PartialEq)]
pub(crate) enum PublicForm {
    /// What this host would write. Builds may order members otherwise; that is the same face.
    Own,
    /// The same in other words: spaces, other escapes, a member that is there twice.
    Reworded { own: String },
    /// Something else. `members` of the event are not what they should be.
    False { said: Value, meant: Value, members: Vec<String> },
}

/// Looks at the public face of a record that `told` was read from.
pub(crate) fn face(run: &RunId, stored: &StoredRecord, told: &Record) -> PublicForm {
    let own = told.public_json(run);
    if own == stored.body {
        return PublicForm::Own;
    }
    let said: Value = serde_json::from_str(&stored.body).unwrap_or_default();
    let mut meant: Value = serde_json::from_str(&own).unwrap_or_default();
    let mut own = own;
    if let (Event::Other { .. }, Some(node)) = (&told.event, said.get("nodeId").filter(|node| node.is_string())) {
        // Where an event of a later build stands, this one cannot know.
        meant["nodeId"] = node.clone();
        own = meant.to_string();
    }
    if said == meant {
        // Members in another order take as much room; one that is there twice, and may be read twice, takes more.
        return if own.len() == stored.body.len() { PublicForm::Own } else { PublicForm::Reworded { own } };
    }
    let empty = Map::new();
    let (left, right) = (said.as_object().unwrap_or(&empty), meant.as_object().unwrap_or(&empty));
    let mut members: Vec<String> =
        left.keys().chain(right.keys()).filter(|name| left.get(*name) != right.get(*name)).cloned().collect();
    members.sort();
    members.dedup();
    PublicForm::False { said, meant, members }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use baton_model::{Part, Timestamp, Versions};
    use serde_json::json;

    use super::*;

    fn stored(kind: &str, payload: Value) -> (RunId, StoredRecord, Record) {
        let run = RunId::new("run_1");
        let record = Record {
            seq: 3,
            at: Timestamp::from_micros(5),
            event: Event::decode(kind, &payload.to_string(), None).unwrap(),
            causation: Some(1),
            versions: Versions::default(),
            part: Some(Part { outside: false, first: true }),
        };
        let stored = StoredRecord::encode(&run, &record);
        let told = stored.decode(&run).unwrap();
        (run, stored, told)
    }

    fn changed(stored: &StoredRecord, change: impl Fn(&mut Value)) -> StoredRecord {
        let mut body: Value = serde_json::from_str(&stored.body).unwrap();
        change(&mut body);
        StoredRecord { body: body.to_string(), ..stored.clone() }
    }

    fn of(run: &RunId, stored: &StoredRecord) -> PublicForm {
        face(run, stored, &stored.decode(run).unwrap())
    }

    #[test]
    fn a_face_says_what_its_record_says_and_nothing_else() {
        let (run, record, told) = stored("node.completed", json!({"nodeId": "a", "outputs": {"n": 0.1}}));
        assert_eq!(face(&run, &record, &told), PublicForm::Own);
        assert_eq!(of(&run, &changed(&record, |_| {})), PublicForm::Own, "in another order");
        let false_in = |change: fn(&mut Value)| match of(&run, &changed(&record, change)) {
            PublicForm::False { members, .. } => members,
            other => vec![format!("{other:?}")],
        };
        assert_eq!(false_in(|body| body["nodeId"] = json!("b")), ["nodeId"]);
        assert_eq!(false_in(|body| body["causationId"] = json!("evt_of_another")), ["causationId"]);
        assert_eq!(false_in(|body| body["type"] = json!("node.failed")), ["type"]);
        assert_eq!(false_in(|body| body["note"] = json!("approved")), ["note"]);
        assert_eq!(false_in(|body| body["payload"]["note"] = json!("approved")), ["payload"]);
        assert_eq!(false_in(|body| drop(body.as_object_mut().unwrap().remove("schemaVersion"))), ["schemaVersion"]);
        let twice =
            StoredRecord { body: record.body.replacen('{', r#"{"type":"run.completed","#, 1), ..record.clone() };
        assert_eq!(of(&run, &twice), PublicForm::Reworded { own: record.body });
    }

    #[test]
    fn an_event_of_a_later_build_may_stand_at_a_node() {
        let (run, record, _) = stored("node.dreamt", json!({"of": "sheep"}));
        assert_eq!(of(&run, &record), PublicForm::Own);
        assert_eq!(of(&run, &changed(&record, |body| body["nodeId"] = json!("a"))), PublicForm::Own);
        let other = changed(&record, |body| body["type"] = json!("node.completed"));
        assert!(matches!(of(&run, &other), PublicForm::False { .. }));
    }
}
