"""Classifiers of what workers say: a message becomes an input, and the subject it is about.

Which inputs carry which subjects is ``statemachines.joint.CARRIED``; the tables decide what comes of it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from statemachines.activity import ActivityInput
from statemachines.approval import ApprovalInput
from statemachines.client_call import ClientCallInput
from statemachines.connection import ConnectionInput
from statemachines.message import MessageInput
from statemachines.operation import OperationInput
from statemachines.run import RunInput
from statemachines.snapshot import SnapshotInput
from statemachines.step import Feed

from . import worker

Fed = tuple[Feed, Feed | None]

_ACTIVITY: Final = {
    "started": ActivityInput.WORKER_STARTED,
    "completed": ActivityInput.WORKER_COMPLETED,
    "failed": ActivityInput.WORKER_FAILED,
}
_CARD: Final[Mapping[str | None, ActivityInput]] = {
    None: ActivityInput.WORKER_CARD_RUNNING,
    "success": ActivityInput.WORKER_CARD_SUCCESS,
    "failure": ActivityInput.WORKER_CARD_FAILURE,
    "cancelled": ActivityInput.WORKER_CARD_CANCELLED,
    "unknown": ActivityInput.WORKER_CARD_UNKNOWN,
    "interrupted": ActivityInput.WORKER_CARD_INTERRUPTED,
}
_EFFECT: Final = {
    worker.Effect.FRESH: SnapshotInput.WORKER_FRESH_PAGE,
    worker.Effect.FRESH_LAST: SnapshotInput.WORKER_FRESH_LAST,
    worker.Effect.PAGE: SnapshotInput.WORKER_PAGE,
    worker.Effect.LAST_PAGE: SnapshotInput.WORKER_LAST_PAGE,
    worker.Effect.REVISED: SnapshotInput.WORKER_REVISED,
    worker.Effect.CHANGED: SnapshotInput.WORKER_CHANGED,
    worker.Effect.DROPPED: SnapshotInput.WORKER_DROPPED,
}
_WORD: Final = {
    "completed": RunInput.WORKER_COMPLETED,
    "failed": RunInput.WORKER_FAILED,
    "stopped": RunInput.WORKER_STOPPED,
}
HISTORY_REVISED: Final[Feed] = ("history", SnapshotInput.WORKER_REVISED)


def _report(instance: str, given: ActivityInput | MessageInput | ClientCallInput) -> Fed:
    return ("run", RunInput.WORKER_REPORT), (instance, given)


_EVENTS: Final[Mapping[type, Callable[[Any], Fed]]] = {
    worker.InputAppended: lambda e: (("run", RunInput.WORKER_INPUT_APPENDED), None),
    worker.InputFailed: lambda e: (("run", RunInput.WORKER_INPUT_FAILED), None),
    worker.AppendFailed: lambda e: (("run", RunInput.WORKER_APPEND_FAILED), None),
    worker.Note: lambda e: (("run", RunInput.WORKER_DIAGNOSTIC), None),
    worker.Delta: lambda e: (
        ("run", RunInput.WORKER_DELTA),
        (f"message:{e.message_id}", MessageInput.WORKER_DELTA),
    ),
    worker.Reconcile: lambda e: _report(
        f"message:{e.message_id}", MessageInput.WORKER_LAST_PART if e.last_part else MessageInput.WORKER_PART
    ),
    worker.ActivityChanged: lambda e: _report(f"activity:{e.activity_id}", _ACTIVITY[e.state]),
    worker.CardShown: lambda e: _report(f"activity:{e.activity_id}", _CARD[e.outcome]),
    worker.CallCancelled: lambda e: _report(f"client_call:{e.call_id}", ClientCallInput.WORKER_CALL_CANCELLED),
    worker.ApprovalWanted: lambda e: (
        ("run", RunInput.WORKER_ASK),
        (f"approval:{e.approval_id}", ApprovalInput.WORKER_ASK),
    ),
    worker.CallWanted: lambda e: (
        ("run", RunInput.WORKER_ASK),
        (f"client_call:{e.call_id}", ClientCallInput.WORKER_CALL),
    ),
}


def of_event(event: worker.RunEvent) -> Fed:
    """The input and subject of an event of the run."""
    return _EVENTS[type(event)](event)


def _traced(trace: worker.Traced | None) -> Feed | None:
    return (trace.snapshot, _EFFECT[trace.effect]) if trace else None


_WORDS: Final[Mapping[type, Callable[[Any], Fed]]] = {
    worker.Started: lambda w: (("connection", ConnectionInput.WORKER_STARTED), None),
    worker.StartFailed: lambda w: (("connection", ConnectionInput.WORKER_START_FAILED), None),
    worker.SessionAttached: lambda w: (
        ("operation", OperationInput.WORKER_ATTACHED_DURABLE if w.durable else OperationInput.WORKER_ATTACHED_LAZY),
        HISTORY_REVISED,
    ),
    worker.Read: lambda w: (("operation", OperationInput.WORKER_READ), _traced(w.trace)),
    worker.Selected: lambda w: (
        ("operation", OperationInput.WORKER_SELECTED),
        HISTORY_REVISED if w.history_revision else None,
    ),
    worker.OperationFailed: lambda w: (("operation", OperationInput.WORKER_FAILED), _traced(w.trace)),
    worker.OperationCancelled: lambda w: (("operation", OperationInput.WORKER_CANCELLED), _traced(w.trace)),
    worker.TurnEnded: lambda w: (("run", _WORD[w.word]), None),
}


def of_word(word: worker.LastWord) -> Fed:
    """The input and subject of a worker's last word."""
    return _WORDS[type(word)](word)
