"""A policy in plain sentences, and what is probably a mistake in it."""

from __future__ import annotations

import pytest

from affidavit.actors.policy.explain import explain, warnings
from affidavit.actors.policy.load import parse_policy
from affidavit.actors.policy.model import Policy
from affidavit.crypto import SigningKey

KEY = SigningKey.from_seed(bytes(32)).public.hex

WHOLE = f"""
[grant]
tools = ["pay", "read_file", "list_dir", "spawn"]
[budget]
steps = 1
tokens = 200_000
cost = 2.50
seconds = 1800
[prices]
currency = "EUR"
input = 3
output = 15
cache_read = 0.3
cache_write = 3.75
[trust]
pay = "semi-trusted"
[[approval]]
tools = ["pay", "send_*"]
approvers = ["ann", "bob"]
signed = true
expires_seconds = 7200
[[approval]]
tools = ["*"]
[approver_keys]
ann = "{KEY}"
bob = "{KEY}"
[breakers]
repeated_calls = 1
failures = 3
[[check]]
name = "tests"
command = ["python", "-m", "pytest", "two words"]
seconds = 1.5
idempotent = true
[egress]
allow = ["public", "10.0.0.0/8:443"]
[delegation]
depth = 3
children = 1
[[agent]]
name = "thinker"
tools = []
[[agent]]
name = "reader"
tools = ["read_file", "list_dir"]
model = "local"
max_steps = 1
[[agent]]
name = "plain"
description = "Is like whoever asks."
"""


def policy(text: str) -> Policy:
    """The policy that a file lays down."""
    return parse_policy(text.encode(), "policy.toml")


def test_commands_of_an_agent_beside_checks_are_pointed_out() -> None:
    """What a check runs may be what a command has left in the workspace, and a check is not contained."""
    check = "[[check]]\nname = 'a'\ncommand = ['true']\n"
    told = {
        tool: [passage.sentences for passage in explain(policy(f"grant.tools = ['{tool}']\n{check}"))][4]
        for tool in ("run_command", "read_file")
    }
    assert "Checks are not contained" in told["run_command"][-1]
    assert "contained" not in told["read_file"][-1]


def test_everything_that_is_laid_down_is_said() -> None:
    """In the order in which an action meets it, with each number and each name."""
    assert {passage.title: passage.sentences for passage in explain(policy(WHOLE))} == {
        "What a run may use": (
            "The tools list_dir, pay, read_file and spawn.",
            "pay is trusted no more than semi-trusted.",
            "At most 1 model turn, 200,000 tokens, 2.5 EUR and 30 minutes of work, all goals of the run together.",
            (
                "A million tokens cost, in EUR: 3 for input, 15 for output, 0.3 for input from the cache and 3.75 for input"
                " into the cache."
            ),
        ),
        "Whom it may hand work to": (
            "Each goal to at most 1 other, who may hand it on, up to 3 below one another.",
            "Each has at most the tools of the goal above, and spends the run's budget.",
            "plain: like the goal above.",
            "reader: with list_dir and read_file at most; on local, at the same prices; for at most 1 model turn.",
            "thinker: without any tool.",
        ),
        "What needs a person": (
            (
                "pay and whatever begins with send_ run only once ann or bob, with a signature of their own, has approved that"
                " very call; asked for, it expires after 2 hours."
            ),
            (
                "whatever is called runs only once anyone who may write the store has approved that very call; asked for, it"
                " expires after 1 day."
            ),
        ),
        "What stops it": (
            "Anyone who may write the store, by the brake.",
            "A call is refused that repeats itself more than 1 time with the same arguments.",
            "Everything is refused once 3 of the last 10 tool calls have failed.",
            "A budget that is used up.",
        ),
        "What backs a success": (
            "tests: python -m pytest 'two words' ends with 0 within 1.5 seconds; run again if it was interrupted.",
        ),
        "Where it may connect": ("10.0.0.0/8:443.", "Any public address."),
    }


def test_children_who_hand_nothing_on_are_said_to_hand_on_nothing() -> None:
    """At depth 1."""
    (said, _) = explain(policy(f"{SPAWN}[delegation]\ndepth = 1\n"))[1].sentences
    assert said == "Each goal to at most 16 others, who hand it on to nobody."


def test_a_policy_that_says_nothing_is_explained_as_what_it_is() -> None:
    """No tool, no person, no check, no address."""
    assert [passage.sentences for passage in explain(Policy())] == [
        ("No tool at all.", "No budget of its own."),
        ("Nobody.",),
        ("Nothing.",),
        ("Anyone who may write the store, by the brake.", "A budget that is used up."),
        ("Nothing: the run ends with the model's own answer and claims no success.",),
        ("Nowhere, but to its model.",),
    ]


GRANT = "[grant]\ntools = ['pay']\n"
NOBODY = "nobody can approve 'pay': several [[approval]] ask about it, and no person satisfies them all"
TOOLS = {"pay": "semi-trusted", "list_dir": "trusted", "spawn": "trusted"}
SPAWN = "[grant]\ntools = ['spawn']\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GRANT, ()),
        ("[grant]\ntools = ['pya']", ("grant.tools names 'pya', and there is no such tool here",)),
        ("[trust]\npay = 'untrusted'", ("trust.pay has no effect: the tool is not granted",)),
        (
            f"{GRANT}[trust]\npay = 'trusted'",
            ("trust.pay has no effect: a policy lowers a tool's trust and never raises it",),
        ),
        (f"{GRANT}[trust]\npay = 'semi-trusted'", ()),
        (f"{GRANT}[trust]\npay = 'untrusted'", ()),
        (f"{GRANT}[[approval]]\ntools = ['p*']", ()),
        (
            f"{GRANT}[[approval]]\ntools = ['send_*']",
            ("an [[approval]] asks about 'send_*', and no such tool is granted",),
        ),
        (f"{GRANT}[[approval]]\ntools = ['pay']\n[[approval]]\ntools = ['p*']\napprovers = ['ann']", ()),
        (
            f"{GRANT}[[approval]]\ntools = ['pay']\napprovers = ['bob']\n[[approval]]\ntools = ['p*']\napprovers = ['ann']",
            (NOBODY,),
        ),
        (
            (
                f"{GRANT}[[approval]]\ntools = ['pay']\nsigned = true\n[[approval]]\ntools = ['*']\napprovers = ['bob']\n"
                f"[approver_keys]\nann = '{KEY}'"
            ),
            (NOBODY,),
        ),
        (
            f"{GRANT}[[approval]]\ntools = ['pay']\nsigned = true\n[[approval]]\ntools = ['*']\n[approver_keys]\nann = '{KEY}'",
            (),
        ),
        (
            f"{GRANT}[[approval]]\ntools = ['pay']\napprovers = ['bob']\n[approver_keys]\nann = '{KEY}'",
            ("approver_keys.ann has no effect: nobody asks 'ann'",),
        ),
        (
            f"{GRANT}[[approval]]\ntools = ['pay']\n[approver_keys]\nann = '{KEY}'\nbob = '{KEY}'",
            ("approver_keys: 'ann' and 'bob' have the same key",),
        ),
        (
            "[prices]\ninput = 1\noutput = 1",
            ("[prices] stands there and budget.cost does not: what is spent is recorded, and stops nothing",),
        ),
        ("[breakers]\nof = 10", ("breakers.of has no effect without breakers.failures",)),
        ("[[agent]]\nname = 'a'", ("[[agent]] has no effect: the tool 'spawn' is not granted",)),
        ("[delegation]\ndepth = 1", ("[delegation] has no effect: the tool 'spawn' is not granted",)),
        (f"{SPAWN}[delegation]\n[[agent]]\nname = 'a'\ntools = ['spawn']\nmax_steps = 9", ()),
        (
            f"{SPAWN}[[agent]]\nname = 'a'\ntools = ['pay']",
            ("agent 'a' asks for 'pay', and that is not granted",),
        ),
        (
            f"{SPAWN}[delegation]\ndepth = 1\n[[agent]]\nname = 'a'\ntools = ['spawn']",
            ("agent 'a' asks for 'spawn', and delegation.depth lets no child have it",),
        ),
        (
            f"{SPAWN}[budget]\nsteps = 1\n[[agent]]\nname = 'a'\nmax_steps = 2",
            ("agent 'a' may take 2 turns, more than budget.steps gives the whole run",),
        ),
        (
            "[budget]\nseconds = 60\n[[check]]\nname = 'a'\ncommand = ['true']",
            ("check 'a' may take 2 minutes, more than budget.seconds gives the whole run",),
        ),
    ],
)
def test_what_is_probably_a_mistake_is_said(text: str, said: tuple[str, ...]) -> None:
    """And nothing else is."""
    assert warnings(policy(text), TOOLS) == said


def test_trust_that_is_above_the_tools_own_is_only_known_with_the_tools() -> None:
    """A tool that says it is untrusted is not made semi-trusted by a policy."""
    raised = policy("[grant]\ntools = ['pay']\n[trust]\npay = 'semi-trusted'")
    assert warnings(raised) == ()
    (said,) = warnings(raised, {"pay": "untrusted"})
    assert said == "trust.pay has no effect: the tool itself is untrusted, and trust is never raised"
