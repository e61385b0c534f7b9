"""The other libraries, in a process and an environment of their own, since they need an older cbor2 than ours."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.environment import require_venv
from tests.peers.peer import Peer, Refused


class _Process:
    """Speaks with `worker.py` over its standard input and output."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def __call__(self, name: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        if "refused" in answer:
            raise Refused(answer["refused"])
        return answer["value"]


@pytest.fixture(scope="session")
def peer() -> Iterator[Peer]:
    """Calls a function of `worker.py`; raises `Refused` where the library raises anything."""
    python = require_venv("peers") / "bin" / "python"
    worker = Path(__file__).with_name("worker.py")
    with subprocess.Popen(
        [python, "-I", worker], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield _Process(process)
        assert process.stdin is not None
        process.stdin.close()
