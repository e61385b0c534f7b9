"""Make this project's own test vectors from fixed keys: they add to the published suite.

With `--check` nothing is written, and a difference from the stored files is a failure.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from affidavit.tools import _vectors_events, _vectors_proofs, _vectors_rules, _vectors_signed
from affidavit.tools._vectors_cases import KEY, KID, Case

MANIFEST: Final = "manifest.json"


def all_cases() -> list[Case]:
    """Return every vector, in the order of the manifest.

    Raises:
        ValueError: Where two have one name.
    """
    modules = (_vectors_events, _vectors_signed, _vectors_proofs, _vectors_rules)
    cases = [case for module in modules for case in module.cases()]
    doubles = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
    if doubles:
        raise ValueError(f"two vectors are named {doubles[0]}")
    return cases


def build() -> dict[str, bytes]:
    """Return every file of the vectors by its path within their folder, the manifest included."""
    files: dict[str, bytes] = {}
    entries = []
    for case in all_cases():
        entry: dict[str, object] = {
            "id": case.name,
            "tier": case.tier,
            "kind": case.kind,
            "expect": "reject" if case.code else "accept",
        }
        if case.code:
            entry["failure_code"] = case.code
        entry["description"] = case.description
        folder, stem = entry["expect"], case.name.replace(".", "_")
        paths = [f"{folder}/{stem}_{number}.cbor" for number in range(len(case.parts))]
        if case.kind == "events":
            entry["events"] = paths
        else:
            paths = [f"{folder}/{stem}.cbor"]
            entry["artifact"] = paths[0]
        files.update(zip(paths, case.parts, strict=True))
        entries.append(entry)
    files[MANIFEST] = (json.dumps(_manifest(entries), indent=1) + "\n").encode()
    return files


def _manifest(entries: list[dict[str, object]]) -> dict[str, object]:
    key = {"key_id": KID.decode(), "algorithm": "Ed25519", "public_key_hex": KEY.public.hex}
    return {"suite_version": "affidavit-1", "keyring": [key], "vectors": entries}


def differences(folder: Path, files: dict[str, bytes]) -> list[str]:
    """Return the paths at which a folder differs from the vectors, those too many included."""
    stored = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    return sorted(name for name in stored.keys() | files.keys() if stored.get(name) != files.get(name))


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write the vectors into a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def main(argv: Sequence[str] | None = None) -> int:
    """Make or check the vectors.

    Returns:
        The exit code: 0, or 1 where `--check` finds a difference.
    """
    parser = argparse.ArgumentParser(
        prog="python -m affidavit.tools.vectors",
        description="Make this project's own test vectors from fixed keys.",
        epilog="example: python -m affidavit.tools.vectors --check",
    )
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path("tests/vectors"), help="default: tests/vectors"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    arguments = parser.parse_args(argv)
    files = build()
    if not arguments.check:
        write(arguments.folder, files)
    changed = differences(arguments.folder, files)
    for name in changed:
        print(f"{name} differs from what the fixed keys give", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
