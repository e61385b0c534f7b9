"""The lines a person can paste to take a run's record with them and have it checked, with the key of this store."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from affidavit.actors.events import Event, Kind
from affidavit.actors.ids import check_run_id
from affidavit.tools.errors import UsageError
from affidavit.tools.place import Place
from affidavit.tools.signing import installed_key


def record_name(run_id: str) -> str:
    """Return the file name of a run's exported record.

    Raises:
        UsageError: The id, from a store made elsewhere, is not fit to be one.
    """
    return f"{_file_part(run_id)}.provetrail"


def proof_name(run_id: str, seq: int) -> str:
    """Return the file name of one event's proof.

    Raises:
        UsageError: As `record_name`.
    """
    return f"{_file_part(run_id)}-{seq}.proof"


def extension_name(run_id: str, size: int) -> str:
    """Return the file name of the proof that a run's last seal extends the one over so many events.

    Raises:
        UsageError: As `record_name`.
    """
    return f"{_file_part(run_id)}-extends-{size}.proof"


def _file_part(run_id: str) -> str:
    try:
        return check_run_id(run_id)
    except ValueError:
        raise UsageError(f"the run's id {run_id!r} is not fit for a file name; name one with --out") from None


def handover_lines(place: Place, run_id: str, events: Sequence[Event]) -> Iterator[str]:
    """Go through the two lines that export a run and verify what was exported; none for a run that was never sealed."""
    kid = signing_kid(events)
    if kid:
        yield place.line("export", run_id, "--out", record_name(run_id))
        yield verify_line(place, record_name(run_id), kid)


def verify_line(place: Place, file: str, kid: bytes) -> str:
    """Return the command line that checks a file signed under a key id.

    The key itself is filled in where it is the one of this store. Another one must come from its owner, so a word
    stands in for it.
    """
    name = kid.decode("utf-8", "backslashreplace")
    key = installed_key(place)
    value = key.hex if key is not None and key.did_key == name else "PUBLIC_KEY_OF_THE_SIGNER"
    return shlex.join(("affidavit", "verify", file, "--key", f"{name}={value}"))


def signing_kid(events: Sequence[Event]) -> bytes:
    """Return the id of the key that signed the last seal among a run's events; empty if there is none."""
    for event in reversed(events):
        kid = event.detail.get("kid")
        if event.kind == Kind.RECORD_SEALED and isinstance(kid, bytes):
            return kid
    return b""
