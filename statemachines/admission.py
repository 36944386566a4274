"""Admission: which requests are accepted in which state, and with which code the others are refused.

For each method an ordered list of checks, first failure wins, then the (machine, input) that an accepted request
fires. A check is *structural* (it names the allowed states of machines, and its answer is looked up) or *factual*
(it names a predicate over the request and the data, which a classifier answers). Refusal codes stand here alone; a
refused request leaves every machine where it was, save the three codes that close the connection.

``LINE`` comes first, for every line; ``METHODS`` goes on once the method is known. ``CLASSIFIED`` and ``ASSUMED``
say the same of what is not a request: which input a report becomes, and what the shell promises about its timing.
The matrix of method and state is derived from these lists (``matrix``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from statemachines import (
    activity,
    approval,
    attachment,
    client_call,
    connection,
    message,
    operation,
    output,
    run,
    snapshot,
)

C = connection.ConnectionState
CI = connection.ConnectionInput
WI = operation.OperationInput
RI = run.RunInput
OI = output.OutputInput

STARTUP_CODE: Final = "startup code"
"""Stands for the code of the failed startup, one of six (ERR-22)."""


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """One step of an admission list.

    ``allowed`` maps machines to the states in which a structural check passes; it is empty for a factual one. Of a
    machine with many instances the state meant is that of the instance the request names. ``code`` is the refusal,
    empty where the line is discarded without an answer.
    """

    name: str
    code: str
    clauses: tuple[str, ...]
    allowed: tuple[tuple[str, frozenset[Enum]], ...] = ()

    @property
    def structural(self) -> bool:
        """True when the answer is looked up in the machines' states."""
        return bool(self.allowed)

    def passes(self, states: Mapping[str, Enum]) -> bool:
        """The answer of a structural check, given the state of each machine by name."""
        return all(states[machine] in allowed for machine, allowed in self.allowed)


@dataclass(frozen=True, slots=True)
class Fires:
    """What an accepted request, a closing refusal or a report feeds: an input of a machine."""

    machine: str
    input: Enum


@dataclass(frozen=True, slots=True)
class Admission:
    """A method's ordered checks and what it fires.

    A method whose list depends on its params has a second entry, ``method/continuation``: a page of a snapshot that
    exists already. ``choices`` are the inputs among which the classifier picks by data; mostly there is one.
    ``brings`` is the subject that goes along with them.
    """

    method: str
    checks: tuple[Check, ...]
    choices: tuple[Fires, ...]
    clauses: tuple[str, ...]
    brings: Fires | None = None


def _states(name: str, code: str, by: str, **allowed: Iterable[Enum]) -> Check:
    states = tuple((machine, frozenset(each)) for machine, each in allowed.items())
    return Check(name, code, tuple(by.split()), states)


def _fact(name: str, code: str, by: str) -> Check:
    return Check(name, code, tuple(by.split()))


# structural checks
LISTENING = _states("listening", "", "SHUT-05 FLOW-15", connection=connection.LIVE)
STOPPING = _states("stopping", "", "SHUT-05 FLOW-15", connection=(C.STOPPING,))
UNINITIALIZED = _states("uninitialized", "already_initialized", "NEG-25 NEG-26", connection=(C.UNINITIALIZED,))
INITIALIZED = _states("initialized", "not_initialized", "STATUS-02", connection=(C.STARTING, C.READY, C.FAILED))
STARTED = _states("started", "not_initialized", "SESS-01 SESS-02 ERR-14", connection=(C.READY, C.FAILED))
NOT_FAILED = _states("not failed", STARTUP_CODE, "SESS-03 ERR-22", connection=(C.READY,))
WORKER_FREE = _states("session worker free", "busy", "SESS-06", operation=(operation.OperationState.IDLE,))
NO_RUN = _states("no run", "busy", "SESS-07 TURN-14", run=run.OVER)
NO_WORK = _states("no work", "busy", "TURN-14 TURN-15", operation=(operation.OperationState.IDLE,), run=run.OVER)
ATTACHED = _states("attached", "session_missing", "HIST-06 TURN-12 SEL-55", attachment=attachment.HELD)
RUN_ACTIVE = _states("run active", "stale_run", "TURN-23", run=run.ANSWERABLE)
PENDING_APPROVAL = _states(
    "approval pending", "stale_approval", "APPR-04", approval=(approval.ApprovalState.REQUESTED,)
)
PENDING_CALL = _states(
    "call pending", "stale_client_tool_call", "CT-110", client_call=(client_call.ClientCallState.PUBLISHED,)
)
OPERATING = _states("operation active", "operation_missing", "EXT-CANCEL-10", operation=operation.BUSY)
HISTORY_CURRENT = _states("history snapshot current", "stale_revision", "HIST-05 HIST-46", history=snapshot.CURRENT)
LISTING_CURRENT = _states("listing snapshot current", "stale_revision", "LIST-58 LIST-59", list=snapshot.CURRENT)
CATALOG_CURRENT = _states("catalog snapshot current", "stale_catalog", "SEL-58 CAT-47", catalog=snapshot.CURRENT)

# factual checks of a line, in the order of D01
SIZE = _fact("at most 65,536 bytes", "frame_too_large", "FRAME-19 FRAME-20")
STRUCTURE = _fact("depth and quotes sound", "invalid_frame", "FRAME-23 FRAME-27")
ENVELOPE = _fact("JSON object of the five fields", "invalid_request", "FRAME-28 FRAME-29 ENV-05")
GRAMMAR = _fact("id and method in their grammar", "invalid_request", "ENV-13 D08")
PROTOCOL = _fact("this protocol, version 1", "protocol_mismatch", "ENV-08 ENV-09")
NEW_ID = _fact("id never seen", "duplicate_id", "ENV-47 ENV-48")
QUOTA = _fact("fewer than 4,096 ids", "request_limit", "ENV-54 ENV-55")
KNOWN = _fact("method known", "unsupported_method", "NEG-06 D14")

# factual checks of a method
PARAMS = _fact("params valid", "invalid_params", "ERR-10 D13")
SUPPORTED = _fact("capabilities supported", "unsupported_capability", "NEG-14")
REGISTRY = _fact("client tools valid", "invalid_params", "CT-17 D20")
NEGOTIATED = _fact("capability negotiated", "unsupported_capability", "NEG-05")
CALLS_NEGOTIATED = _fact("client.tools negotiated", "unsupported_method", "CT-108")
SAME_SESSION = _fact("attached session named", "stale_session", "HIST-07 TURN-13 SEL-56")
SAME_REVISION = _fact("revision current", "stale_revision", "HIST-05")
SAME_SELECTION = _fact("selection revision current", "stale_selection", "SEL-57")
SAME_CATALOG = _fact("catalog revision current", "stale_catalog", "SEL-58")
SAME_LISTING = _fact("revision and cursor of this listing", "stale_revision", "LIST-58 D31")
SAME_PAGES = _fact("revision and cursor of this catalog", "stale_catalog", "CAT-46 D31")
SAME_RUN = _fact("active run named", "stale_run", "TURN-23 D25")
SAME_APPROVAL = _fact("approval of this run named", "stale_approval", "APPR-04 D26")
SAME_REQUEST = _fact("active request named", "operation_missing", "EXT-CANCEL-12")
SAME_CALL = _fact("call of this run named", "stale_client_tool_call", "CT-110 CT-111")
PROTECTED = _fact("result protected", "invalid_params", "CT-103 CT-104")

LINE: Final[tuple[tuple[Check, Fires | None], ...]] = (
    (LISTENING, Fires("connection", CI.RECV_DISCARDED)),
    (SIZE, Fires("connection", CI.RECV_FRAME_TOO_LARGE)),
    (STRUCTURE, None),
    (ENVELOPE, None),
    (GRAMMAR, None),
    (PROTOCOL, Fires("connection", CI.RECV_PROTOCOL_MISMATCH)),
    (NEW_ID, None),
    (QUOTA, Fires("connection", CI.RECV_REQUEST_LIMIT)),
    (KNOWN, None),
)
"""The checks of every line, and what a failed one fires beside its code."""

_READY = (STARTED, NOT_FAILED)
_SESSION = (*_READY, WORKER_FREE, PARAMS, NO_RUN)
_NEGOTIATED_SESSION = (*_READY, WORKER_FREE, NEGOTIATED, PARAMS, NO_RUN)


def _method(
    method: str, *checks: Check, fires: tuple[tuple[str, Enum], ...], by: str, brings: Fires | None = None
) -> Admission:
    return Admission(method, checks, tuple(Fires(*each) for each in fires), tuple(by.split()), brings)


_ATTACH = (("operation", WI.RECV_ATTACH),)
_READ = (("operation", WI.RECV_READ),)

_LIST = (
    _method("initialize", UNINITIALIZED, PARAMS, SUPPORTED, REGISTRY,
            fires=(("connection", CI.RECV_INITIALIZE),), by="D20"),
    _method("status", INITIALIZED, PARAMS, fires=(("connection", CI.RECV_STATUS),), by="D22"),
    _method("shutdown", PARAMS, fires=(("connection", CI.RECV_SHUTDOWN),), by="D21"),
    _method("session.create", *_SESSION, fires=_ATTACH, by="D23"),
    _method("session.open", *_SESSION, fires=_ATTACH, by="D23"),
    _method("session.list", *_SESSION, fires=_READ, by="D23"),
    _method("session.list/continuation", *_SESSION, LISTING_CURRENT, SAME_LISTING, fires=_READ, by="D23 D31"),
    _method("session.discover", *_NEGOTIATED_SESSION, fires=_READ, by="D23 D31"),
    _method("model.catalog", *_SESSION, fires=_READ, by="D23"),
    _method("model.catalog/continuation", *_SESSION, CATALOG_CURRENT, SAME_PAGES, fires=_READ, by="D23 D31"),
    _method("model.catalog.status", *_NEGOTIATED_SESSION, fires=_READ, by="D23"),
    _method(
        "model.catalog.status/continuation", *_NEGOTIATED_SESSION, CATALOG_CURRENT, SAME_PAGES,
        fires=_READ, by="D23 D31",
    ),
    _method("model.refresh", *_NEGOTIATED_SESSION, fires=_READ, by="D23 EXT-OP-35",
            brings=Fires("catalog", snapshot.SnapshotInput.JOINT_STALE)),
    _method("operation.cancel", NEGOTIATED, PARAMS, OPERATING, SAME_REQUEST,
            fires=(("operation", WI.RECV_OPERATION_CANCEL),), by="D27"),
    _method("selection.set", *_SESSION, ATTACHED, SAME_SESSION, SAME_SELECTION, CATALOG_CURRENT, SAME_CATALOG,
            fires=(("operation", WI.RECV_SELECT),), by="D23 D30"),
    _method("history.page", *_SESSION, ATTACHED, SAME_SESSION, HISTORY_CURRENT, SAME_REVISION,
            fires=_READ, by="D23 D29"),
    _method("turn.start", *_READY, PARAMS, NO_WORK, ATTACHED, SAME_SESSION,
            fires=(("run", RI.RECV_TURN_START),), by="D24"),
    _method("turn.cancel", PARAMS, *_READY, RUN_ACTIVE, SAME_RUN, fires=(("run", RI.RECV_TURN_CANCEL),), by="D25"),
    _method("approval.answer", PARAMS, *_READY, SAME_APPROVAL, PENDING_APPROVAL,
            fires=(("approval", approval.ApprovalInput.RECV_ALLOW), ("approval", approval.ApprovalInput.RECV_DENY)),
            by="D26"),
    _method("client.tool.result", CALLS_NEGOTIATED, *_READY, PARAMS, SAME_CALL, PENDING_CALL, PROTECTED,
            fires=(("client_call", client_call.ClientCallInput.RECV_RESULT),), by="D28 CT-OP-27"),
)  # fmt: skip

METHODS: Final[Mapping[str, Admission]] = {each.method: each for each in _LIST}
"""Method -> its admission list, in the order of the contract."""

BEGINS_RUN: Final = RI.RECV_TURN_START
"""The input that begins a new run: what lives as long as a run (``Scope.RUN``) is then made anew."""

STARTUP_ON = _states("startup on", "", "BOUND-34", connection=(C.STARTING,))
RUN_ON = _states("run on", "", "BOUND-35", run=run.ACTIVE)
JOBS: Final[Mapping[str, Check]] = {"startup": STARTUP_ON, "session": OPERATING, "turn": RUN_ON}
"""Kind of worker -> while its job is not over; what a worker says later is ``WORKER_LATE``."""

RUN_OVER = _states("no run left", "", "FLOW-19 FLOW-20", run=run.OVER)
DRAINING = _states("draining", "", "FLOW-20", output=(output.OutputState.DRAINING,))
OUTPUT_ENDED = _states("output ended", "", "FLOW-30", output=output.ENDED)
CLOSED = _states("closed", "", "FLOW-20", connection=(C.CLOSED,))
PUMPING = _states("the pipe took everything so far", "", "D49", output=(output.OutputState.OPEN,))
QUEUE_EMPTY = _fact("queue empty", "", "FLOW-18")
SETTLED = _states(
    "segments and cards settled", "", "EVT-47 TC-179",
    message=set(message.MessageState) - {message.MessageState.STREAMING, message.MessageState.RECONCILING},
    card=set(activity.CardState) - {activity.CardState.RUNNING},
)  # fmt: skip

CLASSIFIED: Final[Mapping[str, tuple[tuple[tuple[Check, ...], Fires], ...]]] = {
    "queue emptied": (
        ((DRAINING, NO_WORK), Fires("output", OI.OUTPUT_DRAINED)),
        ((), Fires("output", OI.OUTPUT_EMPTIED)),
    ),
    "closing deadline": (
        ((QUEUE_EMPTY, RUN_OVER), Fires("output", OI.TIMER_CLOSING_CLEAN)),
        ((), Fires("output", OI.TIMER_CLOSING)),
    ),
}
"""Report -> the inputs it may become; the first whose checks all pass is taken."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """A promise of the shell: the input comes in one of ``sources`` only while ``checks`` pass.

    In its other states the input may come at any time: it is then a row to itself.
    """

    machine: str
    input: Enum
    sources: frozenset[Enum]
    checks: tuple[Check, ...]
    why: str


ASSUMED: Final = (
    Assumption("connection", CI.WORKER_CLEANED, frozenset({C.STOPPING}), (OUTPUT_ENDED, NO_WORK),
               "teardown starts when the output has ended, and waits for the workers"),
    Assumption("connection", CI.TIMER_CLEANUP, frozenset({C.STOPPING}), (OUTPUT_ENDED,),
               "the cleanup wait starts when the output has ended"),
    Assumption("output", OI.OUTPUT_DRAINED, frozenset({output.OutputState.DRAINING}), (NO_WORK,),
               "an empty queue is reported as drained only when nothing is outstanding"),
    Assumption("output", OI.TIMER_CLOSING_CLEAN, frozenset({output.OutputState.DRAINING}), (RUN_OVER,),
               "the closing deadline is clean only without a run"),
    Assumption("run", RI.WORKER_GONE,
               frozenset({run.RunState.FINISHING_COMPLETED, run.RunState.FINISHING_FAILED,
                          run.RunState.FINISHING_CANCELLED}), (SETTLED,),
               "a runner that gave its last word has reconciled every segment and resolved every card"),
)  # fmt: skip


def matrix_code(method: str, states: Mapping[str, Enum]) -> str:
    """The refusal code of a method in a joint state when all factual checks pass; ``"accepted"`` or ``"none"``."""
    if not LISTENING.passes(states):
        return "none"
    for check in METHODS[method].checks:
        if check.structural and not check.passes(states):
            return check.code
    return "accepted"
