"""The connection: from the first line a child may read to its exit.

It models readiness (what a child may be asked), the one startup, and the way out. A connection stops for six
reasons (shutdown, three closing errors, end of input, lost output) and always in the same manner: nothing more is
admitted, work is cancelled, output drains, resources are cleaned up, the process exits. It leaves the work itself to
the other machines and the exit status to the output machine: 0 when output ended ``drained``, 1 when ``lost``.

``stopping`` covers draining and the cleanup wait, because no client can tell them apart. The cleanup wait begins
when the output has ended; until then neither ``WORKER_CLEANED`` nor ``TIMER_CLEANUP`` comes (see
``admission.ASSUMED``). Exit is a separate step behind the release of the leases, so that it is always the last;
``closed`` takes no input, because no process is left to take one.

A worker message whose job is over is ``WORKER_LATE``: jobs are numbered, and nothing else is looked at.
"""

from enum import unique

from statemachines.rows import Emit, MachineSpec, Name, Row, row, rows, stay


@unique
class ConnectionState(Name):
    """States of the connection, spelt as the protocol spells them."""

    UNINITIALIZED = "uninitialized"
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    STOPPING = "stopping"
    CLOSED = "closed"


@unique
class ConnectionInput(Name):
    """Inputs of the connection."""

    RECV_INITIALIZE = "initialize admitted"
    RECV_STATUS = "status"
    RECV_SHUTDOWN = "shutdown"
    RECV_PROTOCOL_MISMATCH = "foreign protocol or version"
    RECV_REQUEST_LIMIT = "new id beyond 4,096"
    RECV_FRAME_TOO_LARGE = "byte 65,537 of a frame"
    RECV_DISCARDED = "any input"
    EOF_BETWEEN_FRAMES = "end of input"
    EOF_INSIDE_FRAME = "end of input inside a frame"
    WORKER_STARTED = "startup succeeded"
    WORKER_START_FAILED = "startup failed"
    WORKER_LATE = "message of a finished job"
    WORKER_CLEANED = "teardown finished"
    TIMER_CLEANUP = "cleanup wait passed"
    JOINT_DRAINED = "output drained"
    JOINT_OUTPUT_LOST = "output lost"
    JOINT_RELEASED = "leases released"


S, I = ConnectionState, ConnectionInput  # noqa: E741

LIVE = (S.UNINITIALIZED, S.STARTING, S.READY, S.FAILED)
_CALM = (S.UNINITIALIZED, S.READY, S.FAILED)


def _stops(given: ConnectionInput, *emits: Emit, by: str) -> tuple[Row, ...]:
    """A reason to stop, from every live state; a pending startup is cancelled and answered."""
    return (
        *rows(_CALM, given, S.STOPPING, *emits, by=by),
        row(
            S.STARTING, given, S.STOPPING, *emits, Emit.CANCEL_STARTUP, Emit.INITIALIZE_CANCELLED,
            by=f"{by} SHUT-06 SHUT-09",
        ),
    )  # fmt: skip


CONNECTION = MachineSpec(
    name="connection",
    title="Connection",
    states=tuple(S),
    inputs=tuple(I),
    initial=S.UNINITIALIZED,
    finals=frozenset({S.CLOSED}),
    gone=frozenset({S.CLOSED}),
    theory=__doc__ or "",
    rows=(
        row(S.UNINITIALIZED, I.RECV_INITIALIZE, S.STARTING, Emit.START_STARTUP, by="NEG-20 START-11"),
        row(S.STARTING, I.WORKER_STARTED, S.READY, Emit.INITIALIZE_RESULT, by="NEG-21 NEG-22"),
        row(S.STARTING, I.WORKER_START_FAILED, S.FAILED, Emit.INITIALIZE_ERROR, by="NEG-24 ERR-20"),
        *stay((S.UNINITIALIZED, S.READY, S.FAILED), I.WORKER_STARTED, by="BOUND-34 ENV-24"),
        *stay((S.UNINITIALIZED, S.READY, S.FAILED), I.WORKER_START_FAILED, by="BOUND-34 ENV-24"),
        *stay((S.STOPPING,), I.WORKER_STARTED, by="SHUT-09 ENV-24"),
        *stay((S.STOPPING,), I.WORKER_START_FAILED, by="SHUT-09 ENV-24"),
        *stay((S.STARTING,), I.RECV_STATUS, Emit.STATUS_RESULT, by="STATUS-04"),
        *stay((S.READY,), I.RECV_STATUS, Emit.STATUS_RESULT, by="STATUS-06"),
        *stay((S.FAILED,), I.RECV_STATUS, Emit.STATUS_RESULT, by="STATUS-18"),
        *_stops(I.RECV_SHUTDOWN, Emit.SHUTDOWN_RESULT, by="SHUT-02 SHUT-03 SHUT-04"),
        *_stops(I.RECV_PROTOCOL_MISMATCH, Emit.PROTOCOL_MISMATCH, by="ENV-08 ENV-09"),
        *_stops(I.RECV_REQUEST_LIMIT, Emit.REQUEST_LIMIT, by="ENV-54 ENV-55"),
        *_stops(I.RECV_FRAME_TOO_LARGE, Emit.FRAME_TOO_LARGE, by="FRAME-20 FRAME-21"),
        *_stops(I.EOF_BETWEEN_FRAMES, by="FLOW-15 FLOW-16"),
        *_stops(I.EOF_INSIDE_FRAME, Emit.INCOMPLETE_FRAME, by="FRAME-16 FRAME-17"),
        *rows(_CALM, I.JOINT_OUTPUT_LOST, S.STOPPING, by="FLOW-08 FLOW-23"),
        row(S.STARTING, I.JOINT_OUTPUT_LOST, S.STOPPING, Emit.CANCEL_STARTUP, by="FLOW-08 FLOW-23"),
        row(S.STOPPING, I.RECV_DISCARDED, S.STOPPING, by="SHUT-05 FLOW-15"),
        *stay((S.STOPPING,), I.EOF_BETWEEN_FRAMES, by="D45"),
        *stay((S.STOPPING,), I.EOF_INSIDE_FRAME, by="D46"),
        row(S.STOPPING, I.JOINT_DRAINED, S.STOPPING, Emit.START_CLEANUP, by="FLOW-30 BOUND-30"),
        row(S.STOPPING, I.JOINT_OUTPUT_LOST, S.STOPPING, Emit.START_CLEANUP, by="FLOW-18 FLOW-31"),
        row(S.STOPPING, I.WORKER_CLEANED, S.STOPPING, by="SESS-43 FLOW-26"),
        row(S.STOPPING, I.JOINT_RELEASED, S.CLOSED, Emit.EXIT, by="FLOW-20 D40"),
        row(S.STOPPING, I.TIMER_CLEANUP, S.CLOSED, Emit.EXIT, by="FLOW-28 BOUND-31"),
        *stay(LIVE, I.WORKER_CLEANED, by="BOUND-30"),
        *stay(LIVE, I.TIMER_CLEANUP, by="BOUND-30"),
        *stay((*LIVE, S.STOPPING), I.WORKER_LATE, by="ENV-24 EVT-04"),
    ),
)  # fmt: skip
