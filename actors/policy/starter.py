"""The file that an operator begins a policy with: every table, each line explained. As it stands it allows next to nothing."""

from __future__ import annotations

from typing import Final

STARTER: Final = """\
# A policy for `affidavit run --policy FILE`. It can only take away: a run gets what is granted here and asked for there.
# `affidavit policy check FILE` says in plain sentences what it comes to.

[grant]
# Which tools may be used. A call of any other is refused, on the record.
tools = ["list_dir", "read_file", "search_text"]

[budget]
# For the whole run, all its goals together; leave one out for no limit.
steps = 40                # model turns
tokens = 200_000          # in and out together
# cost = 2.50             # in the currency of [prices]
# seconds = 1800          # of work; waiting for a person costs none

# [prices]                # what a million tokens cost
# currency = "USD"
# input = 3.00
# output = 15.00
# cache_read = 0.30       # else as other input
# cache_write = 3.75      # else as other input

# [trust]                 # tools that are to be trusted less than they say; the less, the stronger they must be contained
# run_command = "semi-trusted"

# [[approval]]            # calls that need a person; may stand there several times
# tools = ["pay", "send_*"]
# expires_seconds = 86400
# approvers = ["ann"]     # else anyone who may write the store
# signed = true           # with the approver's own key

# [approver_keys]         # Ed25519: 64 hexadecimal digits, a did:key, or an OpenSSH line
# ann = "did:key:z6Mk..."

[breakers]
# What stops a run without anybody asking.
repeated_calls = 5        # the same tool with the same arguments
failures = 8              # so many failures
of = 10                   # among so many last tool calls

# [[check]]               # a command whose success backs the run's; may stand there several times
# name = "tests"
# command = ["python", "-m", "pytest", "-q"]
# seconds = 300
# idempotent = true       # run it again if it was interrupted

# [delegation]            # for a run that is granted the tool `spawn`: how far it may hand work to goals of its own
# depth = 2               # goals below one another; 1 keeps a child from handing work on
# children = 16           # goals that one goal may hand work to

# [[agent]]               # a kind of agent that work may be handed to; may stand there several times
# name = "reader"
# description = "Reads files and answers questions about them."
# system = "You read, and answer from what you read."
# tools = ["read_file"]   # of those that the goal above has; else all of these
# model = "local"         # as for --model; else that of the goal above
# max_steps = 8

# [egress]                # where the run may connect; nowhere by default
# allow = ["api.example.org:443"]
"""
