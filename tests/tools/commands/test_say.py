"""`affidavit say`: a run that has ended goes on, on the same record, and whoever may not go on with it hears why."""

import json

import trio

from affidavit.actors.buses.memory import MemoryBus
from affidavit.actors.goal import GoalSpec
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.models.port import ModelReply
from affidavit.actors.runtime import MissionExecutor, open_runtime
from affidavit.actors.sealer import open_sealer
from affidavit.actors.session import open_session
from tests.actors.mission_kit import SIGNER, replies
from tests.tools.commands.endpoint import held_endpoint
from tests.tools.commands.runner import Cli, lines_that_begin


def answers(cli: Cli, *turns: object) -> str:
    """A model that says these turns, in order, as the command line names it."""
    script = cli.home / "answers.json"
    script.write_text(json.dumps({"turns": turns}))
    return f"script:{script}"


def kinds(cli: Cli, run_id: str = "mine") -> list[str]:
    """The kinds of the run's events, without those of the record and of the waist."""
    told = {"session.started", "user.message", "session.converged", "session.stalled"}
    events = [json.loads(line) for line in cli("replay", run_id, "--json").out.splitlines()]
    return [event["kind"] for event in events if event["kind"] in told]


def test_what_is_said_is_answered_on_the_same_record(cli: Cli) -> None:
    """Twice, each by a process of its own: the record verifies as complete, and its last seal extends the first."""
    model = answers(cli, {"text": "Four."}, {"text": "Because of two."}, {"text": "Two of them."})
    assert cli("run", "Two and two?", "--model", model, "--id", "mine").code == 0
    first = cli("replay", "mine", "--json").out.splitlines()
    sealed = next(json.loads(line) for line in first if '"record.sealed"' in line)
    said = cli("say", "mine", "Why?", "--as", "ada")
    assert (said.code, "Because of two." in said.out, "Two and two?" in said.out) == (0, True, False)
    assert "going on with run mine after event" in said.err
    assert cli("say", "@last", "How many?").code == 0
    assert kinds(cli) == [
        "session.started",
        "session.converged",
        "user.message",
        "session.converged",
        "user.message",
        "session.converged",
    ]
    for line in lines_that_begin(said.out, "affidavit "):
        assert cli.printed(line).code == 0
    checked = cli("verify", "mine.provetrail", "--json", "--any-kid")
    assert cli("prove", "mine", "--extends", sealed["detail"]["size"], "--out", "extends").code == 0
    proof = cli("verify", "extends", "--json")
    assert json.loads(proof.out)["verdict"] == "accept", checked
    # A watcher is shown the whole, and not the first round alone.
    watched = cli("watch", "mine", "--json").out.splitlines()
    assert watched == cli("replay", "mine", "--json").out.splitlines()
    assert cli("fsck").code == 0
    assert "converged" in cli("sessions").out


def test_a_record_of_two_rounds_is_complete(cli: Cli) -> None:
    """`verify` says so of the whole, with the rules checked over both rounds."""
    model = answers(cli, {"text": "Four."}, {"text": "Because."})
    cli("run", "Two and two?", "--model", model, "--id", "mine")
    said = cli("say", "mine", "Why?")
    export, verify = lines_that_begin(said.out, "affidavit ")
    assert cli.printed(export).code == 0
    checked = cli.printed(f"{verify} --json")
    verdict = json.loads(checked.out)
    assert (checked.code, verdict["verdict"], verdict["tier"], verdict["complete"]) == (
        0,
        "accept",
        "L4",
        True,
    )
    assert verdict["governance"]["admitted"] == 2
    assert "complete     yes" in cli.printed(verify).out


def test_nothing_is_said_on_a_run_that_has_not_ended(cli: Cli) -> None:
    """While another terminal drives it, and once that was killed: the command that goes on with it, and no event."""
    with held_endpoint() as gate:
        with cli.going(
            "run", "Hello", "--model", "openai:m", "--id", "mine", OPENAI_BASE_URL=gate.url
        ) as owner:
            assert gate.asked.wait(30)
            during = cli("say", "mine", "Hurry.")
            owner.kill()
            owner.wait()
        after = cli("say", "mine", "Hurry.")
    for done in (during, after):
        assert done.code == 2
        assert done.err == (
            "affidavit: run mine has not ended, and nothing can be said before; `affidavit resume` goes on with it\n"
        )
    assert "user.message" not in kinds(cli)


def test_a_changed_model_is_refused_and_then_accepted(cli: Cli) -> None:
    """Nothing is recorded by the refusal; `--accept-changes` records the change."""
    assert cli("run", "Two?", "--model", answers(cli, {"text": "Two."}), "--id", "mine").code == 0
    model = answers(cli, {"text": "Two."}, {"text": "Still two."})
    refused = cli("say", "mine", "Sure?", "--model", model)
    assert (refused.code, kinds(cli)) == (2, ["session.started", "session.converged"])
    assert "--accept-changes" in refused.err
    assert cli("say", "mine", "Sure?", "--model", model, "--accept-changes").code == 0


def test_words_that_cannot_be_said_are_refused_in_one_sentence(cli: Cli) -> None:
    """Blank, or on a run that there is not."""
    assert cli("run", "Two?", "--model", answers(cli, {"text": "Two."}), "--id", "mine").code == 0
    blank, nobody, unknown = (
        cli("say", "mine", " "),
        cli("say", "mine", "Go.", "--as", " "),
        cli("say", "x", "Go."),
    )
    assert [done.code for done in (blank, nobody, unknown)] == [2, 2, 2]
    assert [len(done.err.splitlines()) for done in (blank, nobody, unknown)] == [1, 1, 1]


async def test_a_process_that_keeps_an_ended_run_open_is_asked_and_goes_on_with_it(cli: Cli) -> None:
    """The owner answers with what drives the run there; the asker shows that, and ends as the round did."""
    store = cli.home / "store"
    config = MissionConfig(replies(ModelReply("Two."), ModelReply("Still two."), ModelReply("")))
    async with (
        open_sqlite_log(store / "runs.sqlite") as log,
        open_sealer(log, SIGNER) as sealer,
        open_session(log, MemoryBus(), id="mine", sealer=sealer) as session,
        open_runtime(MissionExecutor(config), log) as runtime,
    ):
        await session.submit(runtime, GoalSpec("Two?"))
        await session.wait()
        said = await trio.to_thread.run_sync(cli, "say", "mine", "Sure?", "--as", "ada", "--store", store)
        assert await session.wait() == "Still two."
        failed = await trio.to_thread.run_sync(cli, "say", "mine", "Really?", "--store", store)
        assert await session.let_go()
    assert (said.code, "Still two." in said.out, "verified" in said.out) == (0, True, True)
    assert said.err == "run mine is gone on with by the process that keeps it open\n"
    assert (failed.code, "without an answer" in failed.out) == (1, True)


def test_a_script_that_lies_elsewhere_has_to_be_named_again(cli: Cli) -> None:
    """The record holds no paths: where its file is not found under its bare name, the sentence says what to give."""
    answers(cli, {"text": "Four."}, {"text": "Because of two."})
    (cli.home / "elsewhere").mkdir()
    moved = (cli.home / "answers.json").rename(cli.home / "elsewhere" / "answers.json")
    model = f"script:{moved}"
    assert cli("run", "Two and two?", "--model", model, "--id", "mine").code == 0
    refused = cli("say", "mine", "Why?")
    assert (refused.code, refused.out) == (2, "")
    assert "began with script:answers.json" in refused.err
    assert "--model script:FILE" in refused.err
    assert cli("say", "mine", "Why?", "--model", model).code == 0
