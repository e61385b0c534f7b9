"""Vectors of governance and ground truth (L4): sealed records whose signatures and structure hold."""

from collections.abc import Iterator

from affidavit.crypto.failures import FailureCode as Code
from affidavit.crypto.record import encode_record
from affidavit.tools._vectors_cases import Case, event, signed_tree, splice, tree_of

_Step = tuple[str, dict[str, object]]
_START: _Step = ("dispatch.start", {"call": 1})
_END: _Step = ("dispatch.end", {"call": 1})
_REJECTED: _Step = ("dispatch.rejected", {"call": 1})
_SUCCESS: _Step = ("outcome.recorded", {"result": "success", "check": 1})
_PASSED: _Step = ("check.recorded", {"check": 1, "passed": True})
_FAILED: _Step = ("check.recorded", {"check": 1, "passed": False})


def _sealed(events: tuple[bytes, ...]) -> bytes:
    return encode_record(events, signed_tree(tree_of(events)))


def _case(name: str, code: Code | None, description: str, *steps: _Step) -> Case:
    events = tuple(event(seq, payload, type=kind) for seq, (kind, payload) in enumerate(steps, 1))
    return Case(f"rules.{name}", "governance", "L4", code, description, (_sealed(events),))


def cases() -> Iterator[Case]:
    """Yield the vectors."""
    unadmitted, denied = Code.GOV_UNADMITTED_ACTION, Code.GOV_ADMISSION_DENIED_BUT_EXECUTED
    shallow = Code.SHALLOW_NO_GROUND_TRUTH
    yield _case("ends_two", None, "Two ends for one start: reported.", _START, _END, _END)
    yield _case("end_first", unadmitted, "An end before its start.", _END, _START)
    yield _case("end_without_call", unadmitted, "An end with no call.", _START, ("dispatch.end", {}))
    yield _case(
        "end_text_call", unadmitted, "A call that is a text.", _START, ("dispatch.end", {"call": "1"})
    )
    yield _case("end_bool_call", unadmitted, "A call that is true.", _START, ("dispatch.end", {"call": True}))
    yield _case("start_without_call", None, "A start with no call is inert.", ("dispatch.start", {}))
    yield _case("rejected_later", denied, "Refused after it ended.", _START, _END, _REJECTED)
    other: _Step = ("dispatch.end", {"call": 2})
    yield _case(
        "rejected_later_beside", unadmitted, "And another with no start.", _START, _END, _REJECTED, other
    )
    yield _case("rejected_unadmitted", unadmitted, "Refused and ended, with no start.", _REJECTED, _END)
    yield _case("check_after", None, "The check stands after the claim.", _SUCCESS, _PASSED)
    yield _case(
        "check_contradicted", None, "A failed and a passed check: reported.", _FAILED, _PASSED, _SUCCESS
    )
    yield _case(
        "check_other",
        shallow,
        "Another check passed.",
        ("check.recorded", {"check": 2, "passed": True}),
        _SUCCESS,
    )
    yield _case(
        "check_one",
        shallow,
        "A check that passed with 1.",
        ("check.recorded", {"check": 1, "passed": 1}),
        _SUCCESS,
    )
    yield _case(
        "outcome_failure", None, "A failure needs no check.", ("outcome.recorded", {"result": "failure"})
    )
    yield from _float_cases()
    unknown = event(1, {"call": 9}, type="dispatch.end", schema_version=7)
    yield Case(
        "rules.version_unknown",
        "governance",
        "L4",
        None,
        "Not judged, and reported so.",
        (_sealed((unknown,)),),
    )


def _with_payload(seq: int, kind: str, encoded: bytes) -> bytes:
    return splice(event(seq, type=kind), b"\x67payload\xa0", b"\x67payload" + encoded)


def _float_cases() -> Iterator[Case]:
    # A producer never writes a float, so these payloads are spelt out.
    def case(name: str, code: Code | None, description: str, *events: bytes) -> Case:
        return Case(f"rules.{name}", "governance", "L4", code, description, (_sealed(events),))

    start = event(1, {"call": 1}, type="dispatch.start")
    whole = _with_payload(2, "dispatch.end", b"\xa1\x64call\xf9\x3c\x00")
    yield case("call_float", None, "The call 1.0 is the call 1.", start, whole)
    half = _with_payload(2, "dispatch.end", b"\xa1\x64call\xf9\x3e\x00")
    yield case("call_fraction", Code.GOV_UNADMITTED_ACTION, "The call 1.5 is none.", start, half)
    passed = _with_payload(1, "check.recorded", b"\xa2\x65check\xf9\x3c\x00\x66passed\xf5")
    success = event(2, dict(_SUCCESS[1]), type=_SUCCESS[0])
    yield case("check_float", None, "The check 1.0 is the check 1.", passed, success)
