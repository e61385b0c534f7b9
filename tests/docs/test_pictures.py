"""The pictures in the documentation are of the screens as they are."""

import re

from tests.docs.pictures import FOLDER, drawn
from tests.environment import ROOT


def test_the_pictures_are_of_the_screens() -> None:
    """Each picture equals what the command draws, none is left over, and each is shown somewhere."""
    made = drawn()
    assert sorted(FOLDER.iterdir()) == sorted(made)
    for path, text in made.items():
        assert path.read_text(encoding="utf-8") == text, "python -m tests.docs.pictures draws it anew"
        pages = [ROOT / "README.md", ROOT / "docs" / "console.md"]
        assert any(path.name in page.read_text(encoding="utf-8") for page in pages)


def test_the_pictures_fetch_nothing() -> None:
    """A picture names nothing that a browser would load: no font, no link, no other picture."""
    for text in drawn().values():
        assert re.search(r"href=|src=|@import|@font-face|url\(['\"]?(?!#)", text) is None
