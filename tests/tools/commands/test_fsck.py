"""`affidavit fsck`: a sound store is called sound, every kind of damage is named, and nothing is changed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from affidavit.actors.host import open_host
from affidavit.actors.logs.sqlite import open_sqlite_log
from affidavit.tools import app
from tests.environment import absent
from tests.tools.commands.conftest import Finished
from tests.tools.commands.damage import DAMAGES, tidy
from tests.tools.commands.runner import Cli


@pytest.fixture
def copy(finished: Finished, tmp_path: Path) -> Path:
    """A store with two finished runs in one file, to be harmed."""
    folder = tmp_path / "harmed"
    shutil.copytree(finished.store, folder)
    tidy(folder / "runs.sqlite")
    return folder


def test_a_sound_store_is_called_sound(cli: Cli, copy: Path) -> None:
    """Both runs and their seals are checked, the exit code is 0, and it says what no seal covers."""
    done = cli("fsck", "--store", copy)
    assert (done.code, done.err) == (0, "")
    assert f"{copy / 'runs.sqlite'}: sound" in done.out
    assert "2 streams" in done.out
    assert "2 rebuilt from the rows, 2 of their signatures checked" in done.out
    assert "not checked" in done.out


def test_json_is_one_object_with_fixed_names(cli: Cli, copy: Path) -> None:
    """A program reads the verdict, the counts and the findings."""
    said = json.loads(cli("fsck", "--json", "--store", copy).out)
    assert said["verdict"] == "sound"
    assert (said["streams"], said["seals"], said["signatures"]) == (2, 2, 2)
    assert said["events"] > said["unsealed"] > 0
    assert (said["findings"], said["notes"]) == ([], [])
    assert list(said) == [
        "store", "verdict", "streams", "events", "unsealed", "seals", "signatures", "findings", "notes",
    ]  # fmt: skip


@pytest.mark.parametrize("harm", DAMAGES, ids=lambda harm: harm.__name__)
def test_each_kind_of_damage_is_named(
    capfd: pytest.CaptureFixture[str], copy: Path, harm: Callable[[Path], None]
) -> None:
    """The exit code is 1 (2 where the file cannot even be opened), the damage is in the table, and nothing is changed."""
    store = copy / "runs.sqlite"
    harm(store)
    before = store.read_bytes()
    code = app.main(["fsck", "--json", "--store", str(copy)])
    said = capfd.readouterr()
    if code == 2:
        assert DAMAGES[harm] == "database"
        assert len(said.err.splitlines()) == 1
        assert "unexpected" not in said.err
    else:
        assert code == 1
        kinds = {finding["kind"] for finding in json.loads(said.out)["findings"]}
        assert kinds & {DAMAGES[harm], "unreadable"}
        assert app.main(["fsck", "--store", str(copy)]) == 1
        assert "DAMAGED" in capfd.readouterr().out
    assert store.read_bytes() == before


def test_a_text_that_was_changed_under_its_seal_is_found_by_the_seal_alone(cli: Cli, copy: Path) -> None:
    """The row still decodes and every reader would show it; only the sealed root says that it is not what was sealed."""
    store = copy / "runs.sqlite"
    data = store.read_bytes()
    store.write_bytes(data.replace(b"What is this?", b"What is that?"))
    assert cli("replay", "converged-1", "--store", copy).code == 0
    findings = json.loads(cli("fsck", "--json", "--store", copy).out)["findings"]
    assert [(found["stream"], found["kind"]) for found in findings] == [("converged-1", "seal")]
    assert "do not rebuild the sealed root" in findings[0]["detail"]


def test_what_cannot_be_read_is_one_sentence_and_exit_code_2(cli: Cli, tmp_path: Path) -> None:
    """No store, a text, a database of another program."""
    assert cli("fsck", "--store", tmp_path / "nowhere").code == 2
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "runs.sqlite").write_text("no database\n" * 100)
    done = cli("fsck", "--store", folder)
    assert (done.code, len(done.err.splitlines())) == (2, 1)


def test_a_store_in_use_is_checked_without_disturbing_its_owner(cli: Cli, copy: Path) -> None:
    """While a host has it open and owns its runs, the check ends sound, and the host still writes."""

    async def main() -> None:
        async with (
            open_sqlite_log(copy / "runs.sqlite", lock_grace=0) as log,
            open_host(log),
            log.own("other"),
        ):
            done = await trio.to_thread.run_sync(cli, "fsck", "--store", copy)
            assert done.code == 0, done

    trio.run(main)


def test_a_store_on_a_read_only_disk_is_sound(cli: Cli, copy: Path) -> None:
    """Where nothing can be made beside the store it is read as it lies, and not called damaged for that."""
    if os.geteuid() != 0:
        absent("only root can mount a folder read-only")
    read_only = f"mount --bind '{copy}' '{copy}' && mount -o remount,ro,bind '{copy}'"
    done = cli.printed(f"unshare --mount bash -c \"{read_only} && affidavit fsck --store '{copy}'\"")
    assert (done.code, done.err) == (0, "")
    assert "sound" in done.out
