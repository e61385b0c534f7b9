"""A model's markdown as lines of a screen. Nothing of the text is left out, and nothing in it is an instruction to the terminal.

Markdown hides things on purpose: HTML, the target of a link, an image. Here HTML is shown as it was written, and targets stand
beside their links. Character references are not resolved, since they can spell a control character; whatever comes out is cleaned
all the same. Code is not highlighted: that would run one of hundreds of parsers over a stranger's text.
"""

from __future__ import annotations

import io
from typing import ClassVar, Final

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown, MarkdownElement
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from affidavit.tools.console.ink import PLAIN, Line, piece, wrapped

_NARROWEST: Final = 16
_PARSER: Final = (
    MarkdownIt("commonmark", {"html": False})
    .enable(["strikethrough", "table"])
    .disable(["entity", "image", "reference"])
)
_INK: Final = Console(
    file=io.StringIO(), force_terminal=True, color_system="standard", width=80, legacy_windows=False
)
_CODE: Final = Style(color="cyan")


class _Code(CodeBlock):
    """A block of code as it was written."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield its lines, indented."""
        text = Text(str(self.text).rstrip("\n"), style=_CODE, overflow="fold")
        yield from (Text("  ").append_text(each) for each in text.split("\n", allow_blank=True))


class _Heading(Heading):
    """A heading at the left edge, without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield its one line."""
        self.text.justify = "left"
        yield self.text


class _Markdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "fence": _Code,
        "code_block": _Code,
        "heading_open": _Heading,
    }

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.markup = text
        self.parsed = _PARSER.parse(text)


def words_of_model(text: str, width: int) -> tuple[Line, ...]:
    """Return the lines of a model's words.

    Args:
        text: Markdown.
        width: The columns there are.
    """
    if width < _NARROWEST:
        return tuple(wrapped(text, width))
    try:
        rendered = _INK.render_lines(_Markdown(text), _INK.options.update(width=width), pad=False)
    except Exception:
        # The renderer is another's and the text a stranger's; the words matter more than their shape.
        return tuple(wrapped(text, width))
    lines = [tuple(_safe(each) for each in row if not each.control) for row in rendered]
    while lines and not "".join(each.text for each in lines[-1]).strip():
        lines.pop()
    while lines and not "".join(each.text for each in lines[0]).strip():
        lines.pop(0)
    return tuple(lines)


def _safe(each: Segment) -> Segment:
    return piece(each.text, each.style or PLAIN)
