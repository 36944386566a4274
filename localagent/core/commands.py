"""What the core asks of the shell."""

from enum import StrEnum

from msgspec import Struct

from localagent.protocol.params import ClientToolResultParams, Params


class WorkerKind(StrEnum):
    """The three kinds of worker; a session worker and a turn worker never run together (BOUND-34, BOUND-35)."""

    STARTUP = "startup"
    SESSION = "session"
    TURN = "turn"


class Leases(StrEnum):
    """Which leases to let go: of the attachment that was replaced, of an attach that came too late, or all."""

    PREVIOUS = "previous"
    NEW = "new"
    ALL = "all"


class StartWorker(Struct, frozen=True):
    """Start a worker. ``job`` numbers it: its messages must bear the number.

    ``run_id`` is set for a turn only, ``session_id`` is that of the attachment, if any.
    """

    job: int
    kind: WorkerKind
    method: str
    params: Params
    session_id: str | None = None
    run_id: str | None = None


class CancelWorker(Struct, frozen=True):
    """Set the worker's cancel token; asked once per job (FLOW-23)."""

    job: int


class ResolveApproval(Struct, frozen=True):
    """Tell the turn worker the answer to its question; anything but an allowing answer denies (APPR-07 to APPR-09)."""

    job: int
    approval_id: str
    allow: bool


class ResolveCall(Struct, frozen=True):
    """Tell the turn worker how its client tool call ended: with a result, or with the reason why there is none."""

    job: int
    call_id: str
    result: ClientToolResultParams | None
    reason: str | None


class ReleaseLeases(Struct, frozen=True):
    """Let leases go (SESS-14, SESS-43, FLOW-26)."""

    which: Leases


class StartCleanup(Struct, frozen=True):
    """Tear the runtime down off the loop, then call ``Connection.cleaned`` (FLOW-25, FLOW-30)."""


class Exit(Struct, frozen=True):
    """End the process with this status; nothing follows (D40, D41)."""

    status: int


Command = StartWorker | CancelWorker | ResolveApproval | ResolveCall | ReleaseLeases | StartCleanup | Exit
