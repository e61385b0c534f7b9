"""Log lines: no secret that a run was given comes out in one, in its words, its arguments or its trace."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from affidavit.actors import host, stream
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.runtime import MissionExecutor
from affidavit.actors.secret_log import SecretFilter, keep_out_of_logs
from affidavit.actors.secrets import REMOVED, Secrets
from tests.actors.mission_kit import FreeModel

SECRET = "sk-Zq8-planted-in-logs"
SECRETS = Secrets(frozenset({SECRET}))


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What a host's own handler prints of all that the package logs."""
    text, logger = io.StringIO(), logging.getLogger("affidavit")
    handler = logging.StreamHandler(text)
    logger.addHandler(handler)
    yield text
    logger.removeHandler(handler)


def failed(logger: logging.Logger) -> None:
    """Log an exception that has the secret in its words and in those of its cause."""
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ValueError(f"no {SECRET}") from error
    except ValueError:
        logger.exception("it failed with %s", SECRET)


def test_the_loggers_of_the_runtime_hold_secrets_back(logged: io.StringIO) -> None:
    """From the moment that a run is configured with them: words, arguments, an exception and its cause."""
    model = FreeModel(lambda _: pytest.fail("not asked"))
    MissionExecutor(MissionConfig(model, secrets=SECRETS))
    failed(host.logger)
    said = logged.getvalue()
    assert said.startswith(f"it failed with {REMOVED}\nTraceback")
    assert f"ValueError: no {REMOVED}" in said
    assert "Zq8" not in said


def test_other_lines_pass_as_they_are() -> None:
    """Nothing is dropped, and a line without a secret keeps its arguments and its exception."""
    record = logging.LogRecord("affidavit.x", logging.INFO, "f", 1, "seq %d of %s", (7, "run"), None)
    assert SecretFilter(SECRETS).filter(record) is True
    assert (record.msg, record.args) == ("seq %d of %s", (7, "run"))


def test_two_runs_are_one_filter(logged: io.StringIO) -> None:
    """Secrets add up, and no logger scrubs twice."""
    logger = stream.logger
    keep_out_of_logs(SECRETS)
    before = len(logger.filters)
    keep_out_of_logs(Secrets(frozenset({"another-secret"})))
    assert len(logger.filters) == before == 1
    logger.warning("%s and another-secret", SECRET)
    assert logged.getvalue() == f"{REMOVED} and {REMOVED}\n"


@pytest.mark.parametrize("name", ["httpx2", "httpcore2.http11", "anthropic._base_client", "openai"])
def test_what_carries_the_requests_is_scrubbed_too(name: str) -> None:
    """Address, headers and body may hold a secret, and these packages log them where a program asks for every line."""
    text, logger = io.StringIO(), logging.getLogger(name)
    keep_out_of_logs(SECRETS)
    handler = logging.StreamHandler(text)
    logger.addHandler(handler)
    try:
        logger.warning("sent %r", {"x-key": SECRET})
    finally:
        logger.removeHandler(handler)
    assert text.getvalue() == f"sent {{'x-key': '{REMOVED}'}}\n"


def test_a_line_that_cannot_be_put_together_passes() -> None:
    """The filter raises nothing into the package that logs it."""
    record = logging.LogRecord("httpx2", logging.INFO, "f", 1, "%d", ("no number",), None)
    assert SecretFilter(SECRETS).filter(record) is True
