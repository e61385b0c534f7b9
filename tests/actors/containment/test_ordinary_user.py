"""The red team again, as somebody who is not root: a sandbox is made in another way for them, and must hold as well."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import environment

NOBODY = 65534
SUITES = ("test_red_files.py", "test_red_kernel.py", "test_red_network.py", "test_red_exhaustion.py")
PROGRAM = """
import site, sys
site.addsitedir(sys.argv[1])
import pytest, affidavit.actors.containment.bubblewrap
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]]) if sys.argv[2:] else 0)
"""


def as_nobody(python: str, home: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the program as a user who has nothing, with our packages and not with those of the system."""
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    return subprocess.run(
        [python, "-B", "-S", "-c", PROGRAM, packages, *arguments],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd=environment.ROOT,
        env={**os.environ, "HOME": home, "TMPDIR": home, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_red_team_is_held_off_for_an_ordinary_user_too() -> None:
    """All of it, run by a user without rights, with an interpreter that such a user can run."""
    if os.geteuid() != 0:
        pytest.skip("the whole suite is run by an ordinary user already")
    with tempfile.TemporaryDirectory(prefix="affidavit-test-") as home:
        os.chown(home, NOBODY, NOBODY)
        candidates = [sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"]
        python = next((path for path in candidates if _works(path, home)), None)
        if python is None:
            pytest.skip("no interpreter and packages here that an ordinary user can read")
        suites = [str(Path(__file__).with_name(name)) for name in SUITES]
        done = as_nobody(python, home, "--basetemp", f"{home}/base", *suites)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def _works(python: str, home: str) -> bool:
    try:
        return as_nobody(python, home).returncode == 0
    except OSError:
        return False
