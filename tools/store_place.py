"""Where the runs of a store lie; `affidavit.tools.keys` says where its keys do."""

from __future__ import annotations

from pathlib import Path


def store_file(store: Path) -> Path:
    """Return the SQLite file that holds the runs of a store folder."""
    return store / "runs.sqlite"
