//! What every adapter must do, as checks that panic with a sentence when it does not.
//!
//! Call [`all`] from an adapter's tests with a function that makes a fresh, empty store each time.

#![expect(clippy::panic, clippy::expect_used, reason = "a check that fails must say so loudly")]

mod annotations;
mod chain;
mod checkpoints;
mod dead_letters;
pub mod everything;
mod failures;
mod filters;
mod forks;
mod lists;
mod log;
mod parts;
mod probe;
mod quarantine;
pub mod rate;
mod retention;
mod runners;
pub mod sample;
mod shared;
mod suspects;
pub mod turns;
mod versioned;

use crate::Store;
pub use shared::Hosts;

/// Runs every check, each on a store of its own.
pub async fn all<S: Store, F: AsyncFn() -> S>(fresh: F) {
    log::append_then_read(fresh().await).await;
    log::records_from_and_limit(fresh().await).await;
    log::records_within_bytes(fresh().await).await;
    log::a_commit_is_all_or_nothing(fresh().await).await;
    log::commits_happen_in_submit_order(fresh().await).await;
    log::what_a_run_is_does_not_change(fresh().await).await;
    log::large_and_odd_text_survives(fresh().await).await;
    log::the_observer_hears_of_every_commit(fresh().await).await;
    log::close_makes_what_was_queued_durable(fresh().await).await;

    chain::sealed_logs_read_back_from_anywhere(fresh().await).await;
    chain::a_chain_begins_where_checksums_do(fresh().await).await;
    chain::records_that_end_elsewhere_are_refused(fresh().await).await;
    chain::a_fork_goes_on_from_its_sources_chain(fresh().await).await;

    failures::a_stale_append_is_refused(fresh().await).await;
    failures::a_lost_part_takes_its_chain_along_and_nothing_else(fresh().await).await;
    failures::parts_of_one_commit_are_lost_one_by_one(fresh().await).await;
    failures::what_builds_on_a_lost_version_is_lost_with_it(fresh().await).await;
    failures::recovery_without_a_failure_changes_nothing(fresh().await).await;
    failures::a_run_is_created_once(fresh().await).await;
    failures::an_unknown_run_takes_no_records(fresh().await).await;
    failures::misnumbered_records_are_refused(fresh().await).await;

    lists::runs_are_filtered(fresh().await).await;
    lists::runs_are_found_by_their_summaries(fresh().await).await;
    lists::active_trees_are_counted_by_their_top(fresh().await).await;
    lists::runs_are_paged_newest_first(fresh().await).await;
    lists::unfinished_runs_are_the_busy_ones(fresh().await).await;
    lists::due_runs_come_earliest_first(fresh().await).await;
    lists::the_active_run_of_a_scope(fresh().await).await;
    filters::any_filter_finds_what_is_there(fresh().await).await;
    filters::what_is_rare_is_found_in_short_pages(fresh().await).await;
    filters::trees_with_a_log_are_listed_newest_first(fresh().await).await;

    versioned::an_unknown_versioned_store_is_empty(fresh().await).await;
    versioned::changes_read_back_newest_first(fresh().await).await;
    versioned::a_change_out_of_turn_is_refused(fresh().await).await;
    versioned::a_mixed_commit_is_all_or_nothing(fresh().await).await;
    versioned::changes_happen_in_submit_order(fresh().await).await;
    versioned::a_lens_shows_one_version(fresh().await).await;
    versioned::a_lens_shows_own_writes(fresh().await).await;
    versioned::a_lens_leaves_out_what_has_expired(fresh().await).await;
    versioned::a_lens_narrows(fresh().await).await;
    versioned::a_limit_finds_what_lies_far_back(fresh().await).await;
    versioned::history_is_paged(fresh().await).await;
    versioned::tenants_kinds_and_scopes_are_apart(fresh().await).await;
    versioned::the_observer_hears_of_versioned_stores(fresh().await).await;

    retention::what_was_replaced_is_forgotten(fresh().await).await;
    retention::deletions_are_forgotten_last(fresh().await).await;
    retention::a_dropped_versioned_store_counts_on(fresh().await).await;
    retention::retention_is_part_of_a_commit(fresh().await).await;
    retention::a_pruned_run_keeps_its_row(fresh().await).await;
    retention::the_floor_is_what_runs_may_look_back_to(fresh().await).await;

    forks::a_log_begins_at_its_fork_point(fresh().await).await;
    forks::a_run_knows_its_forks(fresh().await).await;
    forks::a_log_stays_while_a_fork_begins_with_it(fresh().await).await;
    forks::a_forked_versioned_store_goes_on_from_there(fresh().await).await;
    forks::a_versioned_store_that_exists_is_not_forked_over(fresh().await).await;
    forks::what_a_fork_sees_is_looked_back_to(fresh().await).await;
    forks::a_fork_looks_back_to_its_own_beginning(fresh().await).await;
    forks::a_deletion_in_a_fork_hides_for_good(fresh().await).await;

    parts::blobs(fresh().await).await;
    parts::workflows_show_their_newest_version(fresh().await).await;
    parts::interrupts_open_and_close(fresh().await).await;
    parts::replies_are_replaced_and_pruned(fresh().await).await;
    parts::webhooks(fresh().await).await;
    parts::deliveries_are_due_in_order(fresh().await).await;

    dead_letters::letters_are_listed_newest_first(fresh().await).await;
    dead_letters::what_waits_is_buried_earliest_first(fresh().await).await;
    dead_letters::letters_are_queued_again_once(fresh().await).await;
    dead_letters::letters_are_trimmed_and_counted(fresh().await).await;
    dead_letters::letters_go_with_their_subscription_and_with_age(fresh().await).await;
    dead_letters::subscriptions_of_a_tenant_are_paged(fresh().await).await;

    probe::a_probe_goes_all_the_way(fresh().await).await;
    probe::a_commit_that_is_too_large_is_refused(fresh().await).await;

    quarantine::a_quarantine_is_put_replaced_and_ended(fresh().await).await;
    quarantine::quarantined_trees_are_listed_by_root(fresh().await).await;

    annotations::annotations_are_listed_by_id(fresh().await).await;
    annotations::annotations_go_with_the_log(fresh().await).await;

    checkpoints::the_newest_checkpoint_of_a_key_is_found(fresh().await).await;
    checkpoints::checkpoints_are_replaced_and_dropped(fresh().await).await;
    checkpoints::checkpoints_go_with_the_log(fresh().await).await;
    checkpoints::what_a_tree_has_spent_is_listed_by_run(fresh().await).await;

    runners::tokens_are_found_by_hash_until_deleted(fresh().await).await;
    runners::the_row_of_the_greater_version_counts(fresh().await).await;
    runners::steps_are_listed_by_age_and_forgotten(fresh().await).await;
}

/// What a store must do besides if several hosts share it; every check on hosts of its own. Each host's store must also
/// pass [`all`].
pub async fn shared<H: Hosts, F: AsyncFn() -> H>(fresh: F) {
    shared::every_session_has_its_own_number(fresh().await).await;
    shared::a_lapsed_session_is_ended_once(fresh().await).await;
    shared::recovery_is_a_new_session(fresh().await).await;
    shared::a_run_takes_records_from_its_owner_only(fresh().await).await;
    shared::a_refusal_alone_ends_nothing(fresh().await).await;
    shared::a_log_is_not_dropped_under_a_fork(fresh().await).await;
    shared::trees_of_the_dead_are_taken_over(fresh().await).await;
    shared::asking_for_a_tree_ends_its_lapsed_owner(fresh().await).await;
    shared::a_tree_is_handed_over(fresh().await).await;
    shared::a_claim_has_one_holder(fresh().await).await;
    shared::a_letter_finds_the_owner_and_is_answered_once(fresh().await).await;
    shared::a_letter_that_was_answered_makes_way_for_the_next(fresh().await).await;
    shared::news_of_a_run_reach_the_others(fresh().await).await;

    dead_letters::each_host_buries_what_it_owns(fresh().await).await;
    dead_letters::anybody_queues_anybodys_letters_again(fresh().await).await;

    suspects::a_tree_that_was_at_work_at_a_death_is_suspect(fresh().await).await;
    suspects::a_death_under_a_mark_is_counted(fresh().await).await;
    suspects::who_leaves_by_themselves_has_died_of_nothing(fresh().await).await;
    suspects::a_quarantined_tree_is_not_counted_and_released_on_probation(fresh().await).await;
}
