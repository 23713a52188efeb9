//! Which layer has the prompt, and what the log says about the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_agent::bundled;
use baton_agent::prompts::{
    Agent, AgentPrompts, Bindings, Layers, Library, PromptError, PromptKind, PromptSlot, PromptTemplate, Warning,
    prompt, prompts, resolve,
};
use serde_json::{Map, Value, json};

const ALL: [&str; 7] = [
    "run-configurable",
    "node",
    "agent-intrinsic",
    "agent-overrides",
    "agent-library-default",
    "workflow-defaults",
    "host-defaults",
];

/// What each layer has for a kind; an absent one has nothing.
struct World {
    run: Option<Map<String, Value>>,
    node: Map<String, Value>,
    overrides: BTreeMap<String, Value>,
    intrinsic: bool,
    agent_library: Option<&'static str>,
    workflow: Map<String, Value>,
    host: Map<String, Value>,
    library: Library,
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn library() -> Library {
    let mut library = Library::new();
    let mut add = |packs: &str, id: &str, kind: &str, text: &str, tags: Value| {
        let value = json!({"templateId": id, "version": "1.0.0", "kind": kind, "text": text, "tags": tags});
        library.add(packs, Arc::new(PromptTemplate::read(&value, "#").unwrap()));
    };
    for id in ["run", "node", "overrides", "workflow", "host"] {
        add("host", id, "system", &format!("{id} says {{{{x}}}}"), json!([]));
    }
    add("shots", "shot-a", "few-shot", "a", json!([]));
    add("shots", "shot-b", "few-shot", "b", json!([]));
    add("lib", "one", "system", "library one", json!([]));
    add("lib", "two", "system", "library two", json!(["default"]));
    add("lib", "ask", "user", "library asks", json!([]));
    library
}

impl World {
    /// Everything has something for every kind.
    fn full() -> Self {
        let refs = |id: &str| {
            let reference = json!(format!("prompt:{id}@1.0.0"));
            map(json!({"system": reference, "user": reference, "schema-hint": reference, "few-shot": reference}))
        };
        Self {
            run: Some(refs("run")),
            node: map(json!({
                "systemPromptRef": "prompt:node@1.0.0", "userPromptRef": "prompt:node@1.0.0",
                "schemaHintPromptRef": "prompt:node@1.0.0", "fewShotPromptRefs": ["prompt:node@1.0.0"],
            })),
            overrides: refs("overrides").into_iter().collect(),
            intrinsic: true,
            agent_library: Some("lib"),
            workflow: refs("workflow"),
            host: refs("host"),
            library: library(),
        }
    }

    fn layers(&self) -> Layers<'_> {
        Layers {
            run: self.run.as_ref(),
            node: Some(&self.node),
            agent: Agent::Known(AgentPrompts {
                intrinsic: self.intrinsic.then_some(("You are {{x}}.", "prompt:vendor.acme.a@2.0.0")),
                overrides: &self.overrides,
                library: self.agent_library,
            }),
            workflow: Some(&self.workflow),
            host: Some(&self.host),
            library: &self.library,
        }
    }

    fn without(mut self, layers: &[&str]) -> Self {
        for layer in layers {
            match *layer {
                "run-configurable" => self.run = None,
                "node" => self.node.clear(),
                "agent-intrinsic" => self.intrinsic = false,
                "agent-overrides" => self.overrides.clear(),
                "agent-library-default" => self.agent_library = None,
                "workflow-defaults" => self.workflow.clear(),
                _ => self.host.clear(),
            }
        }
        self
    }
}

#[test]
fn the_first_layer_that_has_one_applies_and_all_are_listed() {
    for (kind, order) in [
        (PromptKind::System, ALL.to_vec()),
        (PromptKind::User, ALL.iter().copied().filter(|layer| *layer != "agent-intrinsic").collect()),
    ] {
        for gone in 0..=order.len() {
            let world = World::full().without(&order[..gone]);
            let found = resolve(PromptSlot::of(kind), &world.layers()).unwrap();
            let layers: Vec<&str> = found.chain.iter().map(|entry| entry.layer.as_str()).collect();
            assert_eq!(layers, ALL, "every layer, in order");
            let applied: Vec<_> = found.chain.iter().filter(|entry| entry.applied).collect();
            match order.get(gone) {
                None => assert!(applied.is_empty() && found.resolved.is_none(), "{found:?}"),
                Some(expected) => {
                    assert_eq!(applied.len(), 1);
                    assert_eq!(applied[0].layer, *expected, "{kind:?} without {:?}", &order[..gone]);
                    assert_eq!(applied[0].source, found.resolved);
                    assert!(applied[0].reason.is_none());
                }
            }
            assert!(found.chain.iter().all(|entry| entry.applied || entry.reason.is_some()), "{:?}", found.chain);
        }
    }
}

#[test]
fn an_agents_own_prompt_goes_before_its_overrides() {
    let world = World::full().without(&["run-configurable", "node"]);
    let found = resolve(PromptSlot::of(PromptKind::System), &world.layers()).unwrap();
    assert_eq!(found.resolved.as_deref(), Some("prompt:vendor.acme.a@2.0.0"));
    let overrides = found.chain.iter().find(|entry| entry.layer == "agent-overrides").unwrap();
    assert_eq!((overrides.applied, overrides.source.as_deref()), (false, None));
    let user = resolve(PromptSlot::of(PromptKind::User), &world.layers()).unwrap();
    assert_eq!(user.resolved.as_deref(), Some("prompt:overrides@1.0.0"));
}

#[test]
fn an_agent_counts_only_if_it_is_known_and_the_host_asks_it() {
    let world = World::full().without(&["run-configurable", "node"]);
    for (agent, reason, warned) in [
        (Agent::Absent, "names no agent", false),
        (Agent::Unknown, "not known here", true),
        (Agent::Off, "not asked", false),
    ] {
        let found = resolve(PromptSlot::of(PromptKind::System), &Layers { agent, ..world.layers() }).unwrap();
        assert_eq!(found.resolved.as_deref(), Some("prompt:workflow@1.0.0"));
        for entry in found.chain.iter().filter(|entry| entry.layer.starts_with("agent-")) {
            assert!(entry.reason.as_ref().unwrap().contains(reason), "{entry:?}");
        }
        assert_eq!(found.warnings.contains(&Warning::AgentBindingUnresolvable), warned);
    }
}

#[test]
fn a_library_offers_its_default() {
    let gone = ["run-configurable", "node", "agent-intrinsic", "agent-overrides"];
    let mut world = World::full().without(&gone);
    let of = |world: &World, kind| resolve(PromptSlot::of(kind), &world.layers()).unwrap();
    assert_eq!(of(&world, PromptKind::System).resolved.as_deref(), Some("prompt:two@1.0.0"), "the tagged one");
    assert_eq!(of(&world, PromptKind::User).resolved.as_deref(), Some("prompt:ask@1.0.0"), "the only one");
    assert_eq!(of(&world, PromptKind::SchemaHint).resolved.as_deref(), Some("prompt:workflow@1.0.0"), "it has none");
    world.agent_library = Some("shots");
    assert_eq!(of(&world, PromptKind::FewShot).resolved.as_deref(), Some("prompt:workflow@1.0.0"), "two, and no tag");
    world.agent_library = Some("nowhere");
    let found = of(&world, PromptKind::System);
    assert_eq!(found.warnings, [Warning::AgentLibraryUnresolvable]);
    assert_eq!(Warning::AgentLibraryUnresolvable.code(), "agent_library_unresolvable");
}

#[test]
fn a_run_may_give_a_text() {
    let mut world = World::full().without(&["node"]);
    let bindings = Bindings { inputs: map(json!({"x": "X"})), ..Bindings::default() };
    let system = |world: &World| prompt(PromptSlot::of(PromptKind::System), &world.layers(), &bindings).unwrap();
    world.run = Some(map(json!({"system": "Be brief about {{x}}."})));
    let found = system(&world);
    assert_eq!(found.prompted.text.as_deref(), Some("Be brief about X."));
    let reference = found.prompted.resolved.unwrap();
    assert!(reference.starts_with("prompt:run-override.system@0.0.0+"), "{reference}");
    assert_eq!(found.prompted.chain[0].source.as_ref(), Some(&reference));

    world.run = Some(map(json!({"vendor.acme.a": "In the place of the agent's own."})));
    assert_eq!(system(&world).prompted.text.as_deref(), Some("In the place of the agent's own."));
    world = world.without(&["agent-intrinsic"]);
    world.run = Some(map(json!({"overrides": "Instead: {{x}}"})));
    assert_eq!(system(&world).prompted.text.as_deref(), Some("Instead: X"));
    world.run = Some(map(json!({"another": "not meant"})));
    assert_eq!(system(&world).prompted.resolved.as_deref(), Some("prompt:overrides@1.0.0"));
}

#[test]
fn what_cannot_be_read_stops_only_where_it_would_apply() {
    let mut world = World::full();
    world.host = map(json!({"system": 5}));
    assert!(resolve(PromptSlot::of(PromptKind::System), &world.layers()).is_ok(), "nobody got that far");
    world.node = map(json!({"systemPromptRef": "writer", "fewShotPromptRefs": "prompt:a"}));
    world.run = None;
    for kind in [PromptKind::System, PromptKind::FewShot] {
        assert!(matches!(resolve(PromptSlot::of(kind), &world.layers()), Err(PromptError::RefInvalid(_))), "{kind:?}");
    }
    world.node = map(json!({"systemPromptRef": "prompt:nobody@1.0.0"}));
    let resolved = resolve(PromptSlot::of(PromptKind::System), &world.layers()).unwrap();
    assert_eq!(resolved.resolved.as_deref(), Some("prompt:nobody@1.0.0"), "resolving needs no template");
    let error = prompt(PromptSlot::of(PromptKind::System), &world.layers(), &Bindings::default()).unwrap_err();
    assert!(error.is_missing(), "and composing does not fall back: {error}");
}

#[test]
fn a_reference_without_a_version_is_pinned_on_the_log() {
    let mut world = World::full().without(&["run-configurable"]);
    world.node = map(
        json!({"systemPromptRef": {"templateId": "node", "variableOverrides": {"x": "over"}}, "systemPrompt": "inline"}),
    );
    let found = prompt(PromptSlot::of(PromptKind::System), &world.layers(), &Bindings::default()).unwrap();
    assert_eq!(found.prompted.resolved.as_deref(), Some("prompt:node@1.0.0"));
    assert_eq!(found.prompted.text.as_deref(), Some("node says over"));
    assert_eq!(found.warnings, [Warning::PromptRefSupersedesInline]);
}

#[test]
fn a_node_gets_all_its_prompts_in_order() {
    let mut world = World::full().without(&[
        "run-configurable",
        "agent-overrides",
        "agent-library-default",
        "workflow-defaults",
        "host-defaults",
    ]);
    world.node = map(json!({
        "userPromptRef": "prompt:ask@1.0.0",
        "fewShotPromptRefs": ["prompt:shot-a@1.0.0", "prompt:shot-b@1.0.0"],
    }));
    let found = prompts(&world.layers(), &Bindings::default()).unwrap();
    let shown: Vec<_> =
        found.iter().map(|f| (f.prompted.kind.as_str(), f.prompted.text.as_deref().unwrap_or("nothing"))).collect();
    assert_eq!(
        shown,
        [("system", "You are {{x}}."), ("few-shot", "a"), ("few-shot", "b"), ("user", "library asks")],
        "an agent's own prompt is taken as it is"
    );
    let bare =
        Layers { run: None, node: None, agent: Agent::Absent, workflow: None, host: None, library: &world.library };
    let found = prompts(&bare, &Bindings::default()).unwrap();
    assert_eq!(found.len(), 1, "the system prompt is always looked for");
    assert_eq!((found[0].prompted.chain.len(), &found[0].prompted.resolved), (7, &None));
}

#[test]
fn a_card_is_a_layer() {
    let pack = bundled().unwrap();
    let card = &pack.agents[0].card;
    let (reference, library) = (card.prompt_ref(), Library::new());
    let layers = Layers {
        run: None,
        node: None,
        agent: Agent::Known(AgentPrompts::of(card, &reference)),
        workflow: None,
        host: None,
        library: &library,
    };
    let found = prompt(PromptSlot::of(PromptKind::System), &layers, &Bindings::default()).unwrap();
    assert_eq!(found.prompted.resolved.as_deref(), Some("prompt:vendor.baton.team.supervisor@1.0.0"));
    assert_eq!(found.prompted.text.as_ref(), Some(&card.system_prompt));
}
