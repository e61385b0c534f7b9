"""The pictures of the live view. `python -m tests.docs.pictures` draws them; a test fails while they differ from the screens."""

import io
import re
from pathlib import Path

from rich.console import Console
from rich.control import strip_control_codes
from rich.segment import Segment, Segments
from rich.terminal_theme import MONOKAI

from affidavit.tools.console.screen import Screen
from tests.environment import ROOT
from tests.tools.console.streams import SCENES

FOLDER = ROOT / "docs" / "pictures"
PICTURES = {"console-waiting": "waiting", "console-finished": "finished", "console-fan-out": "fan-out"}
_WIDTH, _HEIGHT = 112, 30


def picture(name: str) -> str:
    """One screen as SVG, drawn by rich, without the fonts that it would fetch from elsewhere."""
    scene = SCENES[PICTURES[name]]()
    console = Console(
        file=io.StringIO(), record=True, force_terminal=True, color_system="standard", width=_WIDTH
    )
    for line in Screen().frame(scene.view, scene.ui, _WIDTH, _HEIGHT):
        console.print(Segments([*line, Segment.line()]), end="", soft_wrap=True)
    drawn = console.export_svg(title="affidavit", theme=MONOKAI, unique_id=name)
    drawn = re.sub(r"<!--.*?-->\s*", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    return "".join(f"{line.rstrip()}\n" for line in strip_control_codes(drawn).splitlines())


def drawn(folder: Path = FOLDER) -> dict[Path, str]:
    """Every picture by its file."""
    return {folder / f"{name}.svg": picture(name) for name in PICTURES}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in drawn().items():
        path.write_text(text, encoding="utf-8")
