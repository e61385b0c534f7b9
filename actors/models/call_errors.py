"""Says in one sentence, with a fault class, why a call to an endpoint failed and what to do about it.

No sentence holds the key: a reply to a refused key is not quoted at all, and the key is struck out of
everything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import httpx2

from affidavit.actors.errors import ModelError
from affidavit.actors.models.endpoint import Endpoint
from affidavit.actors.models.retry_after import retry_after

MAX_QUOTED: Final = 200
# Without a name in the standard library: the vendor's own word for being overloaded.
_OVERLOADED_STATUS: Final = 529
_BUSY_STATUSES: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY})


Scrub = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class _Said:
    """An error as the endpoint sent it, and what takes secrets out of its words."""

    error: object
    scrub: Scrub


@dataclass(frozen=True, slots=True)
class _Verdict:
    code: str
    words: str
    fault: str = "terminal"
    quoted: bool = False


_UNAUTHORIZED: Final = _Verdict("unauthorized", "refuses the key: check {key}")
_KEYLESS: Final = _Verdict("unauthorized", "wants a key: set {key}")
_BUSY: Final = _Verdict("unavailable", "cannot answer now", "transient", quoted=True)
_OVERLOADED: Final = _Verdict("overloaded", "is overloaded", "transient", quoted=True)
_REFUSED: Final = _Verdict("bad_request", "refuses the request", quoted=True)
_REDIRECTED: Final = _Verdict(
    "redirected", "redirects elsewhere, which is not followed: set {url} to the final address"
)
_TOO_LONG: Final = _Verdict(
    "context_exceeded", "says that the conversation no longer fits the context of {model}", quoted=True
)
_USED_UP: Final = _Verdict("quota_exceeded", "says that the account's quota is used up")
_BY_STATUS: Final[dict[int, _Verdict]] = {
    HTTPStatus.UNAUTHORIZED: _UNAUTHORIZED,
    HTTPStatus.PAYMENT_REQUIRED: _USED_UP,
    HTTPStatus.FORBIDDEN: _Verdict("forbidden", "does not allow this key to use the model {model}"),
    HTTPStatus.NOT_FOUND: _Verdict(
        "model_not_found", "has no model {model}, or {url} does not lead to {format} service", quoted=True
    ),
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: _Verdict("request_too_large", "says that the request is too large"),
    HTTPStatus.TOO_MANY_REQUESTS: _Verdict("rate_limited", "is asked too often", "transient", quoted=True),
    _OVERLOADED_STATUS: _OVERLOADED,
}
# Codes that say more than the status they come with.
_BY_CODE: Final = {
    "insufficient_quota": _USED_UP,
    "enforced_spend_limit_reached": _USED_UP,
    "context_length_exceeded": _TOO_LONG,
    "exceed_context_size_error": _TOO_LONG,
}
# The status that a failure reported in a stream would have had, had it come before.
_STATUS_OF_TYPE: Final[dict[str, int]] = {
    "invalid_request_error": HTTPStatus.BAD_REQUEST,
    "authentication_error": HTTPStatus.UNAUTHORIZED,
    "billing_error": HTTPStatus.PAYMENT_REQUIRED,
    "permission_error": HTTPStatus.FORBIDDEN,
    "not_found_error": HTTPStatus.NOT_FOUND,
    "request_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "rate_limit_error": HTTPStatus.TOO_MANY_REQUESTS,
    "rate_limit_exceeded": HTTPStatus.TOO_MANY_REQUESTS,
    "api_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "server_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "timeout_error": HTTPStatus.GATEWAY_TIMEOUT,
    "overloaded_error": _OVERLOADED_STATUS,
}
# Some services say this in words alone.
_TOO_LONG_WORDS: Final = re.compile(
    r"prompt is too long|maximum context length|exceeds? the (?:model's )?context|context window"
)


def refused(
    endpoint: Endpoint,
    model: str,
    status: int,
    body: bytes,
    headers: httpx2.Headers | None = None,
    scrub: Scrub = str,
) -> ModelError:
    """Return the error for a reply that is no success.

    Args:
        endpoint: Who replied.
        model: The model that was asked for.
        status: The HTTP status.
        body: The beginning of the reply.
        headers: The reply's headers, which may say when to ask again.
        scrub: Takes secrets out of the endpoint's words, before they are shortened.
    """
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        parsed = None
    error = parsed.get("error", parsed) if isinstance(parsed, dict) else parsed
    return _classified(endpoint, model, status, _Said(error, scrub), headers)


def reported(endpoint: Endpoint, model: str, error: object, scrub: Scrub = str) -> ModelError:
    """Return the error for a failure that was reported in the middle of a stream."""
    said = _Said(error, scrub)
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, int) and code >= HTTPStatus.BAD_REQUEST:
        return _classified(endpoint, model, code, said)
    codes = _codes(error)
    status = next((_STATUS_OF_TYPE[each] for each in sorted(codes & _STATUS_OF_TYPE.keys())), None)
    if status is None and codes & _BY_CODE.keys():
        status = HTTPStatus.BAD_REQUEST
    if status is not None:
        return _classified(endpoint, model, status, said)
    return ModelError(
        f"{endpoint.where} broke off its answer{_quoted(endpoint, said)}",
        fault="transient",
        code="broken_off",
    )


def unreachable(endpoint: Endpoint, error: httpx2.RequestError) -> ModelError:
    """Return the error for a request that got no whole reply."""
    where = endpoint.where
    if isinstance(error, httpx2.TimeoutException):
        return timed_out(endpoint, "did not answer in time")
    if isinstance(error, httpx2.ConnectError):
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return ModelError(f"the certificate of {where} is not one this machine trusts", code="tls_failed")
        return ModelError(
            f"cannot connect to {where}: is it running, and is {endpoint.vendor.url_variable} right?",
            fault="transient",
            code="connect_failed",
        )
    return ModelError(f"{where} broke the connection off", fault="transient", code="broken_off")


def timed_out(endpoint: Endpoint, what: str) -> ModelError:
    """Return the error for a limit of time that ran out, given what the endpoint did not do."""
    return ModelError(f"{endpoint.where} {what}", fault="transient", code="timeout")


def ended_early(endpoint: Endpoint) -> ModelError:
    """Return the error for a stream that ended before the answer did."""
    return ModelError(
        f"{endpoint.where} ended its answer in the middle", fault="transient", code="broken_off"
    )


def _classified(
    endpoint: Endpoint, model: str, status: int, said: _Said, headers: httpx2.Headers | None = None
) -> ModelError:
    verdict = _verdict(status, _codes(said.error), said.error)
    if verdict is _UNAUTHORIZED and not endpoint.key:
        verdict = _KEYLESS
    vendor = endpoint.vendor
    words = verdict.words.format(
        model=repr(model), key=vendor.key_variable, url=vendor.url_variable, format=vendor.format
    )
    quoted = _quoted(endpoint, said) if verdict.quoted else ""
    return ModelError(
        f"{endpoint.where} ({status:d}) {words}{quoted}",
        fault=verdict.fault,
        code=verdict.code,
        retry_after=retry_after(headers) if headers is not None and verdict.fault == "transient" else None,
    )


def _verdict(status: int, codes: set[str], error: object) -> _Verdict:
    by_status = _BY_STATUS.get(status)
    by_code = next((_BY_CODE[code] for code in sorted(codes & _BY_CODE.keys())), None)
    if status == HTTPStatus.TOO_MANY_REQUESTS or by_status is None:
        by_status = by_code or by_status
    if by_status is not None:
        return by_status
    if status in _BUSY_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return _BUSY
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return _REDIRECTED
    return _TOO_LONG if _TOO_LONG_WORDS.search(_message(error)) else _REFUSED


def _codes(error: object) -> set[str]:
    """Return the codes that an error names, those of its details included."""
    if not isinstance(error, dict):
        return set()
    details = error.get("details")
    named = [error.get("code"), error.get("type")]
    named.append(details.get("error_code") if isinstance(details, dict) else None)
    return {value for value in named if isinstance(value, str)}


def _message(error: object) -> str:
    words = error.get("message") if isinstance(error, dict) else error
    return words if isinstance(words, str) else ""


def _quoted(endpoint: Endpoint, said: _Said) -> str:
    words = said.scrub(_message(said.error))
    if endpoint.key:
        words = words.replace(endpoint.key, "***")
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in words).split())
    return f": {line[:MAX_QUOTED]}" if line else ""
