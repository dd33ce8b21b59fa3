//! The laws of the store port. Each is one function over any store and runs on every backend that there is; a new
//! backend is one more line in the macro, and a law that is not listed is dead code and does not pass the lints.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod appending;
#[cfg(feature = "postgres")]
mod components;
#[cfg(feature = "postgres")]
mod cut_off;
mod damage;
mod deliveries;
#[cfg(feature = "postgres")]
mod documents;
mod feeds;
mod full_disk;
mod given;
mod growth;
#[cfg(feature = "postgres")]
mod hosts;
mod inbox;
mod indexes;
mod journals;
mod key_value;
mod machine;
#[cfg(feature = "postgres")]
mod migrating;
#[cfg(feature = "postgres")]
mod moving;
mod on_disk;
#[cfg(feature = "postgres")]
mod on_server;
#[cfg(feature = "postgres")]
mod plans;
#[cfg(feature = "postgres")]
mod proxy;
mod removing;
mod removing_on_disk;
mod retaining;
mod run_logs;
mod salvaging;
#[cfg(feature = "postgres")]
mod server;
mod set_aside;
#[cfg(feature = "postgres")]
mod shared_values;
mod slow_disk;
mod standing;
mod system_calls;
#[cfg(feature = "postgres")]
mod takeover;
mod verifying;

use toolgate_store as store;

macro_rules! laws {
    ($($file:ident: $($law:ident)*;)*) => {
        mod memory {$($(
            #[tokio::test(flavor = "multi_thread")]
            async fn $law() {
                crate::$file::$law(std::sync::Arc::new(crate::store::MemoryStore::new())).await;
            }
        )*)*}

        mod sled {$($(
            #[tokio::test(flavor = "multi_thread")]
            async fn $law() {
                let folder = tempfile::tempdir().unwrap();
                let store = crate::store::open(folder.path(), &crate::store::StoreSettings::default()).unwrap();
                crate::$file::$law(std::sync::Arc::new(store)).await;
            }
        )*)*}

        #[cfg(feature = "postgres")]
        mod postgres {$($(
            #[tokio::test(flavor = "multi_thread")]
            async fn $law() {
                let Some(store) = crate::on_server::store().await else { return };
                crate::$file::$law(std::sync::Arc::new(store)).await;
            }
        )*)*}
    };
}

laws! {
    standing:
        a_standing_approval_has_a_limited_number_of_uses
        concurrent_uses_never_exceed_the_limit
        a_revoked_standing_approval_is_unusable_and_audited
        standing_approvals_come_in_pages
        a_denial_is_remembered_for_its_conversation
        denials_come_in_pages
        a_changed_row_refuses_its_removal
        only_old_rows_are_removed
        oldest_denials_go_beyond_the_bytes
        every_old_row_of_many_pages_is_removed
        a_row_that_is_written_again_is_not_removed;
    deliveries:
        deliveries_come_soonest_first_and_webhook_by_webhook
        a_delivery_moves_until_it_is_over_and_its_row_stays
        deliveries_about_a_turn_are_apart_from_those_of_a_suspension
        deliveries_about_a_suspension_come_in_the_order_of_occasions
        deliveries_are_committed_with_their_events;
    appending:
        a_log_is_what_was_appended_to_it
        a_log_can_be_read_as_it_was
        only_the_expected_length_is_appended_to
        a_refused_commit_changes_nothing
        exactly_one_of_conflicting_commits_wins
        the_length_of_another_log_can_be_expected
        a_claim_fails_alone
        a_claim_that_already_holds_is_no_conflict;
    feeds:
        a_feed_is_ordered_and_resumes_from_any_position
        a_page_of_a_feed_is_bounded_in_bytes
        a_feed_has_exactly_what_the_logs_have
        a_follower_misses_nothing_while_commits_go_on
        feeds_do_not_mix
        ends_of_turns_are_in_the_feeds_of_host_and_caller
        the_end_of_a_removed_turn_is_removed
        the_audit_has_every_commit_in_order_from_anywhere
        the_same_commits_make_the_same_chain
        the_last_start_is_known;
    removing:
        a_removed_turn_leaves_only_its_ids
        a_removed_log_is_never_continued
        only_an_ended_turn_as_it_was_read_is_removed
        the_chain_stays_as_it_is_after_a_removal
        ended_turns_come_oldest_first_in_pages
        removals_are_read_alone_and_in_pages;
    retaining:
        nothing_is_removed_without_rules
        turns_are_removed_at_their_age_or_that_of_a_tool
        the_oldest_turns_go_beyond_the_bytes
        young_and_held_turns_do_not_count_for_the_bytes
        what_goes_by_age_does_not_count_for_the_bytes
        a_hold_keeps_its_turns;
    run_logs:
        logs_are_read_by_call_the_first_run_first
        a_shorter_log_never_replaces_a_longer_one
        logs_go_with_their_turn_and_none_follow
        old_logs_go_before_their_turn
        logs_count_from_the_end_of_their_turn;
    journals:
        a_journal_is_what_was_appended_to_it
        a_journal_counts_as_it_is_written
        a_journal_is_read_in_pages
        only_the_named_run_appends
        an_entry_has_the_next_number
        journals_go_with_their_turn
        old_journals_go_before_their_turn;
    inbox:
        open_suspensions_are_counted_by_audience
        nested_turns_are_listed_with_their_conversation
        open_suspensions_are_listed_by_audience
        an_audience_of_any_size_is_counted
        kept_bytes_grow_with_commits_and_fall_with_removals;
    indexes:
        a_submission_is_found_with_what_its_caller_keeps
        due_turns_come_soonest_first_and_move
        unfinished_turns_come_in_pages_until_they_end
        suspensions_are_filtered
        suspensions_come_in_pages
        rare_suspensions_are_on_the_first_page
        conversations_are_sorted_and_name_their_owners
        open_suspensions_of_a_long_conversation_are_found
        turns_of_a_conversation_come_newest_first
        states_of_turns_are_in_the_indexes
        a_page_of_turns_looks_at_a_bounded_number_of_commits;
}
