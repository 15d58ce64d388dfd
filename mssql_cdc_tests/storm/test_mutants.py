"""The storm bites: a defect that is put back into the product is found within a few schedules, or by a fixed one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from mssql_cdc.errors import StorageError
from mssql_cdc_tests.storm import test_schedules as fixed
from mssql_cdc_tests.storm import test_unjudged as unjudged
from mssql_cdc_tests.storm.machine import Storm, storm
from mssql_cdc_tests.storm.model import ModelWorld
from mssql_cdc_tests.storm.mutants import MUTANTS, WHOLE_MUTANTS, Mutant

_SOON = [mutant for mutant in MUTANTS if mutant.what in {"any other instance continues", "gaps are not recorded"}]
_FOUND_BY: dict[str, Callable[[Storm], None]] = {
    "any later scan session proves that capture has passed a mark": partial(
        fixed.test_table_stays_closed_until_what_the_last_rows_of_its_snapshot_show_is_read, scans=1, is_open=False
    ),
    "one empty scan proves a mark, though it may have begun before it": partial(
        fixed.test_table_stays_closed_until_what_the_last_rows_of_its_snapshot_show_is_read, scans=3, is_open=False
    ),
    "a table's position is that of the cut, not its own": (
        fixed.test_table_that_has_committed_is_not_read_again_when_its_offsets_were_not_written
    ),
    "another instance continues although the one that was read is gone": (
        fixed.test_changes_while_capture_was_off_are_lost
    ),
    "a resumed snapshot does not know its groups": fixed.test_rows_of_a_chunk_that_is_read_again_are_swept,
    "transactions that appear below a complete cut are not noticed": (
        fixed.test_restore_below_an_idle_position_is_noticed_where_the_recovery_fork_is_hidden
    ),
    "the planner does not notice changes that were cleaned up": (
        fixed.test_changes_that_are_cleaned_up_before_they_are_read_are_a_gap
    ),
    "the stream begins at the snapshot, though its position was lower": (
        fixed.test_changes_before_a_snapshot_are_read_too
    ),
    "a second loss after the same position is not recorded": fixed.test_second_loss_after_the_same_position_is_named,
    "no witness is checked": fixed.test_restore_takes_transactions_back,
    "a restore to before the commits of a dead run is not noticed": partial(
        fixed.test_restore_after_commits_whose_run_has_died_is_noticed, names=["orders"], later=1
    ),
    "a restore after a snapshot's end is not noticed": (
        fixed.test_restore_after_a_snapshot_is_noticed_while_no_later_transaction_is_captured
    ),
    "a restore during a snapshot is not noticed when it is resumed": (
        fixed.test_restore_during_a_snapshot_is_noticed_when_it_is_resumed
    ),
    "a restore during a snapshot is not noticed at its end": (
        fixed.test_restore_during_a_snapshot_is_noticed_before_it_ends
    ),
    "a position of an earlier epoch counts": fixed.test_restore_during_a_snapshot_is_noticed_when_it_is_resumed,
    "tables without rows are not checked after the read": (
        fixed.test_changes_that_are_cleaned_up_before_they_are_counted_are_missed
    ),
    "chunks whose changes were cleaned up count as read": fixed.test_rows_of_a_chunk_that_is_read_again_are_swept,
    "changes that were cleaned up during a snapshot are no gap": (
        fixed.test_changes_that_are_cleaned_up_during_a_snapshot_are_a_gap
    ),
    "a table that is no longer captured is not noticed while another one has its name": (
        fixed.test_table_is_found_that_was_not_captured_for_as_long_as_another_one_had_its_name
    ),
    "a snapshot's end is its start": partial(
        fixed.test_table_stays_closed_until_what_the_last_rows_of_its_snapshot_show_is_read, scans=1, is_open=False
    ),
    "a run that resumes a snapshot does not take it over": partial(
        fixed.test_no_group_of_a_run_that_takes_a_snapshot_over_follows_its_end, part="finish.append_offsets"
    ),
    "a run that was overtaken while it began a snapshot continues reading": partial(
        fixed.test_rows_of_a_table_without_a_key_count_once_though_two_runs_read_it,
        part="begin.append_offsets",
        after=True,
        groups=1,
    ),
    "a group may be committed after the end of its snapshot": (
        fixed.test_no_group_of_a_run_that_was_overtaken_follows_the_end_of_a_snapshot
    ),
    "a table is merged before its stream has passed the end of its snapshot": partial(
        fixed.test_table_that_one_look_does_not_see_stays_closed, name="orders"
    ),
    "a complete cut opens tables that are not in it": (
        partial(fixed.test_table_that_one_look_does_not_see_stays_closed, name="orders")
    ),
    "a bounded range opens tables whose changes it leaves unread": (
        fixed.test_table_is_not_opened_by_a_bounded_range_that_ends_before_its_snapshot
    ),
    "a snapshot that another run has overtaken continues with its old plan": (
        partial(
            fixed.test_a_snapshot_that_another_run_is_ahead_of_leaves_nothing_out,
            place=("snapshot.begin.append_offsets", 1, False),
            by_hand=True,
        )
    ),
    "a planned snapshot leaves out a table that was given up": (
        partial(fixed.test_table_that_was_given_up_is_read_at_the_next_start, beside=True)
    ),
    "an object id of an earlier epoch identifies a renamed table": (
        partial(fixed.test_table_whose_identity_a_restore_gave_to_another_one_is_missed, event="disable")
    ),
    "a bounded range ends at the log's end at which a table was read whole": (
        fixed.test_bounded_range_ends_at_a_transaction_though_a_table_stands_at_the_logs_end
    ),
    "the witness of a range may come from another history than the surveyed one": (
        fixed.test_restore_between_a_survey_and_the_cut_that_it_decides_on_is_noticed
    ),
    "no cut names a table that is tried again": (
        fixed.test_table_that_a_run_has_read_and_could_not_say_so_is_no_longer_given_up
    ),
    "rows of a chunk that is read again are not swept": fixed.test_rows_of_a_chunk_that_is_read_again_are_swept,
    "rows deleted between two reads of a filtered snapshot are not swept": (
        fixed.test_rows_of_a_part_that_is_read_again_are_swept
    ),
    "a filtered snapshot is enough for changes that were cleaned up while it was read": (
        fixed.test_changes_that_go_while_a_part_of_a_table_is_read_are_a_loss
    ),
    "a filtered snapshot is enough for a table that streamed before its last snapshot began": partial(
        fixed.test_restored_table_whose_repair_had_begun_is_read_in_full_despite_a_statement, name="orders"
    ),
    "rows of an incremental snapshot of an idle database are swept": (
        fixed.test_incremental_snapshot_of_an_idle_database_deletes_no_row
    ),
    "emitted rows are in no cut while a table that was never opened is lost": (
        fixed.test_emitted_rows_are_in_a_cut_although_a_table_was_lost_before_it_was_opened
    ),
    "rows that have changed since they were staged are emitted": (
        fixed.test_rows_that_change_while_they_are_staged_are_left_to_the_stream
    ),
    "chunks are emitted before the stream has passed their end": (
        fixed.test_rows_are_emitted_after_the_changes_that_had_led_to_them
    ),
    "chunks that a killed run has emitted are emitted again": (
        fixed.test_rows_that_a_killed_run_has_emitted_are_emitted_once
    ),
    "staged chunks are kept after the stream breaks off": (
        fixed.test_staged_rows_are_read_again_if_the_stream_broke_off_since
    ),
    "an incremental snapshot continues reading during a pause": fixed.test_chunks_are_not_read_during_a_pause,
    "a table that is renamed is found by its name only": (
        fixed.test_tables_keep_what_was_read_of_them_when_they_exchange_their_names_and_get_them_back
    ),
    "a changed log that a snapshot finds after its survey counts as recorded": (
        unjudged.test_a_log_that_is_changed_between_a_look_and_the_snapshot_is_noticed
    ),
    "a requested snapshot of a changed log records no gap": (
        unjudged.test_a_snapshot_by_hand_of_a_log_that_was_changed_leaves_a_gap
    ),
    "a row that only repeats the position of a commit counts as its own": (
        unjudged.test_a_restore_after_a_quiet_table_that_another_dead_run_had_read_is_noticed
    ),
    "commits without a row in `_offsets` are not looked up after a survey": (
        unjudged.test_a_restore_between_a_survey_and_its_range_is_noticed_after_commits_of_a_dead_run
    ),
    "a table without a key is not read again": (
        fixed.test_table_without_a_key_is_read_again_when_its_instance_was_replaced
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS + WHOLE_MUTANTS, ids=lambda mutant: f"{mutant.rule}: {mutant.what}")
def test_mutant_fits_the_product(mutant: Mutant):
    with mutant.planted():
        pass


@pytest.mark.parametrize("mutant", _SOON, ids=lambda mutant: mutant.what)
def test_storm_finds_a_defect(mutant: Mutant):
    with mutant.planted(), pytest.raises((AssertionError, ValueError)):
        storm(ModelWorld, schedules=60, steps=20, seed=0)


@pytest.mark.parametrize("what", _FOUND_BY)
def test_fixed_schedule_finds_a_defect(what: str):
    (mutant,) = (mutant for mutant in MUTANTS if mutant.what == what)
    with mutant.planted(), pytest.raises((AssertionError, ValueError, StorageError)):
        _play(_FOUND_BY[what])


def _play(schedule: Callable[[Storm], None]) -> None:
    played = Storm(ModelWorld)
    with played.stack:
        schedule(played)
        played.come_to_rest()
