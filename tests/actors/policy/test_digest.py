"""A policy's digest: the same for files that say the same, another for any that says anything else."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.policy.load import parse_policy
from affidavit.actors.policy.model import Budget, Policy, Prices
from affidavit.crypto import SigningKey

KEY = SigningKey.from_seed(bytes(32)).public

SAME = [
    ("[grant]\ntools = ['b', 'a', 'b']", "[grant]\ntools = ['a', 'b']"),
    ("[prices]\ninput = 2.5\noutput = 100\n", "[prices]\ncurrency = 'USD'\noutput = 100.00\ninput = 2.50"),
    ("[budget]\nseconds = 5", "[budget]\nseconds = 5.0\ntokens = 0"),
    ("[trust]\na = 'trusted'\nb = 'untrusted'", "[trust]\nb = 'untrusted'\na = 'trusted'"),
    ("[egress]\nallow = ['API.example.org', 'public']", "[egress]\nallow = ['public', 'api.example.org']"),
    (
        "[[approval]]\ntools = ['b', 'a']\napprovers = ['x', 'y']",
        "[[approval]]\ntools = ['a', 'b']\napprovers = ['y', 'x', 'x']",
    ),
    (f"[approver_keys]\na = '{KEY.hex}'", f"[approver_keys]\na = '{KEY.did_key}'"),
    (
        f"[approver_keys]\na = '{KEY.hex}'",
        f"[approver_keys]\na = '{KEY.to_openssh_public().decode().strip()} x'",
    ),
    (
        "[[approval]]\ntools = ['a']\n[[approval]]\ntools = ['b']\nexpires_seconds = 5",
        "[[approval]]\ntools = ['b']\nexpires_seconds = 5\n[[approval]]\ntools = ['a']\n[[approval]]\ntools = ['a']",
    ),
    (
        "[[agent]]\nname = 'b'\n[[agent]]\nname = 'a'\ntools = ['y', 'x']",
        "[[agent]]\nname = 'a'\ntools = ['x', 'y', 'x']\nmax_steps = 0\n[[agent]]\nname = 'b'\nsystem = ''",
    ),
    ("[delegation]", "[delegation]\ndepth = 2\nchildren = 16"),
    ("", "# nothing at all\n[budget]\ncost = -0.0"),
]
DIFFERENT = [
    "",
    "[grant]\ntools = ['a']",
    "[grant]\ntools = ['b']",
    "[budget]\nsteps = 1",
    "[budget]\ntokens = 1",
    "[budget]\nseconds = 1",
    "[budget]\nseconds = 1.5",
    "[prices]\ninput = 1\noutput = 1",
    "[prices]\ninput = 1\noutput = 1\ncurrency = 'EUR'",
    "[prices]\ninput = 1\noutput = 1\n[budget]\ncost = 1",
    "[trust]\na = 'untrusted'",
    "[[approval]]\ntools = ['a']",
    "[[approval]]\ntools = ['a']\nexpires_seconds = 1",
    "[[approval]]\ntools = ['a']\napprovers = ['x']",
    f"[[approval]]\ntools = ['a']\nsigned = true\n[approver_keys]\na = '{KEY.hex}'",
    f"[approver_keys]\na = '{KEY.hex}'",
    "[breakers]\nfailures = 1",
    "[breakers]\nrepeated_calls = 1",
    "[[check]]\nname = 'a'\ncommand = ['true']",
    "[[check]]\nname = 'a'\ncommand = ['true']\nidempotent = true",
    "[[check]]\nname = 'a'\ncommand = ['true', 'x']",
    "[[check]]\nname = 'a'\ncommand = ['true']\n[[check]]\nname = 'b'\ncommand = ['true']",
    "[[check]]\nname = 'b'\ncommand = ['true']\n[[check]]\nname = 'a'\ncommand = ['true']",
    "[egress]\nallow = ['public']",
    "[delegation]",
    "[delegation]\ndepth = 1",
    "[delegation]\nchildren = 1",
    "[[agent]]\nname = 'a'",
    "[[agent]]\nname = 'b'",
    "[[agent]]\nname = 'a'\ndescription = 'x'",
    "[[agent]]\nname = 'a'\nsystem = 'x'",
    "[[agent]]\nname = 'a'\ntools = []",
    "[[agent]]\nname = 'a'\ntools = ['x']",
    "[[agent]]\nname = 'a'\nmodel = 'x'",
    "[[agent]]\nname = 'a'\nmax_steps = 1",
]
# Taken from runs that were recorded before there was anything to say of handing work on.
EARLIER = {
    "": "a920a8d4f7d8d8b382c0fbfd89906624e2df64b8d30340bc0ed9984ad240be9a",
    (
        "[grant]\ntools = ['read_file', 'spawn']\n[budget]\nsteps = 9\n[[check]]\nname = 'a'\ncommand = ['true']\n"
        "[egress]\nallow = ['public']"
    ): "f6e2e5c80f8f11f8a64d3b865d2c279702cdba1283215dccb8f5da75fa4acc38",
}


def policy(text: str) -> Policy:
    """The policy that a file lays down."""
    return parse_policy(text.encode(), "policy.toml")


@pytest.mark.parametrize(("one", "other"), SAME)
def test_files_that_say_the_same_have_the_same_digest(one: str, other: str) -> None:
    """However they spell it, and in whatever order, where order means nothing."""
    assert policy(one).digest == policy(other).digest


def test_files_that_say_something_else_have_another_digest() -> None:
    """Every table counts, and so does the order of checks, since they run in it."""
    assert len({policy(text).digest for text in DIFFERENT}) == len(DIFFERENT)


def test_a_policy_that_says_nothing_of_handing_work_on_keeps_the_digest_that_it_had() -> None:
    """A run that began under it before there were such parts is resumed without a change to accept."""
    assert {text: policy(text).digest.hex() for text in EARLIER} == EARLIER


@given(
    micros=st.integers(0, 10**12),
    zeros=st.integers(0, 3),
)
def test_an_amount_of_money_is_one_amount_however_many_zeros_it_ends_with(micros: int, zeros: int) -> None:
    """And it is exactly the amount that was written."""
    exact = Decimal(micros) / 1_000_000
    text = f"{exact:.6f}"
    shorter = text.rstrip("0").ljust(min(len(text), text.index(".") + 2 + zeros), "0")
    prices = Prices(input=Decimal(1), output=Decimal(1))
    one, other = (Policy(prices=prices, budget=Budget(cost=Decimal(each))) for each in (text, shorter))
    assert one.digest == other.digest
    assert one.budget.cost == exact
