"""The page about policies says what is so: its example is a policy without a doubtful line, and every table and code exists."""

import re

from affidavit.actors.policy.explain import warnings
from affidavit.actors.policy.load import parse_policy
from affidavit.actors.policy.model import Policy
from tests.environment import ROOT

PAGE = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")


def test_the_complete_example_is_a_policy_that_uses_every_part() -> None:
    """Each table, and each key of each table, stands in it."""
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    policy = parse_policy(text.encode(), "docs/policy.md")
    assert policy.model_fields_set == set(Policy.model_fields)
    parts = (policy.grant, policy.budget, policy.prices, policy.approval[0], policy.breakers, policy.check[0])
    for part in (*parts, policy.egress):
        assert part is not None
        assert part.model_fields_set == set(type(part).model_fields)
    assert warnings(policy) == ()


def test_the_table_names_every_part() -> None:
    """By what each decides; prices and keys serve the budget and the approvals."""
    named = set(re.findall(r"^\| `\[+(\w+)\]+`", PAGE, re.MULTILINE))
    assert named == set(Policy.model_fields) - {"prices", "approver_keys"}


def test_every_code_that_it_names_is_one() -> None:
    """Each stands in the code of the runtime."""
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "actors").rglob("*.py")]
    table = PAGE.partition("## What each part does")[2].partition("Each refusal")[0]
    codes = set(re.findall(r"`([a-z_]+)`", table)) - {"session"}
    missing = [code for code in codes if not any(f'"{code}"' in source for source in sources)]
    assert codes
    assert missing == []
