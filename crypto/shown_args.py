"""Whether a call was asked about and admitted with the arguments that the record shows for it (tier L4).

A request for approval, a decision and an admission hold a digest of the arguments; the words that a person reads stand in the
`tool.call`. What binds them is checked here: the digest is the SHA-256 of that event's salt and its input. In constant
memory: only the newest calls are kept, and where an older one would have been needed, that is a finding.
"""

from hashlib import sha256
from typing import Any, Final, NamedTuple, final

from affidavit.crypto.findings import Finding, FindingKind, Findings
from affidavit.crypto.governance_steps import KNOWN_SCHEMA_VERSIONS

_SHOWS: Final = "tool.call"
BINDS: Final = frozenset({_SHOWS, "approval.requested", "dispatch.start"})
_MOST_SHOWN: Final = 4096
_KEY_BYTES: Final = 16
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


class Owed(NamedTuple):
    """A digest whose call stands in no event of the same part before it.

    Attributes:
        seq: The seq of the event that holds it.
        call: The number of the call.
        key: Stands for the goal and the id of the call.
        digest: The digest of the arguments.
    """

    seq: int
    call: int
    key: bytes
    digest: bytes


class ArgsPart(NamedTuple):
    """What some events in a row show of arguments.

    Attributes:
        shown: For each call whose arguments they show, its key and the digest of these.
        differ: Seq and call where a digest is another than that of what they show.
        owed: What has to be looked for in the events before.
    """

    shown: tuple[tuple[bytes, bytes], ...] = ()
    differ: tuple[tuple[int, int], ...] = ()
    owed: tuple[Owed, ...] = ()


NO_ARGS: Final = ArgsPart()


@final
class ArgsReader:
    """Takes the events of one part, in order."""

    __slots__ = ("_differ", "_owed", "_shown")

    def __init__(self) -> None:
        self._shown: dict[bytes, bytes] = {}
        self._differ: list[tuple[int, int]] = []
        self._owed: list[Owed] = []

    def add(self, fields: dict[str, Any]) -> None:
        """Take the next event whose type is one of `BINDS`."""
        if fields["schema_version"] not in KNOWN_SCHEMA_VERSIONS:
            return
        payload = fields["payload"]
        if fields["type"] == _SHOWS:
            key = _key(fields, payload)
            # Behind all others, as what was shown last.
            self._shown.pop(key, None)
            self._shown[key] = args_digest(payload.get("salt"), payload.get("input"))
            return
        digest, call = payload.get("args"), payload.get("call")
        if not isinstance(digest, bytes) or call.__class__ is not int or not _LOWEST <= call <= _HIGHEST:
            return
        owed = Owed(fields["seq"], call, _key(fields, payload), digest)
        shown = self._shown.get(owed.key)
        if shown is None:
            self._owed.append(owed)
        elif shown != digest:
            self._differ.append((owed.seq, call))

    def part(self) -> ArgsPart:
        """Return what was taken."""
        return ArgsPart(tuple(self._shown.items()), tuple(self._differ), tuple(self._owed))


@final
class ArgsFold:
    """Takes what the parts of one record show, in order."""

    __slots__ = ("_findings", "_lost", "_shown")

    def __init__(self) -> None:
        self._shown: dict[bytes, bytes] = {}
        self._lost = False
        self._findings = Findings()

    def join(self, part: ArgsPart) -> None:
        """Take the next part."""
        differ = list(part.differ)
        for owed in part.owed:
            shown = self._shown.get(owed.key)
            if shown is None:
                self._miss(owed)
            elif shown != owed.digest:
                differ.append((owed.seq, owed.call))
        for seq, call in sorted(differ):
            self._findings.add(
                FindingKind.ARGS_DIFFER,
                "a call was asked about or admitted with other arguments than the record shows",
                [seq],
                ids=[call],
            )
        for key, digest in part.shown:
            self._shown.pop(key, None)
            self._shown[key] = digest
        while len(self._shown) > _MOST_SHOWN:
            del self._shown[next(iter(self._shown))]
            self._lost = True

    def finish(self) -> tuple[Finding, ...]:
        """Return what was noticed."""
        return self._findings.all()

    def _miss(self, owed: Owed) -> None:
        detail = "a call was asked about or admitted with arguments that the record does not show"
        if self._lost:
            detail = "a call stands too far from its arguments for them to be compared, or they are not shown"
        self._findings.add(FindingKind.ARGS_NOT_SHOWN, detail, [owed.seq], ids=[owed.call])


def _key(fields: dict[str, Any], payload: dict[str, Any]) -> bytes:
    # The run's own goal is named by its id or not at all.
    goal = payload.get("goal", "")
    named = "" if goal == fields["stream"] else goal
    return sha256(repr((named, payload.get("toolUseID"))).encode()).digest()[:_KEY_BYTES]


def args_digest(salt: object, text: object) -> bytes:
    """Return what binds the exact arguments of a call without revealing them: SHA-256 over the salt and the text.

    Args:
        salt: The salt of its `tool.call`, which keeps short arguments from being guessed; none where it is no byte string.
        text: Its `input`; none where it is no text.
    """
    return sha256(
        (salt if isinstance(salt, bytes) else b"") + (text if isinstance(text, str) else "").encode()
    ).digest()
