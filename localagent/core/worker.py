"""What workers tell the core: events of a run, one last word, and their departure.

Every message bears the number of its job. A message whose job is over, or was never started, is ignored by a row.
"""

from enum import StrEnum
from typing import Any, Literal

from msgspec import Struct

from localagent.protocol.codes import Code
from localagent.protocol.results import Output, Selection

# events of a run, in the words of base section 22


class InputAppended(Struct, frozen=True):
    """The required input is on disk (EVT-11). Comes before any other event of the run."""

    message_id: str
    revision: str


class InputFailed(Struct, frozen=True):
    """The required input could not be appended (TURN-26); ``revision``: the history's, if any (BASE-OP-184)."""

    code: Code = Code.PERSISTENCE_FAILED
    revision: str | None = None


class AppendFailed(Struct, frozen=True):
    """A later append failed (TURN-27). ``summary`` is safe, at most 1,024 bytes."""

    summary: str
    code: str = "persistence_degraded"


class Delta(Struct, frozen=True):
    """Text for the eye: at most 4,000 bytes, redacted. ``part`` is given by the channel (BASE-OP-170)."""

    message_id: str
    text: str
    part: int = 0


class Reconcile(Struct, frozen=True):
    """One part of the authoritative text of a segment (EVT-20)."""

    message_id: str
    part: int
    text: str
    last_part: bool
    partial: bool


class ActivityChanged(Struct, frozen=True):
    """An activity started or ended (EVT-31)."""

    activity_id: str
    kind: Literal["tool", "subagent", "compaction"]
    state: Literal["started", "completed", "failed"]
    name: str
    summary: str


class CardShown(Struct, frozen=True):
    """A snapshot of an activity's card; ``outcome`` is None while it runs (TC-154)."""

    activity_id: str
    card: dict[str, Any]
    outcome: Literal["success", "failure", "cancelled", "unknown", "interrupted"] | None


class ApprovalWanted(Struct, frozen=True):
    """A tool needs permission (EVT-36). The id is a fresh UUID; the clock runs from ``asked_at`` (BASE-OP-176)."""

    approval_id: str
    summary: str
    asked_at: float


class CallWanted(Struct, frozen=True):
    """The runner calls a client tool (CT-76). The id is a fresh UUID; the timeout runs from ``asked_at`` (CT-119)."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    timeout_ms: int
    asked_at: float
    task_id: str | None = None
    subagent_id: str | None = None


class CallCancelled(Struct, frozen=True):
    """The task that made the call was cancelled (CT-OP-32)."""

    call_id: str


class Note(Struct, frozen=True):
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


class Started(Struct, frozen=True):
    """Startup succeeded. Names that may not be shown are None (STATUS-09)."""

    provider: str | None
    model: str | None
    context_id: str
    selection: Selection
    refreshable: frozenset[str] | None = None
    """The providers that ``model.refresh`` may name (EXT-REFRESH-02); None: the worker will say."""


class StartFailed(Struct, frozen=True):
    """Startup failed; what was determined before may be known (STATUS-19)."""

    code: Code
    provider: str | None = None
    model: str | None = None
    context_id: str | None = None


class SessionAttached(Struct, frozen=True):
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


class Traced(Struct, frozen=True):
    """The trace a request leaves on a snapshot: which one, what, and the revision it has now."""

    snapshot: Literal["history", "list", "discover", "catalog"]
    effect: Effect
    revision: str | None = None


class Read(Struct, frozen=True):
    """A reading request succeeded."""

    result: Output
    trace: Traced | None = None
    selection: Selection | None = None


class Selected(Struct, frozen=True):
    """``selection.set`` succeeded; ``history_revision`` is None when the projection is not to be had (SEL-90)."""

    result: Output
    selection: Selection
    history_revision: str | None


class OperationFailed(Struct, frozen=True):
    """A session request failed."""

    code: Code
    trace: Traced | None = None


class OperationCancelled(Struct, frozen=True):
    """A session worker stopped because it was told to, without a result."""

    trace: Traced | None = None


class TurnEnded(Struct, frozen=True):
    """The runner's last word. ``code`` belongs to ``failed``; ``revision`` is the fresh history revision, if any."""

    word: Literal["completed", "failed", "stopped"]
    code: Code | None = None
    revision: str | None = None
    selection: Selection | None = None


LastWord = Started | StartFailed | SessionAttached | Read | Selected | OperationFailed | OperationCancelled | TurnEnded


class WorkerEvent(Struct, frozen=True):
    """An event of a run."""

    job: int
    event: RunEvent


class WorkerUndeliverable(Struct, frozen=True):
    """A critical event found no place for 2,000 ms; said once per run (FLOW-13)."""

    job: int


class WorkerDone(Struct, frozen=True):
    """The worker's last word. A turn worker still has to account for its cleanup; the others are done."""

    job: int
    word: LastWord


class WorkerGone(Struct, frozen=True):
    """The worker has left; nothing of its job is outstanding."""

    job: int


WorkerMessage = WorkerEvent | WorkerUndeliverable | WorkerDone | WorkerGone
