"""How a verdict is printed: plain text that claims no more than was checked, or one JSON object.

Text from a record is escaped before it reaches a terminal.
"""

import json
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from affidavit.crypto.failures import Tier
from affidavit.crypto.findings import Finding, FindingKind
from affidavit.crypto.governance import Governance
from affidavit.crypto.keyring import Trust
from affidavit.tools._verify_approvals import approval_rows, approvals_json
from affidavit.tools._verify_fork import fork_json, fork_rows
from affidavit.tools._verify_input import Kind
from affidavit.tools._verify_verdict import Verdict

_TRUST: Final = {
    Trust.KEYRING: "trusted: the key was given by you",
    Trust.SELF: "NOT trusted: the key only certifies itself; give the signer's key with --key",
    Trust.NONE: "none: no signature was checked",
}
_COMPLETE: Final = {
    True: "yes: the record reaches the end of its run",
    False: "NO: this record stops before the run ended",
    None: "unknown: its events are not of a vocabulary that says so",
}
# What the run claims of its own end. A run that a person or a fault stopped has stalled as well.
_ENDED: Final = {
    "session.converged": ", which converged",
    "session.stalled": ", which stalled or was stopped",
}
_GAPLESS: Final = {
    True: "yes: the events are numbered from 1 without a gap",
    False: "NO: numbers are missing; the record is a window of a longer stream",
}
_WHAT: Final = {
    Kind.EVENTS: "events without a signature",
    Kind.RUN: "a sealed run",
    Kind.CHECKPOINT: "a signed checkpoint",
    Kind.EVENT_PROOF: "the proof of one event",
    Kind.CONSISTENCY: "the proof that one checkpoint extends another",
}
# Columns of a row's words, so that a row fits in 80 with its margin; and the most rows of one value.
_ROW: Final = 64
_ROWS: Final = 4
_MOST_ROWS: Final = _ROWS + 1  # since words are kept whole
_LONGEST: Final = _ROW * _ROWS
_PLACES: Final = 5  # that the text names; JSON has a hundred
_ABOUT: Final = {
    FindingKind.OPEN_CALL: "call",
    FindingKind.REPEATED_END: "call",
    FindingKind.CONTRADICTING_CHECKS: "check",
    FindingKind.SUCCESS_BESIDE_FAILURE: "check",
    FindingKind.NOT_JUDGED: "version",
    FindingKind.ARGS_DIFFER: "call",
    FindingKind.ARGS_NOT_SHOWN: "call",
} | {kind: "call" for kind in FindingKind if kind.startswith("approval_")}
# Marks that stand above or below a letter and take no column: piled up, they cover the lines around it. No script needs more.
_MARKS: Final = {"Mn", "Me"}
_MOST_MARKS: Final = 8
_L1_OK: Final = "L1 ok: every event is canonical, of one stream, in order"


def plain(text: str) -> str:
    """Return text that cannot move a cursor, change a colour, break a line, cover others or fail to be encoded."""
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for letter in text:
        marks = marks + 1 if not letter.isascii() and unicodedata.category(letter) in _MARKS else 0
        shown.append(letter if letter.isprintable() and marks <= _MOST_MARKS else ascii(letter)[1:-1])
    return "".join(shown)


def as_json(verdict: Verdict) -> str:
    """Return the verdict as one line of JSON, with the same names each time."""
    return json.dumps(
        {
            "file": verdict.file,
            "kind": verdict.kind,
            "verdict": verdict.verdict,
            "trust": verdict.trust,
            "tier": verdict.tier,
            "failure_code": verdict.failure_code,
            "detail": verdict.detail,
            "index": verdict.index,
            "expected": verdict.expected,
            "actual": verdict.actual,
            "events": verdict.events,
            "size": verdict.size,
            "root": verdict.root,
            "kid": verdict.kid,
            "key_name": verdict.key_name,
            "origin": verdict.origin,
            "complete": verdict.complete,
            "end": verdict.end,
            "gapless": verdict.gapless,
            "before": None if verdict.before is None else asdict(verdict.before),
            "governance": _governance_json(verdict.governance),
            "approvals": approvals_json(verdict.approvals),
            "fork": fork_json(verdict.fork),
            "findings": [_finding_json(finding) for finding in verdict.findings],
            "not_checked": list(verdict.not_checked),
        }
    )


def _governance_json(found: Governance | None) -> dict[str, int] | None:
    names = ("admitted", "completed", "refused", "interrupted", "outcomes_claimed", "not_judged")
    return None if found is None else {name: getattr(found, name) for name in names}


def _finding_json(finding: Finding) -> dict[str, object]:
    return {
        "kind": finding.kind,
        "detail": finding.detail,
        "count": finding.count,
        "seqs": list(finding.seqs),
        "ids": list(finding.ids),
    }


def as_text(verdict: Verdict) -> str:
    """Return the verdict as lines for people."""
    return "\n".join(_lines(verdict))


def _lines(verdict: Verdict) -> Iterator[str]:
    name = verdict.file if isinstance(verdict.file, str) else ", ".join(verdict.file or ["no file"])
    if not verdict.accepted:
        yield f"REJECTED  {verdict.failure_code}"
        yield from _row("file", name)
        # What it begins as, or was said to be: what it is, nobody knows.
        yield f"  read as      {_WHAT[verdict.kind]}"
        yield from _row("why", verdict.detail or "")
        if verdict.expected is not None and verdict.actual is not None:
            yield from _row("expected", verdict.expected)
            yield from _row("found", verdict.actual)
        yield from _tiers_before(verdict)
        yield from _gaps(verdict)
        return
    yield _headline(verdict)
    yield from _row("file", name)
    yield f"  what         {_WHAT[verdict.kind]}"
    if verdict.proved is not None:
        yield from _row("event", verdict.proved)
    yield from _signed_lines(verdict)
    yield from (f"  {line}" for line in _tier_lines(verdict))
    if verdict.kind is Kind.RUN:
        for label, words in fork_rows(verdict.fork) if verdict.fork else ():
            yield from _row(label, words)
        yield f"  complete     {_COMPLETE[verdict.complete]}{_ENDED.get(verdict.end or '', '')}"
        yield f"  gapless      {_GAPLESS[verdict.gapless or False]}"
    for label, words in approval_rows(verdict.approvals) if verdict.approvals else ():
        yield from _row(label, words)
    for finding in verdict.findings:
        yield from _row("finding", _finding_text(finding))
    yield from _gaps(verdict)


def _row(label: str, words: str) -> Iterator[str]:
    """Yield a row whose words may come from the record or from a file's name.

    It breaks long words itself, always behind the margin, so that nothing in a record can begin a line of the screen and pass
    for a line of the verifier. What is too long is cut, and said to be.
    """
    pieces = list(_pieces(plain(words[:_LONGEST])))
    if len(pieces) > _MOST_ROWS or len(words) > _LONGEST:
        pieces[_ROWS - 1 :] = [f"... ({len(words):,} characters; --json has them all)"]
    for number, piece in enumerate(pieces):
        yield f"  {label if number == 0 else '':<12} {piece}".rstrip()


def _pieces(text: str) -> Iterator[str]:
    """Break text into pieces of at most a row's columns, between words where one ends in the row's second half."""
    piece, width = "", 0
    for letter in text:
        columns = _columns(letter)
        if width + columns > _ROW:
            cut = len(piece) if letter == " " else piece.rfind(" ")
            cut = cut if cut > len(piece) // 2 else len(piece)
            yield piece[:cut]
            piece = piece[cut:].lstrip(" ")
            width = sum(map(_columns, piece))
            if letter == " " and not piece:
                continue
        piece, width = piece + letter, width + columns
    yield piece


def _columns(letter: str) -> int:
    # A wide character takes two.
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _headline(verdict: Verdict) -> str:
    if verdict.trust is Trust.SELF:
        return f"INTACT at {verdict.tier}, but signed by a key that only certifies itself"
    return f"VERIFIED at {verdict.tier}, and no further than the lines below say"


def _signed_lines(verdict: Verdict) -> Iterator[str]:
    if verdict.root is None:
        yield f"  events       {verdict.events}"
    else:
        yield f"  size         {verdict.size}"
        yield f"  root         {verdict.root}"
        yield from _row("origin", verdict.origin or "")
        yield from _row("key id", verdict.kid or "")
        if verdict.key_name is not None:
            yield from _row("key name", f"{verdict.key_name} (in your keyring)")
    if verdict.before is not None:
        yield f"  root before  {verdict.before.root}"
        if verdict.before.kid != verdict.kid:
            yield from _row("key before", verdict.before.kid)
        if verdict.before.key_name not in {None, verdict.key_name}:
            yield from _row("named", f"{verdict.before.key_name} (in your keyring)")
    yield f"  trust        {_TRUST[verdict.trust]}"


def _tier_lines(verdict: Verdict) -> Iterator[str]:
    match verdict.kind:
        case Kind.EVENTS:
            yield _L1_OK
        case Kind.CHECKPOINT:
            yield "L2 ok: the signature holds"
        case Kind.EVENT_PROOF:
            yield "L1 ok: the event is canonical"
            yield "L2 ok: the signature holds"
            yield "L3 ok: the path leads from the event to the signed root"
        case Kind.CONSISTENCY:
            before = verdict.before.size if verdict.before else 0
            yield "L2 ok: both signatures hold"
            yield f"L3 ok: the {verdict.size} events signed later extend the {before} signed earlier"
        case Kind.RUN:
            yield _L1_OK
            if verdict.tier != Tier.L1:
                yield f"L2 ok: the signature holds, and the {verdict.events} events rebuild the signed root"
            if verdict.governance is not None:
                yield f"L4: {governance_summary(verdict.governance)}"


def governance_summary(found: Governance) -> str:
    """Return what L4 found in one line: never a bare tier."""
    text = f"{found.admitted} admitted, {found.completed} completed, {found.refused} refused"
    text += f", {found.outcomes_claimed} success{'es' if found.outcomes_claimed != 1 else ''} claimed"
    if found.interrupted:
        text += f", {found.interrupted} interrupted"
    return text + (f", {found.not_judged} events not judged" if found.not_judged else "")


def _tiers_before(verdict: Verdict) -> Iterator[str]:
    # L4 comes last, so a record that fails there has passed the others.
    if verdict.tier is Tier.L4:
        yield f"  {_L1_OK}"
        yield "  L2 ok: the signature holds, and the events rebuild the signed root"
    if verdict.tier is not None:
        yield f"  {verdict.tier} FAILED"


def _finding_text(finding: Finding) -> str:
    seqs, ids = finding.seqs[:_PLACES], finding.ids[:_PLACES]
    if not seqs:
        return finding.detail
    if ids:
        what = _ABOUT.get(finding.kind, "number")
        where = ", ".join(f"{what} {number} at seq {seq}" for number, seq in zip(ids, seqs, strict=True))
    else:
        where = "seq " + ", ".join(map(str, seqs))
    more = f", and {finding.count - len(seqs):,} more" if finding.count > len(seqs) else ""
    return f"{finding.detail} ({where}{more})"


def _gaps(verdict: Verdict) -> Iterator[str]:
    for gap in verdict.not_checked:
        yield f"  not checked  {gap}"
