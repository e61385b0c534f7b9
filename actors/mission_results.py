"""What a tool call's answer is recorded as, whoever gave it: bounded, without secrets, marked, with the end of its turn."""

from __future__ import annotations

from affidavit.actors.conversation import Conversation, PendingCall
from affidavit.actors.events import Event, Kind
from affidavit.actors.mission_config import MissionConfig
from affidavit.actors.mission_reply import fit_marked
from affidavit.actors.recovery import result_events


def answer_events(
    config: MissionConfig, conversation: Conversation, call: PendingCall, text: str, *, is_error: bool
) -> tuple[Event, ...]:
    """Return the result of a call, and the end of the turn if this answers its last open call.

    Args:
        config: Its limit of texts, and the secrets that are taken out of them first.
        conversation: That of the goal that called.
        call: The call.
        text: The answer.
        is_error: Whether it failed or was refused.
    """
    shown, marks = fit_marked(text, config.text_limit, config.secrets)
    result = Event(
        Kind.TOOL_RESULT,
        goal=conversation.goal,
        turn=call.turn,
        tool=call.name,
        tool_use_id=call.id,
        result=shown,
        is_error=is_error,
        detail=marks,
    )
    return result_events(conversation, result)
