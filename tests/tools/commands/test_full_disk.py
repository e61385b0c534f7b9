"""A run whose store runs out of room: a sentence, an exit code, and nothing lost (E5)."""

from __future__ import annotations

import shlex

import pytest

from tests.tools.commands.runner import READER, Cli, lines_that_begin


@pytest.mark.parametrize("blocks", [20, 80])
def test_a_run_on_a_full_disk_stops_and_can_be_resumed(cli: Cli, blocks: int) -> None:
    """E5: wherever the room ends it says so and ends with 2; with room again the run goes on to its sealed end."""
    script = shlex.quote(READER)
    # Python would leave half a compiled module as well, which every later process stumbles over.
    done = cli.printed(
        f"ulimit -f {blocks}; affidavit run 'What is this?' --model {script} --store full --id run-1",
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert done.code == 2, done
    (sentence,) = lines_that_begin(done.err, "affidavit: ")
    assert "no room" in sentence
    assert "Traceback" not in done.err
    resumable = cli("replay", "run-1", "--store", "full").code == 0
    again = ("resume", "run-1") if resumable else ("run", "What is this?", "--id", "run-1")
    ended = cli(*again, "--model", READER, "--store", "full")
    assert ended.code == 0, ended
    assert cli("fsck", "--store", "full").code == 0
    # The lines that a run prints check its record.
    export, verify = lines_that_begin(ended.out, "affidavit ")
    assert cli.printed(export).code == 0
    assert cli.printed(verify).code == 0
