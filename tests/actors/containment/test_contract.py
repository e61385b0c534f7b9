"""What every level owes: the outcome as it was, within limits, with nothing of ours inherited."""

from __future__ import annotations

import hashlib
import os
import signal
from pathlib import Path

import pytest

from affidavit.actors.containment.port import Containment, ContainmentFailed, Limits, ProxyRoute, Struck
from affidavit.actors.errors import ConfigurationError
from tests.actors.containment.kit import LIMITS, MIB, printed, run, run_python


async def test_an_outcome_is_the_commands_own(level: Containment, work: Path) -> None:
    """Exit code and both outputs come back as they were; nothing struck."""
    outcome = await run(level, work, "echo out; echo err >&2; exit 7")
    assert (outcome.exit_code, outcome.signal, outcome.struck) == (7, None, Struck.NOTHING)
    assert (outcome.stdout.head, outcome.stderr.head) == (b"out\n", b"err\n")
    assert outcome.stdout.sha256 == hashlib.sha256(b"out\n").digest()
    assert outcome.seconds > 0


async def test_a_signal_is_told(level: Containment, work: Path) -> None:
    """A command that a signal ended has no exit code."""
    outcome = await run(level, work, "kill -TERM $$")
    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGTERM)


async def test_the_workspace_is_where_it_works(level: Containment, work: Path) -> None:
    """It starts in the workspace, reads what is there, and what it writes stays, owned as the workspace is."""
    (work / "given").write_text("given")
    assert (
        printed(await run(level, work, "cat given; echo made > made; mkdir d; echo deep > d/deep")) == "given"
    )
    assert (work / "made").read_text() == "made\n"
    assert os.stat(work / "d" / "deep").st_uid == os.stat(work).st_uid  # noqa: PTH116  # trio's check knows only the methods


async def test_arguments_arrive_as_they_are(level: Containment, work: Path) -> None:
    """No shell reads a list: blanks, quotes, newlines, and text that looks like an option of ours."""
    odd = ["", " ", "a b", "$HOME", "*", "'\"", "a\nb", "--bind", "--", "\u00e9\U0001f600", "x" * 50_000]
    outcome = await level.run(
        ["printf", "%s\\0", *odd], limits=LIMITS, workspace=str(work), environment={}, proxy=None
    )
    assert outcome.stdout.head.decode().split("\0")[:-1] == odd


async def test_nothing_of_ours_is_inherited(
    level: Containment, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our variables, descriptors and standard input stay ours; what is given arrives."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    held = os.open(work / "held", os.O_WRONLY | os.O_CREAT)
    try:
        os.set_inheritable(held, True)
        script = "env; cat; ls -l /proc/self/fd; grep -z . /proc/1/environ"
        outcome = await run(level, work, script, environment={"GIVEN": "yes"})
    finally:
        os.close(held)
    seen = outcome.stdout.head.decode()
    assert "GIVEN=yes" in seen
    assert "sk-secret" not in seen
    assert "held" not in seen


async def test_our_standard_input_is_not_read(level: Containment, work: Path) -> None:
    """What somebody types to us is not for a command, which has an empty input."""
    reading, writing = os.pipe()
    os.write(writing, b"typed")
    os.close(writing)
    kept = os.dup(0)
    os.dup2(reading, 0)
    try:
        outcome = await run(level, work, "cat")
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(reading)
    assert (outcome.exit_code, outcome.stdout.length) == (0, 0)


async def test_what_cannot_be_run_is_told_as_a_shell_tells_it(level: Containment, work: Path) -> None:
    """No such program: 127. No program at all: 126."""
    (work / "text").write_text("text")
    path = {"PATH": "/usr/bin:/bin"}
    for name, code in (("no-such-program", 127), ("./text", 126)):
        outcome = await level.run([name], limits=LIMITS, workspace=str(work), environment=path, proxy=None)
        assert outcome.exit_code == code
        assert name in outcome.stderr.head.decode()


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        ([], {}),
        ([""], {}),
        (["a\0b"], {}),
        (["\ud800"], {}),
        (["true"], {"A": "\0"}),
        (["true"], {"": "x"}),
        (["true"], {"A=B": "x"}),
    ],
)
async def test_what_the_system_has_no_form_for_is_refused(
    level: Containment, work: Path, command: list[str], environment: dict[str, str]
) -> None:
    """A sentence, and nothing is run."""
    with pytest.raises(ContainmentFailed):
        await level.run(command, limits=LIMITS, workspace=str(work), environment=environment, proxy=None)


async def test_a_workspace_that_is_not_there_is_refused(level: Containment, work: Path) -> None:
    """So is one that is a file."""
    (work / "file").touch()
    for name in ("missing", "file"):
        with pytest.raises(ContainmentFailed, match="cannot be opened"):
            await run(level, work / name, "true")


async def test_a_flood_is_cut_and_ended(level: Containment, work: Path) -> None:
    """An endless output is ended by its limit; head and tail are kept, and the whole is counted."""
    outcome = await run(level, work, "echo first; yes", output_bytes=4 * MIB, kept_bytes=1000)
    assert outcome.struck is Struck.OUTPUT
    assert outcome.stdout.length > 4 * MIB
    assert outcome.stdout.head.startswith(b"first\ny\n")
    assert len(outcome.stdout.head) + len(outcome.stdout.tail) == 1000


async def test_bytes_that_are_no_text_come_back_as_they_are(level: Containment, work: Path) -> None:
    """Every byte, in both outputs."""
    outcome = await run_python(
        level, work, "import os; os.write(1, bytes(range(256))); os.write(2, b'\\xff\\0')"
    )
    assert (outcome.stdout.head, outcome.stderr.head) == (bytes(range(256)), b"\xff\0")


async def test_closed_outputs_do_not_end_a_command(level: Containment, work: Path) -> None:
    """A command may close what it prints on and go on; its end is its exit."""
    outcome = await run(level, work, "exec >&- 2>&-; echo on > on; exit 3")
    assert outcome.exit_code == 3
    assert (work / "on").exists()


async def test_ignoring_signals_does_not_outlast_the_time(level: Containment, work: Path) -> None:
    """A command that ignores all it can, and hangs, is ended when its time is up."""
    script = "trap '' TERM INT HUP QUIT; echo here; while :; do sleep 1000; done"
    outcome = await run(level, work, script, wall_seconds=1.0)
    assert outcome.struck is Struck.WALL
    assert outcome.stdout.head == b"here\n"


async def test_the_processor_time_of_all_is_one_sum(level: Containment, work: Path) -> None:
    """Many short processes together use it up, none of them by itself."""
    spin = "import time\nwhile time.process_time() < 0.4: pass"
    script = f"import subprocess, sys\nwhile True: subprocess.run([sys.executable, '-S', '-c', {spin!r}])"
    outcome = await run_python(level, work, script, cpu_seconds=1)
    assert outcome.struck is Struck.CPU


async def test_one_process_that_spins_is_ended(level: Containment, work: Path) -> None:
    """By the kernel or by us, whoever comes first."""
    outcome = await run(level, work, "while :; do :; done", cpu_seconds=1)
    assert outcome.struck is Struck.CPU or outcome.signal in {signal.SIGXCPU, signal.SIGKILL}


async def test_the_memory_of_all_is_one_sum(level: Containment, work: Path) -> None:
    """Processes that each stay below the limit are ended when they are above it together."""
    script = (
        "import os, time\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0:\n"
        "        held = bytearray(os.urandom(1)) * (48 << 20)\n"
        "        break\n"
        "time.sleep(1000)\n"
    )
    outcome = await run_python(level, work, script, memory_bytes=160 * MIB)
    assert outcome.struck is Struck.MEMORY


async def test_pages_that_processes_share_count_once(level: Containment, work: Path) -> None:
    """Many processes over one large memory are not taken for many large ones."""
    script = (
        "import os\n"
        "held = bytearray(os.urandom(1)) * (64 << 20)\n"
        "pipes = os.pipe()\n"
        "children = []\n"
        "for _ in range(8):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        os.close(pipes[1]); os.read(pipes[0], 1); os._exit(0)\n"
        "    children.append(pid)\n"
        "import time; time.sleep(1)\n"
        "os.close(pipes[1])\n"
        "for pid in children: os.waitpid(pid, 0)\n"
        "print('done')\n"
    )
    assert printed(await run_python(level, work, script, memory_bytes=200 * MIB)) == "done"


async def test_one_process_cannot_have_more_than_the_limit(level: Containment, work: Path) -> None:
    """The kernel refuses it, at once."""
    script = "try: bytearray(400 << 20)\nexcept MemoryError: print('refused')"
    assert printed(await run_python(level, work, script, memory_bytes=200 * MIB)) == "refused"


async def test_address_space_is_bounded_though_widely(level: Containment, work: Path) -> None:
    """Runtimes reserve far more than they use, and may; without end they may not."""
    script = (
        "import mmap\n"
        "held = mmap.mmap(-1, 512 << 20)\n"
        "try: mmap.mmap(-1, 4 << 30)\n"
        "except OSError: print('refused')\n"
    )
    assert printed(await run_python(level, work, script, memory_bytes=64 * MIB)) == "refused"


async def test_a_file_cannot_grow_beyond_its_limit(level: Containment, work: Path) -> None:
    """The writer is told by a signal, and the file stays as small as that."""
    outcome = await run(level, work, "head -c 3000000 /dev/zero > big", file_bytes=MIB)
    assert not outcome.struck
    assert outcome.exit_code != 0
    assert (work / "big").stat().st_size == MIB


async def test_open_files_are_bounded(level: Containment, work: Path) -> None:
    """Opening without end fails, and the limit cannot be raised."""
    script = (
        "import os, resource\n"
        "try: resource.setrlimit(resource.RLIMIT_NOFILE, (10_000, 10_000)); print('raised')\n"
        "except (ValueError, OSError): pass\n"
        "try:\n"
        "    while True: last = os.open('/dev/null', os.O_RDONLY)\n"
        "except OSError: print(last < 64)\n"
    )
    seen = printed(await run_python(level, work, script, open_files=64))
    assert seen.endswith("True")


def test_limits_that_make_no_sense_are_refused() -> None:
    """Zero, less, or too little memory for anything to start."""
    for wrong in ({"wall_seconds": 0}, {"processes": -1}, {"memory_bytes": MIB}):
        with pytest.raises(ConfigurationError):
            Limits(**wrong)


def test_a_proxy_is_read_from_its_url() -> None:
    """Only an http URL of a port on our loopback; the credential goes along to the port inside."""
    route = ProxyRoute.from_url("http://call:s3cret@127.0.0.1:4321")
    assert route == ProxyRoute(4321, "call:s3cret")
    assert route.environment(99)["https_proxy"] == "http://call:s3cret@127.0.0.1:99"
    for wrong in (
        "https://127.0.0.1:1",
        "http://127.0.0.1",
        "http://example.org:80",
        "http://127.0.0.1:99999",
        "x",
    ):
        with pytest.raises(ConfigurationError):
            ProxyRoute.from_url(wrong)
