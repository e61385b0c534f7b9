"""Where a record goes on from, in words and for programs."""

from collections.abc import Iterator

from affidavit.crypto.fork_origin import ForkOrigin
from affidavit.crypto.keyring import Trust, show_kid


def fork_rows(found: ForkOrigin) -> Iterator[tuple[str, str]]:
    """Yield rows of a label and words. The parent's name comes from the record."""
    yield "forked from", f"{found.run} at {found.at:,}"
    if found.root is None or found.kid is None:
        yield "", f"its checkpoint of that run does NOT hold: {found.trouble}"
    else:
        whose = "in your keyring" if found.trust is Trust.KEYRING else "which only certifies itself"
        yield "", f"that run's root there: {found.root.hex()}"
        yield "", f"signed by {show_kid(found.kid)}, {whose}"


def fork_json(found: ForkOrigin | None) -> dict[str, object] | None:
    """Return the same for `--json`."""
    if found is None:
        return None
    return {
        "run": found.run,
        "n": found.at,
        "root": None if found.root is None else found.root.hex(),
        "kid": None if found.kid is None else show_kid(found.kid),
        "trust": found.trust,
        "trouble": found.trouble,
    }
