"""Where things lie in a store: the folder that a person names with `--store`, the runs in it, and the signing key.

It only names paths. Making and checking them is the business of the log and of the key file.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from affidavit.tools.errors import UsageError
from affidavit.tools.keys import default_store, key_path
from affidavit.tools.store_place import store_file


@dataclass(frozen=True, slots=True)
class Place:
    """A store on this machine.

    Attributes:
        folder: The store's folder.
        named: Whether a person named it; then the lines that are printed to be typed name it too.
    """

    folder: Path
    named: bool

    @property
    def runs(self) -> Path:
        """The file that holds the runs."""
        return store_file(self.folder)

    @property
    def key(self) -> Path:
        """The file that holds the signing key."""
        return key_path(self.folder)

    def line(self, *words: str) -> str:
        """Return a command line for this store, ready to be pasted into a shell."""
        options = ("--store", str(self.folder)) if self.named else ()
        return shlex.join(("affidavit", *words, *options))


def place_of(store: Path | None) -> Place:
    """Return the store that a person means by `--store`; the default one if none is named.

    Raises:
        UsageError: A file stands where the store's folder should be.
    """
    folder = default_store() if store is None else store
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; --store names the folder of a store")
    return Place(folder, store is not None)
