"""A writing connection whose statements fail, or stand still, as a test says; everything else is the real one's."""

from __future__ import annotations

import sqlite3
import threading
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from affidavit.actors.logs import sqlite_connect


class How(Enum):
    """When a failing statement fails: an error does not tell whether the work was done."""

    BEFORE = "failed and not written"
    AFTER = "failed and written"


class Plan:
    """What the next statements of the writing connections do.

    Attributes:
        entered: Set when a held statement has been reached.
        release: Set by the test to let it go on.
        fired: Whether the statement that `fail_number` named was reached.
    """

    def __init__(self) -> None:
        self._failures: dict[str, tuple[int, How]] = {}
        self._held = ""
        self._always = False
        self.entered = threading.Event()
        self.release = threading.Event()
        self.commits = 0
        self.fired = False
        self._count = 0
        self._number: tuple[int, int, How] | None = None

    def fail(self, start: str, code: int, how: How = How.BEFORE, *, always: bool = False) -> None:
        """Fail the next statement that begins so, or all of them, with this SQLite result code."""
        self._failures[start] = (code, how)
        self._always = always

    def fail_number(self, number: int, code: int, how: How) -> None:
        """Fail the statement that comes as the n-th from now on, whichever it is; with 0, none."""
        self._count, self._number, self.fired = 0, (number, code, how), False

    def hold(self, start: str) -> None:
        """Make the next statement that begins so wait for `release`."""
        self._held = start

    def run(self, connection: sqlite3.Connection, method: str, query: str, *values: Any) -> sqlite3.Cursor:
        """Run a statement on the real connection, or what was planned instead."""
        if self._held and query.startswith(self._held):
            self._held = ""
            self.entered.set()
            assert self.release.wait(60), "the test never released the statement it held"
        self._count += 1
        if self._number is not None and self._count == self._number[0]:
            _, code, how = self._number
            self.fail(query, code, how)
            self.fired = True
        planned = next((start for start in self._failures if query.startswith(start)), None)
        code, how = self._failures[planned] if planned else (0, How.BEFORE)
        if planned and not self._always:
            del self._failures[planned]
        if planned and how is How.BEFORE:
            raise _error(code)
        cursor: sqlite3.Cursor = getattr(connection, method)(query, *values)
        self.commits += query == "COMMIT"
        if planned:
            # Nobody will read what it gives, and an open cursor would keep its lock.
            cursor.close()
            raise _error(code)
        return cursor


class FaultyConnection:
    """Stands before a real connection and asks the plan about every statement."""

    def __init__(self, connection: sqlite3.Connection, plan: Plan) -> None:
        self._connection = connection
        self._plan = plan

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, query: str, *values: Any) -> sqlite3.Cursor:
        return self._plan.run(self._connection, "execute", query, *values)

    def executemany(self, query: str, *values: Any) -> sqlite3.Cursor:
        return self._plan.run(self._connection, "executemany", query, *values)


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A plan that all writing connections opened in this test follow."""
    made = Plan()
    real = sqlite_connect.connect

    def connect(store: Path, query: str) -> Any:
        connection = real(store, query)
        return FaultyConnection(connection, made) if query == "mode=rw" else connection

    monkeypatch.setattr(sqlite_connect, "connect", connect)
    return made


def _error(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("failed by the test")
    error.sqlite_errorcode = code
    return error
