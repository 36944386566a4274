"""What workers tell the core: events of a run, one last word, and their departure.

Every message bears the number of its job. A message whose job is over, or was never started, is ignored by a row.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from localagent.protocol.codes import Code
from localagent.protocol.results import Output, Selection

# events of a run, in the words of base section 22


@dataclass(frozen=True, slots=True)
class InputAppended:
    """The required input is on disk (EVT-11). Comes before any other event of the run."""

    message_id: str
    revision: str


@dataclass(frozen=True, slots=True)
class InputFailed:
    """The required input could not be appended (TURN-26)."""

    code: Code = Code.PERSISTENCE_FAILED


@dataclass(frozen=True, slots=True)
class AppendFailed:
    """A later append failed (TURN-27). ``summary`` is safe, at most 1,024 bytes."""

    summary: str
    code: str = "persistence_degraded"


@dataclass(frozen=True, slots=True)
class Delta:
    """Text for the eye: at most 4,000 bytes, redacted. ``part`` is given by the channel (BASE-OP-170)."""

    message_id: str
    text: str
    part: int = 0


@dataclass(frozen=True, slots=True)
class Reconcile:
    """One part of the authoritative text of a segment (EVT-20)."""

    message_id: str
    part: int
    text: str
    last_part: bool
    partial: bool


@dataclass(frozen=True, slots=True)
class ActivityChanged:
    """An activity started or ended (EVT-31)."""

    activity_id: str
    kind: Literal["tool", "subagent", "compaction"]
    state: Literal["started", "completed", "failed"]
    name: str
    summary: str


@dataclass(frozen=True, slots=True)
class CardShown:
    """A snapshot of an activity's card; ``outcome`` is None while it runs (TC-154)."""

    activity_id: str
    card: dict[str, Any]
    outcome: Literal["success", "failure", "cancelled", "unknown", "interrupted"] | None


@dataclass(frozen=True, slots=True)
class ApprovalWanted:
    """A tool needs permission (EVT-36). The id is a fresh UUID; the clock runs from ``asked_at`` (BASE-OP-176)."""

    approval_id: str
    summary: str
    asked_at: float


@dataclass(frozen=True, slots=True)
class CallWanted:
    """The runner calls a client tool (CT-76). The id is a fresh UUID; the timeout runs from ``asked_at`` (CT-119)."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    timeout_ms: int
    asked_at: float
    task_id: str | None = None
    subagent_id: str | None = None


@dataclass(frozen=True, slots=True)
class CallCancelled:
    """The task that made the call was cancelled (CT-OP-32)."""

    call_id: str


@dataclass(frozen=True, slots=True)
class Note:
    """A diagnostic (EVT-39)."""

    code: str
    summary: str


RunEvent = (
    InputAppended
    | InputFailed
    | AppendFailed
    | Delta
    | Reconcile
    | ActivityChanged
    | CardShown
    | ApprovalWanted
    | CallWanted
    | CallCancelled
    | Note
)

# last words


@dataclass(frozen=True, slots=True)
class Started:
    """Startup succeeded. Names that may not be shown are None (STATUS-09)."""

    provider: str | None
    model: str | None
    context_id: str
    selection: Selection


@dataclass(frozen=True, slots=True)
class StartFailed:
    """Startup failed; what was determined before may be known (STATUS-19)."""

    code: Code
    provider: str | None = None
    model: str | None = None
    context_id: str | None = None


@dataclass(frozen=True, slots=True)
class SessionAttached:
    """``session.create`` or ``session.open`` succeeded: the answer, and the selection that goes with the session."""

    result: Output
    session_id: str
    durable: bool
    revision: str
    selection: Selection | None = None


class Effect(StrEnum):
    """What a reading request did to a snapshot."""

    FRESH = "fresh"
    FRESH_LAST = "fresh, all of it"
    PAGE = "page"
    LAST_PAGE = "last page"
    REVISED = "revised"
    CHANGED = "changed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Traced:
    """The trace a request leaves on a snapshot: which one, what, and the revision it has now."""

    snapshot: Literal["history", "list", "discover", "catalog"]
    effect: Effect
    revision: str | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """A reading request succeeded."""

    result: Output
    trace: Traced | None = None
    selection: Selection | None = None


@dataclass(frozen=True, slots=True)
class Selected:
    """``selection.set`` succeeded; ``history_revision`` is None when the projection is not to be had (SEL-90)."""

    result: Output
    selection: Selection
    history_revision: str | None


@dataclass(frozen=True, slots=True)
class OperationFailed:
    """A session request failed."""

    code: Code
    trace: Traced | None = None


@dataclass(frozen=True, slots=True)
class OperationCancelled:
    """A session worker stopped because it was told to, without a result."""

    trace: Traced | None = None


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The runner's last word. ``code`` belongs to ``failed``; ``revision`` is the fresh history revision, if any."""

    word: Literal["completed", "failed", "stopped"]
    code: Code | None = None
    revision: str | None = None
    selection: Selection | None = None


LastWord = Started | StartFailed | SessionAttached | Read | Selected | OperationFailed | OperationCancelled | TurnEnded


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """An event of a run."""

    job: int
    event: RunEvent


@dataclass(frozen=True, slots=True)
class WorkerUndeliverable:
    """A critical event found no place for 2,000 ms; said once per run (FLOW-13)."""

    job: int


@dataclass(frozen=True, slots=True)
class WorkerDone:
    """The worker's last word. A turn worker still has to account for its cleanup; the others are done."""

    job: int
    word: LastWord


@dataclass(frozen=True, slots=True)
class WorkerGone:
    """The worker has left; nothing of its job is outstanding."""

    job: int


WorkerMessage = WorkerEvent | WorkerUndeliverable | WorkerDone | WorkerGone
