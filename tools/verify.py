"""The command `verify`: check records, proofs and checkpoints, with no store, no network and no runtime.

Imports crypto and the standard library alone, so an auditor can run it beside nothing but `cryptography` and
`cbor2`. It never writes, never creates a key, and never shows a traceback for what a file holds.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from typing import Final, Never

from affidavit.crypto.cbor import DEFAULT_MAX_DEPTH
from affidavit.crypto.failures import Tier
from affidavit.crypto.keyring import Trust
from affidavit.tools._verify_input import STANDARD_INPUT, InputError, Kind, load_keyring, open_artifact
from affidavit.tools._verify_report import as_json, as_text, plain
from affidavit.tools._verify_run import Asked
from affidavit.tools._verify_verdict import Verdict, judge, judge_events

ACCEPTED, REJECTED, MISUSE, SELF_CERTIFIED, INTERRUPTED = 0, 1, 2, 3, 130
# The worst of several files decides: a rejection outweighs a file that could not be read.
_GRAVITY: Final = (REJECTED, MISUSE, SELF_CERTIFIED)
_MOST_JOBS: Final = 64
_MOST_DEPTH: Final = 10_000
# The lowest tier that says anything about a kind.
_LOWEST: Final = {
    Kind.EVENTS: Tier.L1,
    Kind.RUN: Tier.L1,
    Kind.CHECKPOINT: Tier.L2,
    Kind.EVENT_PROOF: Tier.L3,
    Kind.CONSISTENCY: Tier.L3,
}
_DESCRIPTION: Final = """\
Check that records carry the bytes their signer committed to, in order, and keep the rules.
Says which tier was checked and what was not; a key you did not give is never trusted."""
_EPILOG: Final = """\
tiers:
  L1 structure   L2 signature and root   L3 stand-alone proofs   L4 admissions and outcomes

exit codes:
  0 verified   1 rejected, with its code   2 misuse, or a file that cannot be read
  3 intact, but signed by a key that only certifies itself
  (of several files the worst counts: 1, then 2, then 3)

example:
  affidavit verify --key did:key:z6Mk...=79b5562e... run.provetrail
"""


class _Parser(argparse.ArgumentParser):
    """Reports misuse in one sentence."""

    def error(self, message: str) -> Never:
        self.exit(MISUSE, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run `affidavit verify`.

    Args:
        argv: The arguments after the command's name; those of the process by default.

    Returns:
        The exit code, as `--help` lists them.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A name or an origin may hold what the terminal's encoding cannot.
            stream.reconfigure(errors="backslashreplace")
    try:
        arguments = _parser().parse_args(argv)
        code = _run(arguments)
        sys.stdout.flush()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else MISUSE
    except InputError as error:
        _complain(error)
        return MISUSE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away: that is no fault of the record, but not all of it was said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return MISUSE
    return code


def _run(arguments: argparse.Namespace) -> int:
    kind = Kind(arguments.kind) if arguments.kind else None
    if not arguments.files and kind is not Kind.EVENTS:
        raise InputError("name at least one file; see affidavit verify --help")
    if arguments.files.count(STANDARD_INPUT) > 1:
        raise InputError("standard input can be read once: name - once")
    keyring = load_keyring(arguments.key, arguments.keyring, any_kid=arguments.any_kid)
    asked = Asked(keyring, Tier(arguments.tier), arguments.jobs, arguments.max_depth)
    if kind is Kind.EVENTS:
        verdict = judge_events(arguments.files, _events(arguments.files), asked.max_depth)
        return _say(verdict, as_one_json=arguments.json)
    codes = [ACCEPTED]
    for name in arguments.files:
        try:
            with open_artifact(name, kind) as artifact:
                _require_tier(name, artifact.kind, asked.tier)
                if artifact.kind is Kind.EVENTS:
                    verdict = judge_events([name], [artifact.data], asked.max_depth)
                else:
                    verdict = judge(artifact, asked)
        except InputError as error:
            _complain(error)
            codes.append(MISUSE)
            continue
        codes.append(_say(verdict, as_one_json=arguments.json))
    return next((code for code in _GRAVITY if code in codes), ACCEPTED)


def _events(names: Sequence[str]) -> Iterator[bytes]:
    for name in names:
        with open_artifact(name, Kind.EVENTS) as artifact:
            data = artifact.data
        yield data


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_JOBS:
        raise argparse.ArgumentTypeError(f"a number from 1 to {_MOST_JOBS}")
    return int(text)


def _depth(text: str) -> int:
    if not text.isdecimal() or not DEFAULT_MAX_DEPTH <= int(text) <= _MOST_DEPTH:
        raise argparse.ArgumentTypeError(f"a number from {DEFAULT_MAX_DEPTH} to {_MOST_DEPTH}")
    return int(text)


def _require_tier(name: str, kind: Kind, tier: Tier) -> None:
    lowest = _LOWEST[kind]
    if tier < lowest:
        raise InputError(
            f"{name}: {tier} says nothing about this kind ({kind}), which is checked at {lowest}"
        )


def _say(verdict: Verdict, *, as_one_json: bool) -> int:
    print(as_json(verdict) if as_one_json else as_text(verdict))
    if not verdict.accepted:
        return REJECTED
    return SELF_CERTIFIED if verdict.trust is Trust.SELF else ACCEPTED


def _complain(error: InputError) -> None:
    text = plain(str(error))
    # Most say what to do; the help stands in for what only the caller can know.
    hint = "" if "; " in text or "--" in text or ": name" in text else "; see affidavit verify --help"
    print(f"affidavit verify: {text}{hint}", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="affidavit verify",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="a record, proof, checkpoint or event; - reads one from standard input",
    )
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="KID=KEY",
        help="trust KEY (64 hexadecimal digits, or a file with a PEM, OpenSSH or COSE_Key public key) for this key id;"
        " may be given several times",
    )
    parser.add_argument("--any-kid", action="store_true", help="take a --key without KID= for every key id")
    parser.add_argument(
        "--keyring", metavar="FILE", help="trust the keys of a JSON file; or AFFIDAVIT_KEYRING"
    )
    parser.add_argument(
        "--tier", choices=[str(tier) for tier in Tier], default=str(Tier.L4), help="stop after this tier"
    )
    parser.add_argument(
        "--as",
        dest="kind",
        choices=[str(kind) for kind in Kind],
        help="what the files are, where their content is not to tell; events: all files are one stream",
    )
    parser.add_argument(
        "--jobs",
        type=_jobs,
        metavar="N",
        help="check a run in N processes; by default in two where it is large",
    )
    parser.add_argument(
        "--max-depth",
        type=_depth,
        default=DEFAULT_MAX_DEPTH,
        metavar="N",
        help=f"accept events nested N deep; by default {DEFAULT_MAX_DEPTH}",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object per file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
