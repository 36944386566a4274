"""An activity, and the card that may ride on it.

The base activity starts once and ends at most once (``completed`` or ``failed``); a missing end is closed by
``run.finished``. With ``tool.cards`` negotiated a card follows the start, is replaced by later snapshots, and ends
with an outcome that agrees with the activity: ``success`` needs ``completed``, ``failure`` needs ``failed``, and
without an end only ``cancelled``, ``interrupted`` or ``unknown`` can be said. The activity is therefore the card's
gate: it takes the snapshot by its outcome and lets through what agrees. Revisions and contents are data.
"""

from enum import unique

from statemachines.rows import Emit, MachineSpec, Name, Scope, row, stay


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
    WORKER_CARD_UNRESOLVED = "card: cancelled or unknown"
    WORKER_CARD_INTERRUPTED = "card: interrupted"


S, I = ActivityState, ActivityInput  # noqa: E741

AGREES = {
    I.WORKER_CARD_RUNNING: (S.STARTED,),
    I.WORKER_CARD_SUCCESS: (S.COMPLETED,),
    I.WORKER_CARD_FAILURE: (S.FAILED,),
    I.WORKER_CARD_UNRESOLVED: (S.STARTED, S.FAILED),
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
    """States of a live card."""

    ABSENT = "absent"
    RUNNING = "running"
    FINISHED = "finished"


@unique
class CardInput(Name):
    """Inputs of a live card; both come through its activity."""

    JOINT_RUNNING = "running snapshot"
    JOINT_FINISHED = "finished snapshot"


C, D = CardState, CardInput

CARD = MachineSpec(
    name="card",
    title="Tool card",
    states=tuple(C),
    inputs=tuple(D),
    initial=C.ABSENT,
    finals=frozenset({C.FINISHED}),
    scope=Scope.RUN,
    many=True,
    theory="""The live card of one activity, schema 1, with ``tool.cards`` negotiated.

The first snapshot is a running one; a finished card never runs again, later finished snapshots only add detail. The
activity machine has already settled that a snapshot agrees with what the activity has shown.
""",
    rows=(
        row(C.ABSENT, D.JOINT_RUNNING, C.RUNNING, Emit.TOOL_CARD, by="TC-162 TC-75"),
        row(C.RUNNING, D.JOINT_RUNNING, C.RUNNING, Emit.TOOL_CARD, by="TC-168 TC-169"),
        row(C.FINISHED, D.JOINT_RUNNING, C.FINISHED, by="TC-175"),
        row(C.ABSENT, D.JOINT_FINISHED, C.ABSENT, by="TC-162 TC-75"),
        row(C.RUNNING, D.JOINT_FINISHED, C.FINISHED, Emit.TOOL_CARD, by="TC-172 TC-179"),
        row(C.FINISHED, D.JOINT_FINISHED, C.FINISHED, Emit.TOOL_CARD, by="TC-177 TC-178"),
    ),
)
