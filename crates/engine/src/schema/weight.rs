//! How much work a schema can make. A validator follows every way through `$ref`, `anyOf` and the like, and has no
//! meter; so the ways are counted beforehand. What counts is how often one place of a value can be looked at: at the top,
//! and each level further down, because a schema that refers to itself twice doubles with each level of the value.
//!
//! A place is looked at for three reasons, which are counted apart. It is judged. It is judged again for the errors of
//! alternatives that do not hold. And `unevaluatedProperties` and `unevaluatedItems` ask every alternative beside them
//! once more which members it has judged, so that one below another multiplies.

use std::collections::{BTreeMap, BTreeSet};

use baton_model::json;
use serde_json::{Map, Value};

use crate::expr::pattern;

/// Tries of a pattern that has to backtrack, for one text; most have none to make.
pub(super) const MAX_BACKTRACKS: usize = 10_000;
const MAX_BYTES: u64 = 256 * 1024;
/// The validator's compiler recurses for each level.
const MAX_DEPTH: usize = 64;
const MAX_SUBSCHEMAS: usize = 4096;
/// Keywords and references that lead from one part to another, each with everything it may mean.
const MAX_EDGES: usize = 16_384;
/// Parts with an id of their own. A reference may mean a place in each of them.
const MAX_DOCUMENTS: usize = 16;
/// Parts that apply to the same place one behind the other: the validator recurses for each.
const MAX_CHAIN: u64 = 64;
/// The same along all levels of a value.
const MAX_RECURSION: u64 = 512;
/// Ways to one place of a value.
const MAX_WAYS: u64 = 4096;
/// Parts that are compiled. Beside `unevaluatedProperties` the validator compiles alternatives again.
const MAX_COMPILED: u64 = 20_000;
/// Units for compiling one of them.
const COMPILED_PART: u64 = 16;
/// How deeply that may nest.
const MAX_COMPILED_DEPTH: u32 = 256;
/// Units for compiling all patterns of a schema; see [`pattern::weigh`]. Compiled once, not per value.
const MAX_PATTERNS: u64 = 800_000;
/// Control letters (`\cA`) in one pattern: the validator reads a pattern anew for each.
const MAX_CONTROLS: usize = 16;
/// Looks at places of one value; a look takes about a tenth of a microsecond.
const MAX_LOOKS: u64 = 400_000;
/// Bytes of text that are looked through in the time of a look.
const LOOK_BYTES: u64 = 64;
/// What a copy of a place takes, beside its text.
const PLACE_BYTES: u64 = 72;
/// What a reference to a schema that is built into the validator weighs: those describe schemas.
const BUILT_IN: u64 = 256;
const BUILT_IN_HOST: &str = "json-schema.org";
const BUILT_IN_PREFIX: &str = "https://json-schema.org/draft/";
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Keywords that hold one schema for places below.
const BELOW: &[&str] = &["additionalProperties", "propertyNames", "items", "contains"];
/// Keywords whose meaning depends on the way a place was come to. Nobody can tell beforehand where that leads.
const DYNAMIC: &[&str] = &["$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"];

/// How a part applies another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    All,
    /// `anyOf` and `oneOf`: judged, and if none holds, judged again for what is wrong with each.
    Any,
    If,
    Then,
    Dependent,
    Not,
    Ref,
    /// To each place below.
    Below,
    /// At most one of these to a place below.
    OneBelow,
    /// To places below that nothing else has judged.
    Unevaluated,
}

impl How {
    fn is_here(self) -> bool {
        !matches!(self, Self::Below | Self::OneBelow | Self::Unevaluated)
    }
}

#[derive(Debug, Default)]
struct Node {
    /// Looks at the place itself.
    own: u64,
    /// Looks at each member, or its name.
    members: u64,
    /// Patterns that may have to be tried in many ways: on the place, and on the names of its members.
    tricky: u64,
    tricky_names: u64,
    edges: Vec<(How, usize)>,
    unevaluated: bool,
}

/// The ways through one schema.
#[derive(Debug)]
pub(crate) struct Weight {
    nodes: Vec<Node>,
    /// Each node after those that apply to the same place.
    order: Vec<usize>,
    /// Stands for schemas that are built into the validator.
    built_in: usize,
    /// The most states of any of its patterns.
    states: u64,
    tricky: bool,
    /// The most parts that apply to one place one behind the other.
    chain: u64,
    /// Units for compiling its patterns.
    patterns: u64,
    /// Parts that are compiled.
    parts: u64,
}

/// How often each part looks at a place of one level.
struct Level {
    judged: Vec<u64>,
    marked: Vec<u64>,
    told: Vec<u64>,
    /// Errors of alternatives. The validator copies the place into each, once for each alternative around it.
    copied: Vec<u64>,
}

/// How often one place can be looked at, and how often copied to say what is wrong with it.
#[derive(Clone, Copy, Default)]
struct Ways {
    looks: u64,
    copies: u64,
}

impl Weight {
    /// Weighs a schema, or says which bound it breaks.
    pub(crate) fn of(schema: &Value) -> Result<Self, String> {
        Self::check_size(schema)?;
        let mut reader = Reader::default();
        reader.read(schema, true)?;
        let mut weight = reader.finish()?;
        weight.sort()?;
        weight.parts = weight.compiled_parts()?;
        let first = weight.ways(0, |node| (node.own, node.members, 1)).first().copied().unwrap_or_default().looks;
        if first > MAX_WAYS {
            return Err(format!("it can be followed in {}; at most {MAX_WAYS} ways are allowed", told(first)));
        }
        Ok(weight)
    }

    /// Refuses a schema that is too large to be looked at.
    pub(crate) fn check_size(schema: &Value) -> Result<(), String> {
        let bytes = json::size(schema);
        if bytes > MAX_BYTES {
            return Err(format!("it has about {bytes} bytes; at most {MAX_BYTES} are allowed"));
        }
        if json::depth(schema) > MAX_DEPTH {
            return Err(format!("it nests more than {MAX_DEPTH} levels"));
        }
        Ok(())
    }

    /// Units for compiling it, its patterns included.
    pub(crate) fn compiling(&self) -> u64 {
        self.patterns.saturating_add(self.parts.saturating_mul(COMPILED_PART))
    }

    /// Refuses a value that would be looked at too often. Of others it says how many bytes of copies it takes at most to
    /// tell what is wrong with them.
    pub(crate) fn allows(&self, value: &Value) -> Result<u64, String> {
        let mut levels = Vec::new();
        census(value, 0, &mut levels);
        let depth = levels.len().saturating_sub(1);
        if self.chain.saturating_mul(levels.len() as u64) > MAX_RECURSION.max(2 * levels.len() as u64) {
            return Err(format!("its schema nests too deeply for a value of {depth} levels"));
        }
        let ways = self.ways(depth, |node| (node.own, node.members, 1));
        let mut looks = 0_u64;
        for (level, ways) in levels.iter().zip(&ways) {
            looks = looks.saturating_add(level.places.saturating_mul(ways.looks));
        }
        let most = ways.iter().map(|ways| ways.looks).max().unwrap_or(1);
        let text = levels.iter().map(|level| level.text).fold(0, u64::saturating_add);
        looks = looks.saturating_add((text / LOOK_BYTES).saturating_mul(self.states).saturating_mul(most));
        if self.tricky {
            let tries = self.ways(depth, |node| (node.tricky, node.tricky_names, 0));
            for (level, ways) in levels.iter().zip(&tries) {
                looks = looks.saturating_add(level.tries.saturating_mul(ways.looks));
            }
        }
        if looks > MAX_LOOKS {
            return Err(format!("its schema would take {looks} looks at it; at most {MAX_LOOKS} are allowed"));
        }
        let (mut below, mut bytes) = (0_u64, 0_u64);
        // A copy of a place is one of everything below it.
        for (level, ways) in levels.iter().zip(&ways).rev() {
            below = below.saturating_add(level.places.saturating_mul(PLACE_BYTES)).saturating_add(level.text);
            bytes = bytes.saturating_add(below.saturating_mul(ways.copies));
        }
        Ok(bytes)
    }

    /// How often one place can be looked at: at the top, one level down, and so on. `own` says what a part costs at its
    /// own place, at each member, and when it is asked for what it has judged.
    fn ways(&self, depth: usize, own: impl Fn(&Node) -> (u64, u64, u64)) -> Vec<Ways> {
        let count = self.nodes.len();
        let mut all = Vec::with_capacity(depth + 1);
        let mut above: Option<Level> = None;
        for at in 0..=depth {
            let none = || vec![0; count];
            let mut level = Level { judged: none(), marked: none(), told: none(), copied: none() };
            for &index in &self.order {
                let node = &self.nodes[index];
                let (here, member, mark) = own(node);
                let mut judged = match at {
                    0 => here,
                    1 => member,
                    _ => 0,
                };
                if index == self.built_in {
                    judged = here;
                }
                let mut marked = match at {
                    0 => mark,
                    1 => member.max(mark),
                    _ => 0,
                };
                let mut told = judged;
                let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
                let (mut one, mut one_told) = (0, 0);
                let mut copied = 0;
                for &(how, to) in &node.edges {
                    if how.is_here() {
                        add(&mut judged, level.judged[to]);
                        add(
                            &mut told,
                            if matches!(how, How::If | How::Not) { level.judged[to] } else { level.told[to] },
                        );
                        if how == How::Any {
                            add(&mut told, level.judged[to]);
                            add(&mut copied, level.told[to]);
                        }
                        add(&mut copied, level.copied[to]);
                        if matches!(how, How::All | How::Any | How::If) {
                            add(&mut marked, level.judged[to]);
                        }
                        if how != How::Not {
                            add(&mut marked, level.marked[to]);
                        }
                    } else if let Some(above) = &above {
                        add(&mut copied, above.copied[to]);
                        match how {
                            How::OneBelow => {
                                one = one.max(above.judged[to]);
                                one_told = one_told.max(above.told[to]);
                            }
                            How::Unevaluated => {
                                add(&mut judged, above.judged[to]);
                                add(&mut told, above.judged[to]);
                                add(&mut marked, above.judged[to]);
                            }
                            _ => {
                                add(&mut judged, above.judged[to]);
                                add(&mut told, above.told[to]);
                            }
                        }
                    }
                }
                add(&mut judged, one);
                add(&mut told, one_told);
                if node.unevaluated {
                    add(&mut judged, marked);
                    add(&mut told, marked);
                }
                level.judged[index] = judged;
                level.marked[index] = marked;
                level.told[index] = told;
                level.copied[index] = copied;
            }
            let of_root = |all: &[u64]| all.first().copied().unwrap_or(0);
            all.push(Ways { looks: of_root(&level.told), copies: of_root(&level.copied) });
            above = Some(level);
        }
        all
    }

    /// Puts each node after those it applies to the same place. One that comes back to itself there has no end.
    fn sort(&mut self) -> Result<(), String> {
        let mut state = vec![0_u8; self.nodes.len()];
        let mut chains = vec![1_u64; self.nodes.len()];
        for root in 0..self.nodes.len() {
            let mut open = vec![(root, 0)];
            while let Some((node, next)) = open.pop() {
                if next == 0 {
                    if state[node] == 2 {
                        continue;
                    }
                    state[node] = 1;
                }
                let edges = &self.nodes[node].edges;
                let Some(found) = edges[next..].iter().position(|(how, _)| how.is_here()).map(|offset| next + offset)
                else {
                    state[node] = 2;
                    let below = edges.iter().filter(|(how, _)| how.is_here()).map(|(_, to)| chains[*to]).max();
                    chains[node] = below.unwrap_or(0) + 1;
                    self.order.push(node);
                    continue;
                };
                let child = edges[found].1;
                open.push((node, found + 1));
                match state[child] {
                    0 => open.push((child, 0)),
                    1 => return Err("it refers to itself without end".to_owned()),
                    _ => {}
                }
            }
        }
        self.chain = chains.into_iter().max().unwrap_or(1);
        if self.chain > MAX_CHAIN {
            return Err(format!("more than {MAX_CHAIN} of its parts apply to one place, one behind the other"));
        }
        Ok(())
    }

    /// What the validator compiles: each part once, those that are referred to once each, and the alternatives beside
    /// `unevaluatedProperties` and `unevaluatedItems` again.
    fn compiled_parts(&self) -> Result<u64, String> {
        if !self.nodes.iter().any(|node| node.unevaluated) {
            return Ok(self.nodes.len() as u64);
        }
        let mut compiling = Compiling { weight: self, parts: BTreeMap::new(), marks: BTreeMap::new() };
        let edges = self.nodes.iter().flat_map(|node| &node.edges);
        let targets: BTreeSet<usize> = edges.filter(|(how, _)| *how == How::Ref).map(|(_, to)| *to).collect();
        let mut all = compiling.part(0, 0)?;
        for target in targets {
            all = all.saturating_add(compiling.part(target, 0)?);
        }
        if all > MAX_COMPILED {
            return Err(format!("it becomes {all} parts when it is compiled; at most {MAX_COMPILED} are allowed"));
        }
        Ok(all)
    }
}

/// Adds up what compiling takes. `None` stands for what is being added up.
struct Compiling<'w> {
    weight: &'w Weight,
    parts: BTreeMap<usize, Option<u64>>,
    marks: BTreeMap<usize, Option<u64>>,
}

impl Compiling<'_> {
    fn known(table: &BTreeMap<usize, Option<u64>>, node: usize, depth: u32) -> Result<Option<u64>, String> {
        match table.get(&node) {
            Some(Some(known)) => Ok(Some(*known)),
            None if depth < MAX_COMPILED_DEPTH => Ok(None),
            _ => Err("what it leaves unevaluated refers to itself".to_owned()),
        }
    }

    /// A part with all that lies inside it.
    fn part(&mut self, node: usize, depth: u32) -> Result<u64, String> {
        if let Some(known) = Self::known(&self.parts, node, depth)? {
            return Ok(known);
        }
        self.parts.insert(node, None);
        let this = &self.weight.nodes[node];
        let mut sum = 1_u64;
        for &(how, to) in &this.edges {
            if how != How::Ref {
                sum = sum.saturating_add(self.part(to, depth + 1)?);
            }
        }
        if this.unevaluated {
            sum = sum.saturating_add(self.mark(node, depth + 1)?);
        }
        self.parts.insert(node, Some(sum));
        Ok(sum)
    }

    /// What says which members a part has judged.
    fn mark(&mut self, node: usize, depth: u32) -> Result<u64, String> {
        if let Some(known) = Self::known(&self.marks, node, depth)? {
            return Ok(known);
        }
        self.marks.insert(node, None);
        let mut sum = 1_u64;
        for &(how, to) in &self.weight.nodes[node].edges {
            if matches!(how, How::All | How::Any | How::If | How::Unevaluated) {
                sum = sum.saturating_add(self.part(to, depth + 1)?);
            }
            if how.is_here() && how != How::Not {
                sum = sum.saturating_add(self.mark(to, depth + 1)?);
            }
        }
        self.marks.insert(node, Some(sum));
        Ok(sum)
    }
}

fn told(ways: u64) -> String {
    if ways == u64::MAX { "more ways than can be counted".to_owned() } else { format!("{ways} ways") }
}

/// What a value has on one level.
#[derive(Clone, Copy, Default)]
struct Count {
    places: u64,
    text: u64,
    /// Looks that its texts take where a pattern has to be tried in many ways: each try may look through all of a text.
    tries: u64,
}

impl Count {
    fn text(&mut self, text: &str) {
        let bytes = text.len() as u64;
        self.text = self.text.saturating_add(bytes);
        let tries = bytes.min(MAX_BACKTRACKS as u64).saturating_mul(bytes) / LOOK_BYTES + 1;
        self.tries = self.tries.saturating_add(tries);
    }
}

fn census(value: &Value, level: usize, levels: &mut Vec<Count>) {
    if levels.len() == level {
        levels.push(Count::default());
    }
    levels[level].places += 1;
    match value {
        Value::String(text) => levels[level].text(text),
        Value::Array(items) => items.iter().for_each(|item| census(item, level + 1, levels)),
        Value::Object(map) => {
            for (name, value) in map {
                census(value, level + 1, levels);
                levels[level + 1].text(name);
            }
        }
        _ => {}
    }
}

/// A reference, until it is found.
struct Reference<'s> {
    from: usize,
    text: &'s str,
}

#[derive(Default)]
struct Reader<'s> {
    nodes: Vec<Node>,
    /// Parts by where they lie in memory: paths of long names would take more room than the schema.
    places: BTreeMap<usize, usize>,
    anchors: BTreeMap<&'s str, Vec<usize>>,
    /// The root, and each part with an id of its own.
    documents: Vec<(&'s Value, Option<&'s str>)>,
    references: Vec<Reference<'s>>,
    states: u64,
    tricky: bool,
    compiling: u64,
    edges: usize,
}

impl<'s> Reader<'s> {
    fn read(&mut self, schema: &'s Value, root: bool) -> Result<usize, String> {
        let index = self.nodes.len();
        if index >= MAX_SUBSCHEMAS {
            return Err(format!("it has more than {MAX_SUBSCHEMAS} parts"));
        }
        self.nodes.push(Node::default());
        self.places.insert(address(schema), index);
        let mut node = Node { own: 1, ..Node::default() };
        if let Value::Object(map) = schema {
            self.header(schema, map, root)?;
            self.members(map, index, &mut node)?;
        } else if root {
            self.documents.push((schema, None));
        }
        self.nodes[index] = node;
        Ok(index)
    }

    /// What gives a part a name, or a meaning of its own.
    fn header(&mut self, schema: &'s Value, map: &'s Map<String, Value>, root: bool) -> Result<(), String> {
        if let Some(key) = DYNAMIC.iter().find(|key| map.contains_key(**key)) {
            return Err(format!("`{key}` leads nobody knows where; use `$ref`"));
        }
        let id = match map.get("$id") {
            Some(Value::String(id)) => Some(id.strip_suffix('#').unwrap_or(id)),
            Some(_) => return Err("its `$id` is no text".to_owned()),
            None => None,
        };
        // Nothing can be told of where an odd address leads. The root is found without it.
        let id = match id {
            Some(odd) if plain_name(odd).is_none() && root => None,
            Some(odd) if plain_name(odd).is_none() => {
                return Err(format!("the `$id` `{}` of one of its parts is not a plain one", shortened(odd)));
            }
            id => id,
        };
        if root || id.is_some() {
            if self.documents.len() > MAX_DOCUMENTS {
                return Err(format!("more than {MAX_DOCUMENTS} of its parts have an id"));
            }
            self.documents.push((schema, id));
        }
        // At the root this host says which dialect it is.
        match map.get("$schema").filter(|_| !root) {
            Some(Value::String(dialect)) if dialect.trim_end_matches('#') == DIALECT => {}
            Some(_) => return Err(format!("a part of it has a `$schema` other than `{DIALECT}`")),
            None => {}
        }
        Ok(())
    }

    fn child(&mut self, how: How, value: &'s Value, node: &mut Node) -> Result<(), String> {
        let child = self.read(value, false)?;
        self.join(node, how, child)
    }

    fn join(&mut self, node: &mut Node, how: How, to: usize) -> Result<(), String> {
        self.edges += 1;
        if self.edges > MAX_EDGES {
            return Err("its references may mean too many things".to_owned());
        }
        node.edges.push((how, to));
        Ok(())
    }

    fn members(&mut self, map: &'s Map<String, Value>, index: usize, node: &mut Node) -> Result<(), String> {
        for (key, value) in map {
            match (key.as_str(), value) {
                ("$ref", Value::String(text)) => self.references.push(Reference { from: index, text }),
                ("$anchor", Value::String(name)) => self.anchors.entry(name).or_default().push(index),
                ("enum" | "required", Value::Array(list)) => {
                    // What is compared is at most all of the list.
                    node.own = node.own.saturating_add(list.len() as u64 + json::size(value) / LOOK_BYTES);
                }
                ("const", value) => node.own = node.own.saturating_add(json::size(value) / LOOK_BYTES),
                ("dependentRequired", Value::Object(all)) => {
                    let lists = all.values().map(|list| list.as_array().map_or(0, Vec::len) as u64 + 1);
                    node.own = node.own.saturating_add(lists.fold(0, u64::saturating_add));
                }
                ("pattern", Value::String(text)) => {
                    node.tricky = node.tricky.saturating_add(self.pattern(text)?);
                }
                ("not", value) => self.child(How::Not, value, node)?,
                ("if", value) => self.child(How::If, value, node)?,
                ("then" | "else", value) => self.child(How::Then, value, node)?,
                ("anyOf" | "oneOf", Value::Array(list)) => {
                    list.iter().try_for_each(|value| self.child(How::Any, value, node))?;
                }
                ("allOf", Value::Array(list)) => {
                    list.iter().try_for_each(|value| self.child(How::All, value, node))?;
                }
                ("dependentSchemas" | "dependencies", Value::Object(all)) => {
                    node.own = node.own.saturating_add(all.len() as u64);
                    let schemas = all.values().filter(|value| !value.is_array());
                    schemas.into_iter().try_for_each(|value| self.child(How::Dependent, value, node))?;
                }
                ("properties", Value::Object(all)) => {
                    // Each name is looked up, whether the value has it or not; that takes a part of a look.
                    node.own = node.own.saturating_add(all.len() as u64 / 4);
                    all.values().try_for_each(|value| self.child(How::OneBelow, value, node))?;
                }
                ("patternProperties", Value::Object(all)) => {
                    for (name, value) in all {
                        node.members = node.members.saturating_add(1);
                        node.tricky_names = node.tricky_names.saturating_add(self.pattern(name)?);
                        self.child(How::Below, value, node)?;
                    }
                }
                ("prefixItems", Value::Array(all)) => {
                    all.iter().try_for_each(|value| self.child(How::OneBelow, value, node))?;
                }
                ("$defs" | "definitions", Value::Object(all)) => {
                    for value in all.values() {
                        self.read(value, false)?;
                    }
                }
                // It judges nothing, but can be referred to.
                ("contentSchema", value) => drop(self.read(value, false)?),
                ("unevaluatedProperties" | "unevaluatedItems", value) => {
                    node.unevaluated = true;
                    self.child(How::Unevaluated, value, node)?;
                }
                (below, value) if BELOW.contains(&below) => self.child(How::Below, value, node)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Weighs a pattern; returns 1 if it may have to be tried in many ways.
    fn pattern(&mut self, text: &str) -> Result<u64, String> {
        let too_large = || Err("its patterns are too large".to_owned());
        let Some(weight) = pattern::weigh(text, pattern::MAX_SCHEMA_BYTES) else { return too_large() };
        self.states = self.states.max(weight.states);
        self.compiling = self.compiling.saturating_add(weight.compiling());
        let controls = text.matches("\\c").count();
        if weight.states > pattern::MAX_STATES || self.compiling > MAX_PATTERNS || controls > MAX_CONTROLS {
            return too_large();
        }
        let tricky = backtracks(text);
        self.tricky |= tricky;
        Ok(u64::from(tricky))
    }

    fn finish(mut self) -> Result<Weight, String> {
        let built_in = self.nodes.len();
        for Reference { from, text } in std::mem::take(&mut self.references) {
            let mut node = std::mem::take(&mut self.nodes[from]);
            for target in self.find(text, built_in)? {
                self.join(&mut node, How::Ref, target)?;
            }
            self.nodes[from] = node;
        }
        self.nodes.push(Node { own: BUILT_IN, members: BUILT_IN, ..Node::default() });
        let (nodes, states, tricky, patterns) = (self.nodes, self.states.max(1), self.tricky, self.compiling);
        Ok(Weight { nodes, order: Vec::new(), built_in, states, tricky, chain: 1, patterns, parts: 0 })
    }

    /// Everything that a reference may mean. A part with an id is a document of its own, and which one a path begins at
    /// depends on rules for addresses; so it is looked for in each of them, and all that is found counts.
    fn find(&self, reference: &str, built_in: usize) -> Result<Vec<usize>, String> {
        let nowhere = || Err(format!("its reference `{}` leads nowhere in it", shortened(reference)));
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = decoded(fragment);
        let wanted = match plain_name(base) {
            _ if base.is_empty() => None,
            Some(name) => Some(name),
            None => return nowhere(),
        };
        let meant = self.documents.iter().filter(|(_, id)| match wanted {
            None => true,
            Some(wanted) => id.and_then(plain_name).is_some_and(|name| name.eq_ignore_ascii_case(wanted)),
        });
        let mut found = BTreeSet::new();
        // An address of that host may be a schema that is built in, and a name beside an id of that host as well.
        let near = |address: &str| address.to_ascii_lowercase().contains(BUILT_IN_HOST);
        let ids = || self.documents.iter().filter_map(|(_, id)| *id);
        if reference.starts_with(BUILT_IN_PREFIX) || (wanted.is_some() && ids().chain([base]).any(near)) {
            found.insert(built_in);
        }
        if !fragment.is_empty() && !fragment.starts_with('/') {
            found.extend(self.anchors.get(fragment.as_str()).into_iter().flatten());
        } else {
            for target in meant.filter_map(|(document, _)| document.pointer(&fragment)) {
                // A place that is no part of the schema would be one that nobody has weighed.
                let Some(node) = self.places.get(&address(target)) else { return nowhere() };
                found.insert(*node);
            }
        }
        if found.is_empty() { nowhere() } else { Ok(found.into_iter().collect()) }
    }
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

/// The last name in an address, for addresses that mean the same however they are written: no query, nothing escaped,
/// no steps up, and a name at the end. Resolving one address against another leaves that name as it is.
fn plain_name(address: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/@+".contains(&byte);
    if !address.bytes().all(plain) || address.split('/').any(|step| step == "." || step == "..") {
        return None;
    }
    address.rsplit(['/', ':']).next().filter(|name| !name.is_empty())
}

/// The beginning of a text that somebody else wrote, for a message.
fn shortened(text: &str) -> String {
    const MOST: usize = 100;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Percent signs in a fragment.
fn decoded(fragment: &str) -> String {
    let bytes = fragment.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex =
            fragment.get(at + 1..at + 3).filter(|_| bytes[at] == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Whether a pattern has what only a machine that backtracks can do: it looks around, refers back, or holds on to what it
/// has. A pattern that only looks like it counts as well.
fn backtracks(pattern: &str) -> bool {
    const MARKS: &[&str] = &[
        "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?P=", "(?P>", "(?(", "(?|", "(?R", "\\k", "\\K", "\\G", "\\g", "++",
        "*+", "?+", "}+",
    ];
    let refers = pattern.as_bytes().windows(2).any(|two| two[0] == b'\\' && two[1].is_ascii_digit());
    refers || MARKS.iter().any(|mark| pattern.contains(mark))
}
