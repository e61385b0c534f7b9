"""Reading a policy file: a mistake is one sentence that names the place, and repeats no text that may be secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.policy.load import MAX_POLICY_BYTES, load_policy, parse_policy
from affidavit.actors.policy.model import Delegation, Policy
from affidavit.actors.policy.starter import STARTER
from affidavit.crypto import SigningKey

KEY = SigningKey.from_seed(bytes(32)).public

MISTAKES = {
    "[budget]\ntokens = -1": "budget.tokens must be at least 0, not -1",
    "[budget]\ntokens = true": "budget.tokens must be a number, not true",
    '[budget]\ntokens = "3"': "budget.tokens must be a number",
    "[budget]\ntokens = 1.5": "budget.tokens must be a whole number, not 1.5",
    "[budget]\ntokens = 1979-05-27": "budget.tokens must be a whole number",
    "[budget]\ntokens = 99999999999999999999": "budget.tokens must be at most 9007199254740992, not 99999999999999999999",
    "[budget]\ncost = 1": "budget.cost needs [prices]: without them nobody knows what a call costs",
    "[budget]\ncost = nan": "budget.cost must be a finite number, not NaN",
    "[budget]\nseconds = inf": "budget.seconds must be at most 31622400, not Infinity",
    "[prices]\ninput = 0.0000001\noutput = 1": "prices.input must have at most 6 decimal places, not 1E-7",
    "[prices]\noutput = 1": "prices.input is missing",
    "[budgit]\ntokens = 1": "budgit is not known; did you mean 'budget'?",
    "[budget]\ntokns = 1": "budget.tokns is not known; did you mean 'tokens'?",
    "[prices]\ninput = 1\noutput = 1\nyen = 1": (
        "prices.yen is not known; there are currency, input, output, cache_read, cache_write"
    ),
    "[[approval]]\ntols = ['x']": "approval[1].tols is not known; did you mean 'tools'? (and 1 more mistake)",
    "[grant]\ntools = 'read_file'": "grant.tools must be a list in square brackets",
    "[grant]\ntools = ['a', 'read*']": (
        "grant.tools[2] must be a tool's name: 1 to 64 letters, digits, '_' or '-'"
    ),
    "grant = 3": "grant must be a table, not 3",
    "[trust]\npay = 'high'": "trust.pay must be 'trusted', 'semi-trusted' or 'untrusted'",
    "[trust]\n'a b' = 'trusted'": "trust.a b must be a tool's name: 1 to 64 letters, digits, '_' or '-'",
    "[[approval]]\ntools = []": "approval[1].tools must name at least one",
    "[[approval]]\ntools = ['a']\n[[approval]]\ntools = ['a*b']": (
        "approval[2].tools[1] must be a tool's name (letters, digits, '_', '-'), or the beginning of some followed by '*'"
    ),
    "[[approval]]\ntools = ['a']\nsigned = 1": "approval[1].signed must be true or false, not 1",
    "[[approval]]\ntools = ['a']\nexpires_seconds = 0": "approval[1].expires_seconds must be at least 1, not 0",
    "[[approval]]\ntools = ['a']\nsigned = true": "an approval is to be signed, and [approver_keys] holds nobody's key",
    "[[approval]]\ntools = ['a']\nsigned = true\napprovers = ['ann']": (
        "an approval is to be signed, and [approver_keys] holds no key of 'ann'"
    ),
    "[approver_keys]\nann = 'zz'": (
        "approver_keys.ann is no Ed25519 public key: a public key in hexadecimal has 64 digits"
    ),
    "[breakers]\nfailures = 3\nof = 2": "breakers.failures cannot be 3 of 2 calls (breakers.of)",
    "[breakers]\nof = 65": "breakers.of must be at most 64, not 65",
    "[check]\nname = 'a'": "check must be a list of tables, each under [[check]]",
    "[[check]]\nname = 'a'": "check[1].command is missing",
    "[[check]]\nname = '-'\ncommand = ['true']": (
        "check[1].name must be 1 to 64 letters, digits, spaces, '_', '.' or '-', and begin with a letter or a digit"
    ),
    "[[check]]\nname = 'a'\ncommand = ['true', '']": "check[1].command[2] must not be empty",
    "[[check]]\nname = 'a'\ncommand = [\"\\u0000\"]": "check[1].command[1] must hold no NUL character",
    "[[check]]\nname = 'a'\ncommand = ['true']\n[[check]]\nname = 'a'\ncommand = ['true']": (
        "two checks have the same name"
    ),
    "[egress]\nallow = ['public', '10.0.0.1/8']": "egress.allow[2] is no egress rule: it is no range of addresses",
    "[agent]\nname = 'a'": "agent must be a list of tables, each under [[agent]]",
    "[[agent]]\nsystem = 'x'": "agent[1].name is missing",
    "[[agent]]\nname = 'a'\nmodell = 'x'": "agent[1].modell is not known; did you mean 'model'?",
    "[[agent]]\nname = 'a'\n[[agent]]\nname = 'a'": "two agents have the same name",
    "[[agent]]\nname = 'a'\n[[agent]]\nname = 'b!'": (
        "agent[2].name must be 1 to 64 letters, digits, spaces, '_', '.' or '-', and begin with a letter or a digit"
    ),
    "[[agent]]\nname = 'a'\ntools = ['x', 'x*']": (
        "agent[1].tools[2] must be a tool's name: 1 to 64 letters, digits, '_' or '-'"
    ),
    "[[agent]]\nname = 'a'\nmodel = ''": "agent[1].model must not be empty",
    "[[agent]]\nname = 'a'\nsystem = \"\\u0000\"": "agent[1].system must hold no NUL character",
    "[[agent]]\nname = 'a'\nmax_steps = -1": "agent[1].max_steps must be at least 0, not -1",
    "[delegation]\ndepth = 0": "delegation.depth must be at least 1, not 0",
    "[delegation]\ndepth = 9": "delegation.depth must be at most 8, not 9",
    "[delegation]\nchildren = 1001": "delegation.children must be at most 1000, not 1001",
    "[delegation]\nchilds = 1": "delegation.childs is not known; did you mean 'children'?",
    "a = [": "this is not TOML: invalid value (at end of document)",
    "a = 1\na = 2": "this is not TOML: cannot overwrite a value (at end of document)",
    "a = " + "[" * 5000: "this is not TOML that anybody would write by hand",
    "a." * 100 + "b = 1": "this is not TOML that anybody would write by hand",
    "a = " + "9" * 5000: "this is not TOML that anybody would write by hand",
}


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text.replace("\n", " ")[:50])
def test_a_mistake_is_one_sentence(text: str) -> None:
    """It names the file, the place, what is asked for, and the number that stands there instead."""
    with pytest.raises(ConfigurationError) as caught:
        parse_policy(text.encode(), "policy.toml")
    assert str(caught.value) == f"policy.toml: {MISTAKES[text]}"


@pytest.mark.parametrize(
    "text",
    [
        "[approver_keys]\nann = 'hunter2'",
        "[approver_keys]\nann = '-----BEGIN OPENSSH PRIVATE KEY-----hunter2'",
        "[egress]\nallow = ['http://ann:hunter2@example.org']",
        "[budget]\ntokens = 'hunter2'",
        "[grant]\ntools = ['hunter2!']",
        "[trust]\npay = 'hunter2'",
        "[prices]\ncurrency = ['hunter2']\ninput = 1\noutput = 1",
        "password = hunter2",
    ],
)
def test_a_text_in_the_wrong_place_is_not_repeated(text: str) -> None:
    """It may be a password or a private key."""
    with pytest.raises(ConfigurationError) as caught:
        parse_policy(text.encode(), "policy.toml")
    assert "hunter2" not in str(caught.value)


def test_what_is_no_file_to_read_is_said(tmp_path: Path) -> None:
    """Absent, a folder, a pipe that nobody writes to, too large, and no text."""
    pipe, large, binary = tmp_path / "pipe", tmp_path / "large.toml", tmp_path / "binary.toml"
    os.mkfifo(pipe)
    large.write_bytes(b"#" * (MAX_POLICY_BYTES + 1))
    binary.write_bytes(b"\xff")
    said = {}
    for path in (tmp_path / "none.toml", tmp_path, pipe, large, binary):
        with pytest.raises(ConfigurationError) as caught:
            load_policy(path)
        said[path.name] = str(caught.value).replace(str(path), path.name)
    assert said == {
        "none.toml": "the policy none.toml cannot be read: No such file or directory",
        tmp_path.name: f"the policy {tmp_path.name} is not a file",
        "pipe": "the policy pipe is not a file",
        "large.toml": f"the policy large.toml is larger than {MAX_POLICY_BYTES} bytes",
        "binary.toml": "binary.toml: this is not a text in UTF-8",
    }


def test_an_empty_file_allows_nothing() -> None:
    """It is the default: no tool, no limit, no address."""
    assert parse_policy(b"", "policy.toml") == Policy()


def test_the_starting_file_is_a_policy_and_so_is_all_that_it_holds_in_reserve() -> None:
    """Each line that is commented out is one that works."""
    assert parse_policy(STARTER.encode(), "new").grant.tools == ("list_dir", "read_file", "search_text")
    head, *lines = STARTER.replace("did:key:z6Mk...", KEY.did_key).splitlines()
    whole = "\n".join(
        line.removeprefix("# ") if line.startswith("# [") or " = " in line else line
        for line in [head, *lines]
    )
    policy = parse_policy(whole.encode(), "new")
    assert policy.budget.cost
    assert policy.prices
    assert policy.approval[0].signed
    assert policy.approver_keys == {"ann": KEY.hex}
    assert policy.check[0].idempotent
    assert policy.egress.allow == ("api.example.org:443",)
    assert policy.trust == {"run_command": "semi-trusted"}
    assert policy.delegation == Delegation()
    assert [(agent.name, agent.tools, agent.max_steps) for agent in policy.agent] == [
        ("reader", ("read_file",), 8)
    ]


@given(
    st.text(max_size=60)
    | st.lists(st.sampled_from(["[budget]", "tokens", "=", "1", "\n", "[[", "]]", "check", "'"])).map("".join)
)
def test_any_text_is_a_policy_or_one_sentence(text: str) -> None:
    """Nothing else comes out, however broken the text is."""
    data, said = text.encode("utf-8", "surrogatepass"), "policy.toml: "
    try:
        parse_policy(data, "policy.toml")
    except ConfigurationError as error:
        said = str(error)
    assert said.startswith("policy.toml: ")


def test_many_rules_on_one_line_are_no_key_of_many_parts() -> None:
    """Dots within quotes are none of a key's."""
    text = f"[egress]\nallow = [{', '.join(repr(f'10.0.0.{number}') for number in range(100))}]"
    assert len(parse_policy(text.encode(), "policy.toml").egress.allow) == 100
