"""The text of every screen at two sizes. `python -m tests.tools.console.snapshots` makes them; a test fails while they differ."""

from pathlib import Path

from affidavit.tools.console.screen import Frame, Screen
from tests.tools.console.streams import SCENES

FOLDER = Path(__file__).parent / "screens"
SIZES = ((80, 24), (120, 40))


def text_of(frame: Frame) -> str:
    """A frame's text, line by line, without what cannot be seen at the ends of lines."""
    return "".join("".join(piece.text for piece in line).rstrip() + "\n" for line in frame)


def screens() -> dict[str, str]:
    """Every screen by the name of its file."""
    found = {}
    for name, scene in SCENES.items():
        for width, height in SIZES:
            made = scene()
            found[f"{name}-{width}x{height}.txt"] = text_of(Screen().frame(made.view, made.ui, width, height))
    return found


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    made = screens()
    for path in FOLDER.glob("*.txt"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
