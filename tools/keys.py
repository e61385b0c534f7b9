"""The commands `keys`: this installation's signing key, and the keyring of those whose records it verifies.

Making and showing the signing key lives here; what is done to a keyring lives in `keys_trust`.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from affidavit.crypto.failures import AffidavitError
from affidavit.crypto.keys import VerifyingKey
from affidavit.tools._verify_report import plain
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
_TRUST_EXAMPLE: Final = """\
example:
  affidavit keys trust --keyring trusted.json --name "Ops, Berlin" --until 2027-12-31 ops.pub
      shows the fingerprint; compare it with the key's owner before you rely on it
"""
_REVOKE_EXAMPLE: Final = """\
example:
  affidavit keys revoke --keyring trusted.json --reason "laptop stolen" did:key:z6Mk...
"""
_LIST_EXAMPLE: Final = """\
example:
  affidavit keys list --keyring trusted.json
"""


def default_store() -> Path:
    """Return the folder that holds runs and keys: $AFFIDAVIT_STORE, $XDG_DATA_HOME/affidavit, or ~/.local/share/affidavit."""
    named = os.environ.get("AFFIDAVIT_STORE")
    if named:
        return Path(named)
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

    if not os.path.lexists(public_path(path)) and not os.path.lexists(path):
        raise KeyFileError(f"there is no signing key at {path}; `affidavit keys new` makes one")
    _print(read_public_key(path), f"The signing key of this installation: {path}", as_json=as_json)
    return _OK


def main(argv: Sequence[str] | None = None) -> int:
    """Run `affidavit keys`.

    Returns:
        The exit code: 0, 2 for misuse or a key or keyring that cannot be had, 130 when interrupted.
    """
    try:
        arguments = _parser().parse_args(argv)
        return int(arguments.command(arguments))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else _MISUSE
    except AffidavitError as error:
        _complain(str(error), error)
        return _MISUSE
    except OSError as error:
        _complain(f"{error.filename or 'output'}: {error.strerror or error}", error)
        return _MISUSE
    except KeyboardInterrupt:
        return _INTERRUPTED


def _complain(text: str, error: BaseException) -> None:
    # Imported here since it knows every error of the runtime, and only a command that fails needs it.
    from affidavit.tools.next_steps import has_step, with_next_step

    text = with_next_step(text, error)
    hint = "" if has_step(text) else "; see affidavit keys --help"
    print(f"affidavit keys: {plain(text)}{hint}", file=sys.stderr)


def _new(arguments: argparse.Namespace) -> int:
    return new(key_path(arguments.store), as_json=arguments.json)


def _show(arguments: argparse.Namespace) -> int:
    return show(key_path(arguments.store), as_json=arguments.json)


def _trust(arguments: argparse.Namespace) -> int:
    from affidavit.tools import keys_files, keys_trust

    return keys_trust.trust(
        keys_files.keyring_path(arguments.keyring),
        arguments.key,
        kid=arguments.kid,
        name=arguments.name,
        valid_from=arguments.valid_from,
        valid_until=arguments.valid_until,
        as_json=arguments.json,
    )


def _revoke(arguments: argparse.Namespace) -> int:
    from affidavit.tools import keys_files, keys_trust

    path = keys_files.keyring_path(arguments.keyring)
    return keys_trust.revoke(path, arguments.kid, arguments.reason, as_json=arguments.json)


def _list(arguments: argparse.Namespace) -> int:
    from affidavit.tools import keys_files, keys_trust

    return keys_trust.list_keys(keys_files.keyring_path(arguments.keyring), as_json=arguments.json)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="affidavit keys",
        description="The key that signs this installation's records, and the keys that it trusts.",
        epilog="example:\n  affidavit keys show",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="new | show | trust | revoke | list")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], summary: str, example: str
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=example,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("--json", action="store_true", help="print one JSON object")
        sub.set_defaults(command=run)
        return sub

    for sub in (
        command("new", _new, "make a signing key in an encrypted OpenSSH key file", _NEW_EXAMPLE),
        command("show", _show, "show the public half, for an auditor", _SHOW_EXAMPLE),
    ):
        sub.add_argument("--store", type=Path, metavar="DIR", help="instead of $XDG_DATA_HOME/affidavit")
    trusting = command("trust", _trust, "add a public key to a keyring, for `verify`", _TRUST_EXAMPLE)
    _add_trust_arguments(trusting)
    revoking = command("revoke", _revoke, "mark a key of a keyring as revoked", _REVOKE_EXAMPLE)
    revoking.add_argument("kid", metavar="KID", help="the key id, as `keys list` shows it")
    revoking.add_argument("--reason", required=True, metavar="TEXT", help="shown at every refusal")
    listing = command("list", _list, "show the keys of a keyring", _LIST_EXAMPLE)
    for sub in (trusting, revoking, listing):
        sub.add_argument(
            "--keyring", type=Path, metavar="FILE", help="the keyring; else AFFIDAVIT_KEYRING names it"
        )
    return parser


def _add_trust_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "key",
        metavar="KEY",
        help="64 hexadecimal digits, a did:key, an OpenSSH line, or a file of one of these, PEM or COSE_Key",
    )
    parser.add_argument(
        "--kid",
        metavar="KID",
        help="the key id to bind it to (hex:DIGITS where it is no text); default: the one that the key"
        " states, else its did:key",
    )
    parser.add_argument("--name", metavar="TEXT", help="whose key it is")
    parser.add_argument(
        "--from", dest="valid_from", metavar="TIME", help="valid from this time or date (UTC)"
    )
    parser.add_argument(
        "--until", dest="valid_until", metavar="TIME", help="valid until this time, or the end of this date"
    )


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
