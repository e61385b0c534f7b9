"""Shows what the runtime logs as single lines on standard error, without the tracebacks that a program would keep."""

from __future__ import annotations

import logging
import os
from typing import final

from affidavit.tools.errors import DEBUG_VARIABLE, notice, sentence


@final
class OneLineHandler(logging.Handler):
    """Prints one line for each record: the message, and what the exception says if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        error = record.exc_info[1] if record.exc_info else None
        why = f": {sentence(error)}" if error is not None else ""
        notice(f"affidavit: {record.levelname.lower()}: {record.getMessage()}{why}")


def show_log_lines() -> None:
    """Have warnings and errors of the runtime shown as lines; with AFFIDAVIT_DEBUG=1 as they are, tracebacks included."""
    logger = logging.getLogger("affidavit")
    if os.environ.get(DEBUG_VARIABLE) != "1" and not logger.handlers:
        logger.addHandler(OneLineHandler(logging.WARNING))
        logger.propagate = False
