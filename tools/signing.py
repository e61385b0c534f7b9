"""Opens the signing key of a store for the commands that sign, and makes it on first use, saying so.

In two steps, so that nothing is made for somebody who has no passphrase, and no key for a store that cannot be opened.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

from affidavit.actors.signers.keyfile import (
    KeyFileError,
    KeyFileSigner,
    create_key_file,
    load_key_file,
    read_public_key,
)
from affidavit.crypto.failures import AffidavitError
from affidavit.crypto.keys import VerifyingKey
from affidavit.tools.errors import notice
from affidavit.tools.passphrase import read_passphrase
from affidavit.tools.place import Place


@dataclass(frozen=True, slots=True)
class KeyAccess:
    """A key file, and what opens it.

    Attributes:
        path: The key file.
        passphrase: What it is, or will be, encrypted under.
        is_new: Whether there is no key yet.
    """

    path: Path
    passphrase: bytes = field(repr=False)
    is_new: bool

    def open(self) -> KeyFileSigner:
        """Return the signer, having made the key if there was none; blocking.

        Raises:
            AffidavitError: The passphrase is wrong, or the key file cannot be read or made.
        """
        # Of several first runs at once, one makes the key and the others find it there.
        if not self.is_new or os.path.lexists(self.path):
            return load_key_file(self.path, self.passphrase)
        try:
            signer = create_key_file(self.path, self.passphrase)
        except KeyFileError:
            if not os.path.lexists(self.path):
                raise
            return load_key_file(self.path, self.passphrase)
        notice(f"A signing key was made for this store: {self.path}")
        notice(f"Its key id is {signer.public_key.did_key}. Keep the passphrase: nobody can restore it.")
        return signer


def ask_for_key(place: Place) -> KeyAccess:
    """Return access to the key of a store; blocking, since it may ask for the passphrase on the terminal.

    Raises:
        AffidavitError: There is no passphrase.
    """
    is_new = not place.key.exists()
    if is_new and sys.stdin is not None and sys.stdin.isatty():
        notice("This store has no signing key yet: one is made now, encrypted under a passphrase of yours.")
    return KeyAccess(place.key, read_passphrase(prompt=True, confirm=is_new), is_new)


def installed_key(place: Place) -> VerifyingKey | None:
    """Return the public key of a store, or None if it has none that can be read. Asks for nothing."""
    try:
        return read_public_key(place.key)
    except AffidavitError:
        return None
