"""What a command that asks something of a run knows to be secret, and takes out of the words that it writes.

The run's owner takes its own secrets out of what it records and answers; but what is asked stands in the run's inbox as it was
written. The rule: a command that only asks is never kept from asking, above all not the kill switch.
"""

from __future__ import annotations

import os
from typing import Final

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.secrets import NO_SECRETS, Secrets, secrets_of_file
from affidavit.tools.errors import notice
from affidavit.tools.options import SECRETS_VARIABLE

# By name, since what reads them opens models, and these commands are to be quick.
KEY_VARIABLES: Final = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")


def without_secrets(words: str) -> str:
    """Return a person's words without the secrets that the environment names.

    These are the lines of the file of secrets and the keys of models that stand in variables of their own. A file that cannot be
    read is said on standard error, and its secrets are not looked for.
    """
    return (_of_environment() | _of_file()).scrub(words) if words else words


def _of_environment() -> Secrets:
    return Secrets.of(os.environ.get(name, "").strip() for name in KEY_VARIABLES)


def _of_file() -> Secrets:
    path = os.environ.get(SECRETS_VARIABLE, "")
    try:
        return secrets_of_file(path) if path else NO_SECRETS
    except ConfigurationError as error:
        notice(f"{error}; so its secrets were not looked for in what is asked")
        return NO_SECRETS
