//! Going through a map in a fixed order. The interpreter keeps maps in hash tables whose order differs from one
//! process to the next, so `variables.map(k, k)` would not give the same list twice. Every comprehension's range is
//! therefore passed through a function that turns a map into the sorted list of its keys.

use std::sync::Arc;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr};
use cel::objects::Key;
use cel::{Context, Value as Cel};

/// No expression can name it: it is not an identifier.
const IN_ORDER: &str = "@in_order";

/// The same expression, its comprehensions in order.
pub(crate) fn in_order(expression: &IdedExpr) -> IdedExpr {
    let mut ordered = expression.clone();
    walk(&mut ordered);
    ordered
}

/// Lets a context evaluate what [`in_order`] made.
pub(crate) fn provide(context: &mut Context<'_, '_>) -> Result<(), String> {
    context.add_function(IN_ORDER, sorted_keys).map_err(|error| error.to_string())
}

fn sorted_keys(range: Cel) -> Cel {
    match range {
        Cel::Map(map) => {
            let mut keys: Vec<Key> = map.map.keys().cloned().collect();
            keys.sort();
            Cel::List(Arc::new(keys.into_iter().map(Cel::from).collect()))
        }
        other => other,
    }
}

fn walk(expression: &mut IdedExpr) {
    match &mut expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| walk(target));
            call.args.iter_mut().for_each(walk);
        }
        Expr::Comprehension(loop_) => {
            walk(&mut loop_.accu_init);
            walk(&mut loop_.loop_cond);
            walk(&mut loop_.loop_step);
            walk(&mut loop_.result);
            walk(&mut loop_.iter_range);
            let range = std::mem::take(&mut loop_.iter_range);
            let id = range.id;
            let call = CallExpr { func_name: IN_ORDER.to_owned(), target: None, args: vec![range] };
            loop_.iter_range = IdedExpr { id, expr: Expr::Call(call) };
        }
        Expr::List(list) => list.elements.iter_mut().for_each(walk),
        Expr::Map(map) => map.entries.iter_mut().for_each(|entry| walk_entry(&mut entry.expr)),
        Expr::Struct(literal) => literal.entries.iter_mut().for_each(|entry| walk_entry(&mut entry.expr)),
        Expr::Select(select) => walk(&mut select.operand),
    }
}

fn walk_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            walk(&mut entry.key);
            walk(&mut entry.value);
        }
        EntryExpr::StructField(field) => walk(&mut field.value),
    }
}
