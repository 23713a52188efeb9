//! Which module of a crate knows which: the fold knows nothing of decisions, and rings of modules that know each other
//! only ever get smaller.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemImpl, ItemMod, ItemUse, Type, UseTree, Visibility};

/// A module by its names from the crate's root, which is the empty one.
type Module = Vec<String>;

/// The largest ring that a crate may have. One means none; a larger number is a debt that may only shrink.
const LARGEST_RING: &[(&str, usize)] = &[];

/// The most files of a crate that may add methods to one of its types. Beyond that, nobody can say what the type does.
const MOST_FILES: usize = 10;

/// Types that are over it, by crate, and how many files they may have. A debt too: nothing is added here.
const METHODS_IN_FILES: &[(&str, &str, usize)] = &[];

/// What the fold may not know: a record means the same for ever, whatever we decide or write tomorrow.
const NOT_IN_THE_FOLD: &[&str] = &["decide", "nodes", "conversation", "expr", "eval_context", "schema", "described"];

fn sources(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name).join("src")
}

#[derive(Default)]
struct Source {
    /// Types that this module gives methods of their own; traits that it implements for them do not count.
    methods_of: BTreeSet<String>,
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
    let mut collector = Collector { source: Source::default() };
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

    fn visit_item_impl(&mut self, block: &'a ItemImpl) {
        if let (None, Type::Path(subject)) = (&block.trait_, &*block.self_ty) {
            self.source.methods_of.extend(subject.path.segments.last().map(|last| last.ident.to_string()));
        }
        visit::visit_item_impl(self, block);
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

/// The arrows within rings, for whoever wants to cut one.
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

/// Every set of modules each of which reaches all the others, the largest first.
fn rings(modules: &BTreeMap<Module, Source>) -> Vec<Vec<String>> {
    let edges = edges(modules);
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        modules.keys().map(|module| (module, reaches(&edges, module))).collect();
    let ring = |module: &Module| -> Vec<String> {
        let both = reached[module].iter().filter(|other| reached[other].contains(module));
        both.map(|module| module.join("::")).collect()
    };
    let distinct: BTreeSet<Vec<String>> = modules.keys().map(ring).filter(|ring| !ring.is_empty()).collect();
    let mut rings: Vec<Vec<String>> = distinct.into_iter().collect();
    rings.sort_by_key(|ring| Reverse(ring.len()));
    rings
}

/// Every crate: its folder's name, and its modules.
fn crates() -> impl Iterator<Item = (String, BTreeMap<Module, Source>)> {
    let folders = fs::read_dir(sources("crates").parent().unwrap()).unwrap();
    folders.map(|entry| entry.unwrap().path()).map(|folder| {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        (name, read(&folder.join("src")))
    })
}

/// Type → in how many modules it is given methods.
fn files_with_methods(modules: &BTreeMap<Module, Source>) -> BTreeMap<&str, usize> {
    let mut files = BTreeMap::new();
    // Files of tests are modules of their own, and may do as they like.
    let is_test = |module: &Module| module.last().is_some_and(|name| name == "tests" || name.ends_with("_tests"));
    for (_, source) in modules.iter().filter(|(module, _)| !is_test(module)) {
        source.methods_of.iter().for_each(|name| *files.entry(name.as_str()).or_default() += 1);
    }
    files
}

#[test]
fn a_types_methods_are_in_few_files() {
    let mut found = Vec::new();
    for (name, modules) in crates() {
        let files = files_with_methods(&modules);
        for (subject, count) in &files {
            let debt = METHODS_IN_FILES.iter().find(|(krate, debtor, _)| *krate == name && debtor == subject);
            let most = debt.map_or(MOST_FILES, |(_, _, most)| *most);
            match *count {
                more if more > most => found.push(format!("{name}: {subject} has methods in {more} files, not {most}")),
                enough if debt.is_some() && enough <= MOST_FILES => {
                    found.push(format!("{name}: {subject} has methods in {enough} files. Take it off the list."));
                }
                _ => {}
            }
        }
        let gone = METHODS_IN_FILES.iter().filter(|(krate, debtor, _)| *krate == name && !files.contains_key(debtor));
        found.extend(gone.map(|(_, debtor, _)| format!("{name}: {debtor} is gone. Take it off the list.")));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn only_methods_of_its_own_count_for_a_type() {
    let path = |name: &str| vec![name.to_owned()];
    let own = "pub struct A<T>(T); impl<T> A<T> { fn a() {} } impl A<u8> { fn b() {} } impl Clone for A<u8> {}";
    let modules = BTreeMap::from([
        (path("a"), source(own)),
        (path("b"), source("impl super::a::A<u16> { fn c() {} } impl Drop for B {} #[cfg(test)] impl B { fn d() {} }")),
        (path("tests"), source("impl super::a::A<u32> { fn e() {} }")),
    ]);
    assert_eq!(files_with_methods(&modules), BTreeMap::from([("A", 2)]));
}

#[test]
fn rings_of_modules_only_get_smaller() {
    let allowed: BTreeMap<_, _> = LARGEST_RING.iter().copied().collect();
    let mut found = Vec::new();
    for (name, modules) in crates() {
        let rings = rings(&modules);
        let most = allowed.get(name.as_str()).copied().unwrap_or(1);
        match rings.first().map_or(1, Vec::len) {
            more if more > most => {
                let too_large = rings.iter().filter(|ring| ring.len() > most);
                let arrows: String = too_large.map(|ring| arrows(&modules, ring)).collect();
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
    assert_eq!(rings(&modules), [["a", "b"]]);
}
