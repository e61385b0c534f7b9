"""Reads one secret from the keyring of the operating system, with the extra `affidavit[keyring]`, or says why it cannot.

Never writes to a keyring, and repeats nothing that one holds. It blocks, for as long as the keyring asks its owner to unlock it.
"""

from __future__ import annotations

from typing import Final

from affidavit.actors.errors import ConfigurationError

KEYRING_SUFFIX: Final = "_KEYRING"
_MAX_WHY: Final = 200


def read_keyring(place: str, variable: str) -> str:
    """Return the secret that a keyring holds.

    Args:
        place: `SERVICE/USER`, parted at the last slash.
        variable: The environment variable that said so, for the sentence.

    Raises:
        ConfigurationError: The place is none, the package is not installed, or the keyring is locked, absent, broken, or has
            nothing there.
    """
    service, _, user = place.rpartition("/")
    if not service or not user:
        raise ConfigurationError(f"{variable} must look like SERVICE/USER")
    try:
        # Imported here since it is slow to import, and an extra.
        import keyring  # noqa: PLC0415
        from keyring.errors import KeyringLocked, NoKeyringError  # noqa: PLC0415
    except ImportError as error:
        raise ConfigurationError(
            f"{variable} needs the package keyring, which is not installed: pip install 'affidavit[keyring]'"
        ) from error
    try:
        secret = keyring.get_password(service, user)
    except KeyringLocked as error:
        raise ConfigurationError(f"the keyring that {variable} names is locked: unlock it first") from error
    except NoKeyringError as error:
        raise ConfigurationError(f"{variable} cannot be read: this machine has no keyring to ask") from error
    except Exception as error:
        # Each system's keyring has failures of its own, from its library or its bus.
        raise ConfigurationError(f"{variable} cannot be read from the keyring: {_why(error)}") from error
    if not secret:
        raise ConfigurationError(
            f"{variable}: the keyring has no secret of the user {user!r} for the service {service!r}"
        )
    return secret


def _why(error: Exception) -> str:
    words = " ".join(str(error).split())
    return (words if words.isprintable() and words else type(error).__name__)[:_MAX_WHY]
