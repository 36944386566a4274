"""Coupling: what else moves when a machine moves.

Read a row as "when this machine takes this input in one of these states, then these follow". Everything that
follows is queued first in, first out, until nothing is left; frames and commands leave in the order in which they
are emitted, so an answer always precedes what it causes.

A coupling names the sources because the same input can mean a step in one state and a late echo in another. Where
``then`` says ``SUBJECT`` the row is a gate: a worker's message carries the machine and input it is about, and only
the rows below let it through. Snapshots take part as targets only.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final

from statemachines import (
    activity,
    approval,
    attachment,
    channel,
    client_call,
    connection,
    message,
    operation,
    output,
    persistence,
    run,
    snapshot,
)
from statemachines.rows import SUBJECT, JointRow, Target

C, CI = connection.ConnectionState, connection.ConnectionInput
R, RI = run.RunState, run.RunInput
O, OI = output.OutputState, output.OutputInput  # noqa: E741
P, PI = persistence.PersistenceState, persistence.PersistenceInput
W, WI = operation.OperationState, operation.OperationInput
A, AI = activity.ActivityState, activity.ActivityInput
ATT, CALL, SNAP = attachment.AttachmentInput, client_call.ClientCallInput, snapshot.SnapshotInput

_RUN_LIVE = (R.EXECUTING, R.CANCELLING_USER, R.CANCELLING_STOP)
_READING = (W.WORKING_READ, W.CANCELLING_READ, W.WORKING_SELECT, W.CANCELLING_SELECT)
"""Kinds of operation that look at a snapshot, and may find that it has changed."""
_RUN_SILENT = (*run.CANCELLABLE, *run.CANCELLING)


def _when(machine: str, given: Enum, sources: Iterable[Enum], *then: Target, by: str) -> JointRow:
    return JointRow(machine, given, frozenset(sources), then, tuple(by.split()))


_STOPS = (
    CI.RECV_SHUTDOWN,
    CI.RECV_PROTOCOL_MISMATCH,
    CI.RECV_REQUEST_LIMIT,
    CI.RECV_FRAME_TOO_LARGE,
    CI.EOF_BETWEEN_FRAMES,
    CI.EOF_INSIDE_FRAME,
    CI.JOINT_OUTPUT_LOST,
)

_VOID: Target = ("approval", approval.ApprovalInput.JOINT_VOID)
_CALLS_END: Target = ("client_call", CALL.JOINT_RUN_ENDED)
_NEW_ATTACHMENT: tuple[Target, ...] = (
    ("history", SNAP.JOINT_STALE),
    ("list", SNAP.JOINT_STALE),
    ("discover", SNAP.JOINT_STALE),
    SUBJECT,
)

JOINT: Final[tuple[JointRow, ...]] = (
    # the connection stops everything it owns
    *(
        _when("connection", given, connection.LIVE,
              ("operation", WI.JOINT_STOP), ("run", RI.JOINT_STOP), ("attachment", ATT.JOINT_STOP),
              ("output", OI.JOINT_CLOSE), by="FLOW-16 FLOW-23 SHUT-06 SHUT-07 SHUT-08")
        for given in _STOPS
    ),
    # the output ends, cleanup follows, leases go last, then the process
    *(
        _when("output", given, (O.STALLED, O.DRAINING), ("connection", CI.JOINT_OUTPUT_LOST), by="FLOW-04 FLOW-06")
        for given in (OI.OUTPUT_OVERFLOW, OI.TIMER_OUTPUT)
    ),
    _when("output", OI.OUTPUT_BROKEN, (O.OPEN, O.STALLED, O.DRAINING), ("connection", CI.JOINT_OUTPUT_LOST),
          by="FLOW-08"),
    _when("output", OI.TIMER_CLOSING, (O.DRAINING,), ("connection", CI.JOINT_OUTPUT_LOST), by="FLOW-18 FLOW-19"),
    _when("output", OI.JOINT_CLOSE, (O.LOST,), ("connection", CI.JOINT_OUTPUT_LOST), by="FLOW-23 FLOW-31"),
    _when("output", OI.OUTPUT_DRAINED, (O.DRAINING,), ("connection", CI.JOINT_DRAINED), by="FLOW-30"),
    _when("output", OI.TIMER_CLOSING_CLEAN, (O.DRAINING,), ("connection", CI.JOINT_DRAINED), by="FLOW-30"),
    _when("connection", CI.WORKER_CLEANED, (C.STOPPING,), ("attachment", ATT.JOINT_TEARDOWN), by="SESS-43 FLOW-26"),
    _when("attachment", ATT.JOINT_TEARDOWN, (attachment.AttachmentState.RELEASING, attachment.AttachmentState.SEALED),
          ("connection", CI.JOINT_RELEASED), by="FLOW-26 FLOW-30"),
    _when("connection", CI.TIMER_CLEANUP, (C.STOPPING,), ("attachment", ATT.JOINT_DETACHED), by="FLOW-28"),
    # session operations
    _when("operation", WI.RECV_READ, (W.IDLE,), SUBJECT, by="EXT-REFRESH-41 EXT-OP-35"),
    _when("operation", WI.WORKER_ATTACHED_LAZY, (W.WORKING_ATTACH, W.CANCELLING_ATTACH),
          ("attachment", ATT.JOINT_ATTACHED_LAZY), *_NEW_ATTACHMENT, by="SESS-21 HIST-44 LIST-57"),
    _when("operation", WI.WORKER_ATTACHED_DURABLE, (W.WORKING_ATTACH, W.CANCELLING_ATTACH),
          ("attachment", ATT.JOINT_ATTACHED_DURABLE), *_NEW_ATTACHMENT, by="SESS-33 HIST-44 LIST-57"),
    _when("operation", WI.WORKER_SELECTED, (W.WORKING_SELECT, W.CANCELLING_SELECT),
          ("attachment", ATT.JOINT_STORED), *_NEW_ATTACHMENT, by="SESS-26 SEL-83 SEL-84"),
    _when("operation", WI.WORKER_READ, (W.WORKING_READ, W.CANCELLING_READ), SUBJECT, by="LIST-61 HIST-13 CAT-49"),
    *(
        _when("operation", given, _READING, SUBJECT, by="LIST-58 CAT-46 CAT-48 BASE-OP-127")
        for given in (WI.WORKER_FAILED, WI.WORKER_CANCELLED, WI.WORKER_GONE)
    ),
    # the run and what is stored of it
    _when("run", RI.WORKER_INPUT_APPENDED, (R.ADMITTED, *run.CANCELLING), ("persistence", PI.JOINT_INPUT_STORED),
          by="EVT-11 BASE-OP-157"),
    _when("persistence", PI.JOINT_INPUT_STORED, (P.UNSTORED,), ("attachment", ATT.JOINT_STORED), by="SESS-24"),
    _when("run", RI.WORKER_APPEND_FAILED, (R.EXECUTING, *run.CANCELLING, *run.FINISHING),
          ("persistence", PI.JOINT_APPEND_FAILED), by="TURN-27"),
    _when("run", RI.WORKER_COMPLETED, (R.EXECUTING, R.CANCELLING_USER, R.CANCELLING_STOP),
          _VOID, _CALLS_END, ("persistence", PI.JOINT_COMPLETED), by="EVT-12 BASE-OP-156 APPR-08"),
    _when("persistence", PI.JOINT_COMPLETED, (P.UNSTORED,), ("run", RI.JOINT_UNSTORED), by="EVT-12 BASE-OP-156"),
    # the gates of a run's events
    _when("run", RI.WORKER_DELTA, _RUN_LIVE, ("persistence", PI.JOINT_PASS), by="EVT-12 EVT-15"),
    _when("run", RI.WORKER_REPORT,
          (*_RUN_LIVE, R.FINISHING_COMPLETED, R.FINISHING_FAILED, R.FINISHING_CANCELLED),
          ("persistence", PI.JOINT_PASS), by="EVT-12 EVT-47 EVT-50"),
    _when("run", RI.WORKER_ASK, (R.EXECUTING,), SUBJECT, by="EVT-36 CT-74"),
    _when("persistence", PI.JOINT_PASS, (P.STORED, P.DEGRADED), SUBJECT, by="EVT-12"),
    *(
        _when("activity", given, states, ("card", activity.SHOWS[given]), by="TC-162 TC-172")
        for given, states in activity.AGREES.items()
    ),
    # whatever ends a run's work ends what it asked for
    _when("run", RI.RECV_TURN_CANCEL, (R.EXECUTING,), _VOID, ("client_call", CALL.JOINT_CANCELLED),
          by="APPR-08 CT-125"),
    _when("run", RI.JOINT_STOP, (R.EXECUTING,), _VOID, ("client_call", CALL.JOINT_SHUTDOWN), by="APPR-09 CT-125"),
    _when("run", RI.JOINT_UNDELIVERABLE, (R.EXECUTING,), _VOID, _CALLS_END, by="APPR-08 CT-OP-35"),
    *(
        _when("run", given, (R.EXECUTING,), _VOID, _CALLS_END, by="APPR-08 CT-OP-23")
        for given in (RI.WORKER_FAILED, RI.WORKER_STOPPED)
    ),
    _when("channel", channel.ChannelInput.WORKER_UNDELIVERABLE, (channel.ChannelState.FULL,),
          ("run", RI.JOINT_UNDELIVERABLE), by="FLOW-13 BOUND-25"),
    # the end of a run
    _when("run", RI.WORKER_GONE, _RUN_SILENT, _VOID, _CALLS_END, ("run", RI.JOINT_GONE), by="EVT-45 D88"),
    *(
        _when("run", given, sources, ("message", message.MessageInput.JOINT_RUN_ENDED),
              ("history", SNAP.JOINT_STALE), SUBJECT, by="EVT-52 EVT-53 HIST-48")
        for given, sources in ((RI.WORKER_GONE, run.FINISHING), (RI.JOINT_GONE, run.FINISHING[1:]))
    ),
)  # fmt: skip

MI = message.MessageInput
_OPERATION_ENDS = (WI.WORKER_FAILED, WI.WORKER_CANCELLED, WI.WORKER_GONE)
_SCANS = ("list", "discover", "catalog")


def _carried() -> dict[tuple[str, Enum], tuple[tuple[str, Enum], ...]]:
    report: Final = (("run", RI.WORKER_REPORT),)
    ask: Final = (("run", RI.WORKER_ASK),)
    revising = (("run", RI.WORKER_GONE), ("operation", WI.WORKER_ATTACHED_LAZY),
                ("operation", WI.WORKER_ATTACHED_DURABLE), ("operation", WI.WORKER_SELECTED))  # fmt: skip
    read: Final = (("operation", WI.WORKER_READ),)
    failed = tuple(("operation", given) for given in _OPERATION_ENDS)
    carried: dict[tuple[str, Enum], tuple[tuple[str, Enum], ...]] = {
        ("message", MI.WORKER_DELTA): (("run", RI.WORKER_DELTA),),
        ("message", MI.WORKER_PART): report,
        ("message", MI.WORKER_LAST_PART): report,
        **{("activity", given): report for given in AI},
        ("approval", approval.ApprovalInput.WORKER_ASK): ask,
        ("client_call", CALL.WORKER_CALL): ask,
        ("client_call", CALL.WORKER_CALL_CANCELLED): report,
        ("history", SNAP.WORKER_REVISED): revising,
        ("catalog", SNAP.WORKER_REVISED): read,
    }
    for name in ("history", *_SCANS):
        carried |= {(name, SNAP.WORKER_PAGE): read, (name, SNAP.WORKER_LAST_PAGE): read}
        carried[name, SNAP.WORKER_CHANGED] = failed
    for name in _SCANS:
        carried |= {(name, SNAP.WORKER_FRESH_PAGE): read, (name, SNAP.WORKER_FRESH_LAST): read}
        carried[name, SNAP.WORKER_DROPPED] = failed
    return carried


CARRIED: Final = _carried()
"""Subject (machine, input) -> the inputs that can bring it along, as the worker's messages do."""
