//! Which module of a crate knows which: the fold knows nothing of decisions, and rings of modules that know each other
//! only ever get smaller.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, Visibility};

/// A module by its names from the crate's root, which is the empty one.
type Module = Vec<String>;

/// The largest ring that a crate may have. One means none; a larger number is a debt that may only shrink.
const LARGEST_RING: &[(&str, usize)] = &[
    ("agent", 3),
    ("cli", 5),
    ("engine", 33),
    ("model", 2),
    ("provider", 9),
    ("runtime", 48),
    ("server", 59),
    ("store", 2),
    ("store-postgres", 3),
    ("store-sqlite", 7),
    ("telemetry", 2),
    ("tool", 4),
];

/// What the fold may not know: a record means the same for ever, whatever we decide or write tomorrow.
const NOT_IN_THE_FOLD: &[&str] = &["decide", "conversation", "expr", "eval_context", "schema", "described"];

fn sources(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name).join("src")
}

struct Source {
    /// Paths that are written in its code, as segments; those of `pub use` apart.
    paths: Vec<Module>,
    /// Name → path, for what it hands on from elsewhere.
    reexports: BTreeMap<String, Module>,
}

/// Every module of a crate.
fn read(folder: &Path) -> BTreeMap<Module, Source> {
    let (mut all, mut folders) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let mut module: Module = entry
                    .strip_prefix(folder)
                    .unwrap()
                    .with_extension("")
                    .components()
                    .map(|part| part.as_os_str().to_str().unwrap().to_owned())
                    .collect();
                if matches!(module.last().unwrap().as_str(), "mod" | "lib" | "main") {
                    module.pop();
                }
                all.insert(module, source(&fs::read_to_string(&entry).unwrap()));
            }
        }
    }
    all
}

fn source(text: &str) -> Source {
    let mut collector = Collector { source: Source { paths: Vec::new(), reexports: BTreeMap::new() } };
    collector.visit_file(&syn::parse_file(text).unwrap());
    collector.source
}

struct Collector {
    source: Source,
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    let test = |attribute: &Attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Path>().is_ok_and(|path| path.is_ident("test"))
    };
    attributes.iter().any(test)
}

impl<'a> Visit<'a> for Collector {
    fn visit_item(&mut self, item: &'a Item) {
        let attributes = match item {
            Item::Mod(ItemMod { attrs, .. }) | Item::Use(ItemUse { attrs, .. }) => attrs.as_slice(),
            Item::Fn(function) => &function.attrs,
            Item::Impl(block) => &block.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        let mut leaves = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut leaves);
        for (name, path) in leaves {
            match item.vis {
                Visibility::Inherited => self.source.paths.push(path),
                _ => drop(self.source.reexports.insert(name, path)),
            }
        }
    }

    // `pub(crate)` names a place and knows nothing of it.
    fn visit_visibility(&mut self, _: &'a Visibility) {}

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.source.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

fn flatten(tree: &UseTree, before: &mut Module, leaves: &mut Vec<(String, Module)>) {
    let mut leaf = |name: String, last: Option<String>| {
        leaves.push((name, before.iter().cloned().chain(last).collect()));
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, leaves);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => leaf(before.last().cloned().unwrap_or_default(), None),
        UseTree::Name(name) => leaf(name.ident.to_string(), Some(name.ident.to_string())),
        UseTree::Rename(rename) => leaf(rename.rename.to_string(), Some(rename.ident.to_string())),
        UseTree::Glob(_) => leaf("*".to_owned(), None),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, leaves)),
    }
}

/// The module that a path written in `from` leads to; none for other crates, and for what is local.
fn target(modules: &BTreeMap<Module, Source>, from: &Module, path: &[String], hops: usize) -> Option<Module> {
    let (mut at, mut rest) = match path.first()?.as_str() {
        "crate" => (Module::new(), &path[1..]),
        "self" => (from.clone(), &path[1..]),
        "super" => (from.clone(), path),
        first => {
            let child: Module = from.iter().cloned().chain([first.to_owned()]).collect();
            (modules.contains_key(&child).then(|| from.clone())?, path)
        }
    };
    while let Some(("super", more)) = rest.split_first().map(|(first, more)| (first.as_str(), more)) {
        at.pop();
        rest = more;
    }
    while let Some(name) = rest.first() {
        let child: Module = at.iter().cloned().chain([name.clone()]).collect();
        if modules.contains_key(&child) {
            (at, rest) = (child, &rest[1..]);
            continue;
        }
        // Handed on: whoever uses it knows the place it is from.
        if let Some(from) = modules.get(&at)?.reexports.get(name).filter(|_| hops < 8) {
            let path: Module = from.iter().chain(&rest[1..]).cloned().collect();
            return target(modules, &at, &path, hops + 1);
        }
        break;
    }
    Some(at)
}

fn edges(modules: &BTreeMap<Module, Source>) -> BTreeMap<&Module, BTreeSet<Module>> {
    let known = |(module, source): (&'_ Module, &Source)| -> BTreeSet<Module> {
        let targets = source.paths.iter().filter_map(|path| target(modules, module, path, 0));
        targets.filter(|target| target != module).collect()
    };
    modules.iter().map(|(module, source)| (module, known((module, source)))).collect()
}

/// The modules that each module reaches, itself only by way of others.
fn reaches(edges: &BTreeMap<&Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = next.pop() {
        for known in edges.get(&module).into_iter().flatten() {
            if seen.insert(known.clone()) {
                next.push(known.clone());
            }
        }
    }
    seen
}

/// The arrows within a ring, for whoever wants to cut one.
fn arrows(modules: &BTreeMap<Module, Source>, ring: &[String]) -> String {
    let within = |module: &Module| ring.contains(&module.join("::"));
    let edges = edges(modules);
    let from = edges.iter().filter(|(module, _)| within(module));
    let arrow = |(module, known): (&&Module, &BTreeSet<Module>)| {
        let known: Vec<String> = known.iter().filter(|known| within(known)).map(|known| known.join("::")).collect();
        format!("  {} knows {}\n", module.join("::"), known.join(", "))
    };
    from.map(arrow).collect()
}

/// The largest set of modules each of which reaches all the others.
fn largest_ring(modules: &BTreeMap<Module, Source>) -> Vec<String> {
    let edges = edges(modules);
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        modules.keys().map(|module| (module, reaches(&edges, module))).collect();
    let ring = |module: &Module| -> Vec<String> {
        let both = reached[module].iter().filter(|other| reached[other].contains(module));
        both.map(|module| module.join("::")).collect()
    };
    modules.keys().map(ring).max_by_key(Vec::len).unwrap_or_default()
}

#[test]
fn rings_of_modules_only_get_smaller() {
    let crates = fs::read_dir(sources("crates").parent().unwrap()).unwrap();
    let allowed: BTreeMap<_, _> = LARGEST_RING.iter().copied().collect();
    let mut found = Vec::new();
    for folder in crates.map(|entry| entry.unwrap().path()) {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let modules = read(&folder.join("src"));
        let ring = largest_ring(&modules);
        let most = allowed.get(name.as_str()).copied().unwrap_or(1);
        match ring.len().max(1) {
            more if more > most => {
                let arrows = arrows(&modules, &ring);
                found.push(format!("{name}: {more} modules know each other, {most} may:\n{arrows}"));
            }
            less if less < most => found.push(format!("{name}: it is {less} now, not {most}. Write that down.")),
            _ => {}
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_fold_knows_nothing_of_decisions() {
    let modules = read(&sources("crates/engine"));
    let edges = edges(&modules);
    let fold = edges.iter().filter(|(module, _)| module.first().is_some_and(|room| room == "fold"));
    let mut seen = 0;
    for (module, known) in fold {
        seen += 1;
        let forbidden =
            known.iter().filter(|known| known.first().is_some_and(|room| NOT_IN_THE_FOLD.contains(&room.as_str())));
        let forbidden: Vec<String> = forbidden.map(|known| known.join("::")).collect();
        assert!(forbidden.is_empty(), "{} knows {forbidden:?}", module.join("::"));
    }
    assert!(seen > 5, "{seen} modules of the fold were found");
}

#[test]
fn a_ring_is_found_through_what_is_handed_on() {
    let text = |text: &str| source(text);
    let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Module>();
    let modules = BTreeMap::from([
        (path(&[]), text("mod a; mod b; mod c; pub use a::A; pub(crate) use c::helper;")),
        (path(&["a"]), text("use super::b::B; pub struct A(B); #[cfg(test)] mod tests { use crate::c::helper; }")),
        (path(&["b"]), text("pub(crate) struct B; pub(super) fn f() { crate::helper(); let _: super::A; }")),
        (path(&["c"]), text("pub fn helper() { std::mem::drop(1) }")),
    ]);
    assert_eq!(largest_ring(&modules), ["a", "b"]);
}
