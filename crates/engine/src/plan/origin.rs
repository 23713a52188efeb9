//! Where a value comes from that a node stores under another name.

use crate::expr::Expression;

/// Where a node takes a value from that it stores under another name.
pub(crate) enum Origin<'a> {
    Expression(&'a Expression),
    Port(&'a str),
}
