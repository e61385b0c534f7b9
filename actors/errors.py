"""Every error the runtime raises, in families named by what the caller can do about it.

The root is `affidavit.crypto.failures.AffidavitError`. Calls made in the wrong order are plain `RuntimeError`, since those are
bugs in the calling program and not conditions of the world.
"""

from __future__ import annotations

from affidavit.crypto.failures import AffidavitError


class ActorError(AffidavitError):
    """Base of all errors raised by `affidavit.actors`."""


class LogError(ActorError):
    """The log refused or failed an operation. Unless a subclass says otherwise, nothing was written."""


class WriterFenced(LogError):
    """Another writer moved this stream's tip: this writer wrote nothing and must write no more.

    Attributes:
        stream: The stream that was contended.
        expected: The tip this writer believed in.
        actual: The tip found in the log.
    """

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(
            f"stream {stream} is at seq {actual}, not {expected}: another writer has taken it over"
        )
        self.stream = stream
        self.expected = expected
        self.actual = actual


class GuardLost(ActorError):
    """A stream has grown beyond what the writer went by. Nothing was written; read it, and judge again.

    Attributes:
        stream: The stream: another one, or the writer's own where somebody else has ruled on it meanwhile.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(f"stream {stream} holds more than the writer had read of it")
        self.stream = stream


class LogFull(LogError):
    """The disk or quota is full. Nothing was written; the log goes on working once there is room."""


class LogLocked(LogError):
    """Another process held the store's write lock for longer than this one was willing to wait. Nothing was written."""


class LogStateUnknown(LogError):
    """A write or sync failed in a way that leaves its outcome unknown. The log has closed itself.

    Opening the log again is the recovery: what it then holds is the truth.
    """


class LogClosed(LogError):
    """The log was closed before this operation began. Nothing was written."""


class StoreDamaged(LogError):
    """A row holds another event than its place says: somebody changed the store. `affidavit fsck` tells what else is wrong."""


class StoreUnusable(LogError):
    """The store cannot be opened: not a store, made by a newer version, unreadable, or not writable."""


class RunOwned(ActorError):
    """Another owner holds this run, in this process or another.

    Attributes:
        stream: The run that is owned elsewhere.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(f"run {stream} is being driven by another process")
        self.stream = stream


class UnknownRun(ActorError):
    """No run has this id or begins with this prefix."""


class UnknownGoal(ActorError):
    """The run has handed work to no goal of this id."""


class AmbiguousRun(ActorError):
    """More than one run begins with this prefix."""


class Stalled(ActorError):
    """The run ended without reaching its goal.

    Attributes:
        reason: Why, as recorded in session.stalled.
        error_class: The fault class on the record (terminal, budget_exceeded, cancelled, ...).
    """

    def __init__(self, reason: str, error_class: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.error_class = error_class


class RunCancelled(Stalled):
    """Someone cancelled the run; who and why stand on the record.

    Attributes:
        principal: Who; empty where the record names nobody.
    """

    def __init__(self, reason: str, error_class: str = "cancelled", principal: str = "") -> None:
        super().__init__(reason, error_class)
        self.principal = principal


class RunParked(ActorError):
    """The run was stopped before a terminal event and can be resumed."""


class ModelError(ActorError):
    """A model call failed.

    Attributes:
        fault: Fault class: `transient` (worth another attempt) or `terminal`.
        code: A short machine-readable reason, such as `connect_failed`.
        retry_after: How many seconds the model's host asks to wait before another attempt; None where it did not say.
    """

    def __init__(
        self, message: str, *, fault: str = "terminal", code: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.code = code
        self.retry_after = retry_after


class ToolFailed(ActorError):
    """A tool could not do what it was asked; the text is shown to the model.

    Attributes:
        fault: Fault class.
        code: A finer code.
    """

    def __init__(self, message: str, *, fault: str = "terminal", code: str = "tool_failed") -> None:
        super().__init__(message)
        self.fault = fault
        self.code = code


class ApprovalRefused(ActorError):
    """A decision about a call was not taken: nothing waits for one, or not from this person, or not any more.

    Attributes:
        code: Why: `not_asked`, `decided`, `expired`, `not_an_approver`, `args_changed`, `signature_needed`, `signature_invalid`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConfigurationError(ActorError):
    """Something the operator chose does not exist or does not fit: a model name, a workspace, a key."""


class ResumeRefused(ActorError):
    """The run cannot be resumed as asked, for instance because its tools are not those it started with."""


class ForkRefused(ActorError):
    """A run cannot be forked there: the conversation is not whole at that event, is too long, or has nothing to go on with."""


class RunGoing(ActorError, RuntimeError):
    """Something was said on a run that has not ended. Nothing was written."""


class NotDriven(ActorError, RuntimeError):
    """Something was said on a run that nothing here could go on with. Nothing was written."""


class RunFinished(ActorError, RuntimeError):
    """Something was reported on a run whose terminal event stands. Nothing was written."""


class GoalFinished(ActorError, RuntimeError):
    """Something was reported on a goal that was ended without what drives it. Nothing was written; the run goes on."""


class SealRefused(ActorError):
    """The stream cannot be sealed into a record that would verify."""


class SessionFailed(ActorError):
    """A task of the session failed; the cause holds the failure. The run is parked and can be resumed."""


class HostFailed(ActorError):
    """A task of the host failed; the cause holds the failure."""
