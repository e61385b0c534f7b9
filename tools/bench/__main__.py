"""`python -m affidavit.tools.bench NAME... [--json] [--events N]`: runs benches by name, and prints a table or JSON."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Final

from affidavit.tools.bench.figures import Figures, as_json, as_table
from affidavit.tools.progress import open_bar

# By name, so that a bench imports what it needs only when it is asked for.
BENCHES: Final = {
    "verify": "affidavit.tools.bench.verify",
    "seal": "affidavit.tools.bench.seal",
    "append": "affidavit.tools.bench.append",
    "fanout": "affidavit.tools.bench.fanout",
    "session": "affidavit.tools.bench.session",
    "dispatch": "affidavit.tools.bench.dispatch",
    "console": "affidavit.tools.bench.console",
}
ALL: Final = "all"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run benches.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(
        prog="python -m affidavit.tools.bench",
        description="Measures speed, each figure beside its baseline from the same run.",
    )
    parser.add_argument(
        "names", nargs="+", choices=[*BENCHES, ALL], metavar="NAME", help=", ".join([*BENCHES, ALL])
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--events", type=int, default=None, help="how many events a round handles")
    words = parser.parse_args(arguments)
    found = Figures()
    names = list(BENCHES if ALL in words.names else dict.fromkeys(words.names))
    # A bar that moved by itself would be measured along with the rest.
    with open_bar("measuring", still=True) as tell:
        for done, name in enumerate(names):
            if tell is not None:
                tell(done, len(names))
            found.add(importlib.import_module(BENCHES[name]).run(words.events))
    print(as_json(found) if words.json else as_table(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
