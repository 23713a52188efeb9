//! The crate has two parsers. What the larger one takes, ours takes, and makes the same tree of it: definitions that were
//! registered with the larger one go on as they began.

use cel::parser::{Parser, PrattParser};
use proptest::prelude::*;

use super::soup::TOKENS;
use crate::expr::compile::MAX_PARSER_DEPTH;
use crate::expr::{reading, scan};

/// The tree without the numbers of its places.
fn tree(parsed: &cel::common::ast::IdedExpr) -> String {
    let mut plain = String::new();
    let shown = format!("{parsed:?}");
    let mut rest = shown.as_str();
    while let Some(at) = rest.find("id: ") {
        plain.push_str(&rest[..at]);
        rest = rest[at + 4..].trim_start_matches(|letter: char| letter.is_ascii_digit());
    }
    plain + rest
}

/// `!` in front of a negative number: one parser reads the number with its sign, the other applies the sign. Either way it is
/// an error where it is evaluated, as a number has no opposite.
fn mixes_prefixes(source: &str) -> bool {
    let source: String = source.split_whitespace().collect();
    source.contains("!-")
}

fn compare(source: &str) {
    if scan::check(source).is_err() || mixes_prefixes(source) {
        return;
    }
    let Ok(larger) = Parser::new().parse(source) else { return };
    let ours = PrattParser::new().max_recursion_depth(MAX_PARSER_DEPTH).parse(source);
    assert_eq!(ours.map(|ours| tree(&ours)).map_err(|error| error.to_string()), Ok(tree(&larger)), "{source:?}");
}

#[test]
fn what_nests_and_chains_is_the_same() {
    for source in [
        format!("{}1{}", "(".repeat(48), ")".repeat(48)),
        format!("{}1{}", "[".repeat(48), "]".repeat(48)),
        format!("{}1{}", "size(".repeat(47), ")".repeat(47)),
        format!("{}true", "!".repeat(1000)),
        format!("{}x", "-".repeat(1000)),
        vec!["1"; 1000].join("+"),
        vec!["a"; 900].join("&&"),
        vec!["a"; 1000].join("."),
        format!("a{}", "[0]".repeat(47)),
        format!("{}1", "a?1:".repeat(48)),
        "{'a': 1, 2u: [b'\\xff', r'\\d', '''x'y''', \"\\u00e9\",],}.a // why".to_owned(),
        "0x1F + 1e3 + .5 - -9223372036854775808 in [x.?a]".to_owned(),
        "has(a.b) && l.exists_one(x, x.all(y, y > x)) || m.map(k, k != '', m[k]).filter(v, v) == []".to_owned(),
    ] {
        // The larger parser, and the tree, need more room than a test has.
        assert_eq!(reading::with_room(|| compare(&source)), Some(()), "{source:?}");
    }
}

/// Where a text ends is known before the parser looks: nothing in it counts as a bracket.
#[test]
fn a_text_with_a_line_break_or_without_an_end_is_none() {
    for source in ["'a\nb'", "'", "x == \"a", "r'\n'", "'\\q'", "((((')\n))))'"] {
        assert!(matches!(scan::check(source), Err(scan::Found::BrokenText(_))), "{source:?}");
        assert!(Parser::new().parse(source).is_err(), "{source:?}");
    }
    for source in ["'a'", "'''a\nb'''", "r'\\'", "'\\''", "1 // it's", "b\"\\x00\""] {
        assert_eq!(scan::check(source), Ok(()), "{source:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_in_any_order_are_the_same(tokens in prop::collection::vec(prop::sample::select(TOKENS), 1..24)) {
        compare(&tokens.concat());
        compare(&tokens.join(" "));
    }
}
