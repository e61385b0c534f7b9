"""The policy that a run is held to, as the commands take it: a file, read and compared with the tools that the run has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from affidavit.actors.goal import GoalSpec
from affidavit.actors.policy.explain import warnings
from affidavit.actors.policy.load import load_policy
from affidavit.actors.policy.model import Policy
from affidavit.actors.rules import grant_of
from affidavit.actors.toolbox.registry import Toolbox
from affidavit.tools.errors import UsageError, notice

PolicyFile: TypeAlias = Annotated[
    Path | None,
    Parameter(
        name="--policy",
        help="A policy file: what the run may use, what needs a person, what backs its success; see `affidavit policy`.",
    ),
]


@dataclass(frozen=True, slots=True)
class NamedPolicy:
    """A policy, and the file that it stands in.

    Attributes:
        path: The file, as a whole path.
        policy: What it lays down.
    """

    path: Path
    policy: Policy

    @property
    def words(self) -> tuple[str, str]:
        """The option that names it again."""
        return "--policy", str(self.path)


def policy_of(file: Path | None, workspace: Path | None) -> NamedPolicy | None:
    """Return the policy that a command names.

    Args:
        file: The file; None for no policy.
        workspace: Where its checks are to run.

    Raises:
        ConfigurationError: It is no policy.
        UsageError: It has checks, and there is nowhere to run them.
    """
    if file is None:
        return None
    policy = load_policy(file)
    if policy.check and workspace is None:
        raise UsageError(f"{file}: its checks run in a workspace: name one with --workspace")
    return NamedPolicy(file.resolve(), policy)


def say_doubts(named: NamedPolicy | None, toolbox: Toolbox) -> None:
    """Say what is probably a mistake in a policy, given the tools that the run has."""
    if named is not None:
        for doubt in warnings(named.policy, trusts(toolbox)):
            notice(f"{named.path}: {doubt}")


def tools_named(wanted: tuple[str, ...] | None, named: NamedPolicy | None) -> frozenset[str]:
    """Return every tool that is named for a run, by its goal's grant or by its policy's."""
    return frozenset(wanted or ()) | frozenset(named.policy.grant.tools if named else ())


def granted(wanted: tuple[str, ...] | None, named: NamedPolicy | None) -> tuple[str, ...] | None:
    """Return the tools that a run is granted, as far as its policy allows what it wants; None for all."""
    if named is None:
        return wanted
    left = grant_of(GoalSpec("", tools=wanted), named.policy).tools
    return None if left is None else tuple(sorted(left))


def trusts(toolbox: Toolbox) -> Mapping[str, str]:
    """Return the trust that each tool states, by the tool's name."""
    return {name: tool.trust for name, tool in toolbox.items()}
