"""The options and arguments that several commands share, so that one word means one thing everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

STORE_VARIABLE = "AFFIDAVIT_STORE"
MODEL_VARIABLE = "AFFIDAVIT_MODEL"
SECRETS_VARIABLE = "AFFIDAVIT_SECRETS_FILE"

RunId: TypeAlias = Annotated[
    str, Parameter(name="ID", help="A run's id, the unique beginning of one, or @last for the newest.")
]
Store: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name="--store",
        env_var=STORE_VARIABLE,
        help="The folder of runs and keys, instead of $XDG_DATA_HOME/affidavit.",
    ),
]
AsJson: TypeAlias = Annotated[
    bool,
    Parameter(name="--json", help="Print one JSON object a line on standard output, and nothing else there."),
]
Workspace: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name="--workspace",
        help="A folder the agent may read in, with read_file, list_dir and search_text. Without it, it has no tools.",
    ),
]
SecretFile: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name="--secret-file",
        env_var=SECRETS_VARIABLE,
        help="A file of secrets, one a line, that are kept out of all that is recorded, shown and logged.",
    ),
]
Wait: TypeAlias = Annotated[
    bool | None,
    Parameter(
        name="--wait",
        negative="--no-wait",
        help="Go on waiting where a person must approve a call, or park the run with exit code 4. By default it waits on a"
        " terminal alone.",
        show_default=False,
    ),
]
Out: TypeAlias = Annotated[
    str | None,
    Parameter(
        name="--out",
        help="The file to write, or - for standard output.",
        allow_leading_hyphen=True,  # for the lone - alone; `handing_over` refuses the rest
        show_default=False,
    ),
]
Force: TypeAlias = Annotated[bool, Parameter(name="--force", help="Replace the file if it is there.")]
