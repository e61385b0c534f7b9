"""The commands `keys new` and `keys show`: make this installation's signing key, and show its public half."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from affidavit.crypto.failures import AffidavitError
from affidavit.crypto.keys import VerifyingKey
from affidavit.tools.passphrase import read_passphrase

_OK, _MISUSE, _INTERRUPTED = 0, 2, 130
_NEW_EXAMPLE: Final = """\
example:
  affidavit keys new
      asks for a passphrase twice, writes the encrypted key, and prints what to hand to an auditor
"""
_SHOW_EXAMPLE: Final = """\
example:
  affidavit keys show
      prints the key id, the public key, and the --key argument for `affidavit verify`; asks for nothing
"""


def default_store() -> Path:
    """Return the folder that holds runs and keys: $XDG_DATA_HOME/affidavit, or ~/.local/share/affidavit."""
    home = os.environ.get("XDG_DATA_HOME")
    # The base directory specification says to ignore a path that is not absolute.
    base = Path(home) if home and Path(home).is_absolute() else Path.home() / ".local" / "share"
    return base / "affidavit"


def key_path(store: Path | None = None) -> Path:
    """Return where the signing key of a store lies; of the default store where none is named."""
    return (store or default_store()) / "keys" / "default"


def describe(key: VerifyingKey) -> dict[str, str]:
    """Return what there is to show of a public key, by name."""
    return {
        "kid": key.did_key,
        "public_key_hex": key.hex,
        "fingerprint": key.fingerprint,
        "verify_argument": f"--key {key.did_key}={key.hex}",
    }


def new(path: Path, *, as_json: bool = False) -> int:
    """Make a new signing key at a path, and show it.

    Returns:
        The exit code: 0.

    Raises:
        AffidavitError: Where a key is there already, or none can be made.
    """
    from affidavit.actors.signers.keyfile import create_key_file, require_free

    # Said before the passphrase is asked for, which would be in vain.
    require_free(path)
    signer = create_key_file(path, read_passphrase(prompt=True, confirm=True))
    _print(signer.public_key, f"A new signing key, encrypted under your passphrase: {path}", as_json=as_json)
    return _OK


def show(path: Path, *, as_json: bool = False) -> int:
    """Show the public half of the signing key at a path.

    Returns:
        The exit code: 0.

    Raises:
        AffidavitError: Where there is none or it cannot be read.
    """
    from affidavit.actors.signers.keyfile import KeyFileError, public_path, read_public_key

    if not os.path.lexists(public_path(path)):
        raise KeyFileError(f"there is no signing key at {path}; `affidavit keys new` makes one")
    _print(read_public_key(path), f"The signing key of this installation: {path}", as_json=as_json)
    return _OK


def main(argv: Sequence[str] | None = None) -> int:
    """Run `affidavit keys`.

    Returns:
        The exit code: 0, 2 for misuse or a key that cannot be had, 130 when interrupted.
    """
    try:
        arguments = _parser().parse_args(argv)
        path = key_path(arguments.store)
        return int(arguments.command(path, as_json=arguments.json))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else _MISUSE
    except AffidavitError as error:
        print(f"affidavit keys: {error}", file=sys.stderr)
        return _MISUSE
    except KeyboardInterrupt:
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="affidavit keys",
        description="The key that signs this installation's records.",
        epilog="example:\n  affidavit keys show",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="new | show")
    table = (
        ("new", new, "make a signing key in an encrypted OpenSSH key file", _NEW_EXAMPLE),
        ("show", show, "show the public half, for an auditor", _SHOW_EXAMPLE),
    )
    for name, command, summary, example in table:
        sub = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=example,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("--store", type=Path, metavar="DIR", help="instead of $XDG_DATA_HOME/affidavit")
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        sub.set_defaults(command=command)
    return parser


def _print(key: VerifyingKey, headline: str, *, as_json: bool) -> None:
    facts = describe(key)
    if as_json:
        print(json.dumps(facts))
        return
    print(headline)
    print(f"  key id       {facts['kid']}")
    print(f"  public key   {facts['public_key_hex']}")
    print(f"  fingerprint  {facts['fingerprint']}")
    print("For an auditor, so that your records verify as yours:")
    print(f"  affidavit verify {facts['verify_argument']} FILE")


if __name__ == "__main__":
    sys.exit(main())
