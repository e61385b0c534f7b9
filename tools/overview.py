"""What `affidavit` says of itself on one screen. Text alone: nothing is imported for it, and a test keeps it complete."""

from __future__ import annotations

import os
import sys
from typing import Final

OVERVIEW: Final = """\
affidavit runs an AI agent and keeps a signed record of everything that it did.

The agent's words, its tool calls and what it was refused are written down before anyone relies
on them, and sealed under your key at the end. Whoever has your public key can check the record
later, without you and without this machine: a changed, dropped or added event is found.

Begin here:
  affidavit demo                     the whole story in 15 seconds, offline, without any key
  affidavit run "..." --model local  a real run, live on this terminal

Runs:
  run OBJECTIVE      give an agent an objective, and watch it until it is done
  resume ID          go on with a run that was interrupted
  chat [ID]          talk with an agent, turn by turn
  say ID TEXT        go on with a run that has ended, by saying something more
  fork ID --at SEQ   begin a new run that goes on from a point of another
  sessions           list the runs of this store
  watch ID           follow a run that is going on in another terminal
  replay ID          show a run from its first event to its last, or up to one
  cancel ID          end a run for good, also one of another terminal
  approve ID CALL    decide about a call that waits for a person; without CALL, list them
  brake ID | --all   stop a run, or every run, from doing anything further
  policy check FILE  say in plain sentences what a policy lets a run do; policy new begins one

Evidence:
  seal ID            sign everything that a run has recorded so far
  export ID          write a run's sealed record to a file, to hand over
  inspect ID SEQ     show one event: its bytes, and its path to the signed root
  prove ID SEQ       write the proof of one single event, to hand over alone
  verify FILE        check a record or a proof; needs no store and no network
  keys new | show    make this store's signing key, or show its public half
  keys trust | revoke | list    keep the public keys that you trust, in a file of your own

Keeping it safe:
  fsck               check the whole store against its own seals
  store backup FILE  copy it into one file; store copy ID --to DIR carries runs over
  demo               explain all of this by doing it

ID is the id of a run, the beginning of one, or @last.
`affidavit COMMAND --help` tells more, with an example. `affidavit --version` names the version.
"""


def show() -> int:
    """Print it.

    Returns:
        The exit code: 0.
    """
    try:
        sys.stdout.write(OVERVIEW)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough; without this the interpreter would complain when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0
