"""The table of commands, and the one way in: parse, run, and turn whatever goes wrong into a sentence and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from affidavit.tools.errors import CONVERGED, MISUSE, notice, report
from affidavit.tools.help_layout import PlainHelp
from affidavit.tools.log_lines import show_log_lines

COMMANDS: Final = (
    "demo",
    "run",
    "resume",
    "chat",
    "say",
    "fork",
    "sessions",
    "watch",
    "replay",
    "inspect",
    "approve",
    "brake",
    "cancel",
    "seal",
    "export",
    "prove",
    "fsck",
    "store",
    "policy",
)


def build_app() -> App:
    """Return the parser of every command but `verify` and `keys`, which have their own."""
    app = App(
        name="affidavit",
        version=_version,
        backend="trio",
        help_format="plaintext",
        help_formatter=PlainHelp(),
        default_parameter=Parameter(negative=(), show_choices=False),
        result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for name in COMMANDS:
        # By name, so that a command's module is imported only when it is the one that was asked for.
        app.command(f"affidavit.tools.commands.{name}:{name}", name=name)
    return app


def _version() -> str:
    # Imported here since it is slow to import, and the other commands do not need it.
    from importlib.metadata import version

    return f"affidavit {version('affidavit')}"


def main(arguments: Sequence[str]) -> int:
    """Run a command.

    Args:
        arguments: The words after `affidavit`.

    Returns:
        The exit code.
    """
    show_log_lines()
    try:
        code = build_app()(list(arguments), exit_on_error=False, print_error=False)
    except UnusedCliTokensError as error:
        unused = " ".join(error.unused_tokens or ())
        notice(
            f"affidavit: {arguments[0]} takes no {unused!r} here; words that belong together stand in quotes."
        )
        return MISUSE
    except CycloptsError as error:
        error.verbose = False
        command = f" {arguments[0]}" if arguments and arguments[0] in COMMANDS else ""
        notice(f"affidavit: {' '.join(str(error).split())} See `affidavit{command} --help`.")
        return MISUSE
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else MISUSE
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:
        return report(error, arguments[0] if arguments else "")
    return code if isinstance(code, int) else CONVERGED
