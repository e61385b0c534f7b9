"""The view of a conversation that no longer fits: what is kept, that it is sound, stable and the same after a restart."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.context import BYTES_PER_TOKEN, request_size, room_for, size_of, view_of
from affidavit.actors.events import Kind
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import Message, ModelReply, ModelRequest, ToolCall, ToolSpec
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import FakeTool, FreeModel, WatchedModel, replies, run_to_end


def turn(number: int, size: int = 100, calls: int = 1) -> list[Message]:
    """A turn that calls tools, with their results."""
    asked = tuple(ToolCall(f"c{number}-{each}", "look", "{}") for each in range(calls))
    results = [Message("tool", "r" * size, tool_use_id=call.id) for call in asked]
    return [Message("assistant", f"turn {number}", asked), *results]


def conversation(turns: int, size: int = 100) -> list[Message]:
    """An objective and as many turns."""
    return [Message("user", "objective"), *(each for number in range(turns) for each in turn(number, size))]


def test_what_fits_is_shown_whole() -> None:
    """Nothing is left out without need, nor where the context is not known."""
    messages = conversation(5)
    for room in (None, sum(map(size_of, messages))):
        view = view_of(messages, room)
        assert view.messages == tuple(messages)
        assert view.left_out == 0


def test_old_turns_go_and_the_rest_says_so() -> None:
    """The objective and the last turns are kept, with a note between them of how many are not."""
    messages = conversation(10)
    view = view_of(messages, 600)
    assert view.messages[0] == messages[0]
    assert view.messages[1] == Message(
        "user", f"[{view.left_out} earlier turns are left out here, so that the conversation fits]"
    )
    assert view.messages[2:] == tuple(messages[1 + 2 * view.left_out :])
    assert 0 < view.left_out < 10


def test_what_a_person_said_is_always_shown() -> None:
    """Every word of the user stays, in its order, however old."""
    messages = [
        *conversation(4),
        Message("assistant", "Done."),
        Message("user", "And now?"),
        *turn(9),
        *turn(10),
    ]
    for room in (150, 250):
        view = view_of(messages, room)
        said = [message.text for message in view.messages if message.role == "user"]
        assert [text for text in said if not text.startswith("[")] == ["objective", "And now?"]
        assert view.messages[-2:] == tuple(turn(10))


def test_the_last_turn_is_shown_even_if_it_does_not_fit() -> None:
    """The model is asked about it, so leaving it out would help nobody; the endpoint then says what is wrong."""
    messages = conversation(3, size=5000)
    view = view_of(messages, 10)
    assert view.left_out == 2
    assert view.messages[-2:] == tuple(messages[-2:])
    assert view_of(messages[:1], 1).messages == tuple(messages[:1])


def test_the_provider_s_own_form_counts_where_it_is_larger() -> None:
    """Thinking is no word of the answer, but must be read all the same."""
    assert size_of(Message("assistant", "ab", (ToolCall("", "cd", "{}"),))) == 6
    assert size_of(Message("assistant", "ab", blocks="[" + " " * 98 + "]")) == 100
    assert size_of(Message("user", "ü")) == 2


sizes = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 3)), max_size=30)


@given(sizes, st.integers(0, 2000))
def test_a_view_is_sound_and_fits_if_it_can(parts: list[tuple[int, int]], room: int) -> None:
    """No result without its call, no call without its result, in order; and never more than the room but for the last turn."""
    messages = [Message("user", "go")]
    for number, (size, calls) in enumerate(parts):
        messages += turn(number, size, calls)
    view = view_of(messages, room)
    asked = [call.id for message in view.messages for call in message.tool_calls]
    answered = [message.tool_use_id for message in view.messages if message.role == "tool"]
    assert asked == answered
    kept = [message for message in view.messages if message in messages]
    assert kept == [message for message in messages if message in kept]
    turns = sum(message.role == "assistant" for message in view.messages)
    assert turns + view.left_out == len(parts)
    if turns > 1:
        assert sum(map(size_of, kept)) <= room


@given(sizes, st.integers(0, 2000))
def test_views_move_on_in_strides(parts: list[tuple[int, int]], room: int) -> None:
    """As a conversation grows, turns only ever go, and a turn that is gone does not come back."""
    messages = [Message("user", "go")]
    gone = 0
    for number, (size, calls) in enumerate(parts):
        messages += turn(number, size, calls)
        view = view_of(messages, room)
        assert view.left_out >= gone
        gone = view.left_out


def test_most_requests_begin_like_the_one_before() -> None:
    """Of a long run of equal turns, the view begins anew only now and then."""
    views = [view_of(conversation(turns), 2000) for turns in range(1, 100)]
    anew = sum(
        later.messages[: len(earlier.messages)] != earlier.messages for earlier, later in pairwise(views)
    )
    assert 0 < anew < 20


class SmallModel(WatchedModel):
    """A model with little room."""

    context_tokens = 1000


def test_the_room_is_what_the_rest_of_the_request_leaves() -> None:
    """Answer, system prompt and tools take their share first."""
    model = SmallModel(replies())
    request = ModelRequest("s" * 30, (), (ToolSpec("t", "d", "{}"),), 100)
    assert room_for(model, request) == 900 * BYTES_PER_TOKEN - 30 - 4
    assert room_for(model, ModelRequest("", (), (), 2000)) == 0
    assert room_for(replies(), request) is None
    assert request_size(ModelRequest("abc", (Message("user", "de"),))) == 5


async def test_a_long_run_with_a_small_model_goes_on_and_its_log_keeps_all() -> None:
    """The model is shown what fits; the record has every turn whole, and says with each answer how much was left out."""

    async def much(arguments: object) -> str:
        return "r" * 700

    said = iter(
        [
            *(ModelReply("", (ToolCall(f"t{n}", "look", "{}"),), "tool_use") for n in range(8)),
            ModelReply("Done."),
        ]
    )

    async def answer(_: int) -> ModelReply:
        return next(said)

    model = SmallModel(FreeModel(answer))
    run = await run_to_end(
        MemoryLog(),
        MissionConfig(model, Toolbox([FakeTool("look", much)])),
        GoalSpec("Look.", max_output_tokens=100),
    )
    assert run.answer == "Done."
    assert run.results == ["r" * 700] * 8
    shown = [request_size(request) for request in model.requests]
    assert max(shown) <= 900 * BYTES_PER_TOKEN
    left_out = [event.detail.get("left_out") for event in run.of(Kind.ASSISTANT)]
    assert left_out[0] is None
    assert isinstance(left_out[-1], int)
