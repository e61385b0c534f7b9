"""E7 over the wire: a secret that an endpoint says, wherever it says it, comes out nowhere, not even by half.

It is none of the endpoint's own: the program was given it, so that only the run knows what to look for.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from io import BytesIO
from typing import Final

import pytest
import trio.testing

from affidavit.actors.event_json import to_json
from affidavit.actors.evidence import export
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.call_errors import MAX_QUOTED
from affidavit.actors.secrets import Secrets
from tests.actors.mission_kit import RUN, KeptLog, run_to_end
from tests.actors.models.asking import KEY
from tests.actors.models.dialects import Dialect
from tests.actors.models.endpoints import Piece, head, plain, serve
from tests.actors.models.test_missions_over_the_wire import BOX, SPEC
from tests.actors.models.test_wire_contract import dialects

PLANTED: Final = "Zq8-planted-by-the-endpoint-0123456789-0123456789"
SECRETS: Final = Secrets(frozenset({PLANTED}))


def error_body(words: str) -> bytes:
    """A refusal in these words."""
    return json.dumps({"error": {"type": "invalid_request_error", "message": words}}).encode()


def answered(dialect: Dialect, old: str, new: str) -> list[Piece]:
    """An answer with something in it replaced."""
    whole = "".join(dialect.events("Hello", (("c1", "look", "{}"),)))
    assert old in whole
    return [head(), whole.replace(old, new).encode()]


def stop(dialect: Dialect) -> str:
    """The word for the end of a turn that calls tools."""
    return "tool_calls" if dialect.name == "openai" else "tool_use"


def begun(dialect: Dialect) -> str:
    """The beginning of an answer."""
    return "".join(dialect.events("Hello", ())[:4])


# Where it stands; each with what the endpoint sends. In a text that is shortened it stands across the cut.
PLACES: Final[dict[str, Callable[[Dialect], list[Piece]]]] = {
    "error body": lambda _: plain("400 Bad Request", error_body(f"no {PLANTED}")),
    "error body, across the cut": lambda _: plain(
        "400 Bad Request", error_body("x" * (MAX_QUOTED - 20) + PLANTED)
    ),
    "error in mid-stream": lambda dialect: [
        head(),
        (begun(dialect) + dialect.error("novel", "x" * (MAX_QUOTED - 20) + PLANTED)).encode(),
    ],
    "status line": lambda _: plain(f"400 {PLANTED}", b"{}"),
    "header": lambda _: plain("400 Bad Request", b"{}", headers=f"X-Note: {PLANTED}\r\n"),
    "content type, across the cut": lambda _: [head(kind=f"text/{'x' * 40}{PLANTED}"), b"x"],
    "garbage for HTTP": lambda _: [f"HTTP/1.1 {PLANTED}\r\n\r\n".encode()],
    "garbage for an event": lambda dialect: [head(), (begun(dialect) + f"data: {PLANTED}\n\n").encode()],
    "name of the model": lambda dialect: answered(dialect, "m-2026", PLANTED),
    "reason to stop, across a bound": lambda dialect: answered(
        dialect, f'"{stop(dialect)}"' if dialect.name == "openai" else '"stop_reason": "tool_use"',
        f'"{"x" * 40}{PLANTED}"' if dialect.name == "openai" else f'"stop_reason": "{"x" * 40}{PLANTED}"',
    ),
    "words and arguments": lambda dialect: [
        head(),
        "".join(dialect.events(PLANTED, (("c1", "look", json.dumps({"k": PLANTED})),))).encode(),
    ],
    "id and name of a call": lambda dialect: answered(dialect, '"c1"', f'"{PLANTED}"'),
}  # fmt: skip


def all_that_is_left(log: KeptLog, exported: BytesIO) -> str:
    """The rows of the log, the inbox's too, and the exported file."""
    rows = b"".join(row for entries in log.appends for entry in entries for row in entry.rows)
    return (rows + exported.getvalue()).decode("utf-8", "replace")


@dialects
@pytest.mark.parametrize("place", PLACES)
async def test_what_an_endpoint_says_leaves_no_secret_behind(
    dialect: Dialect, place: str, caplog: pytest.LogCaptureFixture, patient_clock: trio.testing.MockClock
) -> None:
    """Not in the log, the record, its JSON, the answer or the reason, nor in any line that a package logs (E7)."""
    caplog.set_level(logging.DEBUG)
    log, exported = KeptLog(), BytesIO()
    async with (
        serve(PLACES[place](dialect), plain("400 Bad Request", b"{}")) as endpoint,
        dialect.open("m", base_url=f"{endpoint.url}/{PLANTED}", api_key=KEY) as model,
    ):
        config = MissionConfig(model, BOX, attempts=1, secrets=SECRETS)
        run = await run_to_end(log, config, SPEC)
    await export(log, RUN, exported)
    assert endpoint.requests
    assert f"/{PLANTED}/" in endpoint.heads[0]
    shown = json.dumps([to_json(event) for event in run.events])
    for text in (all_that_is_left(log, exported), repr(run.events), shown, run.answer, caplog.text):
        assert "Zq8" not in text
        assert not any(form in text for form in SECRETS.forms)
    # These lines were there to leak it.
    assert any(record.name.startswith(("httpx2", "httpcore2")) for record in caplog.records)
