"""`affidavit approve`: show what a run waits for, and decide about it, whoever drives the run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from affidavit.actors.approval_signing import signed_decision
from affidavit.actors.approvals import Decision
from affidavit.actors.directory import find_run
from affidavit.actors.errors import ApprovalRefused, RunFinished
from affidavit.actors.event_json import format_time
from affidavit.actors.history import history
from affidavit.actors.host import open_host
from affidavit.actors.inbox import Answer, Outcome, decision_event
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.logs.sqlite_reader import open_sqlite_reader
from affidavit.actors.session_inbox import FINISHED
from affidavit.actors.signers.keyfile import load_key_file
from affidavit.tools._verify_report import plain
from affidavit.tools.asking import Principal, principal_of, take_or_ask
from affidavit.tools.errors import CONVERGED, STALLED, UsageError, notice
from affidavit.tools.goals import goal_label
from affidavit.tools.lookalikes import lookalike_line
from affidavit.tools.options import AsJson, RunId, Store
from affidavit.tools.output import Output
from affidavit.tools.own_secrets import without_secrets
from affidavit.tools.passphrase import read_passphrase
from affidavit.tools.place import Place, place_of
from affidavit.tools.waits import Wait, Waits, argument_lines, decision_lines, wait_lines


@dataclass(frozen=True, slots=True)
class _Found:
    run_id: str
    waits: tuple[Wait, ...]
    braked: bool


async def approve(
    run_id: RunId,
    call: Annotated[
        int | None,
        Parameter(
            name="CALL",
            validator=Number(gte=1),
            help="The number of the call; without it, what waits is listed.",
        ),
    ] = None,
    /,
    *,
    refuse: Annotated[bool, Parameter(name="--refuse", help="Refuse the call instead.")] = False,
    reason: Annotated[
        str, Parameter(name="--reason", help="Why, as the record and the model will be told.")
    ] = "",
    principal: Principal = None,
    key: Annotated[
        Path | None,
        Parameter(
            name="--key", help="Sign the decision with this key file of yours, as `keys new` makes one."
        ),
    ] = None,
    as_json: AsJson = False,
    store: Store = None,
) -> int:
    """Decide about a call that waits for a person, or list what waits.

    The decision is bound to the exact arguments that are shown, and stands on the
    record in your name. A run that another process drives is told, and goes on at
    once; one that nobody drives goes on when it is resumed.

    Exit codes: 0 decided or listed, 1 the decision was not taken, 2 misuse or
    environment.

    For example:

      affidavit approve @last
      affidavit approve 01a22b64 3 --reason "as agreed"
      affidavit approve 01a22b64 3 --refuse --reason "not this account"
    """
    place, who = place_of(store), principal_of(principal, reason)
    # Before it is signed, so that what is signed is what stands on the record.
    reason = without_secrets(reason)
    found = await _find(place, run_id)
    if call is None:
        if refuse or reason or key is not None:
            raise UsageError("name the call to decide about; without one, what waits is only listed")
        return await _list(place, found, as_json=as_json)
    if as_json:
        raise UsageError("--json goes with the list of what waits, and not with a decision")
    wait = next((each for each in found.waits if each.approval.call == call), None)
    if wait is None:
        notice(
            f"run {found.run_id} does not wait for a decision about call {call}; "
            f"`{place.line('approve', found.run_id)}` lists what it waits for"
        )
        return STALLED
    _tell_of_the_brake(place, found)
    decision = Decision(call, not refuse, who, reason, wait.approval.args)
    if wait.arguments is None and decision.approved:
        raise UsageError(
            f"the arguments of call {call} are not those that approval was asked for; it can only be refused, with --refuse"
        )
    if key is not None:
        decision = await _signed(found.run_id, wait, decision, key)
    elif wait.approval.signed:
        raise UsageError(f"a decision about call {call} must be signed: name your key file with --key")
    return await _decide(place, found.run_id, wait, decision)


async def _find(place: Place, text: str) -> _Found:
    async with open_sqlite_reader(place.runs) as log:
        run_id = await find_run(log, text)
        waits = Waits(await history(log, run_id))
        return _Found(run_id, waits.standing(), waits.braked)


def _tell_of_the_brake(place: Place, found: _Found) -> None:
    if found.braked:
        notice(
            f"the brake of run {found.run_id} is on, so every call is refused, approved or not; to let it go:\n"
            f"{place.line('brake', found.run_id, '--release')}"
        )


async def _list(place: Place, found: _Found, *, as_json: bool) -> int:
    output = Output()
    if as_json:
        for wait in found.waits:
            await output.line(json.dumps(_as_json(found, wait)))
        return CONVERGED
    _tell_of_the_brake(place, found)
    if not found.waits:
        notice(f"run {found.run_id} waits for nobody's approval")
    for wait in found.waits:
        for line in (*wait_lines(wait), *decision_lines(place, found.run_id, wait.approval)):
            await output.line(line)
    return CONVERGED


def _as_json(found: _Found, wait: Wait) -> dict[str, object]:
    approval = wait.approval
    return {
        "run": found.run_id,
        "call": approval.call,
        "goal": approval.goal,
        "action": approval.action,
        "arguments": wait.arguments,
        "args": approval.args.hex(),
        "requested": approval.requested,
        "expires": format_time(approval.expires),
        "approvers": list(approval.approvers),
        "signed": approval.signed,
        "braked": found.braked,
        "lookalikes": lookalike_line(wait.arguments or "") or None,
    }


async def _signed(run_id: str, wait: Wait, decision: Decision, path: Path) -> Decision:
    signer = load_key_file(path, read_passphrase(prompt=True))
    return await signed_decision(signer, run_id, wait.approval, decision)


async def _decide(place: Place, run_id: str, wait: Wait, decision: Decision) -> int:
    answer, taken = await _carry_out(place, run_id, decision)
    if answer.outcome != Outcome.DONE:
        notice(f"run {run_id}: {answer.reason or answer.code}; nothing was decided")
        return STALLED
    action, output = plain(wait.approval.action), Output()
    of = f" of child {plain(goal_label(wait.approval.goal))}" if wait.approval.goal else ""
    signed = ", signed" if decision.statement else ""
    await output.line(f"{decision.word} call {decision.call} ({action}{of}), by {decision.principal}{signed}")
    if wait.arguments is not None:
        for line in argument_lines(wait.arguments):
            await output.line(line)
    if taken:
        # Its record holds the digest of its policy, and not where that or the workspace lies.
        notice(
            "Nobody drives the run now. The program that began it goes on with it; for a run of `affidavit run` this does, "
            "with the --policy and the --workspace that it had:\n"
            f"{place.line('resume', run_id)}"
        )
    return CONVERGED


async def _carry_out(place: Place, run_id: str, decision: Decision) -> tuple[Answer, bool]:
    """Have the decision recorded; tell whether that was done here, since nobody drives the run."""
    taken = False

    async def take() -> None:
        nonlocal taken
        async with open_sqlite_log(place.runs, create=False) as log, open_host(log) as host:
            await host.decide(run_id, decision)
            taken = True

    try:
        return await take_or_ask(place, run_id, decision_event(decision), take), taken
    except ApprovalRefused as error:
        return Answer(Outcome.REFUSED, error.code, str(error)), taken
    except RunFinished as error:
        return Answer(Outcome.REFUSED, FINISHED, str(error)), taken
