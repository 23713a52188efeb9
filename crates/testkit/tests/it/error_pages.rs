//! Every stable error code has a page, every page a code, and the index lists them all.

use std::collections::BTreeSet;
use std::fs;

use crate::layering::root;

fn codes() -> BTreeSet<String> {
    baton_model::code::ALL.iter().map(|code| (*code).to_owned()).collect()
}

fn pages() -> BTreeSet<String> {
    fs::read_dir(root().join("docs/errors"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .map(|name| name.strip_suffix(".md").unwrap_or_else(|| panic!("{name} is not a page")).to_owned())
        .collect()
}

#[test]
fn codes_and_pages_match() {
    let (codes, pages) = (codes(), pages());
    let without_page: Vec<_> = codes.difference(&pages).collect();
    let without_code: Vec<_> = pages.difference(&codes).collect();
    assert!(without_page.is_empty(), "codes without a page under docs/errors: {without_page:?}");
    assert!(without_code.is_empty(), "pages of codes that do not exist: {without_code:?}");
}

#[test]
fn pages_have_the_same_shape_and_stand_in_the_index() {
    let folder = root().join("docs/errors");
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    for code in pages() {
        let page = fs::read_to_string(folder.join(format!("{code}.md"))).unwrap();
        assert!(page.starts_with(&format!("# `{code}`\n")), "{code}.md is headed by something else");
        for heading in ["## What it means", "## Typical causes", "## What to do"] {
            assert!(page.contains(heading), "{code}.md lacks `{heading}`");
        }
        assert!(index.contains(&format!("| [`{code}`]({code}.md) |")), "the index does not list {code}");
    }
}
