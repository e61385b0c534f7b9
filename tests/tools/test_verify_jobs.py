"""`verify` on large runs: several processes say what one says, none outlives the command, and a terminal sees progress."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from affidavit.crypto import encode_record
from affidavit.crypto.event_scan import BATCH, EventRange
from affidavit.crypto.record_part import Part, parts_of
from affidavit.tools import _verify_workers
from affidavit.tools._verify_progress import Progress
from affidavit.tools._verify_run import jobs_for
from affidavit.tools._verify_workers import RANGE, Worker
from tests.crypto.samples import checkpoint, event, events, sealed, tree
from tests.environment import ROOT
from tests.tools.test_verify import KEY_ARGUMENT, Command, command, no_keyring_from_outside

__all__ = ["command", "no_keyring_from_outside"]

COUNT = 3 * RANGE + BATCH + 7
MANY = events(COUNT)
SIGNED = checkpoint(tree(MANY))
RECORD = encode_record(MANY, SIGNED)
KINDS = ["dispatch.start", "dispatch.end", "dispatch.start", "dispatch.rejected"]
GOVERNED = sealed(
    [
        event(seq, KINDS[seq % 4], {"call": seq // 2}, schema_version=1 + (seq == RANGE + 5))
        for seq in range(1, 9000)
    ]
)
RECORDS = {
    "accepted": RECORD,
    "rules kept to the end": GOVERNED,
    "an event changed": RECORD.replace(MANY[RANGE + 3], MANY[RANGE + 3].replace(b"agent", b"Agent")),
    "two of a range swapped": sealed([*MANY[:5000], MANY[5001], MANY[5000], *MANY[5002:]]),
    "where ranges meet": sealed([*MANY[:RANGE], MANY[RANGE - 1], *MANY[RANGE + 1 :]]),
    "gaps where parts meet": sealed([*MANY[:RANGE], *MANY[RANGE + 1 :]]),
    "one dropped": encode_record(MANY[:-1], SIGNED),
    "cut": RECORD[:-300],
    "a tail": RECORD + b"\x00",
    "a long head": RECORD.replace(b"\x58\x55", b"\x59\x00\x55", 1),
}


@pytest.mark.parametrize("data", RECORDS.values(), ids=RECORDS.keys())
def test_several_processes_say_what_one_says(command: Command, data: bytes) -> None:
    """Verdict, code, place, findings and counts are the same to the letter, in text and in JSON."""
    name = command.file(data)
    for extra in ([], ["--json"], ["--tier", "L1"]):
        code = command.run(KEY_ARGUMENT, "--jobs", "1", *extra, name)
        said = command.out
        assert command.run(KEY_ARGUMENT, "--jobs", "3", *extra, name) == code
        assert (command.out, command.err) == (said, "")


def test_the_records_are_what_they_are_called(command: Command) -> None:
    """Each of those records has the verdict that its name says, so that sameness means something."""
    codes = []
    for data in RECORDS.values():
        command.run(KEY_ARGUMENT, "--json", command.file(data))
        found = command.objects()[0]
        codes.append(found["failure_code"] or [finding["kind"] for finding in found["findings"]])
    assert codes == [
        [],
        "gov.unadmitted_action",
        "enc.invalid_actor",
        "chain.non_monotonic_seq",
        "chain.non_monotonic_seq",
        ["seq_gap"],
        "record.size_mismatch",
        "record.decode",
        "record.decode",
        "record.non_canonical",
    ]


def test_a_process_that_dies_costs_only_time(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it owed is checked by the command itself; the verdict is the same."""
    send = Worker.send

    def send_and_kill(worker: Worker, where: EventRange) -> None:
        send(worker, where)
        worker._process.kill()

    monkeypatch.setattr(Worker, "send", send_and_kill)
    assert command.run(KEY_ARGUMENT, "--jobs", "2", command.file(RECORD)) == 0


@pytest.mark.parametrize(
    "program", ["raise SystemExit(1)", "print('noise' * 100, flush=True)", "import no_such_thing"]
)
def test_a_process_that_makes_no_sense_is_not_believed(
    command: Command, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """One that ends at once, or answers with other bytes, is done without."""
    monkeypatch.setattr(_verify_workers, "_PROGRAM", program)
    assert command.run(KEY_ARGUMENT, "--jobs", "2", command.file(RECORD)) == 0


@pytest.mark.parametrize("most_held", [0, 1, 64])
@pytest.mark.parametrize(
    "data", [RECORD, GOVERNED, RECORDS["where ranges meet"]], ids=["kept", "rules", "meet"]
)
def test_a_process_that_never_answers_is_not_waited_for(
    command: Command, monkeypatch: pytest.MonkeyPatch, most_held: int, data: bytes
) -> None:
    """What it owes is checked by the command itself, also while there is more to hand out, and it is gone at the end."""
    name = command.file(data)
    code = command.run(KEY_ARGUMENT, "--jobs", "1", name)
    said = command.out
    monkeypatch.setattr(_verify_workers, "_PROGRAM", "import signal; signal.pause()")
    monkeypatch.setattr(_verify_workers, "_PATIENCE", 1)
    monkeypatch.setattr(_verify_workers, "_MOST_HELD", most_held)
    assert command.run(KEY_ARGUMENT, "--jobs", "3", name) == code
    assert (command.out, command.err) == (said, "")


def test_no_process_to_be_had_is_no_fault(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none can be started, one does it all."""

    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert command.run(KEY_ARGUMENT, "--jobs", "4", command.file(RECORD)) == 0


def test_the_other_processes_see_the_same_modules(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that holds other modules of these names changes nothing."""
    (command.folder / "affidavit").mkdir()
    for name in ("affidavit/__init__.py", "cbor2.py"):
        (command.folder / name).write_text("raise SystemExit('wrong module')")
    monkeypatch.chdir(command.folder)
    received: list[int] = []
    receive = Worker.receive

    def counting(worker: Worker) -> Iterator[tuple[EventRange, list[Part]]]:
        for answer in receive(worker):
            received.append(answer[0].count)
            yield answer

    monkeypatch.setattr(Worker, "receive", counting)
    monkeypatch.setattr(_verify_workers, "_PATIENCE", 600_000)
    assert command.run(KEY_ARGUMENT, "--jobs", "2", command.file(RECORD)) == 0
    assert received


def children_of(pid: int) -> list[int]:
    """The processes that a process has started and that are not gone."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(word) for word in text.split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_outlives_the_command(command: Command, number: signal.Signals) -> None:
    """Interrupted, it ends with 130 and no word; killed, its helpers notice and end as well."""
    name = command.file(RECORD)
    slow = (
        "import sys, time; from affidavit.tools import _verify_workers, verify\n"
        "_verify_workers.Workers._check = lambda *_: time.sleep(60)\n"
        "sys.exit(verify.main(sys.argv[1:]))"
    )
    arguments = [sys.executable, "-c", slow, KEY_ARGUMENT, "--jobs", "2", name]
    process = subprocess.Popen(arguments, cwd=ROOT / "tests", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (started := children_of(process.pid)) and process.poll() is None:
        os.sched_yield()
    process.send_signal(number)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130 if number is signal.SIGINT else -signal.SIGKILL, b"", b"")
    assert started
    while any(Path(f"/proc/{child}").exists() for child in started):
        os.sched_yield()


def test_a_file_that_changes_meanwhile_is_exit_2(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where events no longer stand where they were found, that is said, and no verdict is given."""
    name = command.file(RECORD)
    monkeypatch.setattr(Worker, "has_room", property(lambda _: False))
    check = parts_of

    def changed(*arguments: Any) -> Iterator[Part]:
        Path(name).write_bytes(RECORD[:20] + RECORD[21:] + b"\x00")
        return check(*arguments)

    monkeypatch.setattr("affidavit.tools._verify_workers.parts_of", changed)
    assert command.run(KEY_ARGUMENT, "--jobs", "2", name) == 2
    assert command.err.endswith("it changed while it was read; check it again once nobody writes it\n")
    assert command.out == ""


@pytest.mark.parametrize(
    ("size", "asked", "cpus", "jobs"),
    [(1 << 20, None, 2, 1), (1 << 30, None, 2, 2), (1 << 30, None, 1, 1), (1 << 30, 1, 8, 1), (1, 5, 1, 5)],
)
def test_processes_are_chosen_by_size(
    monkeypatch: pytest.MonkeyPatch, size: int, asked: int | None, cpus: int, jobs: int
) -> None:
    """A small record, or one processor, gets one; a large one two; and whoever asks gets what was asked for."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    assert jobs_for(size, asked) == jobs


@pytest.mark.parametrize("number", ["0", "65", "-1", "two", ""])
def test_a_senseless_number_of_processes_is_misuse(command: Command, number: str) -> None:
    """One sentence and exit 2."""
    assert command.run("--jobs", number, "x") == 2
    assert "a number from 1 to 64" in command.err


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Return true."""
        return True


def shown(stream: io.StringIO, times: list[float]) -> list[str]:
    """The lines that a progress shows when it is told of equal steps at these times; the last of them ends it."""
    clock = iter([0.0, *times])
    with Progress(1000, stream, lambda: next(clock)) as progress:
        for step in range(1, len(times) + 1):
            progress.advance(1000 * step // len(times))
    return stream.getvalue().split("\r\x1b[2K")[1:]


def test_progress_is_shown_on_a_terminal_after_a_second() -> None:
    """Not before, at most ten times a second, and gone at the end."""
    lines = shown(Terminal(), [0.5, 1.5, 1.55, 2.0])
    assert lines == [f"checking  [{'#' * 20}{'.' * 20}]  50%", f"checking  [{'#' * 40}] 100%", ""]
    assert shown(Terminal(), [0.2, 0.9]) == []


def test_of_an_input_without_a_known_end_progress_shows_how_much_was_read() -> None:
    """Megabytes, since there is no share to tell."""
    stream, clock = Terminal(), iter([0.0, 2.0])
    with Progress(None, stream, lambda: next(clock)) as progress:
        progress.advance(5 << 30)
    assert stream.getvalue() == "\r\x1b[2Kchecking  5,120 MiB\r\x1b[2K"


def test_no_progress_is_shown_elsewhere() -> None:
    """A file or a pipe gets no control characters."""
    assert shown(io.StringIO(), [5.0, 9.0]) == []


def test_memory_stays_flat(command: Command) -> None:
    """A record of twelve megabytes takes hardly more memory than a small one, in one process and in two."""
    # Not its own ru_maxrss, which a process inherits from the one that started it.
    program = (
        "import re, resource, sys; from affidavit.tools import verify; verify.main(sys.argv[1:]); "
        "own = int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]); "
        "print(max(own, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))"
    )
    padded = [event(seq, payload={"text": "x" * 900}) for seq in range(1, 12_001)]
    small, large = command.file(sealed(padded[:10]), "small"), command.file(sealed(padded), "large")

    def peak(*arguments: str) -> int:
        done = subprocess.run(
            [sys.executable, "-c", program, KEY_ARGUMENT, "--json", *arguments],
            cwd=ROOT / "tests",
            capture_output=True,
            check=True,
        )
        verdict, kib = done.stdout.splitlines()
        assert json.loads(verdict)["verdict"] == "accept"
        return int(kib)

    least = peak(small)
    for jobs in ("1", "2"):
        most = peak("--jobs", jobs, large)
        assert most < least + 8 * 1024
        assert most < 64 * 1024
