"""The lines and names with which evidence leaves a store."""

import pytest

from affidavit.tools.errors import UsageError
from affidavit.tools.handover import extension_name, proof_name, record_name


def test_files_are_named_after_the_run() -> None:
    """A record and a proof bear the run's id."""
    assert extension_name("run-1", 7) == "run-1-extends-7.proof"
    assert (record_name("run-1"), proof_name("run-1", 7)) == ("run-1.provetrail", "run-1-7.proof")


@pytest.mark.parametrize("run_id", ["../../etc/x", "a/b", "", "a\nb"])
def test_an_id_from_elsewhere_cannot_choose_a_folder(run_id: str) -> None:
    """A store made elsewhere may hold any id; one that is no plain name is never made into a path."""
    with pytest.raises(UsageError, match="not fit for a file name"):
        record_name(run_id)
    with pytest.raises(UsageError, match="not fit for a file name"):
        proof_name(run_id, 1)
    with pytest.raises(UsageError, match="not fit for a file name"):
        extension_name(run_id, 1)
