"""`affidavit demo` as a process; what it shows is held elsewhere."""

from tests.tools.commands.runner import Cli


def test_the_demo_plays_offline_without_a_key_or_passphrase(cli: Cli) -> None:
    """It ends 0 in an empty home with nothing set, in plain text, and leaves its files where it was told."""
    done = cli("demo", "--dir", "here", AFFIDAVIT_PASSPHRASE=None)
    assert done.code == 0
    assert "\x1b" not in done.out
    assert list((cli.home / "here").glob("*.provetrail"))
    assert not (cli.home / ".local").exists()


def test_a_folder_that_cannot_be_made_is_told(cli: Cli) -> None:
    """Exit code 2 and one sentence."""
    done = cli("demo", "--dir", "/dev/null/demo")
    assert done.code == 2
    assert done.err.startswith("affidavit: /dev/null/demo: ")
    assert done.err.count("\n") == 1
