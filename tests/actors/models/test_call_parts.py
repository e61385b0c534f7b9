"""The small parts of a call: limits, parameters, waits, and where the key comes from."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.endpoint import ANTHROPIC, OPENAI, Vendor, read_endpoint
from affidavit.actors.models.limits import CallLimits
from affidavit.actors.models.parameters import Parameters, split_name
from affidavit.actors.models.retry_after import MAX_SECONDS, retry_after
from affidavit.actors.models.sse import EventReader, EventTooLarge, ServerEvent


@pytest.mark.parametrize("name", ["connect_seconds", "gap_seconds", "event_bytes"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_limit_is_above_zero(name: str, value: float) -> None:
    """A call without time or room is a mistake of whoever configured it."""
    with pytest.raises(ValueError, match=name):
        CallLimits(**{name: value})  # type: ignore[arg-type]


def test_parameters_stand_behind_the_name() -> None:
    """One spelling for one number, text for decimals, and nothing for what was not chosen."""
    name, chosen = split_name("vendor/m:tag?temperature=0.50&top_p=1.0&seed=7&max_output_tokens=20")
    assert name == "vendor/m:tag"
    assert chosen.chosen() == {"temperature": "0.5", "top_p": "1", "seed": 7, "max_output_tokens": 20}
    assert chosen.sampling() == {"temperature": 0.5, "top_p": 1.0}
    assert split_name("m") == ("m", Parameters())
    assert split_name("m?thinking=adaptive")[1].chosen() == {"thinking": "adaptive"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "look like"),
        ("temperature", "look like"),
        ("temperature=", "a number from 0 to 2"),
        ("temperature=2.1", "a number from 0 to 2"),
        ("temperature=nan", "a number from 0 to 2"),
        ("temperature=1&temperature=1", "given twice"),
        ("seed=-1", "a whole number from 0"),
        ("seed=1.5", "a whole number from 0"),
        ("seed=99999999999999999999", "a whole number from 0"),
        ("max_output_tokens=0", "a whole number from 1"),
        ("thinking=100", "a whole number from 1024"),
        ("stop=x", "no parameter 'stop'"),
    ],
)
def test_a_parameter_that_is_none_is_one_sentence(query: str, said: str) -> None:
    """Unknown, doubled, misspelt or out of range: told when the model is opened."""
    with pytest.raises(ConfigurationError, match=said):
        split_name(f"m?{query}")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "999999999"}, MAX_SECONDS),
        ({"retry-after": "99999999999999"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Mon, 30 Nov 2026 10:00:10 GMT", "date": "Mon, 30 Nov 2026 10:00:00 GMT"}, 10.0),
        ({"retry-after": "Mon, 30 Nov 2026 09:00:00 GMT", "date": "Mon, 30 Nov 2026 10:00:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 30 Nov 1970 10:00:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 99 Nov 2026 10:00:00 GMT"}, None),
    ],
    ids=str,
)
def test_a_wait_is_read_from_seconds_milliseconds_or_a_date(
    headers: dict[str, str], seconds: float | None
) -> None:
    """Whatever else stands there says nothing, and nothing asks for more than a day."""
    assert retry_after(httpx2.Headers(headers)) == seconds


@pytest.fixture(params=[OPENAI, ANTHROPIC], ids=lambda vendor: vendor.provider)
def vendor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Vendor:
    """Each vendor, with nothing set in the environment."""
    chosen: Vendor = request.param
    for name in (chosen.url_variable, chosen.key_variable, chosen.file_variable, chosen.keyring_variable):
        monkeypatch.delenv(name, raising=False)
    return chosen


def test_the_key_may_stand_in_a_file(vendor: Vendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's content is the key, without the line break at its end; two sources are a mistake."""
    path = tmp_path / "key"
    path.write_text("sk-of-a-file\n")
    monkeypatch.setenv(vendor.file_variable, str(path))
    endpoint = read_endpoint(vendor)
    assert endpoint.key == "sk-of-a-file"
    assert endpoint.is_vendor
    assert "sk-of-a-file" not in repr(endpoint)
    monkeypatch.setenv(vendor.key_variable, "another")
    with pytest.raises(ConfigurationError, match="both set"):
        read_endpoint(vendor)


def test_a_key_file_that_cannot_be_read_is_one_sentence(
    vendor: Vendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Absent, or with more than one line: said without a word of its content."""
    path = tmp_path / "key"
    monkeypatch.setenv(vendor.file_variable, str(path))
    with pytest.raises(ConfigurationError, match=f"{vendor.file_variable}.*cannot be read"):
        read_endpoint(vendor)
    path.write_text("two\nlines\n")
    with pytest.raises(ConfigurationError, match="characters that no key has") as caught:
        read_endpoint(vendor)
    assert "two" not in str(caught.value)


def test_an_event_is_bounded_and_the_next_one_has_the_whole_bound_again() -> None:
    """Many small events pass where one large one does not; comments within an event count to it."""
    reader = EventReader(20)
    assert len(reader.feed(b"data: 0123456789\n\n" * 50)) == 50
    for large in (b"data: " + b"x" * 20, b":" + b"x" * 20, b"data: 1\n" * 3, b"data: 1\n:234567890123456"):
        with pytest.raises(EventTooLarge):
            EventReader(20).feed(large)


def test_only_data_makes_an_event() -> None:
    """Fields without a colon have an empty value, one space is taken off, and an event without data is none."""
    fed = b"event: x\n\ndata\n\ndata:  two\ndata: lines\nevent:named\nother: 1\n\n"
    assert EventReader(100).feed(fed) == [ServerEvent("", ""), ServerEvent("named", " two\nlines")]
