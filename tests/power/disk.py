"""A disk that loses power: what may be on it after any step of a trace, and one such state chosen by chance.

What was synced is there. Of what was not, any part may be: each write whole, not at all, or up to some sector of 512 bytes, in
any order; a lengthened file may hold NULs. A new name, or the taking away of one, is sure once its folder was synced.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from tests.power.trace import Created, Cut, Gone, Step, SyncBegan, SyncEnded, Write

SECTOR = 512


@dataclass(slots=True)
class _File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, Write | Cut]] = field(default_factory=list)
    named: bool = False  # whether its name is surely there
    gone: bool = False  # whether its name was taken away


class Disk:
    """The files of one folder, step by step."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._files: dict[str, _File] = {}
        self._began: dict[int, int] = {}
        self._count = 0

    def apply(self, step: Step) -> None:
        """Take the next step."""
        self._count += 1
        match step:
            case Created(path):
                self._files[path] = _File()
            case Write(path) | Cut(path):
                self._files[path].pending.append((self._count, step))
            case SyncBegan(path, number):
                self._began[number] = self._count
            case SyncEnded(path, number) if path == self._folder:
                self._sync_names()
            case SyncEnded(path, number):
                self._sync(self._files[path], self._began.pop(number))
            case Gone(path):
                self._files[path].gone = True
            case _:
                pass

    def _sync(self, file: _File, began: int) -> None:
        for _, change in (each for each in file.pending if each[0] <= began):
            _apply(file.durable, change, None)
        file.pending = [each for each in file.pending if each[0] > began]

    def _sync_names(self) -> None:
        for path in [path for path, file in self._files.items() if file.gone]:
            del self._files[path]
        for file in self._files.values():
            file.named = True

    def lose_power(self, chance: random.Random, target: Path) -> None:
        """Write one state that may be left into another folder."""
        # Often all or nothing of a kind, since those are the extremes.
        share = chance.choice((0.0, 0.0, 0.5, 0.9, 1.0))
        keep = chance.choice((0.0, 0.5, 1.0))
        for path, file in self._files.items():
            if (file.gone and chance.random() >= keep) or (not file.named and chance.random() >= keep):
                continue
            data = bytearray(file.durable)
            for _, change in file.pending:
                if chance.random() < share:
                    _apply(data, change, chance if chance.random() < 0.1 else None)
            target.joinpath(Path(path).name).write_bytes(data)


def _apply(data: bytearray, change: Write | Cut, torn: random.Random | None) -> None:
    if isinstance(change, Cut):
        del data[change.size :]
        data.extend(bytes(change.size - len(data)))
        return
    new = change.data
    if torn is not None:
        # Sectors are those of the disk, not of the write.
        end = torn.randrange(change.at // SECTOR, (change.at + len(new)) // SECTOR + 1) * SECTOR
        new = new[: max(end - change.at, 0)]
    data.extend(bytes(max(change.at + len(new) - len(data), 0)))
    data[change.at : change.at + len(new)] = new
