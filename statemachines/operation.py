"""The session worker: the one slot for session, history, listing, catalog and selection requests.

``working`` and ``cancelling`` carry a kind, because the kinds leave different traces: ``attach`` (create, open)
moves the attachment, ``select`` (selection.set) makes it durable, ``read`` (everything else) leaves it alone. Which
request it was, and what its answer says, is data.

Exactly one answer leaves the slot per admitted request, and it leaves with the worker's last word: a result, an
error, or ``operation_cancelled`` when a cancelled worker stopped without a result. A worker that finished before it
saw the cancellation keeps its result. A worker that stops or dies unasked, or reports another kind's result, is
broken: the request is answered with its own failure code and nothing else moves.
"""

from enum import unique

from statemachines.rows import Emit, MachineSpec, Name, Row, row, rows, stay


@unique
class OperationState(Name):
    """States of the session worker slot."""

    IDLE = "idle"
    WORKING_ATTACH = "working(attach)"
    WORKING_READ = "working(read)"
    WORKING_SELECT = "working(select)"
    CANCELLING_ATTACH = "cancelling(attach)"
    CANCELLING_READ = "cancelling(read)"
    CANCELLING_SELECT = "cancelling(select)"


@unique
class OperationInput(Name):
    """Inputs of the session worker slot."""

    RECV_ATTACH = "create or open admitted"
    RECV_READ = "reading request admitted"
    RECV_SELECT = "selection.set admitted"
    RECV_OPERATION_CANCEL = "operation.cancel of it"
    WORKER_ATTACHED_LAZY = "attached, nothing stored"
    WORKER_ATTACHED_DURABLE = "attached, stored"
    WORKER_READ = "read"
    WORKER_SELECTED = "selected"
    WORKER_FAILED = "failed"
    WORKER_CANCELLED = "stopped without result"
    WORKER_GONE = "gone"
    JOINT_STOP = "connection stops"


S, I = OperationState, OperationInput  # noqa: E741

WORKING = (S.WORKING_ATTACH, S.WORKING_READ, S.WORKING_SELECT)
CANCELLING = (S.CANCELLING_ATTACH, S.CANCELLING_READ, S.CANCELLING_SELECT)
BUSY = WORKING + CANCELLING

_RESULTS = {
    I.WORKER_ATTACHED_LAZY: (S.WORKING_ATTACH, S.CANCELLING_ATTACH),
    I.WORKER_ATTACHED_DURABLE: (S.WORKING_ATTACH, S.CANCELLING_ATTACH),
    I.WORKER_READ: (S.WORKING_READ, S.CANCELLING_READ),
    I.WORKER_SELECTED: (S.WORKING_SELECT, S.CANCELLING_SELECT),
}


def _results(given: OperationInput) -> tuple[Row, ...]:
    """A worker's success: the result for its own kind, an error for another, nothing when idle."""
    own = _RESULTS[given]
    other = [state for state in BUSY if state not in own]
    return (
        *rows(own, given, S.IDLE, Emit.OPERATION_RESULT, by="ENV-24 ENV-26 BASE-OP-61"),
        *rows(other, given, S.IDLE, Emit.OPERATION_ERROR, by="ENV-24 D82"),
        row(S.IDLE, given, S.IDLE, by="ENV-24 EVT-04"),
    )


OPERATION = MachineSpec(
    name="operation",
    title="Session operation",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.IDLE,
    finals=frozenset(),
    theory=__doc__ or "",
    rows=(
        row(S.IDLE, I.RECV_ATTACH, S.WORKING_ATTACH, Emit.START_OPERATION, by="SESS-05 SESS-13 BOUND-35"),
        row(S.IDLE, I.RECV_READ, S.WORKING_READ, Emit.START_OPERATION, by="SESS-05 BOUND-35"),
        row(S.IDLE, I.RECV_SELECT, S.WORKING_SELECT, Emit.START_OPERATION, by="SESS-05 BOUND-35"),
        *(
            row(working, I.RECV_OPERATION_CANCEL, cancelling, Emit.OPERATION_CANCEL_RESULT, Emit.CANCEL_OPERATION,
                by="EXT-CANCEL-04 EXT-CANCEL-08")
            for working, cancelling in zip(WORKING, CANCELLING, strict=True)
        ),
        *stay(CANCELLING, I.RECV_OPERATION_CANCEL, Emit.OPERATION_CANCEL_RESULT, by="EXT-CANCEL-08 EXT-OP-25"),
        *(
            row(working, I.JOINT_STOP, cancelling, Emit.CANCEL_OPERATION, by="SHUT-07 FLOW-16 FLOW-23")
            for working, cancelling in zip(WORKING, CANCELLING, strict=True)
        ),
        *stay((S.IDLE, *CANCELLING), I.JOINT_STOP, by="FLOW-23"),
        *(move for given in _RESULTS for move in _results(given)),
        *rows(BUSY, I.WORKER_FAILED, S.IDLE, Emit.OPERATION_ERROR, by="SESS-44 SEL-95 SESS-15"),
        *rows(CANCELLING, I.WORKER_CANCELLED, S.IDLE, Emit.OPERATION_CANCELLED, by="SHUT-10 ERR-32"),
        *rows(WORKING, I.WORKER_CANCELLED, S.IDLE, Emit.OPERATION_ERROR, by="ERR-32 D82"),
        *rows(WORKING, I.WORKER_GONE, S.IDLE, Emit.OPERATION_ERROR, by="ENV-24 D82"),
        *rows(CANCELLING, I.WORKER_GONE, S.IDLE, Emit.OPERATION_CANCELLED, by="SHUT-10 ERR-32"),
        *stay((S.IDLE,), I.WORKER_FAILED, by="ENV-24"),
        *stay((S.IDLE,), I.WORKER_CANCELLED, by="ENV-24"),
        *stay((S.IDLE,), I.WORKER_GONE, by="ENV-24"),
    ),
)  # fmt: skip
