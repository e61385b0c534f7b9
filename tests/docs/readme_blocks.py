"""The parts of the README that are made from the product: the demo's screen and the heart of the embedding example.

`python -m tests.docs.readme_blocks` writes them into the README; a test fails while they differ.
"""

import ast
import re
import tempfile
from pathlib import Path

import trio

from affidavit.tools.demo import run_demo
from affidavit.tools.painter import Painter
from tests.environment import ROOT

README = ROOT / "README.md"
EXAMPLE = ROOT / "docs" / "examples" / "embed.py"
_SCENES = 4


def demo_screen(folder: Path) -> str:
    """Return the demo's screen up to the tiers, with what differs from run to run shortened."""
    lines: list[str] = []
    original = Painter.line
    Painter.line = lambda self, text: lines.append(text)  # type: ignore[method-assign]
    try:
        trio.run(run_demo, folder)
    finally:
        Painter.line = original  # type: ignore[method-assign]
    screen = "\n".join(lines)
    screen = re.sub(r"(root )[0-9a-f]{64}", r"\1...", screen)
    screen = re.sub(r"did:key:\w+", "did:key:z6Mk...", screen)
    screen = re.sub(r"\n8\. .*", "", screen, flags=re.DOTALL)
    return re.sub(r"is\n   \d+ bytes, and", "is\n   some 900 bytes, and", screen)


def example_heart() -> str:
    """Return the source of the example's main function."""
    source = EXAMPLE.read_text(encoding="utf-8")
    main = next(node for node in ast.parse(source).body if getattr(node, "name", "") == "main")
    return ast.get_source_segment(source, main) or ""


def with_blocks(readme: str, demo: str, example: str) -> str:
    """Return the README with both blocks replaced."""
    for name, language, body in (("demo", "text", demo), ("example embed.py", "python", example)):
        head = f"<!-- {name} -->\n```{language}\n"
        before, found, rest = readme.partition(head)
        _, closed, after = rest.partition(f"```\n<!-- /{name.split()[0]} -->")
        if not (found and closed):
            raise ValueError(f"the README has no block named {name!r}")
        readme = f"{before}{head}{body}\n{closed}{after}"
    return readme


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        README.write_text(
            with_blocks(README.read_text(encoding="utf-8"), demo_screen(Path(folder)), example_heart()),
            encoding="utf-8",
        )
