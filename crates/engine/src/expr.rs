//! CEL, bounded.
//!
//! An expression cannot loop by itself, only comprehensions (`all`, `exists`, `map`, `filter`) multiply work, so its
//! cost is at most `size × length ^ nesting` where `length` is the longest collection in sight. That product is
//! checked before evaluation, which keeps a hostile or careless expression from stalling the host.

use std::sync::{Arc, OnceLock};

use cel::common::ast::{EntryExpr, Expr, IdedExpr};
use cel::objects::Key;
use cel::{Context, Env, Program, Value as Cel};
use serde_json::{Map, Number, Value};

use crate::explain::explain;
use crate::expr_order::{in_order, provide};

const MAX_SOURCE_BYTES: usize = 4096;
/// Parsing recurses per bracket, so nesting is bounded before the parser sees it.
const MAX_BRACKETS: usize = 48;
const MAX_NESTING: u32 = 3;
const MAX_COST: u64 = 2_000_000;

/// A compiled expression that knows which names it reads.
pub(crate) struct Expression {
    source: String,
    /// With every comprehension in a fixed order.
    program: IdedExpr,
    names: Vec<String>,
    size: u64,
    nesting: u32,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expression({})", self.source)
    }
}

/// What an expression may see. Lookup is by top-level name, so only what is read is converted.
pub(crate) trait Scope {
    fn lookup(&self, name: &str) -> Option<Value>;
}

impl Expression {
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        if source.trim().is_empty() {
            return Err("the expression is empty".to_owned());
        }
        if source.len() > MAX_SOURCE_BYTES {
            return Err(format!("the expression is longer than {MAX_SOURCE_BYTES} bytes"));
        }
        if bracket_depth(source) > MAX_BRACKETS {
            return Err(format!("the expression nests more than {MAX_BRACKETS} brackets"));
        }
        let program = Program::compile(source).map_err(|errors| one_line(&errors.to_string()))?;
        let mut shape = Shape::default();
        shape.walk(program.expression(), 0);
        if shape.nesting > MAX_NESTING {
            return Err(format!("more than {MAX_NESTING} nested comprehensions"));
        }
        let names = program.references().variables().into_iter().map(str::to_owned).collect();
        let program = in_order(program.expression());
        Ok(Self { source: source.to_owned(), program, names, size: shape.size.max(1), nesting: shape.nesting })
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Whether the expression mentions this top-level name.
    pub(crate) fn reads(&self, name: &str) -> bool {
        self.names.iter().any(|read| read == name)
    }

    /// Evaluates to JSON, or says why not.
    pub(crate) fn evaluate(&self, scope: &dyn Scope) -> Result<Value, String> {
        let mut context = Context::with_env(environment());
        let mut longest = 1_u64;
        for name in &self.names {
            if let Some(value) = scope.lookup(name) {
                longest = longest.max(longest_collection(&value));
                context.add_variable_from_value(name.as_str(), to_cel(&value));
            }
        }
        let cost = longest.checked_pow(self.nesting).and_then(|n| n.checked_mul(self.size)).unwrap_or(u64::MAX);
        if self.nesting > 0 && cost > MAX_COST {
            return Err(format!("too costly: about {cost} steps, at most {MAX_COST} are allowed"));
        }
        if self.nesting > 0 {
            provide(&mut context)?;
        }
        let value = context.resolve(&self.program).map_err(|error| explain(&self.source, &error))?;
        from_cel(&value).ok_or_else(|| "the result is not JSON".to_owned())
    }

    pub(crate) fn evaluate_bool(&self, scope: &dyn Scope) -> Result<bool, String> {
        match self.evaluate(scope)? {
            Value::Bool(answer) => Ok(answer),
            other => Err(format!("expected true or false, got {}", kind_of(&other))),
        }
    }
}

fn environment() -> Arc<Env> {
    static ENVIRONMENT: OnceLock<Arc<Env>> = OnceLock::new();
    Arc::clone(ENVIRONMENT.get_or_init(|| Arc::new(Env::stdlib())))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn bracket_depth(source: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in source.bytes() {
        match byte {
            // Unary operators recurse in the parser just as brackets do.
            b'(' | b'[' | b'{' | b'!' | b'-' | b'?' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[derive(Default)]
struct Shape {
    size: u64,
    nesting: u32,
}

impl Shape {
    fn walk(&mut self, expression: &IdedExpr, depth: u32) {
        self.size += 1;
        self.nesting = self.nesting.max(depth);
        match &expression.expr {
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
            Expr::Call(call) => {
                if let Some(target) = &call.target {
                    self.walk(target, depth);
                }
                call.args.iter().for_each(|argument| self.walk(argument, depth));
            }
            Expr::Comprehension(loop_) => {
                self.walk(&loop_.iter_range, depth);
                self.walk(&loop_.accu_init, depth);
                for inner in [&loop_.loop_cond, &loop_.loop_step, &loop_.result] {
                    self.walk(inner, depth + 1);
                }
            }
            Expr::List(list) => list.elements.iter().for_each(|element| self.walk(element, depth)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr, depth)),
            Expr::Struct(literal) => literal.entries.iter().for_each(|entry| self.entry(&entry.expr, depth)),
            Expr::Select(select) => self.walk(&select.operand, depth),
        }
    }

    fn entry(&mut self, entry: &EntryExpr, depth: u32) {
        match entry {
            EntryExpr::MapEntry(entry) => {
                self.walk(&entry.key, depth);
                self.walk(&entry.value, depth);
            }
            EntryExpr::StructField(field) => self.walk(&field.value, depth),
        }
    }
}

fn longest_collection(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(longest_collection).max().unwrap_or(0).max(items.len() as u64),
        Value::Object(map) => map.values().map(longest_collection).max().unwrap_or(0).max(map.len() as u64),
        _ => 1,
    }
}

fn to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Number(number) => number_to_cel(number),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(map) => Cel::Map(cel::objects::Map {
            map: Arc::new(map.iter().map(|(key, value)| (Key::from(key.clone()), to_cel(value))).collect()),
        }),
    }
}

/// A number without a fraction is an int, however it was written; everything else is a double.
fn number_to_cel(number: &Number) -> Cel {
    if let Some(int) = number.as_i64() {
        return Cel::Int(int);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    #[expect(clippy::cast_possible_truncation, reason = "guarded by the range check")]
    if float.fract() == 0.0 && float.abs() < 9.0e15 { Cel::Int(float as i64) } else { Cel::Float(float) }
}

fn from_cel(value: &Cel) -> Option<Value> {
    Some(match value {
        Cel::Null => Value::Null,
        Cel::Bool(b) => Value::Bool(*b),
        Cel::Int(int) => Value::from(*int),
        Cel::UInt(uint) => Value::from(*uint),
        Cel::Float(float) => Value::Number(Number::from_f64(*float)?),
        Cel::String(text) => Value::String(text.as_str().to_owned()),
        Cel::List(items) => Value::Array(items.iter().map(from_cel).collect::<Option<_>>()?),
        Cel::Map(map) => {
            let mut object = Map::new();
            for (key, value) in map.map.iter() {
                let key = match key {
                    Key::String(text) => text.as_str().to_owned(),
                    Key::Int(int) => int.to_string(),
                    Key::Uint(uint) => uint.to_string(),
                    Key::Bool(b) => b.to_string(),
                };
                object.insert(key, from_cel(value)?);
            }
            Value::Object(object)
        }
        _ => return None,
    })
}

pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Names(Value);
    impl Scope for Names {
        fn lookup(&self, name: &str) -> Option<Value> {
            self.0.get(name).cloned()
        }
    }

    fn eval(source: &str, names: Value) -> Result<Value, String> {
        Expression::compile(source)?.evaluate(&Names(names))
    }

    #[test]
    fn reads_names_and_computes() {
        let names = json!({"variables": {"n": 2, "f": 2.5, "whole": 3.0, "list": [1, 2, 3]}});
        assert_eq!(eval("variables.n + 1", names.clone()), Ok(json!(3)));
        assert_eq!(eval("variables.whole + 1", names.clone()), Ok(json!(4)));
        assert_eq!(eval("variables.f * 2.0", names.clone()), Ok(json!(5.0)));
        assert_eq!(eval("variables.list.map(x, x * 2)", names.clone()), Ok(json!([2, 4, 6])));
        assert_eq!(eval("{'a': variables.n}", names), Ok(json!({"a": 2})));
    }

    #[test]
    fn maps_are_gone_through_in_the_order_of_their_keys() {
        let names: Vec<String> = (0..40).map(|n| format!("k{n:02}")).collect();
        let map: Map<String, Value> = names.iter().rev().map(|name| (name.clone(), json!(1))).collect();
        assert_eq!(eval("m.map(k, k)", json!({"m": map})), Ok(json!(names)));
        assert_eq!(eval("m.filter(k, m[k] == 1)[0]", json!({"m": map})), Ok(json!("k00")));
        assert_eq!(eval("[m].map(x, x.map(k, k))[0][39]", json!({"m": map})), Ok(json!("k39")));
        assert_eq!(eval("{3: 'c', 1: 'a', 2: 'b'}.map(k, k)", json!({})), Ok(json!([1, 2, 3])));
    }

    #[test]
    fn errors_are_sentences_not_panics() {
        assert!(eval("variables.missing", json!({"variables": {}})).is_err());
        assert!(eval("1 +", json!({})).is_err());
        assert!(eval("", json!({})).is_err());
        assert!(eval("unknown", json!({})).is_err());
        assert!(eval("1 / 0", json!({})).is_err());
        assert!(Expression::compile(&"(".repeat(5000)).is_err());
        assert!(Expression::compile(&format!("{}1", "-".repeat(200))).is_err());
    }

    #[test]
    fn cost_is_bounded_before_evaluation() {
        let list: Vec<u32> = (0..2000).collect();
        let nested = "variables.l.all(a, variables.l.all(b, a + b >= 0))";
        assert!(eval(nested, json!({"variables": {"l": list}})).unwrap_err().contains("too costly"));
        assert_eq!(eval(nested, json!({"variables": {"l": [1, 2, 3]}})), Ok(json!(true)));
    }
}
