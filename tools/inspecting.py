"""What `inspect` says, in lines or as JSON: of an event its fields, bytes, leaf and path, of a record its kinds and seals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from affidavit.actors.codec import view
from affidavit.actors.event_json import to_json
from affidavit.actors.events import RECORD_KINDS
from affidavit.actors.evidence import EventPath
from affidavit.actors.record_overview import Overview, SealSeen, Signature
from affidavit.crypto.event import Envelope
from affidavit.crypto.hashing import leaf_hash
from affidavit.crypto.keyring import show_kid
from affidavit.tools._verify_report import plain
from affidavit.tools.cbor_lines import hex_lines, items_of
from affidavit.tools.cells import wrap
from affidavit.tools.path_picture import picture, way_up
from affidavit.tools.tables import Cell, Column, table_text
from affidavit.tools.terminal import Style, Tone

_LABEL = 12
_FIELD_LINES = 8
_HASH = 16
_KINDS = (
    Column("KIND"),
    Column("STORED AS", spare=True),
    Column("EVENTS", right=True),
    Column("BYTES", right=True),
    Column("FIRST", right=True),
    Column("LAST", right=True),
)
_SEALS = (
    Column("SEAL", right=True),
    Column("COVERS"),
    Column("ROOT"),
    Column("REBUILT"),
    Column("SIGNATURE"),
    Column("KEY", flexible=True),
)


@dataclass(frozen=True, slots=True)
class Inspected:
    """One event of a run.

    Attributes:
        run_id: The run's whole id.
        envelope: The event.
        data: Its exact bytes.
        under: How it stands under the last seal; None where no seal covers it.
        signature: What can be said of that seal's signature; None where there is none.
        seals: The seqs of all seals that cover it.
    """

    run_id: str
    envelope: Envelope
    data: bytes
    under: EventPath | None
    signature: Signature | None
    seals: tuple[int, ...]


def event_lines(found: Inspected, style: Style, seal_line: str, *, full: bool) -> Iterator[str]:
    """Go through the lines on one event; `seal_line` is the command that seals the run."""
    event = view(found.envelope)
    yield style.paint(f"event {event.seq} of run {plain(found.run_id)}", Tone.STRONG)
    for key, value in to_json(event).items():
        yield from _field(key, value, style, full=full)
    if found.envelope.type != event.kind:
        yield from _field("stored as", found.envelope.type, style, full=full)
    yield ""
    yield style.paint(f"its {len(found.data):,} bytes, and what they say", Tone.STRONG)
    yield from hex_lines(found.data, style.width, full=full)
    yield ""
    yield style.paint("its leaf, the hash that stands for it in the tree", Tone.STRONG)
    yield f"  {leaf_hash(found.data).hex()}"
    yield '  SHA-256 over 00 "provetrail/event/v1" 0a, the 8-byte length, and the bytes'
    yield ""
    yield from _path_lines(found, style, seal_line)


def _field(key: str, value: object, style: Style, *, full: bool) -> Iterator[str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = [plain(line) for line in text.splitlines()] or [""]
    if style.width is not None:
        shown = [piece for line in shown for piece in wrap(line, max(style.width - _LABEL - 3, 20))]
    if len(shown) > _FIELD_LINES and not full:
        shown[_FIELD_LINES - 1 :] = [f"... {len(shown) - _FIELD_LINES + 1} more lines; --full shows them"]
    for number, line in enumerate(shown):
        yield f"  {plain(key) if number == 0 else '':<{_LABEL}} {line}".rstrip()


def _path_lines(found: Inspected, style: Style, seal_line: str) -> Iterator[str]:
    under = found.under
    if under is None:
        yield style.paint("no seal covers it", Tone.STRONG)
        if view(found.envelope).kind in RECORD_KINDS:
            yield "  It is about the record itself, and only a seal that comes later can cover it."
        else:
            yield f"  To sign all that the run has recorded: {seal_line}"
        return
    leaf, index, size = leaf_hash(found.data), found.envelope.seq - 1, under.seal.size
    yield style.paint(f"its path to the root over events 1 to {size}", Tone.STRONG)
    for line in picture(leaf, index, size, under.path):
        yield f"  {style.paint(line, Tone.PLAIN if '* ' in line else Tone.QUIET)}"
    given = f"{len(under.path)} hash is" if len(under.path) == 1 else f"{len(under.path)} hashes are"
    yield "  * computed: a node's hash is SHA-256 over 01 and the two hashes beneath it"
    yield f"  {given} given beside the way up: they are the proof"
    yield ""
    for label, words in (
        ("root", under.seal.root.hex()),
        ("signed", _SAID[found.signature or Signature.BROKEN]),
        ("key id", show_kid(under.seal.kid)),
        ("covered by", _seals(found.seals)),
    ):
        yield from _field(label, words, style, full=True)


_SAID = {
    Signature.HOLDS: "yes, by the key that the key id names; whose key that is, `affidavit verify` tells from a keyring",
    Signature.UNKNOWN_KEY: "not checked: the key id does not name the key; `affidavit verify --key` checks it",
    Signature.BROKEN: "NO: the signature does not hold; `affidavit fsck` tells what is wrong",
}


def _seals(seqs: tuple[int, ...]) -> str:
    where = ", ".join(map(str, seqs[-_FIELD_LINES:]))
    more = f"the last of {len(seqs)} seals, " if len(seqs) > _FIELD_LINES else ""
    return f"{more}the seal at event {where}" if len(seqs) == 1 else f"{more}the seals at events {where}"


def event_json(found: Inspected) -> dict[str, object]:
    """Return the same for programs."""
    leaf, under = leaf_hash(found.data), found.under
    return {
        "run": found.run_id,
        "seq": found.envelope.seq,
        "stored_type": found.envelope.type,
        "event": to_json(view(found.envelope)),
        "bytes": found.data.hex(),
        "structure": [asdict(item) for item in items_of(found.data)],
        "leaf": leaf.hex(),
        "proof": None if under is None else _proof_json(found, under, leaf),
    }


def _proof_json(found: Inspected, under: EventPath, leaf: bytes) -> dict[str, object]:
    index, size = found.envelope.seq - 1, under.seal.size
    return {
        "size": size,
        "index": index,
        "root": under.seal.root.hex(),
        "kid": show_kid(under.seal.kid),
        "signature": found.signature,
        "seals": list(found.seals),
        "path": [
            {
                "level": sibling.level,
                "side": sibling.side,
                "first": sibling.first,
                "last": sibling.last,
                "hash": sibling.hash.hex(),
                "gives": above.hash.hex(),
            }
            for sibling, above in way_up(leaf, index, size, under.path)
        ],
    }


def overview_text(run_id: str, found: Overview, style: Style, seal_line: str) -> str:
    """Return what a record is made of, in tables."""
    head = f"run {plain(run_id)}: {found.events:,} events, {found.size:,} bytes"
    kinds = table_text(
        style,
        _KINDS,
        [
            (
                Cell(each.kind),
                Cell("" if each.stored == each.kind else each.stored, Tone.QUIET),
                *(Cell(f"{number:,}") for number in (each.events, each.size)),
                *(Cell(str(number)) for number in (each.first, each.last)),
            )
            for each in found.kinds
        ],
    )
    if not found.seals:
        return f"{head}\n\n{kinds}\nno seal yet; to sign all that it has recorded: {seal_line}\n"
    seals = table_text(style, _SEALS, [tuple(_seal_cells(seal)) for seal in found.seals])
    return f"{head}\n\n{kinds}\n{seals}"


def _seal_cells(seal: SealSeen) -> Iterator[Cell]:
    yield Cell(str(seal.seq))
    yield Cell(f"1 to {seal.size}")
    yield Cell(f"{seal.root.hex()[:_HASH]}...")
    yield Cell("yes", Tone.GOOD) if seal.rebuilt else Cell("NO", Tone.BAD)
    yield Cell(seal.signature, Tone.GOOD if seal.signature is Signature.HOLDS else Tone.BAD)
    yield Cell(show_kid(seal.kid), Tone.QUIET)


def overview_json(run_id: str, found: Overview) -> dict[str, object]:
    """Return the same for programs."""
    return {
        "run": run_id,
        "events": found.events,
        "bytes": found.size,
        "kinds": [
            {
                "kind": each.kind,
                "stored_type": each.stored,
                "events": each.events,
                "bytes": each.size,
                "first": each.first,
                "last": each.last,
            }
            for each in found.kinds
        ],
        "seals": [
            {
                "seq": seal.seq,
                "size": seal.size,
                "root": seal.root.hex(),
                "kid": show_kid(seal.kid),
                "rebuilt": seal.rebuilt,
                "signature": seal.signature,
            }
            for seal in found.seals
        ],
    }
