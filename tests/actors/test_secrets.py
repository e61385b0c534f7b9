"""Secrets: every form in which they are found, that nothing else is touched, and that none comes out of a run full of them."""

from __future__ import annotations

import base64
import html
import json
import logging
import re
import traceback
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.conversation import fold
from affidavit.actors.errors import ConfigurationError, ModelError, ResumeRefused, ToolFailed
from affidavit.actors.event_json import to_json
from affidavit.actors.events import Event, Kind
from affidavit.actors.evidence import export
from affidavit.actors.goal import GoalKey, GoalSpec
from affidavit.actors.history import history
from affidavit.actors.logs.memory import MemoryLog
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_reply import reply_events
from affidavit.actors.models.port import ModelReply, ModelRequest, Served, ToolCall
from affidavit.actors.secrets import REMOVED, Secrets, StreamScrubber, secret_of_environment
from affidavit.actors.toolbox.registry import Toolbox
from tests.actors.mission_kit import RUN, FakeTool, FreeModel, KeptLog, run_to_end, session_and_runtime

SECRET = 'sk-Zq8/"+ü\\9=tail'
SECRETS = Secrets(frozenset({SECRET}))
DATA = SECRET.encode()

FORMS: Mapping[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": json.dumps,
    "JSON with letters": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "Python": repr,
    "Python's letters": ascii,
    "Python's bytes": lambda text: repr(text.encode()),
    "percent": lambda text: quote(text, safe=""),
    "percent of a path": quote,
    "percent of a form": quote_plus,
    "percent in small letters": lambda text: re.sub(
        "%..", lambda match: match[0].lower(), quote(text, safe="")
    ),
    "HTML": html.escape,
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_a_secret_is_found_in_every_form(form: Callable[[str], str]) -> None:
    """Nothing of it is left, and what stands around it is."""
    text = SECRETS.scrub(f"before {form(SECRET)} after")
    assert REMOVED in text
    assert text.startswith("before ")
    assert text.endswith(" after")
    assert "Zq8" not in text
    assert form("Zq8")[1:-1] not in text


@pytest.mark.parametrize("around", ["", "u", "us", "use", "user:", "user2:"])
def test_a_secret_within_base64_is_found_wherever_it_begins(around: str) -> None:
    """A password in an Authorization header stands behind a name of any length."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = SECRETS.scrub(encode(around.encode() + DATA + b"!").decode())
        assert REMOVED in text
        # The letters that it shares with its neighbours are all that can be left.
        assert len(text.replace(REMOVED, "")) <= len(base64.b64encode(around.encode())) + 8


def test_the_longest_is_taken_first() -> None:
    """A secret that contains another goes whole."""
    both = Secrets(frozenset({"password1", "password1-and-more"}))
    assert both.scrub("password1-and-more, password1") == f"{REMOVED}, {REMOVED}"


def test_each_long_line_of_a_secret_is_one() -> None:
    """A tool that shows a file line by line gives away no line of a key; short lines are ordinary text."""
    key = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqG\nshort\n-----END PRIVATE KEY-----"
    secrets = Secrets(frozenset({key}))
    assert secrets.scrub("2: MIGHAgEAMBMGByqGSM49AgEGCCqG") == f"2: {REMOVED}"
    assert secrets.scrub("a short line") == "a short line"


def test_what_is_too_short_is_no_secret() -> None:
    """It could not be told from other text: one that the host names is refused, an endpoint's is left aside."""
    with pytest.raises(ConfigurationError, match="at least 8"):
        Secrets(frozenset({"short"}))
    assert Secrets.of(["short", ""]) == Secrets()
    assert Secrets().scrub("any text") == "any text"


def test_neither_repr_nor_str_shows_a_secret() -> None:
    """Whoever prints a configuration prints no secret."""
    config = MissionConfig(FreeModel(lambda _: pytest.fail("not asked")), secrets=SECRETS)
    for shown in (repr(SECRETS), str(SECRETS), repr(config)):
        assert "Zq8" not in shown


def test_texts_without_a_secret_are_left_alone() -> None:
    """The very same event comes back, so that nothing else changes what is recorded."""
    event = Event(Kind.TOOL_RESULT, result="all is well", detail={"n": [1, {"x": b"y"}]})
    assert SECRETS.scrub_event(event) is event


def test_an_event_is_scrubbed_in_every_text_and_marked() -> None:
    """Nested values too; bytes and numbers are left alone; a provider's content is dropped, since it counts only whole."""
    event = Event(
        Kind.ASSISTANT,
        text=f"it is {SECRET}",
        err=SECRET,
        tool_use_id=SECRET,
        detail={"deep": [{"x": (SECRET, 1, b"z")}], "blocks": json.dumps([SECRET]), "n": 7},
    )
    scrubbed = SECRETS.scrub_event(event)
    assert scrubbed.text == f"it is {REMOVED}"
    assert scrubbed.err == scrubbed.tool_use_id == REMOVED
    assert scrubbed.detail == {"deep": [{"x": [REMOVED, 1, b"z"]}], "n": 7, "scrubbed": True}


@given(st.lists(st.sampled_from([*SECRET, SECRET, SECRET[:9], SECRET[4:], " ", "x"]), max_size=40), st.data())
def test_a_text_in_pieces_is_scrubbed_as_if_it_were_whole(parts: list[str], data: st.DataObject) -> None:
    """However it is cut, no piece lets a secret through, and all pieces make the text that was scrubbed whole."""
    text = "".join(parts)
    scrubber, out, at = StreamScrubber(SECRETS), "", 0
    while at < len(text):
        size = data.draw(st.integers(1, 12))
        out += scrubber.feed(text[at : at + size])
        at += size
        assert SECRET not in out
    assert out + scrubber.end() == SECRETS.scrub(text)


def test_a_secret_comes_from_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable itself counts first; neither set is one sentence."""
    with pytest.raises(ConfigurationError, match="neither A_KEY nor A_KEY_FILE nor A_KEY_KEYRING"):
        secret_of_environment("A_KEY")
    path = tmp_path / "key"
    path.write_text(f"{SECRET}\n", encoding="utf-8")
    monkeypatch.setenv("A_KEY_FILE", str(path))
    assert secret_of_environment("A_KEY") == SECRET
    monkeypatch.setenv("A_KEY", " other ")
    assert secret_of_environment("A_KEY") == "other"


class LeakyModel(FreeModel):
    """A model that was opened with a key, and gives it away in everything that it says."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Its key."""
        return (SECRET,)


async def leaky(position: int) -> ModelReply:
    """Say the secret in words, names, ids, arguments and blocks; then fail with it."""
    await trio.lowlevel.checkpoint()
    if position == 0:
        names = ("show", "fail", "crash", SECRET)
        calls = tuple(
            ToolCall(f"{SECRET}-{n}", name, json.dumps({"k": SECRET})) for n, name in enumerate(names)
        )
        served = Served(SECRET, SECRET, SECRET)
        return ModelReply(f"{SECRET} and\n{SECRET}", calls, SECRET, None, json.dumps([SECRET]), served)
    raise ModelError(f"the endpoint said {SECRET}", code=SECRET)


def leaky_config() -> MissionConfig:
    """Everything that a mission runs with gives the secret away."""

    async def show(arguments: Mapping[str, object]) -> str:
        return (
            "x" * 995
            + f"{SECRET} {json.dumps(arguments)} "
            + "".join(form(SECRET) for form in FORMS.values())
        )

    async def fail(arguments: Mapping[str, object]) -> str:
        raise ToolFailed(f"no file {SECRET}")

    async def crash(arguments: Mapping[str, object]) -> str:
        raise KeyError(SECRET)

    works = {"show": show, "fail": fail, "crash": crash}
    box = Toolbox([FakeTool(name, work) for name, work in works.items()])
    return MissionConfig(LeakyModel(leaky), box, text_limit=1000)


def test_no_cut_leaves_half_a_secret() -> None:
    """Names and texts are scrubbed before they are cut to their bounds, wherever in them the secret stands."""
    for before in range(240, 260):
        long = "n" * before + SECRET
        reply = ModelReply(long, (ToolCall("", long, long),), long, served=Served(long, long, long))
        for event in reply_events(reply, fold(()), 250, SECRETS):
            assert SECRET[:3] not in repr(event)


LEAKY_GOAL = GoalSpec(f"Use {SECRET} well.", system=f"You know {SECRET}.")


def assert_clean(*texts: str) -> None:
    """No form of the secret stands in any of these, nor its beginning."""
    for text in texts:
        assert "Zq8" not in text
        for form in SECRETS.forms:
            assert form not in text


async def test_no_secret_comes_out_of_a_run(caplog: pytest.LogCaptureFixture) -> None:
    """Planted wherever it could leak from: not in the log, the record, the status, an error, a trace or a log line."""
    caplog.set_level(logging.DEBUG)
    log = KeptLog()
    run = await run_to_end(log, leaky_config(), LEAKY_GOAL)
    assert run.error_class == "terminal"
    assert_clean(run.answer, caplog.text)
    rows = b"".join(row for entries in log.appends for entry in entries for row in entry.rows)
    file = BytesIO()
    await export(log, RUN, file)
    assert_clean(rows.decode("utf-8", "replace"), file.getvalue().decode("utf-8", "replace"))
    assert_clean(*(json.dumps(to_json(event)) for event in run.events))
    assert_clean(*(repr(event) for event in run.events))
    results = run.results
    assert len(results) == 4
    # The first is cut within the marker, as it would otherwise have been within the secret.
    assert all(REMOVED[:5] in text for text in results)
    assert sum(event.detail.get("scrubbed") is True for event in run.events) >= 9


async def test_what_the_model_sees_next_is_what_was_recorded() -> None:
    """The system prompt, the objective and the results are scrubbed in the request too."""
    seen: list[str] = []

    class Watching(LeakyModel):
        async def generate(self, request: ModelRequest) -> ModelReply:
            seen.append(repr(request))
            return await super().generate(request)

    config = leaky_config()
    watching = MissionConfig(Watching(leaky), config.toolbox)
    await run_to_end(MemoryLog(), watching, LEAKY_GOAL)
    assert len(seen) == 2
    assert_clean(*seen)


async def test_a_run_whose_words_were_scrubbed_is_resumed_without_a_change() -> None:
    """The digests are of the words as they are recorded, so nothing seems to have changed."""
    log = KeptLog()
    await run_to_end(log, leaky_config(), LEAKY_GOAL)
    cut = await log.cut(2)
    run = await run_to_end(cut, leaky_config(), resume=True)
    assert run.events[0].detail["digests"] == (await history(log, RUN))[0].detail["digests"]
    other = GoalSpec(LEAKY_GOAL.objective, system="other")
    assert other.system not in repr(run.events)


async def test_an_error_that_leaves_the_session_holds_no_secret() -> None:
    """What is raised to the host, with its whole trace, is clean as well."""
    log = KeptLog()
    await run_to_end(log, leaky_config(), LEAKY_GOAL)
    cut = await log.cut(2)
    changed = MissionConfig(LeakyModel(leaky, digest=b"other"), leaky_config().toolbox)
    async with session_and_runtime(cut, changed) as (session, runtime):
        with pytest.raises(ResumeRefused) as caught:
            await session.resume(runtime, GoalKey(RUN))
    assert_clean("".join(traceback.format_exception(caught.value)))
