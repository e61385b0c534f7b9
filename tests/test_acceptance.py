"""Where each acceptance scenario is held: the table from S1-S12, G1-G9, E1-E2 and E4-E6 to tests, and the check that it is true.

The scenarios themselves are published beside the repository. Many more tests name them; these are the ones to read first.
"""

from __future__ import annotations

import ast
import re
from typing import Final

import pytest

from tests.environment import ROOT, shared_dir

# From the scenario to the file and the test in it; a state machine is named by its class.
HELD_BY: Final = {
    "S1": (
        (
            "tests/actors/test_stream.py",
            "test_events_get_dense_seqs_the_clocks_time_and_the_actor_of_their_kind",
        ),
        ("tests/actors/logs/test_sqlite_kills.py", "test_no_kill_loses_an_acknowledged_row_or_reuses_a_seq"),
        ("tests/machines/test_stream_machine.py", "StreamMachine"),
    ),
    "S2": (
        (
            "tests/actors/test_subscription.py",
            "test_backlog_then_tail_is_exactly_what_was_published_after_the_cursor",
        ),
        ("tests/machines/test_stream_machine.py", "StreamMachine"),
        ("tests/machines/test_session_lives.py", "test_whatever_happens_to_its_owners_a_run_stays_whole"),
    ),
    "S3": (
        (
            "tests/actors/test_subscription.py",
            "test_a_reader_that_fell_out_of_the_window_reads_the_log_and_comes_back",
        ),
        ("tests/actors/test_subscription.py", "test_a_closed_log_closes_a_reader_with_reason_and_cursor"),
    ),
    "S4": (
        (
            "tests/actors/test_session_close.py",
            "test_subscriptions_end_when_the_session_closes_with_everything_delivered",
        ),
        (
            "tests/actors/test_session_close.py",
            "test_a_subscriber_that_joins_after_the_terminal_event_gets_everything",
        ),
        (
            "tests/actors/test_subscription.py",
            "test_the_end_of_the_readers_delivers_everything_on_the_log_first",
        ),
    ),
    "S5": (
        ("tests/actors/test_stream.py", "test_any_bus_leaves_delivery_correct"),
        ("tests/actors/test_session_inbox.py", "test_without_a_wake_the_floor_finds_a_request"),
    ),
    "S6": (
        ("tests/actors/test_stream.py", "test_every_kth_append_failing_leaves_the_survivors_dense"),
        (
            "tests/machines/test_session_faults.py",
            "test_a_run_taken_up_again_after_every_failed_append_ends_as_if_nothing_had_failed",
        ),
    ),
    "S7": (
        ("tests/actors/test_session_readers.py", "test_a_lost_client_is_not_a_stop"),
        ("tests/actors/test_session_cancel.py", "test_cancel_ends_the_run_with_who_and_why_on_the_record"),
    ),
    "S8": (
        ("tests/actors/test_subscription.py", "test_a_thousand_readers_go_on_beside_one_that_is_stuck"),
        (
            "tests/actors/test_tail.py",
            "test_the_window_is_bounded_in_events_and_in_bytes",
        ),
    ),
    "S9": (
        ("tests/crash/test_kill.py", "test_killed_around_each_append_in_turn_a_run_resumes"),
        ("tests/crash/test_kill.py", "test_killed_at_any_time_a_run_resumes"),
        ("tests/actors/test_session_cancel.py", "test_cancel_answers_what_a_runtime_or_a_crash_left_open"),
    ),
    "S10": (
        ("tests/actors/logs/test_sqlite_kills.py", "test_no_kill_loses_an_acknowledged_row_or_reuses_a_seq"),
        ("tests/actors/test_stream.py", "test_a_cancelled_append_was_not_appended"),
    ),
    "S11": (
        ("tests/actors/test_watch.py", "test_a_watcher_sees_backlog_and_tail_by_the_floor_alone"),
        ("tests/actors/test_session_inbox.py", "test_a_cancel_is_carried_out_and_answered_by_wake"),
        ("tests/actors/test_session_inbox.py", "test_a_seal_is_made_in_the_askers_name_and_the_run_goes_on"),
        (
            "tests/actors/test_fanout_governed.py",
            "test_another_process_has_one_goal_ended_by_way_of_the_inbox",
        ),
        ("tests/actors/logs/test_sqlite_processes.py", "test_ownership_lasts_as_long_as_its_process"),
        ("tests/actors/logs/test_sqlite_processes.py", "test_of_many_that_want_an_abandoned_run_one_has_it"),
    ),
    "S12": (
        ("tests/actors/test_stream.py", "test_a_clock_that_jumps_changes_no_order"),
        ("tests/machines/test_stream_machine.py", "StreamMachine"),
    ),
    "G1": (
        ("tests/actors/test_dispatch.py", "test_g1_the_admission_is_durable_before_the_work_begins"),
        (
            "tests/actors/test_dispatch.py",
            "test_g1_when_the_admission_cannot_be_recorded_the_work_does_not_begin",
        ),
        ("tests/machines/test_waist_machine.py", "WaistMachine"),
    ),
    "G2": (
        (
            "tests/actors/test_policy_runs.py",
            "test_g2_refused_hidden_and_unknown_tools_each_leave_a_rejection_with_its_fault_class",
        ),
    ),
    "G3": (
        (
            "tests/actors/test_approval_waits.py",
            "test_g3_an_approval_names_the_person_and_lets_the_call_run_once",
        ),
        ("tests/actors/test_approval_waits.py", "test_g3_arguments_changed_after_approval_are_refused"),
        ("tests/crash/test_kill_waiting.py", "test_g3_killed_while_it_asks"),
        (
            "tests/actors/test_fanout_governed.py",
            "test_g3_a_childs_call_waits_for_a_person_and_goes_on_once_it_is_approved",
        ),
    ),
    "G4": (
        ("tests/actors/test_governed_run.py", "test_g4_what_was_done_is_not_done_again"),
        (
            "tests/actors/test_fanout_stops.py",
            "test_g4_cut_at_any_append_a_fan_out_is_taken_up_again_and_nothing_done_is_done_twice",
        ),
        ("tests/crash/test_kill_fanout.py", "test_killed_around_any_append_of_a_fan_out_the_run_resumes"),
    ),
    "G5": (
        ("tests/actors/test_fanout.py", "test_g5_a_child_never_has_a_tool_that_its_parent_has_not"),
        ("tests/actors/test_fanout.py", "test_g5_children_share_one_budget_of_steps"),
        (
            "tests/actors/test_fanout_governed.py",
            "test_g5_a_policy_lowers_how_far_a_tool_lets_work_be_handed_on",
        ),
        (
            "tests/machines/test_fanout_machine.py",
            "test_whatever_comes_between_a_fan_out_pays_at_most_once_and_ends_well_formed",
        ),
    ),
    "G6": (
        (
            "tests/actors/test_fanout_stops.py",
            "test_g6_a_cancelled_run_closes_its_children_below_first_and_every_open_call",
        ),
        ("tests/crash/test_kill_fanout.py", "test_killed_around_any_append_of_a_fan_out_the_run_resumes"),
    ),
    "G7": (
        (
            "tests/actors/test_brake.py",
            "test_g7_the_action_under_way_ends_and_everything_after_it_is_refused",
        ),
        ("tests/tools/commands/test_brake.py", "test_g7_a_run_of_another_process_is_braked_while_it_works"),
        ("tests/actors/test_fanout_governed.py", "test_g7_the_brake_stops_every_child"),
    ),
    "G8": (
        ("tests/actors/netguard/test_tricks.py", "test_a_trick_reaches_nobody_and_stands_on_the_record"),
        ("tests/actors/netguard/test_tricks.py", "test_a_name_that_changes_its_answer_is_looked_up_once"),
        (
            "tests/actors/test_fanout_governed.py",
            "test_g8_where_a_child_may_not_connect_the_record_says_that_it_was_the_child",
        ),
    ),
    "G9": (
        ("tests/actors/test_mission_hostile.py", "test_any_reply_and_any_result_leave_a_sound_record"),
        ("tests/actors/test_mission_hostile.py", "test_a_thread_that_ignores_its_limit_is_left_behind"),
    ),
    "E1": (
        (
            "tests/machines/test_cancel_anywhere.py",
            "test_cancelled_at_any_step_nothing_is_left_and_what_stands_is_sealed",
        ),
        ("tests/actors/test_session_close.py", "test_the_callers_own_exception_leaves_as_itself"),
    ),
    "E2": (
        (
            "tests/actors/test_host.py",
            "test_a_failing_session_takes_no_other_down_and_the_host_hears_of_it",
        ),
        ("tests/actors/test_fanout.py", "test_a_crash_of_one_child_takes_no_other_down"),
    ),
    "E4": (
        ("tests/tools/console/test_terminal_runs.py", "test_e4_stopping_in_the_view_parks_the_run"),
        ("tests/tools/console/test_terminal_runs.py", "test_e4_a_terminal_that_is_closed_parks_the_run"),
    ),
    "E5": (
        ("tests/tools/commands/test_refusals.py", "test_e5_one_sentence_with_a_next_step"),
        ("tests/tools/commands/test_refusals.py", "test_e5_no_room_even_to_open_the_store"),
        (
            "tests/tools/commands/test_full_disk.py",
            "test_a_run_on_a_full_disk_stops_and_can_be_resumed",
        ),
    ),
    "E6": (
        ("tests/tools/commands/test_pipes_and_json.py", "test_e6_json_is_complete_and_alone"),
        ("tests/tools/commands/test_pipes_and_json.py", "test_e6_a_pipe_gets_plain_text"),
        (
            "tests/tools/console/test_terminal_runs.py",
            "test_e6_lines_are_printed_wherever_they_are_asked_for",
        ),
        ("tests/tools/console/test_terminal_runs.py", "test_e6_what_is_redirected_has_no_codes"),
    ),
}


def test_the_table_has_every_scenario_of_the_stream_and_of_governance() -> None:
    """No more and no fewer than the published list."""
    text = (shared_dir("ACCEPTANCE.md")).read_text(encoding="utf-8")
    published = re.findall(r"(?m)^([SG]\d+) ", text)
    assert published == [scenario for scenario in HELD_BY if scenario[0] in "SG"]


@pytest.mark.parametrize(
    ("scenario", "path", "name"),
    [(scenario, *place) for scenario, places in HELD_BY.items() for place in places],
)
def test_each_scenario_is_named_by_the_test_that_holds_it(scenario: str, path: str, name: str) -> None:
    """The test is there, and its docstring or its module's says which scenario it is about."""
    module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found = [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name
    ]
    assert found, f"{path} has no {name}"
    said = f"{ast.get_docstring(module)} {ast.get_docstring(found[0])}"
    assert re.search(rf"\b{scenario}\b", said), f"neither {name} nor its module names {scenario}"
