"""`verify` says who approved: by whose signature, with what the keyring knows of that key, or on the host's word."""

import json
from dataclasses import replace

from tests.crypto.test_approval_fold import (
    ADA,
    CONTRADICTIONS,
    STATEMENT,
    admitted,
    asked,
    decided,
    record,
    signature,
)
from tests.tools.test_verify import KEY_ARGUMENT, Command, command, no_keyring_from_outside

__all__ = ["command", "no_keyring_from_outside"]


def test_signed_and_unsigned_decisions_are_told_apart(command: Command) -> None:
    """In rows of their own, with the fingerprint; JSON has the same."""
    name = command.file(record(asked(), decided(statement=signature()), admitted()))
    assert command.run(KEY_ARGUMENT, name) == 0
    assert "  approvals    1 signed\n" in command.out
    assert "  signed by    ada, 1 of them; that key is in no keyring given\n" in command.out
    assert f"               {ADA.public.fingerprint}\n" in command.out
    assert command.run(KEY_ARGUMENT, "--key", f"ops={ADA.public.hex}", name) == 0
    assert "that key is in your keyring" in " ".join(command.out.split())
    command.run(KEY_ARGUMENT, "--json", name)
    shown = json.loads(command.out)["approvals"]
    assert (shown["signed"], shown["signers"][0]["principal"]) == (1, "ada")
    name = command.file(record(asked(), decided("refused"), asked(call=5), decided("expired", "", call=5)))
    assert command.run(KEY_ARGUMENT, name) == 0
    assert "  approvals    1 refused on the host's word, 1 expired undecided\n" in command.out
    name = command.file(record(asked(), decided("refused"), asked(call=5), decided(call=5)))
    assert command.run(KEY_ARGUMENT, name) == 0
    assert "  approvals    1 approved on the host's word, 1 refused on the host's word\n" in command.out
    command.run(KEY_ARGUMENT, "--json", name)
    shown = json.loads(command.out)["approvals"]
    assert (shown["unsigned"], shown["unsigned_approved"]) == (2, 1)


def test_a_name_from_the_record_cannot_steer_the_terminal(command: Command) -> None:
    """It is escaped and stays behind the margin."""
    wicked = "ada\x1b[2J\nVERIFIED"
    statement = signature(replace(STATEMENT, principal=wicked))
    command.run(KEY_ARGUMENT, command.file(record(asked(), decided(principal=wicked, statement=statement))))
    assert "\x1b" not in command.out
    assert not [line for line in command.out.splitlines()[1:] if line.startswith("VERIFIED")]


def test_a_forged_decision_is_rejected_at_l4(command: Command) -> None:
    """With the code of a bad signature, at its event; L1 and L2 are said to have passed."""
    assert command.run(KEY_ARGUMENT, command.file(record(*CONTRADICTIONS["another call"]))) == 1
    assert command.out.startswith("REJECTED  sign.signature_invalid")
    assert "  L2 ok" in command.out
    assert "  L4 FAILED" in command.out


def test_a_record_of_a_run_without_approvals_says_nothing_of_them(command: Command) -> None:
    """No row; in JSON all counts are zero."""
    name = command.file(record(admitted(None)))
    assert command.run(KEY_ARGUMENT, name) == 0
    assert "approvals" not in command.out
    command.run(KEY_ARGUMENT, "--json", name)
    assert json.loads(command.out)["approvals"]["approved"] == 0
