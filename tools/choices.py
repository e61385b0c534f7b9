"""The options of every command that drives a run: its model, tools and rules, how it waits, how it is shown, where it lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from cyclopts import Parameter

from affidavit.tools.console.choice import Plain
from affidavit.tools.options import MODEL_VARIABLE, AsJson, SecretFile, Store, Wait, Workspace
from affidavit.tools.policies import PolicyFile


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a person chose for driving a run, as it stands on the command line.

    Attributes:
        model: The model; None for the one that the run began with.
        workspace: Where the agent may work.
        policy: The policy's file.
        secret_file: A file of further secrets.
        wait: Whether to go on waiting for a person's approval; None for on a terminal alone.
        as_json: Whether standard output is for programs.
        plain: Whether to show it line by line, also on a full terminal.
        store: The folder of runs and keys; None for the default one.
    """

    model: Annotated[
        str | None,
        Parameter(
            name="--model",
            env_var=MODEL_VARIABLE,
            help="Which model, as for `affidavit run`; by default the one that the run began with.",
        ),
    ] = None
    workspace: Workspace = None
    policy: PolicyFile = None
    secret_file: SecretFile = None
    wait: Wait = None
    as_json: AsJson = False
    plain: Plain = False
    store: Store = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstChoices(Choices):
    """The same for a run that is not on the record yet: its model must be named.

    It stands here since the options that it inherits are looked up by name in the module of the class.
    """

    model: Annotated[
        str,
        Parameter(
            name="--model",
            env_var=MODEL_VARIABLE,
            help="Which model: openai:NAME or anthropic:NAME (OPENAI_API_KEY, OPENAI_BASE_URL and so on), the same by the "
            "vendor's own client as openai-sdk:NAME or anthropic-sdk:NAME, local, local:FILE.gguf, or script:FILE.",
        ),
    ]


NO_CHOICES: Final = Choices()
