//! Expressions that somebody wrote to stop the host. Each is refused, or fails as too costly, or ends within the bounds;
//! what is counted is asserted, never the clock.

use super::*;
use crate::expr::meter::UNIT_BYTES;
use serde_json::json;

pub(super) const MAX_UNITS: u64 = 200_000;

pub(in crate::expr) fn corpus() -> Vec<(&'static str, String)> {
    let repeated = |unit: &str, count: usize| unit.repeat(count);
    vec![
        ("plus chain", repeated("1+", 2047) + "1"),
        ("shorter plus chain", repeated("1+", 250) + "1"),
        ("select chain", "v".to_owned() + &repeated(".a", 2047)),
        ("shorter select chain", "v".to_owned() + &repeated(".a", 250)),
        ("index chain", "v".to_owned() + &repeated("[0]", 1300)),
        ("shorter index chain", "v".to_owned() + &repeated("[0]", 150)),
        ("nots", repeated("!", 4000) + "true"),
        ("negations", repeated("-", 4000) + "1"),
        ("conditionals", repeated("true?1:", 580) + "1"),
        ("conditionals to the left", repeated("true?", 40) + "1" + &repeated(":1", 40)),
        ("and chain", repeated("true&&", 680) + "true"),
        ("or chain", repeated("false||", 580) + "true"),
        ("mixed logic", repeated("true&&false||", 300) + "true"),
        ("relations", repeated("1<", 2000) + "1"),
        ("in chain", repeated("1 in ", 800) + "[1]"),
        ("in glued to numbers", repeated("1uin ", 800) + "[1]"),
        ("brackets", repeated("(", 2000) + "1" + &repeated(")", 2000)),
        ("brackets that are allowed", repeated("(", 40) + "1" + &repeated(")", 40)),
        ("lists in lists", repeated("[", 2000) + &repeated("]", 2000)),
        ("maps in maps", repeated("{1:", 46) + "1" + &repeated("}", 46)),
        ("calls in calls", repeated("size(", 46) + "[]" + &repeated(")", 46)),
        ("quotes that never close", repeated("'+1", 1300)),
        ("an escape that is none", "'\\q".to_owned() + &repeated("+1", 2000)),
        ("raw prefixes", repeated("r'\\'+", 800) + "''"),
        ("comment", "1 //".to_owned() + &repeated("+1", 2000)),
        ("wide list", format!("[{}1]", repeated("1,", 2000))),
        (
            "computed lists",
            format!(
                "[[1]].map(a, a{0})[0].all(x, [[1]].map(b, b{0})[0].all(y, [[1]].map(c, c{0})[0].all(z, true)))",
                repeated("+l", 250)
            ),
        ),
        ("lists that double", format!("[l]{}.size()", repeated(".map(a, a + a)", 40))),
        ("lists in lists by map", format!("[1]{}", repeated(".map(a, [a, a])", 150))),
        ("deep by map", format!("[1]{}", repeated(".map(a, [a])", 76))),
        ("deep and compared", format!("[1]{0} == [1]{0}", repeated(".map(a, [a, a])", 60))),
        ("texts that double", format!("['{}']{}", "x".repeat(64), repeated(".map(s, s + s)", 60))),
        ("texts in a comprehension", "l.map(a, l.map(b, s + s))".to_owned()),
        ("a long sum of texts", format!("s{}", repeated("+s", 200))),
        ("map of map", "l.map(a, l.map(b, l.map(c, [a, b, c])))".to_owned()),
        ("three loops", "l.all(a, l.all(b, l.all(c, true)))".to_owned()),
        ("three loops with errors", "l.exists(a, l.exists(b, l.exists(c, c.missing == 1)))".to_owned()),
        ("one of many", "l.exists_one(a, l.exists_one(b, l.filter(c, c == b).size() == 1))".to_owned()),
        ("membership", "l.all(a, l.all(b, (a + b) in l || true))".to_owned()),
        ("comparing texts", "l.all(a, l.all(b, (s + 'a') == (s + 'b') || true))".to_owned()),
        ("searching texts", "l.all(a, (s + s).contains(s + 'x') || true)".to_owned()),
        ("a large pattern", format!("s.matches('{}')", repeated("(a{100}){100}", 20))),
        ("classes", r"s.matches('(\\w{50}\\d{50}\\s{50}){20}')".to_owned()),
        ("nested repetition", "s.matches('((a+)+)+b')".to_owned()),
        ("pattern in a loop", "l.all(a, l.all(b, s.matches('^x*' + string(a * 1000 + b) + '$') || true))".to_owned()),
        ("pattern of patterns", r"l.all(a, s.matches('[a-q][^u-z]{13}x\\w+' + string(a)) || true)".to_owned()),
        ("repetition of repetition", "s.matches('a{1000}{1000}')".to_owned()),
        ("plus of a repetition", "s.matches('(?:a{900})+{900}')".to_owned()),
        ("big numbers", "l.map(a, string(double('1e308') * 1.0)).map(t, int(double(t) / 1e300))".to_owned()),
        ("numbers from texts", "l.map(a, l.map(b, double(s.contains('x') ? '1' : s) + 1.0))".to_owned()),
        (
            "map literals",
            format!("l.map(a, l.map(b, {{{}'z': a}}))", (0..200).map(|n| format!("'k{n}': b,")).collect::<String>()),
        ),
        ("keys", "l.map(a, m.map(k, m.map(j, m[j])))".to_owned()),
        ("whole data", "l.map(a, [v, l, s, m])".to_owned()),
        (
            "all letters in both cases",
            r"l.all(a, l.all(b, 'a'.matches('(?i)\\p{any}' + string(a * 1000 + b)) || true))".to_owned(),
        ),
        ("a range in both cases", r"l.all(a, 'a'.matches('(?i)[\\x00-\\x{10FFFF}]' + string(a)) || true)".to_owned()),
        ("letters in both cases", format!("l.all(a, 'a'.matches('(?i){}' + string(a)) || true)", "k".repeat(3000))),
        ("words of all alphabets", r"l.all(a, 'a'.matches('\\w{1,60}' + string(a)) || true)".to_owned()),
        ("word boundaries", r"l.all(a, (s + 'é').matches('\\b\\w{1,50}\\b.*\\bz\\b' + string(a)) || true)".to_owned()),
        ("any letters", "l.all(a, 'a'.matches('^.{1,1000}$' + string(a)) || true)".to_owned()),
        ("open groups", format!("l.all(a, s.matches('{}' + string(a)) || true)", "(".repeat(3900))),
        ("stars", format!("l.all(a, s.matches('a{}' + string(a)) || true)", "*".repeat(3900))),
        ("optional letters", format!("l.all(a, s.matches('{}' + string(a)) || true)", "a?".repeat(1900))),
        ("open braces", format!("l.all(a, l.all(b, s.matches('{}' + string(a)) || true))", "{".repeat(3900))),
        ("open names", format!("l.all(a, l.all(b, s.matches('{}' + string(a)) || true))", "\\\\p{".repeat(900))),
        ("a long pattern", "l.all(a, l.all(b, 'a'.matches(s) || true))".to_owned()),
        ("a comment in a pattern", "s.matches('(?x)a # [\\n{1000}')".to_owned()),
        ("long keys", "l.all(a, l.all(b, !(s in m)))".to_owned()),
        ("long keys by index", "l.all(a, l.all(b, m[s] == 1 || true))".to_owned()),
        ("long fields", format!("l.all(a, l.all(b, !has(m.{})))", "k".repeat(3900))),
        ("byte literals", format!("l.all(a, l.all(b, b'{}' != b''))", "x".repeat(3900))),
        ("a function that there is not", format!("l.all(a, l.all(b, {}(1) || true))", "f".repeat(3900))),
        ("maps of one", "l.map(a, l.map(b, {'a': 1}))".to_owned()),
        ("maps in maps in a loop", "l.map(a, l.map(b, {'a': {'b': {'c': {}}}}))".to_owned()),
        ("lists of one", "l.map(a, l.map(b, [[b]]))".to_owned()),
        ("optionals", "l.map(a, l.map(b, optional.of(b)))".to_owned()),
        ("wide maps", "l.map(a, m)".to_owned()),
        ("maps compared", "l.all(a, l.all(b, m == m))".to_owned()),
        ("keys of maps", "l.map(a, l.map(b, [] + m))".to_owned()),
        ("bytes that double", format!("[b'{}']{}", "x".repeat(64), repeated(".map(s, s + s)", 60))),
        ("nothing but letters that mean nothing", repeated("@", 4000)),
    ]
}

pub(in crate::expr) fn data() -> Value {
    let list: Vec<u32> = (0..1000).collect();
    let map: serde_json::Map<String, Value> = (0..200).map(|n| (format!("key{n}"), json!({"n": n}))).collect();
    json!({"v": {"a": {"a": [[0]]}}, "l": list, "s": "x".repeat(100_000), "m": map})
}

#[test]
fn each_ends_within_its_bounds_on_a_small_stack() {
    let (mut refused, mut costly, mut ended) = (0, 0, 0);
    for (name, source) in corpus() {
        let outcome = on_a_small_stack(move || {
            let Ok(expression) = compile(&source) else { return None };
            let names = Names::new(data());
            let result = expression.evaluate(&names);
            Some((result, names.meter.used(), names.bounds.largest_value()))
        });
        let Some((result, used, most)) = outcome else {
            refused += 1;
            continue;
        };
        assert!(used <= MAX_UNITS, "{name}: {used}");
        match result {
            Ok(value) => {
                ended += 1;
                let size = baton_model::json::size(&value);
                assert!(size <= most && size <= (used + 1) * UNIT_BYTES, "{name}: {size} bytes for {used} units");
            }
            Err(failure) => costly += usize::from(too_costly(&failure)),
        }
    }
    assert!(refused >= 12, "{refused} refused");
    assert!(costly >= 18, "{costly} too costly");
    assert!(ended >= 5, "{ended} ended");
}

#[test]
fn the_refused_are_read_from_old_records_and_fail_politely() {
    for (name, source) in corpus().into_iter().filter(|(_, source)| compile(source).is_err()) {
        let failure = on_a_small_stack(move || {
            let read = Expression::compile(&source, "here", Strictness::Recorded).ok()?;
            Some(read.evaluate(&Names::new(data())).unwrap_err())
        });
        assert!(failure.as_ref().is_none_or(too_costly), "{name}: {failure:?}");
    }
}

/// Units that an expression uses over the data.
fn used(source: &str) -> u64 {
    let names = Names::new(data());
    let _ = compile(source).unwrap().evaluate(&names);
    names.meter.used()
}

#[test]
fn what_is_looked_through_is_paid_for() {
    // A key is as long as a text that is compared.
    let text = 100_000 / UNIT_BYTES;
    assert!(used("s in m") >= text && used("m[s]") >= text && used("m == {s: 1}") < MAX_UNITS);
    assert!(used(&format!("has(m.{})", "k".repeat(3900))) >= 60);
    assert!(used(&format!("m.{} == 1", "k".repeat(3900))) >= 60);
    // Both sides of a comparison are looked up.
    assert!(used("m == m") >= 200 * 3);
    assert!(used(&format!("{}(1)", "f".repeat(3900))) >= 60);
    // What takes the compiler of patterns milliseconds.
    assert!(used(r"'a'.matches('(?i)\\p{any}')") >= 40_000);
    assert!(used(r"'a'.matches('\\w{20}')") >= 40_000);
    // A map takes a table, however few members it has.
    assert!(used("l.map(a, {'a': 1})") >= 1000 * 20);
    assert!(used("l.map(a, [1])") < 1000 * 20);
}

#[test]
fn literals_are_lent() {
    let expression = compile(&format!("b'{}'", "x".repeat(3000))).unwrap();
    let lent = expression
        .run(&Names::new(data()), |value, _| Ok(matches!(value, Val::Bytes(crate::expr::value::Bytes::Lent(_)))));
    assert!(lent.unwrap());
}

#[test]
fn a_mistake_is_told_once() {
    for source in ["@".repeat(4000), format!("'{}' $$", "x".repeat(3900)), "1 1 ".repeat(900)] {
        let why = compile(&source).unwrap_err();
        assert!(why.len() <= 512, "{} bytes", why.len());
    }
}

#[test]
fn a_text_that_doubles_each_round_stops_at_the_bound() {
    let expression = compile("s + s").unwrap();
    let mut text = json!("x");
    let mut rounds = 0;
    let failure = loop {
        let names = Names::new(json!({"s": text}));
        match expression.evaluate(&names) {
            Ok(next) => text = next,
            Err(failure) => break failure,
        }
        rounds += 1;
        assert!(rounds < 40);
    };
    assert!(too_costly(&failure) && failure.text().contains("max_value_bytes"), "{failure:?}");
    assert!(text.as_str().unwrap().len() <= 1024 * 1024 + 4096);
}
