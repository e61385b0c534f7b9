"""Evidence handed over: whole, or not at all, to a file and to standard output alike."""

from contextlib import suppress
from pathlib import Path

import pytest

from affidavit.tools.artifact import handing_over
from tests.tools.test_atomic import names


class Damaged(Exception):
    """What is found out only at the end."""


@pytest.mark.parametrize("size", [0, 3, 1 << 19])
async def test_what_was_written_is_handed_over(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], size: int
) -> None:
    """Byte for byte, also where it is longer than a block."""
    content = bytes(range(256)) * (size // 256 + 1)
    for target in ("-", str(tmp_path / "record")):
        async with handing_over(target, force=False) as file:
            file.write(content)
    assert (tmp_path / "record").read_bytes() == content
    assert capfdbinary.readouterr().out == content


async def test_after_an_error_nothing_is(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """Neither a file nor a byte on standard output, though much was written before."""
    for target in ("-", str(tmp_path / "record")):
        with suppress(Damaged):
            async with handing_over(target, force=False) as file:
                file.write(b"x" * (1 << 20))
                raise Damaged
    assert names(tmp_path) == []
    assert capfdbinary.readouterr().out == b""
