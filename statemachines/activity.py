"""An activity, and the card that may ride on it.

The base activity starts once and ends at most once (``completed`` or ``failed``); a missing end is closed by
``run.finished``. With ``tool.cards`` negotiated a card follows the start, is replaced by later snapshots, and ends
with an outcome that agrees with the activity: ``success`` needs ``completed``, ``failure`` needs ``failed``, and
without an end only ``cancelled``, ``interrupted`` or ``unknown`` can be said. The activity is therefore the card's
gate: it takes the snapshot by its outcome and lets through what agrees. Revisions and contents are data.
"""

from enum import unique

from statemachines.rows import Emit, MachineSpec, Name, Row, Scope, row, stay


@unique
class ActivityState(Name):
    """States of an activity."""

    NONE = "none"
    STARTED = "started"
    COMPLETED = "completed"
    FAILED = "failed"


@unique
class ActivityInput(Name):
    """Inputs of an activity."""

    WORKER_STARTED = "started"
    WORKER_COMPLETED = "completed"
    WORKER_FAILED = "failed"
    WORKER_CARD_RUNNING = "running card"
    WORKER_CARD_SUCCESS = "card: success"
    WORKER_CARD_FAILURE = "card: failure"
    WORKER_CARD_CANCELLED = "card: cancelled"
    WORKER_CARD_UNKNOWN = "card: unknown"
    WORKER_CARD_INTERRUPTED = "card: interrupted"


S, I = ActivityState, ActivityInput  # noqa: E741

AGREES = {
    I.WORKER_CARD_RUNNING: (S.STARTED,),
    I.WORKER_CARD_SUCCESS: (S.COMPLETED,),
    I.WORKER_CARD_FAILURE: (S.FAILED,),
    I.WORKER_CARD_CANCELLED: (S.STARTED, S.FAILED),
    I.WORKER_CARD_UNKNOWN: (S.STARTED, S.FAILED),
    I.WORKER_CARD_INTERRUPTED: (S.STARTED,),
}
"""Card snapshot -> the activity states that let it through (tool cards, 17.4)."""

_ENDED = (S.COMPLETED, S.FAILED)

ACTIVITY = MachineSpec(
    name="activity",
    title="Activity",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.NONE,
    finals=frozenset(_ENDED),
    scope=Scope.RUN,
    many=True,
    theory=__doc__ or "",
    rows=(
        row(S.NONE, I.WORKER_STARTED, S.STARTED, Emit.ACTIVITY, by="EVT-31 EVT-33"),
        row(S.STARTED, I.WORKER_COMPLETED, S.COMPLETED, Emit.ACTIVITY, by="EVT-33 TC-172"),
        row(S.STARTED, I.WORKER_FAILED, S.FAILED, Emit.ACTIVITY, by="EVT-33 TC-172"),
        *stay((S.STARTED, *_ENDED), I.WORKER_STARTED, by="BASE-OP-172"),
        *stay((S.NONE, *_ENDED), I.WORKER_COMPLETED, by="BASE-OP-172"),
        *stay((S.NONE, *_ENDED), I.WORKER_FAILED, by="BASE-OP-172"),
        *(move for given in AGREES for move in stay(S, given, by="TC-162 TC-172 TC-181")),
    ),
)


@unique
class CardState(Name):
    """States of a live card; a finished one keeps its outcome."""

    ABSENT = "absent"
    RUNNING = "running"
    SUCCESS = "finished(success)"
    FAILURE = "finished(failure)"
    CANCELLED = "finished(cancelled)"
    UNKNOWN = "finished(unknown)"
    INTERRUPTED = "finished(interrupted)"


@unique
class CardInput(Name):
    """Inputs of a live card; all come through its activity."""

    JOINT_RUNNING = "running snapshot"
    JOINT_SUCCESS = "snapshot: success"
    JOINT_FAILURE = "snapshot: failure"
    JOINT_CANCELLED = "snapshot: cancelled"
    JOINT_UNKNOWN = "snapshot: unknown"
    JOINT_INTERRUPTED = "snapshot: interrupted"


C, D = CardState, CardInput

SHOWS = {
    I.WORKER_CARD_RUNNING: D.JOINT_RUNNING,
    I.WORKER_CARD_SUCCESS: D.JOINT_SUCCESS,
    I.WORKER_CARD_FAILURE: D.JOINT_FAILURE,
    I.WORKER_CARD_CANCELLED: D.JOINT_CANCELLED,
    I.WORKER_CARD_UNKNOWN: D.JOINT_UNKNOWN,
    I.WORKER_CARD_INTERRUPTED: D.JOINT_INTERRUPTED,
}
"""Snapshot as the activity takes it -> as its card does."""

_OUTCOMES = {
    D.JOINT_SUCCESS: C.SUCCESS,
    D.JOINT_FAILURE: C.FAILURE,
    D.JOINT_CANCELLED: C.CANCELLED,
    D.JOINT_UNKNOWN: C.UNKNOWN,
    D.JOINT_INTERRUPTED: C.INTERRUPTED,
}

CARD_FINISHED = frozenset(_OUTCOMES.values())


_EARLY = (C.CANCELLED, C.UNKNOWN, C.INTERRUPTED)
"""Outcomes that can be shown while the activity has not ended; what it shows later then no longer agrees."""
_STALE = {
    D.JOINT_RUNNING: _EARLY,
    D.JOINT_SUCCESS: _EARLY,
    D.JOINT_FAILURE: _EARLY,
    D.JOINT_CANCELLED: (C.FAILURE, C.UNKNOWN, C.INTERRUPTED),
    D.JOINT_UNKNOWN: (C.FAILURE, C.CANCELLED, C.INTERRUPTED),
    D.JOINT_INTERRUPTED: (C.CANCELLED, C.UNKNOWN),
}
"""Snapshot -> the finished cards of another outcome that the activity can let it reach: nothing is sent."""


def _outcome(given: CardInput, own: CardState) -> tuple[Row, ...]:
    """A finished snapshot: it ends a running card, or adds detail to one of the same outcome."""
    return (
        row(C.RUNNING, given, own, Emit.TOOL_CARD, by="TC-172 TC-179"),
        row(own, given, own, Emit.TOOL_CARD, by="TC-177"),
        row(C.ABSENT, given, C.ABSENT, by="TC-162 TC-75"),
    )


CARD = MachineSpec(
    name="card",
    title="Tool card",
    states=tuple(C),
    inputs=tuple(D),
    initial=C.ABSENT,
    finals=CARD_FINISHED,
    scope=Scope.RUN,
    many=True,
    theory="""The live card of one activity, schema 1, with ``tool.cards`` negotiated.

The first snapshot is a running one. A finished card never runs again and keeps its outcome; later finished snapshots
of that outcome only add detail. The activity machine has already settled that a snapshot agrees with what the
activity has shown; revisions and contents are data.
""",
    rows=(
        row(C.ABSENT, D.JOINT_RUNNING, C.RUNNING, Emit.TOOL_CARD, by="TC-162 TC-75"),
        row(C.RUNNING, D.JOINT_RUNNING, C.RUNNING, Emit.TOOL_CARD, by="TC-168 TC-169"),
        *(move for given, own in _OUTCOMES.items() for move in _outcome(given, own)),
        *(move for given, states in _STALE.items() for move in stay(states, given, by="TC-175 TC-176 TC-178")),
    ),
)
