"""The page about handing work on says what is so: its policy can be used, and its example shows the tree that it speaks of."""

import re
import subprocess
import sys
from pathlib import Path

from affidavit.actors.policy.explain import warnings
from affidavit.actors.policy.load import parse_policy
from tests.environment import ROOT

PAGE = (ROOT / "docs" / "delegation.md").read_text(encoding="utf-8")


def test_its_policy_can_be_used_as_it_is() -> None:
    """Nothing in it is probably a mistake."""
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    policy = parse_policy(text.encode(), "docs/delegation.md")
    assert [agent.name for agent in policy.agent] == ["reader"]
    assert warnings(policy) == ()


def test_its_example_hands_work_on_refuses_one_part_a_tool_and_verifies(tmp_path: Path) -> None:
    """Two children fold back, one of them after a refusal; the whole record verifies at L4."""
    example = ROOT / "docs" / "examples" / "delegate.py"
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    lines = done.stdout.splitlines()
    assert [line for line in lines if " of quarter: " in line] == [
        "  quarter.2 of quarter: What is open in March?",
        "  quarter.3 of quarter: Settle April.",
    ]
    assert [line.partition(":")[0].strip() for line in lines if " refused: " in line] == [
        "done after 2 turns, 1 refused",
        "done after 2 turns, 0 refused",
    ]
    assert lines.count("    its own events are verified") == 2
    assert lines[-1].endswith("events verified at L4; complete: True")
