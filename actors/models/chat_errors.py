"""Says in one sentence, with a fault class, why a call to an endpoint failed and what to do about it.

No sentence holds the key: a reply to a refused key is not quoted at all, and the key is struck out of
everything else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import httpx2

from affidavit.actors.errors import ModelError
from affidavit.actors.models.endpoint import KEY_VARIABLE, URL_VARIABLE, Endpoint

MAX_QUOTED: Final = 200
_BUSY_STATUSES: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY})


@dataclass(frozen=True, slots=True)
class _Verdict:
    code: str
    words: str
    fault: str = "terminal"
    quoted: bool = False


_UNAUTHORIZED: Final = _Verdict("unauthorized", f"refuses the key: check {KEY_VARIABLE}")
_KEYLESS: Final = _Verdict("unauthorized", f"wants a key: set {KEY_VARIABLE}")
_BUSY: Final = _Verdict("unavailable", "cannot answer now", "transient", quoted=True)
_REFUSED: Final = _Verdict("bad_request", "refuses the request", quoted=True)
_REDIRECTED: Final = _Verdict(
    "redirected", f"redirects elsewhere, which is not followed: set {URL_VARIABLE} to the final address"
)
_TOO_LONG: Final = _Verdict(
    "context_exceeded", "says that the conversation no longer fits the context of {model}", quoted=True
)
_BY_STATUS: Final[dict[int, _Verdict]] = {
    HTTPStatus.UNAUTHORIZED: _UNAUTHORIZED,
    HTTPStatus.FORBIDDEN: _Verdict("forbidden", "does not allow this key to use the model {model}"),
    HTTPStatus.NOT_FOUND: _Verdict(
        "model_not_found",
        f"has no model {{model}}, or {URL_VARIABLE} does not lead to an OpenAI-compatible service",
        quoted=True,
    ),
    HTTPStatus.TOO_MANY_REQUESTS: _Verdict("rate_limited", "is asked too often", "transient", quoted=True),
}
# Codes that say more than the status they come with.
_BY_CODE: Final = {
    "insufficient_quota": _Verdict("quota_exceeded", "says that the account's quota is used up"),
    "context_length_exceeded": _TOO_LONG,
    "exceed_context_size_error": _TOO_LONG,
}


def refused(endpoint: Endpoint, model: str, status: int, body: bytes) -> ModelError:
    """Return the error for a reply that is no success.

    Args:
        endpoint: Who replied.
        model: The model that was asked for.
        status: The HTTP status.
        body: The beginning of the reply.
    """
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
    return _classified(endpoint, model, status, error)


def reported(endpoint: Endpoint, model: str, error: object) -> ModelError:
    """Return the error for a failure that was reported in the middle of a stream."""
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and code >= HTTPStatus.BAD_REQUEST:
        return _classified(endpoint, model, code, error)
    if _codes(error) & _BY_CODE.keys():
        return _classified(endpoint, model, HTTPStatus.BAD_REQUEST, error)
    return ModelError(
        f"{endpoint.where} broke off its answer{_quoted(endpoint, error)}",
        fault="transient",
        code="broken_off",
    )


def unreachable(endpoint: Endpoint, error: httpx2.RequestError) -> ModelError:
    """Return the error for a request that got no whole reply."""
    where = endpoint.where
    if isinstance(error, httpx2.TimeoutException):
        return ModelError(f"{where} did not answer in time", fault="transient", code="timeout")
    if isinstance(error, httpx2.ConnectError):
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return ModelError(f"the certificate of {where} is not one this machine trusts", code="tls_failed")
        return ModelError(
            f"cannot connect to {where}: is it running, and is {URL_VARIABLE} right?",
            fault="transient",
            code="connect_failed",
        )
    if isinstance(error, httpx2.SSEError):
        return ModelError(f"{where} sent a part of its answer that is too large", code="reply_too_large")
    return ModelError(f"{where} broke the connection off", fault="transient", code="broken_off")


def _classified(endpoint: Endpoint, model: str, status: int, error: object) -> ModelError:
    verdict = _verdict(status, _codes(error))
    if verdict is _UNAUTHORIZED and not endpoint.key:
        verdict = _KEYLESS
    words = verdict.words.format(model=repr(model))
    said = _quoted(endpoint, error) if verdict.quoted else ""
    return ModelError(f"{endpoint.where} ({status}) {words}{said}", fault=verdict.fault, code=verdict.code)


def _verdict(status: int, codes: set[str]) -> _Verdict:
    by_status = _BY_STATUS.get(status)
    by_code = next((_BY_CODE[code] for code in sorted(codes & _BY_CODE.keys())), None)
    if status == HTTPStatus.TOO_MANY_REQUESTS or by_status is None:
        by_status = by_code or by_status
    if by_status is not None:
        return by_status
    if status in _BUSY_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _BUSY
    return _REDIRECTED if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST else _REFUSED


def _codes(error: object) -> set[str]:
    if not isinstance(error, dict):
        return set()
    return {value for key in ("code", "type") if isinstance(value := error.get(key), str)}


def _quoted(endpoint: Endpoint, error: object) -> str:
    words = error.get("message") if isinstance(error, dict) else error
    if not isinstance(words, str):
        return ""
    if endpoint.key:
        words = words.replace(endpoint.key, "***")
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in words).split())
    return f": {line[:MAX_QUOTED]}" if line else ""
