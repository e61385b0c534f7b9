"""Opens the signing key of a store for the commands that sign, and makes it on first use, saying so."""

from __future__ import annotations

from affidavit.actors.signers.keyfile import KeyFileSigner, create_key_file, load_key_file, read_public_key
from affidavit.crypto.failures import AffidavitError
from affidavit.crypto.keys import VerifyingKey
from affidavit.tools.errors import notice
from affidavit.tools.passphrase import read_passphrase
from affidavit.tools.place import Place


def open_signer(place: Place) -> KeyFileSigner:
    """Return the signer of a store; blocking, since it may ask for the passphrase on the terminal.

    Raises:
        AffidavitError: There is no passphrase, it is wrong, or the key file cannot be read or made.
    """
    if place.key.exists():
        return load_key_file(place.key, read_passphrase(prompt=True))
    notice(f"First use of this store: a signing key is being made, {place.key}")
    signer = create_key_file(place.key, read_passphrase(prompt=True, confirm=True))
    notice(f"Its key id is {signer.public_key.did_key}; keep the passphrase: nobody can restore it.")
    return signer


def installed_key(place: Place) -> VerifyingKey | None:
    """Return the public key of a store, or None if it has none that can be read. Asks for nothing."""
    try:
        return read_public_key(place.key)
    except AffidavitError:
        return None
