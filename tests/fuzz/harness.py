"""Fuzzes one target with atheris, guided by the coverage of crypto.

The arguments are the target's name, then those of libFuzzer.
Runs in a process of its own, since the fuzzer never returns. An error that a target lets out ends it with its traceback
and a code other than 0.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import atheris  # type: ignore[import-untyped] # installed where this runs, not where types are checked

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
with atheris.instrument_imports(include=["affidavit.crypto"]):
    from tests.fuzz import targets


def main() -> None:
    """Fuzz."""
    name = sys.argv[1]
    target = targets.leaking if name == "leaking" else targets.TARGETS[name]
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target_of_bytes(target))
    atheris.Fuzz()


def target_of_bytes(target: targets.Target) -> Callable[[bytes], None]:
    """The target as the fuzzer calls it, which gives a meaning to what is returned."""

    def run(data: bytes) -> None:
        target(data)

    return run


if __name__ == "__main__":
    main()
