"""Keeps secrets out of what is logged: a filter on each logger of the runtime, which all runs of a process share.

It stands on the loggers of the packages that carry requests to models as well: asked to say everything, they log addresses,
headers and bodies. A record is scrubbed before any handler sees it, the trace of its exception included. The filter never drops
a record. It only ever learns secrets: a line about one run may hold another's.
"""

from __future__ import annotations

import logging
from typing import Final, final

from affidavit.actors.secrets import NO_SECRETS, Secrets

_PACKAGES: Final = ("affidavit", "httpx2", "httpcore2", "openai", "anthropic")
_FORMATTER: Final = logging.Formatter()


@final
class SecretFilter(logging.Filter):
    """Replaces every secret that it has learned in the records that pass."""

    def __init__(self, secrets: Secrets = NO_SECRETS) -> None:
        """Begin with some secrets."""
        super().__init__()
        self._secrets = secrets

    def learn(self, secrets: Secrets) -> None:
        """Look for these too from now on."""
        self._secrets |= secrets

    def filter(self, record: logging.LogRecord) -> bool:
        """Scrub a record and let it pass."""
        try:
            message = record.getMessage()
        except Exception:
            # Not ours to mend: its handler says so, and a logging call of another package must not fail here.
            return True
        clean = self._secrets.scrub(message)
        if clean != message:
            record.msg, record.args = clean, None
        if record.exc_info:
            trace = _FORMATTER.formatException(record.exc_info)
            clean = self._secrets.scrub(trace)
            if clean != trace:
                # The exception itself cannot be altered, since it goes on to whoever catches it.
                record.exc_info, record.exc_text = None, clean
        return True


_FILTER: Final = SecretFilter()


def keep_out_of_logs(secrets: Secrets) -> None:
    """Have these secrets scrubbed from all that the loggers of these packages say from now on.

    A logger is made when its module is imported, and whoever comes here to configure a run has imported what drives it.
    """
    if not secrets.values:
        return
    _FILTER.learn(secrets)
    # A filter of a package's own logger would not see the records of those below it.
    for name in [*_PACKAGES, *logging.root.manager.loggerDict]:
        if name.partition(".")[0] in _PACKAGES:
            logging.getLogger(name).addFilter(_FILTER)
