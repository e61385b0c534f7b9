"""The vendors' official clients as carriers: what they add to the promises of the wire contract, which runs over them as well."""

from __future__ import annotations

import logging
import sys

import pytest

from affidavit.actors.errors import ConfigurationError
from affidavit.actors.models.limits import CallLimits
from affidavit.actors.models.registry import open_model
from tests.actors.models.asking import ASK, KEY
from tests.actors.models.dialects import SDKS, Dialect
from tests.actors.models.endpoints import head, plain, serve

official = pytest.mark.parametrize("dialect", SDKS, ids=lambda dialect: dialect.provider)


def said(dialect: Dialect, words: str = "Hi") -> bytes:
    """An answer of a few words."""
    return "".join(dialect.events(words, ())).encode()


@official
async def test_the_official_client_carries_the_request_and_the_key_is_ours(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names itself in the head; of its own settings in the environment, no header, token or organisation goes out."""
    vendor = dialect.name.upper()
    monkeypatch.setenv(f"{vendor}_CUSTOM_HEADERS", "Authorization: Bearer planted-1\nX-Planted: planted-2")
    for name in (f"{vendor}_API_KEY", f"{vendor}_AUTH_TOKEN", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, "planted-3")
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "planted-4")
    async with serve([head(), said(dialect)]) as endpoint, dialect.opened(endpoint.url) as model:
        assert (await model.generate(ASK)).text == "Hi"
    (sent,) = endpoint.heads
    assert "x-stainless-lang: python" in sent.lower()
    assert "planted" not in sent
    assert sent.count(KEY) == 1
    assert f"{'Authorization: Bearer' if vendor == 'OPENAI' else 'x-api-key:'} {KEY}" in sent


@official
async def test_the_body_is_the_very_body_of_the_other_way(dialect: Dialect) -> None:
    """The bytes that are asked with do not depend on who carries them."""
    async with serve([head(), said(dialect)]) as endpoint:
        async with dialect.opened(endpoint.url) as model:
            await model.generate(ASK)
        async with dialect.plainly.opened(endpoint.url) as model:
            await model.generate(ASK)
    assert endpoint.bodies[0] == endpoint.bodies[1] != b""


@official
async def test_without_a_key_none_is_sent(dialect: Dialect) -> None:
    """An endpoint on loopback that wants no key gets no header for one, and no stand-in."""
    async with (
        serve([head(), said(dialect)]) as endpoint,
        dialect.opened(endpoint.url, api_key="") as model,
    ):
        await model.generate(ASK)
    assert "authorization" not in endpoint.heads[0].lower()
    assert "x-api-key" not in endpoint.heads[0].lower()


@official
async def test_the_official_client_tries_nothing_again(dialect: Dialect) -> None:
    """Not even where the answer asks for it: one call stands for one request."""
    busy = plain("503 Service Unavailable", b"{}", headers="x-should-retry: true\r\nRetry-After: 0\r\n")
    async with serve(busy) as endpoint, dialect.opened(endpoint.url) as model:
        with pytest.raises(Exception, match="cannot answer now"):
            await model.generate(ASK)
    assert len(endpoint.requests) == 1


@official
@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b'{"error": {"message": "so it is", "type": "x"}}', ""),
        (b"[" * 900, ""),
        (b"\xff\xfe\x00", "Content-Encoding: gzip\r\n"),
        (b"", ""),
    ],
    ids=["words", "nested", "badly packed", "empty"],
)
async def test_whatever_a_refusal_holds_it_is_our_sentence(
    dialect: Dialect, body: bytes, headers: str
) -> None:
    """The official client's own errors come out of no call, whatever it makes of the body."""
    async with (
        serve(plain("400 Bad Request", body, headers=headers)) as endpoint,
        dialect.opened(endpoint.url, CallLimits(error_bytes=1000)) as model,
    ):
        with pytest.raises(Exception, match=r"\(400\) refuses the request") as caught:
            await model.generate(ASK)
    assert type(caught.value).__name__ == "ModelError"
    assert ("so it is" in str(caught.value)) == (b"so it is" in body)


@official
async def test_what_the_official_client_logs_holds_no_key(
    dialect: Dialect, caplog: pytest.LogCaptureFixture
) -> None:
    """It logs the headers that it is asked to send, and is asked to send no key."""
    caplog.set_level(logging.DEBUG)
    async with serve([head(), said(dialect)]) as endpoint, dialect.opened(endpoint.url) as model:
        await model.generate(ASK)
    assert any(record.name.startswith(dialect.name) for record in caplog.records)
    assert KEY not in caplog.text


@official
async def test_outside_of_any_run_there_is_no_way_out(dialect: Dialect) -> None:
    """The client that an official one is handed asks the guard of a run, and without a run it says so as itself."""
    async with (
        serve([head(), said(dialect)]) as endpoint,
        dialect.open("m", base_url=endpoint.url, api_key=KEY) as model,
    ):
        with pytest.raises(RuntimeError, match="run"):
            await model.generate(ASK)
    assert endpoint.connections == 0


@pytest.mark.parametrize(
    ("spec", "package", "words"),
    [
        ("openai-sdk:m", "openai", "OpenAI's"),
        ("anthropic-sdk:m", "anthropic", "Anthropic's"),
    ],
)
async def test_a_missing_official_client_is_said_with_the_command(
    spec: str, package: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence, with what to install."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigurationError) as caught:
        async with open_model(spec):
            pass
    assert (
        str(caught.value) == f"{words} official client is not installed: pip install 'affidavit[{package}]'"
    )


@official
async def test_an_official_client_of_another_age_is_said_with_the_command(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not take our HTTP client, as the older ones, is one sentence and no trace."""

    def refuse(**_: object) -> None:
        raise TypeError("Invalid `http_client` argument")

    name = "AsyncOpenAI" if dialect.name == "openai" else "AsyncAnthropic"
    monkeypatch.setattr(f"{dialect.name}.{name}", refuse)
    with pytest.raises(ConfigurationError, match=r"cannot be used: pip install --upgrade 'affidavit\["):
        async with dialect.opened("http://127.0.0.1:9"):
            pass


@official
async def test_an_official_clients_model_is_opened_by_its_name(
    dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name says which way it is asked, and so does its digest: the two ways are two models."""
    monkeypatch.setenv(f"{dialect.name.upper()}_API_KEY", KEY)
    spec = f"{dialect.provider}:m?temperature=0.5"
    async with open_model(spec) as model, open_model(spec.replace("-sdk", "")) as other:
        assert model.name == spec
        assert model.digest != other.digest
    with pytest.raises(ConfigurationError, match=f"write {dialect.provider}:NAME"):
        async with open_model(f"{dialect.provider}:?temperature=0.5"):
            pass
