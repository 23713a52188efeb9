//! What must hold of every log, snapshot and refusal, whatever the scenario. The schemas are the ones the model
//! publishes; where a copy of the protocol's own schemas lies beside the repository, those are asked as well.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

use baton_model::{Event, event};
use jsonschema::Validator;
use serde_json::Value;

const TERMINAL: [&str; 3] = ["run.completed", "run.failed", "run.cancelled"];

/// A log as far as it goes: 0, 1, 2, …, required fields, valid payloads, nothing after a terminal event.
#[track_caller]
pub fn log(run: &str, events: &[Value]) {
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["sequence"].as_u64(), Some(index as u64), "{run}: {event}");
        for field in ["eventId", "type", "timestamp"] {
            assert!(event[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {event}");
        }
        assert_eq!(event["runId"], run, "{event}");
        let kind = event["type"].as_str().unwrap();
        let payload = event.get("payload").unwrap_or_else(|| panic!("no payload: {event}"));
        let schemas = published();
        valid(&schemas.envelope, event, kind);
        valid(schemas.payloads.get(kind).unwrap_or_else(|| panic!("unknown type: {event}")), payload, kind);
        protocol(kind, payload);
        let last = index + 1 == events.len();
        assert!(last || !TERMINAL.contains(&kind), "{run}: something follows {event}");
    }
}

/// The log of a run that has ended: the terminal event is there, once, and last.
#[track_caller]
pub fn ended(run: &str, events: &[Value]) {
    log(run, events);
    let last = events.last().unwrap_or_else(|| panic!("{run} has no events"));
    assert!(TERMINAL.contains(&last["type"].as_str().unwrap()), "{run} ends with {last}");
    assert_eq!(events[0]["type"], "run.started", "{run}");
}

/// The closed envelope of every refusal.
#[track_caller]
pub fn envelope(body: &Value) {
    let members = body.as_object().unwrap_or_else(|| panic!("not an object: {body}"));
    assert!(members.keys().all(|key| ["error", "message", "details"].contains(&key.as_str())), "{body}");
    for field in ["error", "message"] {
        assert!(body[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {body}");
    }
    assert!(body.get("details").is_none_or(Value::is_object), "{body}");
    protocol("error-envelope.schema.json", body);
}

#[track_caller]
pub fn snapshot(body: &Value) {
    for field in ["runId", "workflowId", "status"] {
        assert!(body[field].is_string(), "{field}: {body}");
    }
    let status = body["status"].as_str().unwrap();
    if status == "failed" {
        assert!(body["error"]["code"].is_string() && body["error"]["message"].is_string(), "{body}");
    }
    if status.starts_with("waiting-") {
        assert!(body["currentNodeId"].is_string(), "{body}");
    }
    protocol("run-snapshot.schema.json", body);
}

struct Published {
    envelope: Validator,
    payloads: BTreeMap<&'static str, Validator>,
}

fn published() -> &'static Published {
    static PUBLISHED: OnceLock<Published> = OnceLock::new();
    let compiled = |text: &str| {
        let schema: Value = serde_json::from_str(text).unwrap();
        jsonschema::draft202012::options().should_validate_formats(true).build(&schema).unwrap()
    };
    PUBLISHED.get_or_init(|| Published {
        envelope: compiled(event::ENVELOPE_SCHEMA),
        payloads: Event::TYPE_NAMES.iter().map(|name| (*name, compiled(event::schema(name).unwrap()))).collect(),
    })
}

/// A folder of the protocol's data, if a copy is at hand.
pub fn protocol_folder(name: &str) -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/openwop").join(name);
    beside.is_dir().then_some(beside)
}

/// Judges a document by one of the protocol's schemas, named by its file or by the event it is the payload of; says
/// nothing where there is no copy of them.
#[track_caller]
pub fn protocol(file: &str, document: &Value) {
    static COMPILED: OnceLock<BTreeMap<&'static str, Validator>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(|| protocol_folder("schemas").map(compile_protocol).unwrap_or_default());
    if let Some(validator) = compiled.get(file) {
        valid(validator, document, file);
    }
}

fn compile_protocol(folder: PathBuf) -> BTreeMap<&'static str, Validator> {
    let read =
        |file: &str| -> Value { serde_json::from_str(&std::fs::read_to_string(folder.join(file)).unwrap()).unwrap() };
    // All of them, since any may refer to any.
    let files = std::fs::read_dir(&folder).unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    let registry = files
        .filter(|file| file.ends_with(".schema.json"))
        .fold(jsonschema::Registry::new(), |registry, file| {
            let schema = read(&file);
            match schema["$id"].as_str().map(str::to_owned) {
                Some(id) => registry.add(id, schema).unwrap(),
                None => registry,
            }
        })
        .prepare()
        .unwrap();
    let whole = [
        "agent-inventory-response.schema.json",
        "capabilities.schema.json",
        "error-envelope.schema.json",
        "prompt-template.schema.json",
        "run-snapshot.schema.json",
        "tool-descriptor.schema.json",
    ];
    let build = |schema: &Value| jsonschema::draft202012::options().with_registry(&registry).build(schema).unwrap();
    let payloads = read("run-event-payloads.schema.json");
    let payload = |name: &str| {
        let mut schema = payloads.clone();
        schema["$ref"] = format!("#/$defs/{name}").into();
        build(&schema)
    };
    let whole = whole.into_iter().map(|file| (file, build(&read(file))));
    whole.chain(PAYLOADS.into_iter().map(|(kind, name)| (kind, payload(name)))).collect()
}

/// Events of agents, and what the protocol calls their payloads.
const PAYLOADS: [(&str, &str); 19] = [
    ("agent.decided", "agentDecided"),
    ("agent.handoff", "agentHandoff"),
    ("agent.invocation.completed", "agentInvocationCompleted"),
    ("agent.invocation.started", "agentInvocationStarted"),
    ("agent.promptResolved", "agentPromptResolved"),
    ("agent.reasoned", "agentReasoned"),
    ("agent.reasoning.delta", "agentReasoningDelta"),
    ("agent.toolCalled", "agentToolCalled"),
    ("agent.toolReturned", "agentToolReturned"),
    ("envelope.nlToFormat.engaged", "envelopeNlToFormatEngaged"),
    ("envelope.recovery.applied", "envelopeRecoveryApplied"),
    ("envelope.refusal", "envelopeRefusal"),
    ("envelope.retry.attempted", "envelopeRetryAttempted"),
    ("envelope.retry.exhausted", "envelopeRetryExhausted"),
    ("envelope.truncated", "envelopeTruncated"),
    ("model.capability.insufficient", "modelCapabilityInsufficient"),
    ("model.capability.substituted", "modelCapabilitySubstituted"),
    ("prompt.composed", "promptComposed"),
    ("provider.usage", "providerUsage"),
];

#[track_caller]
fn valid(validator: &Validator, document: &Value, what: &str) {
    if let Some(error) = validator.iter_errors(document).next() {
        panic!("{what}{}: {error} in {document}", error.instance_path());
    }
}
