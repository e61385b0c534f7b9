"""Lays the `--help` of a command out as plain text of at most 80 columns: what it does, then its words in two columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

_WIDTH: Final = 80
_NAMES: Final = 24
_NO_DEFAULT: Final = frozenset({"None", "False", "", "0"})


@final
class PlainHelp:
    """A formatter for cyclopts."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print one panel: arguments, or options."""
        if not panel.entries:
            return
        lines = [f"{str(panel.title).lower().replace('parameters', 'options')}:"]
        for entry in panel.entries:
            lines.extend(_entry_lines(entry))
        _print(console, "\n".join((*lines, "")))

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:  # noqa: ANN401  # the port's
        """Print the usage line."""
        _print(console, f"{_text(usage).strip()}\n")

    def render_description(self, console: Console, options: ConsoleOptions, description: Any) -> None:  # noqa: ANN401  # the port's
        """Print what the command does, line by line as it was written."""
        _print(console, f"{_text(description).strip()}\n")


def _entry_lines(entry: HelpEntry) -> list[str]:
    names = ", ".join(entry.display_labels_with_metavar)
    notes = [_text(entry.description)]
    if entry.env_var:
        notes.append(f"Or set {', '.join(entry.env_var)}.")
    if entry.default is not None and _text(entry.default) not in _NO_DEFAULT:
        notes.append(f"(default: {_text(entry.default)})")
    if entry.required and names.startswith("-"):
        notes.append("(required)")
    words = textwrap.wrap(" ".join(note for note in notes if note), _WIDTH - _NAMES - 4)
    first = (
        [f"  {names}"] if len(names) > _NAMES - 2 else [f"  {names:<{_NAMES}}{words.pop(0) if words else ''}"]
    )
    return [*first, *(f"{'':<{_NAMES + 2}}{line}" for line in words)]


def _text(part: Any) -> str:  # noqa: ANN401  # text in one of several forms of the library
    plain = getattr(part, "plain", None)
    if isinstance(plain, str):
        return plain
    return (
        _text(part.primary_renderable)
        if hasattr(part, "primary_renderable")
        else ""
        if part is None
        else str(part)
    )


def _print(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
