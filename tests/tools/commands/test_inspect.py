"""`inspect`: each screen as it stands, the JSON beside it, and that both say what the record holds."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from hashlib import sha256
from pathlib import Path

import pytest

from affidavit.actors.evidence import EventPath, Seal
from affidavit.actors.record_overview import KindCount, Overview, SealSeen, Signature
from affidavit.crypto.event import Envelope, encode_event
from affidavit.tools.inspecting import Inspected, event_json, event_lines, overview_text
from affidavit.tools.terminal import Style
from tests.tools.commands.conftest import Finished
from tests.tools.commands.runner import Done, lines_that_begin

SEAL_LINE = "affidavit seal run"
ENVELOPE = Envelope(
    "run", 2, 1_800_000_000_123_456_789, "dispatch.rejected", "system",
    {"action": "pay", "call": 6, "reason": "this run is not granted the tool 'pay' \x1b[31m and never was", "salt": bytes(16)},
)  # fmt: skip
DATA = encode_event(ENVELOPE)
UNDER = EventPath(Seal(3, b"\xaa" * 32, b"did:key:z6Mk", b"", True, 4), DATA, (b"\x11" * 32, b"\x22" * 32))
EVENT = Inspected("run", ENVELOPE, DATA, UNDER, Signature.HOLDS, (4,))
OVERVIEW = Overview(
    12,
    4_321,
    (
        KindCount("session.started", "session.started", 1, 602, 1, 1),
        KindCount("action.admitted", "dispatch.start", 8, 2_552, 4, 9),
    ),
    (
        SealSeen(11, 10, b"\xaa" * 32, b"did:key:z6Mk", True, Signature.HOLDS),
        SealSeen(12, 11, b"\xbb" * 32, b"the auditor knows", False, Signature.UNKNOWN_KEY),
    ),
)
EVENT_AT_80 = r"""
event 2 of run run
  seq          2
  time         2027-01-15T08:00:00.123456789Z
  kind         action.rejected
  actor        system
  action       pay
  call         6
  reason       this run is not granted the tool 'pay' \x1b[31m and never was
  stored as    dispatch.rejected

its 198 bytes, and what they say
     0  a7                       map of 7
     1  63 73 65 71                "seq"
     5  02                         2
     6  64 74 69 6d 65             "time"
    11  1b 18 fa e2 76 9b 0f cd    1800000000123456789
    19  15
    20  64 74 79 70 65             "type"
    25  71 64 69 73 70 61 74 63    "dispatch.rejected"
    33  68 2e 72 65 6a 65 63 74
    41  65 64
    43  65 61 63 74 6f 72          "actor"
    49  66 73 79 73 74 65 6d       "system"
    56  66 73 74 72 65 61 6d       "stream"
    63  63 72 75 6e                "run"
    67  67 70 61 79 6c 6f 61 64    "payload"
    75  a4                         map of 4
    76  64 63 61 6c 6c               "call"
    81  06                           6
    82  64 73 61 6c 74               "salt"
    87  50 00 00 00 00 00 00 00      16 bytes
    95  00 00 00 00 00 00 00 00
   103  00
   104  66 61 63 74 69 6f 6e         "action"
   111  63 70 61 79                  "pay"
   115  66 72 65 61 73 6f 6e         "reason"
   122  78 3a 74 68 69 73 20 72      "this run is not granted the tool 'pay' ...
   130  75 6e 20 69 73 20 6e 6f
   138  74 20 67 72 61 6e 74 65
   146  64 20 74 68 65 20 74 6f
   154  6f 6c 20 27 70 61 79 27
   162  20 1b 5b 33 31 6d 20 61
   170  6e 64 20 6e 65 76 65 72
   178  20 77 61 73
   182  6e 73 63 68 65 6d 61 5f    "schema_version"
   190  76 65 72 73 69 6f 6e
   197  01                         1

its leaf, the hash that stands for it in the tree
  501ae9b2b4dbce38113de440df80d1942682bd88ce6f3fbcc13b65e19654a952
  SHA-256 over 00 "provetrail/event/v1" 0a, the 8-byte length, and the bytes

its path to the root over events 1 to 3
  events 1 to 3     * b6ca7ca4dca6aa19...  the root
  |- events 1 to 2  * 6b070231e142067a...
  |  |- event 1       1111111111111111...
  |  `- event 2     * 501ae9b2b4dbce38...  this event
  `- event 3          2222222222222222...
  * computed: a node's hash is SHA-256 over 01 and the two hashes beneath it
  2 hashes are given beside the way up: they are the proof

  root         aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  signed       yes, by the key that the key id names; whose key that is,
               `affidavit verify` tells from a keyring
  key id       did:key:z6Mk
  covered by   the seal at event 4
"""
EVENT_AT_120 = r"""
event 2 of run run
  seq          2
  time         2027-01-15T08:00:00.123456789Z
  kind         action.rejected
  actor        system
  action       pay
  call         6
  reason       this run is not granted the tool 'pay' \x1b[31m and never was
  stored as    dispatch.rejected

its 198 bytes, and what they say
     0  a7                                               map of 7
     1  63 73 65 71                                        "seq"
     5  02                                                 2
     6  64 74 69 6d 65                                     "time"
    11  1b 18 fa e2 76 9b 0f cd 15                         1800000000123456789
    20  64 74 79 70 65                                     "type"
    25  71 64 69 73 70 61 74 63 68 2e 72 65 6a 65 63 74    "dispatch.rejected"
    41  65 64
    43  65 61 63 74 6f 72                                  "actor"
    49  66 73 79 73 74 65 6d                               "system"
    56  66 73 74 72 65 61 6d                               "stream"
    63  63 72 75 6e                                        "run"
    67  67 70 61 79 6c 6f 61 64                            "payload"
    75  a4                                                 map of 4
    76  64 63 61 6c 6c                                       "call"
    81  06                                                   6
    82  64 73 61 6c 74                                       "salt"
    87  50 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00      16 bytes
   103  00
   104  66 61 63 74 69 6f 6e                                 "action"
   111  63 70 61 79                                          "pay"
   115  66 72 65 61 73 6f 6e                                 "reason"
   122  78 3a 74 68 69 73 20 72 75 6e 20 69 73 20 6e 6f      "this run is not granted the tool 'pay' \x1b[31m and nev...
   138  74 20 67 72 61 6e 74 65 64 20 74 68 65 20 74 6f
   154  6f 6c 20 27 70 61 79 27 20 1b 5b 33 31 6d 20 61
   170  6e 64 20 6e 65 76 65 72 20 77 61 73
   182  6e 73 63 68 65 6d 61 5f 76 65 72 73 69 6f 6e       "schema_version"
   197  01                                                 1

its leaf, the hash that stands for it in the tree
  501ae9b2b4dbce38113de440df80d1942682bd88ce6f3fbcc13b65e19654a952
  SHA-256 over 00 "provetrail/event/v1" 0a, the 8-byte length, and the bytes

its path to the root over events 1 to 3
  events 1 to 3     * b6ca7ca4dca6aa19...  the root
  |- events 1 to 2  * 6b070231e142067a...
  |  |- event 1       1111111111111111...
  |  `- event 2     * 501ae9b2b4dbce38...  this event
  `- event 3          2222222222222222...
  * computed: a node's hash is SHA-256 over 01 and the two hashes beneath it
  2 hashes are given beside the way up: they are the proof

  root         aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  signed       yes, by the key that the key id names; whose key that is, `affidavit verify` tells from a keyring
  key id       did:key:z6Mk
  covered by   the seal at event 4
"""
OVERVIEW_SCREEN = r"""
run run: 12 events, 4,321 bytes

KIND             STORED AS       EVENTS  BYTES  FIRST  LAST
session.started                       1    602      1     1
action.admitted  dispatch.start       8  2,552      4     9

SEAL  COVERS   ROOT                 REBUILT  SIGNATURE    KEY
  11  1 to 10  aaaaaaaaaaaaaaaa...  yes      holds        did:key:z6Mk
  12  1 to 11  bbbbbbbbbbbbbbbb...  NO       unknown key  the auditor knows
"""


def event_screen(width: int) -> str:
    """One event on a terminal of so many columns."""
    return "\n" + "".join(
        f"{line}\n" for line in event_lines(EVENT, Style(width=width), SEAL_LINE, full=False)
    )


def overview_screen(width: int | None) -> str:
    """A whole record on a terminal of so many columns, or in a pipe."""
    return "\n" + overview_text("run", OVERVIEW, Style(width=width), SEAL_LINE)


@pytest.mark.parametrize(("width", "expected"), [(80, EVENT_AT_80), (120, EVENT_AT_120)])
def test_one_event_on_a_terminal(width: int, expected: str) -> None:
    """Fields, bytes, leaf, path and seal, none of it wider than the screen, and nothing in it that steers one."""
    assert event_screen(width) == expected
    assert max(map(len, expected.splitlines())) <= width


@pytest.mark.parametrize("width", [80, 120, None])
def test_a_whole_record(width: int | None) -> None:
    """The same tables wherever they have room: kinds with their sizes, and seals with what still holds of them."""
    assert overview_screen(width) == OVERVIEW_SCREEN


def test_an_event_under_no_seal_says_how_it_gets_one() -> None:
    """The command is named; what is about the record itself has to wait for another seal."""
    bare = Inspected("run", ENVELOPE, DATA, None, None, ())
    lines = list(event_lines(bare, Style(), SEAL_LINE, full=False))
    assert lines[-2:] == ["no seal covers it", f"  To sign all that the run has recorded: {SEAL_LINE}"]
    assert event_json(bare)["proof"] is None


def test_a_broken_signature_is_said_loudly() -> None:
    """And what to do about it."""
    broken = Inspected("run", ENVELOPE, DATA, UNDER, Signature.BROKEN, (4,))
    (line,) = lines_that_begin("\n".join(event_lines(broken, Style(), SEAL_LINE, full=False)), "  signed")
    assert "NO: the signature does not hold; `affidavit fsck` tells what is wrong" in line


def inspected(finished: Finished, *words: object) -> Done:
    """What `inspect` says of the run that converged."""
    return finished.cli(
        "inspect", "converged-1", *words, "--store", finished.store, AFFIDAVIT_PASSPHRASE=None
    )


def test_an_event_as_json_proves_itself(finished: Finished) -> None:
    """Leaf and root can be computed from what it says alone, and the event is the one that `replay` shows."""
    done = inspected(finished, 4, "--json")
    assert (done.code, done.err) == (0, "")
    (line,) = done.out.splitlines()
    found = json.loads(line)
    replayed = finished.cli("replay", "converged-1", "--json", "--store", finished.store).out.splitlines()
    assert found["event"] == json.loads(replayed[3])
    data = bytes.fromhex(found["bytes"])
    assert sum(item["length"] for item in found["structure"]) == len(data)
    node = sha256(b"\0provetrail/event/v1\n" + len(data).to_bytes(8, "big") + data).digest()
    assert node.hex() == found["leaf"]
    for step in found["proof"]["path"]:
        sibling = bytes.fromhex(step["hash"])
        node = sha256(b"\1" + (sibling + node if step["side"] == "left" else node + sibling)).digest()
        assert node.hex() == step["gives"]
    assert node.hex() == found["proof"]["root"]
    assert found["proof"]["signature"] == "holds"


def test_the_whole_record_in_a_pipe_and_as_json(finished: Finished) -> None:
    """Both count the same events and the same seal, which holds; nothing in the pipe is coloured."""
    text, found = inspected(finished), json.loads(inspected(finished, "--json").out)
    assert text.code == 0
    assert "\x1b" not in text.out
    assert text.out.startswith(f"run converged-1: {found['events']} events, {found['bytes']:,} bytes\n")
    assert sum(each["events"] for each in found["kinds"]) == found["events"]
    (seal,) = found["seals"]
    assert (seal["rebuilt"], seal["signature"]) == (True, "holds")
    assert re.search(
        rf"^ +{seal['seq']}  1 to {seal['size']} .* yes +holds +did:key:", text.out, re.MULTILINE
    )


def test_an_event_that_is_not_there(finished: Finished) -> None:
    """The sentence says which there are."""
    done = inspected(finished, 99_999)
    assert (done.code, done.out) == (2, "")
    assert re.search(r"run converged-1 has \d+ events: name one from 1 to \d+", done.err)


def test_a_changed_event_shows_in_the_overview(finished: Finished, tmp_path: Path) -> None:
    """Its seal does not hold any more, and the exit code says so; a proof is refused with a word about `fsck`."""
    shutil.copytree(finished.store, tmp_path / "store")
    with sqlite3.connect(tmp_path / "store" / "runs.sqlite") as connection:
        (data,) = connection.execute(
            "SELECT data FROM rows WHERE stream = 'converged-1' AND seq = 1"
        ).fetchone()
        changed = bytes(data).replace(b"What is this?", b"What is that?")
        assert changed != data
        connection.execute("UPDATE rows SET data = ? WHERE stream = 'converged-1' AND seq = 1", (changed,))
    connection.close()
    whole = finished.cli("inspect", "converged-1", "--store", tmp_path / "store")
    assert whole.code == 1
    assert re.search(r"NO +holds", whole.out)
    one = finished.cli("inspect", "converged-1", 3, "--store", tmp_path / "store")
    assert (one.code, one.out) == (2, "")
    assert "`affidavit fsck` tells where" in one.err
