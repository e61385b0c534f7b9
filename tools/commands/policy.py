"""`affidavit policy`: say what a policy file comes to before a run is held to it (`check`), and begin one (`new`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from affidavit.actors.policy.explain import Passage, explain, warnings
from affidavit.actors.policy.load import load_policy
from affidavit.actors.policy.starter import STARTER
from affidavit.tools._verify_report import plain
from affidavit.tools.agent_tools import agent_toolbox
from affidavit.tools.errors import CONVERGED
from affidavit.tools.options import Workspace
from affidavit.tools.output import Output
from affidavit.tools.place import place_of
from affidavit.tools.policies import trusts

policy = App(
    name="policy",
    help="""Check and explain a policy: what a run may use, and what needs a person.

    For example:

      affidavit policy new
      affidavit policy check policy.toml
    """,
)

File = Annotated[Path, Parameter(name="FILE", help="The policy, a TOML file.")]
AsOne = Annotated[bool, Parameter(name="--json", help="Print one JSON object.")]


@policy.command
async def check(file: File, /, *, workspace: Workspace = None, as_json: AsOne = False) -> int:
    """Check a policy file, and say in plain sentences what it comes to.

    What is probably a mistake is said as well. With --workspace it is compared with
    the tools that such a run has. The digest is what a run under this policy records.

    Exit codes: 0 it can be used, 2 it cannot.

    For example:

      affidavit policy check policy.toml --workspace .
    """
    read = load_policy(file)
    tools: Mapping[str, str] | None = None
    if workspace is not None:
        tools = trusts(await agent_toolbox(workspace, frozenset(read.grant.tools), place_of(None)))
    passages, doubts, digest = explain(read), warnings(read, tools), read.digest.hex()
    output = Output()
    if as_json:
        told = {each.title: each.sentences for each in passages}
        await output.line(
            json.dumps({"file": str(file), "digest": digest, "explained": told, "warnings": doubts})
        )
        return CONVERGED
    for line in _lines(passages, doubts):
        await output.line(plain(line))
    await output.line(f"{plain(str(file))} can be used; its digest is {digest}")
    return CONVERGED


@policy.command
async def new() -> int:
    """Print a policy to begin with, each line explained.

    For example:

      affidavit policy new
    """
    await Output().write(STARTER)
    return CONVERGED


def _lines(passages: tuple[Passage, ...], doubts: tuple[str, ...]) -> list[str]:
    lines: list[str] = []
    for passage in passages:
        lines += [f"{passage.title}:", *(f"  {each}" for each in passage.sentences), ""]
    if doubts:
        lines += ["Probably a mistake:", *(f"  {each}" for each in doubts), ""]
    return lines
