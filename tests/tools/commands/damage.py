"""Ways in which a store file comes to harm, each done to a store that nobody has open; all of them must be found."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path


def execute(path: Path, *statements: str) -> None:
    """Change a store behind the program's back."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def tidy(path: Path) -> None:
    """Bring everything into the one file."""
    execute(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _change(path: Path, at: int, new: bytes) -> None:
    data = bytearray(path.read_bytes())
    data[at : at + len(new)] = new
    path.write_bytes(data)


def text_bit(path: Path) -> None:
    """One bit of a sealed text: the row is still one canonical event, of the same length."""
    data = path.read_bytes()
    at = data.index(b"What is this?")
    _change(path, at, b"Vhat")


def head_bit(path: Path) -> None:
    """One bit of a row's first byte: it is no event any more."""
    data = path.read_bytes()
    at = data.index(b"session.started")
    start = data.rindex(b"cseq", 0, at) - 1
    _change(path, start, bytes([data[start] ^ 0x40]))


def lost_tail(path: Path) -> None:
    """The file is half as long."""
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def torn_page(path: Path) -> None:
    """The second half of the last page that was written never came to the disk."""
    data = path.read_bytes()
    path.write_bytes(data[:-2048] + bytes(2048))


def nuls(path: Path) -> None:
    """Two pages in the middle are NULs."""
    middle = path.stat().st_size // 8192 * 4096
    _change(path, middle, bytes(8192))


def row_gone(path: Path) -> None:
    """A row in the middle is gone."""
    execute(path, "DELETE FROM rows WHERE seq = 3 AND stream = 'converged-1'")


def last_row_gone(path: Path) -> None:
    """The last row is gone, and the index knows of it."""
    execute(
        path,
        "DELETE FROM rows WHERE stream = 'converged-1' AND seq = (SELECT max(seq) FROM rows WHERE stream = 'converged-1')",
    )


def rows_swapped(path: Path) -> None:
    """Two events have changed places."""
    execute(
        path,
        "UPDATE rows SET seq = seq + 1000000 WHERE stream = 'converged-1' AND seq IN (3, 4)",
        "UPDATE rows SET seq = 1000007 - seq WHERE seq > 1000000",
    )


def stranger(path: Path) -> None:
    """A row stands in a stream that the index does not know."""
    execute(
        path,
        "INSERT INTO rows SELECT 'stranger', seq, data FROM rows WHERE seq = 1 AND stream = 'converged-1'",
    )


def index_gone(path: Path) -> None:
    """The index has lost a line."""
    execute(path, "DELETE FROM streams WHERE stream = 'converged-1'")


def index_short(path: Path) -> None:
    """The index points before the end."""
    execute(path, "UPDATE streams SET tip = tip - 1 WHERE stream = 'converged-1'")


def index_long(path: Path) -> None:
    """The index points beyond the end."""
    execute(path, "UPDATE streams SET tip = tip + 1 WHERE stream = 'converged-1'")


def index_terminal(path: Path) -> None:
    """The index names another terminal event."""
    execute(path, "UPDATE streams SET terminal_seq = 0 WHERE stream = 'converged-1'")


def index_sealed(path: Path) -> None:
    """The index claims a seal over less."""
    execute(path, "UPDATE streams SET sealed_size = 1 WHERE stream = 'converged-1'")


DAMAGES: dict[Callable[[Path], None], str] = {
    text_bit: "seal",
    head_bit: "undecodable",
    lost_tail: "database",
    torn_page: "database",
    nuls: "database",
    row_gone: "missing",
    last_row_gone: "missing",
    rows_swapped: "misplaced",
    stranger: "index",
    index_gone: "index",
    index_short: "index",
    index_long: "missing",
    index_terminal: "index",
    index_sealed: "index",
}
