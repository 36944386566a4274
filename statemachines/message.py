"""An assistant segment: deltas for the eye, reconciliation for the record.

Deltas are best effort; a reconciliation replaces them and is complete with its last part. It may be repeated (at
each tool boundary, and once at the end), each time as a whole. A delta in the middle of a reconciliation would make
the replacement ambiguous and is dropped, as best effort allows. A run that ends with a segment unreconciled (its
transport failed, a critical event was undeliverable, its worker died) abandons it. Part numbers, texts and the
8 MiB are data.
"""

from enum import unique

from statemachines.rows import Emit, MachineSpec, Name, Scope, row, rows, stay


@unique
class MessageState(Name):
    """States of an assistant segment."""

    NONE = "none"
    STREAMING = "streaming"
    RECONCILING = "reconciling"
    RECONCILED = "reconciled"
    ABANDONED = "abandoned"


@unique
class MessageInput(Name):
    """Inputs of an assistant segment."""

    WORKER_DELTA = "delta"
    WORKER_PART = "reconciliation part, more to come"
    WORKER_LAST_PART = "last reconciliation part"
    JOINT_RUN_ENDED = "run ended"


S, I = MessageState, MessageInput  # noqa: E741

_OPEN = (S.NONE, S.STREAMING, S.RECONCILING, S.RECONCILED)

MESSAGE = MachineSpec(
    name="message",
    title="Assistant segment",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.NONE,
    finals=frozenset({S.ABANDONED}),
    scope=Scope.RUN,
    many=True,
    theory=__doc__ or "",
    rows=(
        *rows((S.NONE, S.STREAMING), I.WORKER_DELTA, S.STREAMING, Emit.MESSAGE_DELTA, by="EVT-15 EVT-16 EVT-17"),
        row(S.RECONCILED, I.WORKER_DELTA, S.STREAMING, Emit.MESSAGE_DELTA, by="EVT-15 BASE-OP-168"),
        row(S.RECONCILING, I.WORKER_DELTA, S.RECONCILING, by="EVT-19 EVT-22"),
        *rows(_OPEN, I.WORKER_PART, S.RECONCILING, Emit.MESSAGE_RECONCILE, by="EVT-22 EVT-23 EVT-25"),
        *rows(_OPEN, I.WORKER_LAST_PART, S.RECONCILED, Emit.MESSAGE_RECONCILE, by="EVT-22 EVT-24"),
        *rows((S.STREAMING, S.RECONCILING), I.JOINT_RUN_ENDED, S.ABANDONED, by="FLOW-10 EVT-47"),
        *stay((S.NONE, S.RECONCILED), I.JOINT_RUN_ENDED, by="EVT-24 FLOW-33"),
    ),
)
