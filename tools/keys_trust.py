"""The commands `keys trust`, `keys revoke` and `keys list`: the public keys that a verifier trusts, in a file.

They never touch a private key or a store. Nothing is trusted by being near: the fingerprint is shown, to be
compared with the owner's over another way than the one the key came by.
"""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Final

from affidavit.crypto.failures import ProducerError
from affidavit.crypto.keyring import KeyEntry, show_kid
from affidavit.crypto.keyring_file import KeyringError, parse_time, show_time
from affidavit.crypto.keys import DID_KEY_PREFIX, VerifyingKey, parse_did_key
from affidavit.tools._verify_report import plain
from affidavit.tools.errors import UsageError
from affidavit.tools.keys_files import change_keyring, read_key, read_keyring

_OK: Final = 0
_HEX_MARK: Final = "hex:"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")


def trust(
    path: Path,
    argument: str,
    *,
    kid: str | None = None,
    name: str | None = None,
    valid_from: str | None = None,
    valid_until: str | None = None,
    as_json: bool = False,
) -> int:
    """Add a public key to a keyring, or change the name or the validity that it has there; show it.

    Args:
        path: The keyring; made where there is none.
        argument: The key, or a file of it.
        kid: The key id to bind it to, `hex:` and digits where it is not text; by default the id that the
            key's form states, else its did:key.
        name: Whose key it is.
        valid_from: An RFC 3339 time, or a date, which means its first moment in UTC.
        valid_until: An RFC 3339 time, or a date, which means its last moment in UTC.
        as_json: Print one JSON object.

    Returns:
        The exit code: 0.

    Raises:
        UsageError: The key cannot be read, is revoked, or contradicts what the keyring binds.
        OSError: The keyring cannot be read or written.
    """
    key, stated = read_key(argument)
    wanted = _kid_of(kid) if kid is not None else stated or key.did_key.encode()
    bounds = (_time(valid_from, last_moment=False), _time(valid_until, last_moment=True))
    _require_printable(name, "a name")
    made: list[KeyEntry] = []

    def edit(entries: tuple[KeyEntry, ...]) -> list[KeyEntry]:
        _require_trustworthy(entries, key)
        known = next((entry for entry in entries if entry.kid == wanted), KeyEntry(wanted, key))
        if known.key != key:
            raise UsageError(
                f"the keyring binds {show_kid(wanted)} to another key, {known.key.fingerprint};"
                " bind this one to a key id of its own with --kid"
            )
        entry = replace(
            known,
            name=known.name if name is None else name,
            valid_from=known.valid_from if bounds[0] is None else bounds[0],
            valid_until=known.valid_until if bounds[1] is None else bounds[1],
        )
        made.append(entry)
        return _with(entries, entry)

    change_keyring(path, edit)
    _print_one(made[0], f"Trusted in {path}:", as_json=as_json)
    if not as_json:
        print("Compare the fingerprint with the key's owner, over another way than the one the key came by.")
        print(f"  affidavit verify --keyring {shlex.quote(str(path))} FILE")
    return _OK


def revoke(path: Path, kid: str, reason: str, *, as_json: bool = False) -> int:
    """Mark a key of a keyring as revoked; one that spells out its own key need not be in it.

    Returns:
        The exit code: 0.

    Raises:
        UsageError: No such key, revoked already, or no reason.
        OSError: The keyring cannot be read or written.
    """
    _require_printable(reason, "a reason")
    if not reason.strip():
        raise UsageError("say why: the reason is shown whenever a record is refused for it")
    made: list[KeyEntry] = []

    def edit(entries: tuple[KeyEntry, ...]) -> list[KeyEntry]:
        known = next((entry for entry in entries if kid in (show_kid(entry.kid), _text(entry.kid))), None)
        known = known or _self_named(path, kid)
        if known.revoked is not None:
            raise UsageError(f"{kid} is revoked already: {known.revoked or 'no reason given'}")
        made.append(replace(known, revoked=reason))
        return _with(entries, made[0])

    change_keyring(path, edit)
    _print_one(made[0], f"Revoked in {path}:", as_json=as_json)
    if not as_json:
        print("With this keyring, everything that the key signed is refused, whenever it was signed.")
    return _OK


def list_keys(path: Path, *, as_json: bool = False) -> int:
    """Show every key of a keyring, revoked ones too.

    Returns:
        The exit code: 0.

    Raises:
        UsageError: There is no keyring, or it is not usable.
        OSError: It cannot be read.
    """
    entries = read_keyring(path)
    if as_json:
        print(json.dumps({"keyring": [_facts(entry) for entry in entries]}))
        return _OK
    if not entries:
        print(f"{path} holds no keys")
    for entry in entries:
        _print_one(entry, plain(entry.name) or "(no name)", as_json=False)
    return _OK


def _require_trustworthy(entries: tuple[KeyEntry, ...], key: VerifyingKey) -> None:
    for entry in entries:
        if entry.key == key and entry.revoked is not None:
            raise UsageError(
                f"the keyring has this key as revoked ({plain(entry.revoked) or 'no reason given'}):"
                " it is not trusted again"
            )


def _require_printable(text: str | None, what: str) -> None:
    if text is not None and not text.isprintable():
        raise UsageError(f"{what} is one line of printable text")


def _with(entries: tuple[KeyEntry, ...], entry: KeyEntry) -> list[KeyEntry]:
    if all(known.kid != entry.kid for known in entries):
        return [*entries, entry]
    return [entry if known.kid == entry.kid else known for known in entries]


def _kid_of(text: str) -> bytes:
    try:
        kid = bytes.fromhex(text.removeprefix(_HEX_MARK)) if text.startswith(_HEX_MARK) else text.encode()
    except ValueError as error:
        raise UsageError(f"--kid {text!r} is not text, nor hex: and an even number of digits") from error
    if not kid:
        raise UsageError("a key id is not empty")
    return kid


def _self_named(path: Path, kid: str) -> KeyEntry:
    if kid.startswith(DID_KEY_PREFIX):
        try:
            return KeyEntry(kid.encode(), parse_did_key(kid))
        except ProducerError as error:
            raise UsageError(
                f"{path} has no key with the id {kid!r}, and it spells out no whole key ({error.detail}); "
                "`affidavit keys list` shows what it has, each id whole"
            ) from error
    raise UsageError(f"{path} has no key with the id {kid!r}; `affidavit keys list` shows what it has")


def _text(kid: bytes) -> str | None:
    try:
        return kid.decode()
    except UnicodeDecodeError:
        return None


def _time(text: str | None, *, last_moment: bool) -> int | None:
    if text is None:
        return None
    if _DATE.fullmatch(text):
        text += "T23:59:59.999999Z" if last_moment else "T00:00:00Z"
    try:
        return parse_time(text)
    except KeyringError as error:
        raise UsageError(str(error)) from error


def _facts(entry: KeyEntry) -> dict[str, str | None]:
    return {
        "kid": show_kid(entry.kid),
        "name": entry.name or None,
        "public_key_hex": entry.key.hex,
        "fingerprint": entry.key.fingerprint,
        "valid_from": None if entry.valid_from is None else show_time(entry.valid_from),
        "valid_until": None if entry.valid_until is None else show_time(entry.valid_until),
        "revoked": entry.revoked,
    }


def _print_one(entry: KeyEntry, headline: str, *, as_json: bool) -> None:
    facts = _facts(entry)
    if as_json:
        print(json.dumps(facts))
        return
    print(headline)
    if entry.name and entry.name != headline:
        print(f"  name         {plain(entry.name)}")
    print(f"  key id       {facts['kid']}")
    print(f"  public key   {facts['public_key_hex']}")
    print(f"  fingerprint  {facts['fingerprint']}")
    if entry.valid_from is not None:
        print(f"  valid from   {facts['valid_from']}")
    if entry.valid_until is not None:
        print(f"  valid until  {facts['valid_until']}")
    if entry.revoked is not None:
        print(f"  REVOKED      {plain(entry.revoked) or 'no reason given'}")
