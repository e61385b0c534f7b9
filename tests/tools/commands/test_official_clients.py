"""A run whose model is asked by its vendor's official client, as a user starts it."""

import json
from importlib.util import find_spec
from typing import Any

import pytest

from tests import environment
from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import Cli


@pytest.mark.parametrize("provider", ["openai", "openai-sdk"])
def test_a_run_is_the_same_by_either_way(cli: Cli, provider: str) -> None:
    """It converges, is sealed, has its one connection on the record, and says nothing that the other way does not say."""
    if find_spec("openai") is None:
        environment.absent("the package openai is not installed")
    with held_endpoint("It is done.") as gate:
        gate.answer.set()
        done = cli(
            "run", "Hello", "--model", f"{provider}:m", "--id", "mine", "--json", OPENAI_BASE_URL=gate.url
        )
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    assert "Warning" not in done.err
    events = [json.loads(line) for line in done.out.splitlines()]

    def of(kind: str) -> list[dict[str, Any]]:
        return [event for event in events if event["kind"] == kind]

    (started,), (egress,), (said,) = of("session.started"), of("net.egress"), of("assistant.message")
    assert started["detail"]["model"] == f"{provider}:m"
    assert egress["allowed"] is True, egress
    assert said["text"] == "It is done."
    assert of("record.verified")
