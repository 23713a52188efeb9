//! What models have used, in words.

use baton_model::{Metrics, UsageSummary};

/// `528 in, 12 out, 0.0007 USD`.
pub(crate) fn in_words(usage: UsageSummary) -> String {
    let mut words = format!("{} in, {} out", usage.input_tokens, usage.output_tokens);
    if let Some(usd) = usage.cost_usd {
        words.push_str(&format!(", {} USD", rounded(usd)));
    }
    words
}

/// A run's own usage, and that of its tree where it differs.
pub(crate) fn of_run(metrics: &Metrics) -> Option<String> {
    let own = Metrics { openwop_cost: metrics.openwop_cost.clone(), tree_cost: None }.used();
    let tree = metrics.used();
    match (own, tree) {
        (Some(own), Some(tree)) if own == tree => Some(in_words(own)),
        (Some(own), Some(tree)) => Some(format!("{}; with the runs below {}", in_words(own), in_words(tree))),
        (None, Some(tree)) => Some(format!("in the runs below {}", in_words(tree))),
        (own, None) => own.map(in_words),
    }
}

/// In as few letters as a line of a tree has room for: `540 tokens, 0.0007 USD`.
pub(crate) fn short(usage: UsageSummary) -> String {
    let mut words = format!("{} tokens", usage.input_tokens.saturating_add(usage.output_tokens));
    if let Some(usd) = usage.cost_usd {
        words.push_str(&format!(", {} USD", rounded(usd)));
    }
    words
}

/// Sums of prices carry the dust of binary fractions.
fn rounded(usd: f64) -> f64 {
    (usd * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use baton_model::{Cost, Tokens, TreeCost};

    use super::*;

    #[test]
    fn a_tree_is_named_where_it_used_more_than_the_run() {
        let tokens = Tokens { input: 11, output: 7 };
        let own = Some(Cost { tokens, ..Cost::default() });
        let tree = |input, output, usd| Some(TreeCost { tokens: Tokens { input, output }, usd });
        let described = |openwop_cost: &Option<Cost>, tree_cost| {
            of_run(&Metrics { openwop_cost: openwop_cost.clone(), tree_cost }).unwrap_or_default()
        };
        assert_eq!(described(&own, tree(11, 7, None)), "11 in, 7 out");
        assert_eq!(described(&own, None), "11 in, 7 out");
        let more = tree(22, 14, Some(0.1 + 0.2));
        assert_eq!(described(&own, more), "11 in, 7 out; with the runs below 22 in, 14 out, 0.3 USD");
        assert_eq!(described(&None, tree(64, 44, None)), "in the runs below 64 in, 44 out");
        assert_eq!(described(&None, None), "");
    }
}
