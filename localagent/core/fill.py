"""Emits become frames and commands: the names that rows emit, filled with the data of the moment.

One small function per emit. Nothing here decides anything: that an emit is due was settled by a row.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast

from msgspec import UNSET, Struct

from localagent.protocol import events, results
from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS, published
from localagent.protocol.names import CLIENT_TOOLS, TOOL_CARDS, advertised
from localagent.protocol.params import ClientToolResultParams, OperationCancelParams
from localagent.protocol.results import Output
from statemachines.admission import RUN_ON
from statemachines.client_call import REASONS
from statemachines.connection import ConnectionState
from statemachines.output import EXIT_STATUS
from statemachines.persistence import REPORTED
from statemachines.rows import Emit
from statemachines.run import RunState
from statemachines.step import Move

from . import worker
from .commands import (
    CancelWorker,
    Command,
    Exit,
    Leases,
    ReleaseLeases,
    ResolveApproval,
    ResolveCall,
    StartCleanup,
    StartWorker,
    WorkerKind,
)
from .engine import Engine
from .facts import Facts
from .routes import Asked


class Answer(Struct, frozen=True):
    """A response to a request; ``id`` is None where none can be told."""

    id: str | None
    result: Output | Code


class Moment(Struct):
    """What an emit may draw on: the facts, the machines, and what set the step off."""

    facts: Facts
    engine: Engine
    asked: Asked | None = None
    event: worker.RunEvent | None = None
    word: worker.LastWord | None = None
    refused_id: str | None = None


Filled = Answer | Output | Command
"""A response, the data of an event, or a command."""


_RUNNING: Final = ("running", "ready")
_STATUS: Final[Mapping[Any, tuple[str, str]]] = {
    ConnectionState.STARTING: ("starting", "initializing"),
    ConnectionState.READY: ("idle", "ready"),
    ConnectionState.FAILED: ("failed", ""),
}
"""Connection state -> ``state`` and ``readiness`` without a run; a failed startup's readiness is its code."""


def status(facts: Facts, engine: Engine) -> results.Status:
    """The status object of this moment, from memory (STATUS-03 to STATUS-19)."""
    startup, running = facts.startup, engine.passes(RUN_ON)
    named = facts.selection or startup  # the effective names once there is a selection (STATUS-07, STATUS-17)
    state, readiness = _RUNNING if running else _STATUS[engine.state("connection")]
    return results.Status(
        context_id=startup.context_id,
        model=named.model,
        provider=named.provider,
        readiness=cast(Any, readiness or startup.failure),
        run_id=facts.run.run_id if running else None,
        selection=facts.selection,
        session_id=facts.session_id,
        state=cast(Any, state),
    )


def _initialized(facts: Facts, engine: Engine) -> results.Initialized:
    required = facts.negotiated
    tools = tuple(tool.name for tool in facts.startup.tools or ())
    extensions = results.Extensions(
        client_tools=results.ClientToolsDescriptor(tools=tools) if CLIENT_TOOLS in required else UNSET,
        model_refresh=results.RefreshDescriptor() if "model.refresh" in required else UNSET,
        session_discover=results.DiscoverDescriptor() if "session.discover" in required else UNSET,
        tool_cards=results.CardsDescriptor() if TOOL_CARDS in required else UNSET,
    )
    some = any(getattr(extensions, name) is not UNSET for name in extensions.__struct_fields__)
    return results.Initialized(
        capabilities=tuple(name for name in advertised(required) if name in facts.served),
        client_tools=results.ClientTools(tools=tools) if CLIENT_TOOLS in required else UNSET,
        extensions=extensions if some else UNSET,
        limits=published(),
        status=status(facts, engine),
    )


def _label(move: Move) -> str:
    return move.instance.partition(":")[2]


def _request_id(m: Moment) -> str:
    return cast(Asked, m.asked).request.id


def _operation_answer(m: Moment, move: Move) -> Filled:
    word = cast("worker.SessionAttached | worker.Read | worker.Selected", m.word)
    return Answer(m.facts.operation.request_id, word.result)


_BROKEN_WORKER: Final = {
    "session.create": Code.SESSION_INVALID,
    "session.open": Code.SESSION_INVALID,
    "history.page": Code.SESSION_INVALID,
    "session.list": Code.DISCOVERY_UNAVAILABLE,
    "session.discover": Code.DISCOVERY_UNAVAILABLE,
    "model.catalog": Code.CATALOG_UNAVAILABLE,
    "model.catalog.status": Code.CATALOG_UNAVAILABLE,
    "model.refresh": Code.CATALOG_UNAVAILABLE,
    "selection.set": Code.PERSISTENCE_FAILED,
}
"""What answers a request whose worker ended without a usable word (D82)."""


def _operation_error(m: Moment, move: Move) -> Filled:
    failed = isinstance(m.word, worker.OperationFailed)
    code = cast(worker.OperationFailed, m.word).code if failed else _BROKEN_WORKER[m.facts.operation.method]
    return Answer(m.facts.operation.request_id, code)


def _start(kind: WorkerKind) -> Callable[[Moment, Move], Filled]:
    def start(m: Moment, move: Move) -> Filled:
        asked, facts = cast(Asked, m.asked), m.facts
        job = {
            WorkerKind.STARTUP: facts.startup.job,
            WorkerKind.SESSION: facts.operation.job,
            WorkerKind.TURN: facts.run.job,
        }[kind]
        run_id = facts.run.run_id if kind is WorkerKind.TURN else None
        return StartWorker(job, kind, asked.method, cast(Any, asked.params), facts.session_id, run_id)

    return start


def _told(kind: type[Output], event: type[worker.RunEvent], **fixed: Any) -> Callable[[Moment, Move], Filled]:
    """The data of an event: what the worker told under the same names, the run's two ids, and what is ``fixed``."""
    same = tuple(name for name in kind.__struct_fields__ if name in event.__struct_fields__)

    def fill(m: Moment, move: Move) -> Filled:
        run, told = m.facts.run, {name: getattr(m.event, name) for name in same}
        return kind(run_id=run.run_id, session_id=run.session_id, **told, **fixed)

    return fill


def _call_cancel(m: Moment, move: Move) -> Filled:
    run, call = m.facts.run, m.facts.run.calls[_label(move)]
    return events.ClientToolCancel(
        call_id=_label(move),
        reason=cast(Any, REASONS[cast(Any, move.row.input)]),
        run_id=run.run_id,
        session_id=run.session_id,
        subagent_id=call.subagent_id,
        task_id=call.task_id,
    )


def _deny(m: Moment, move: Move) -> Filled:
    """No to whoever asked: a pending approval, or an approval or call that came too late to be asked at all (D87)."""
    job = m.facts.run.job
    if isinstance(m.event, worker.CallWanted):
        return ResolveCall(job, m.event.call_id, None, "cancelled")
    late = isinstance(m.event, worker.ApprovalWanted) and move.instance == "run"
    return ResolveApproval(job, cast(worker.ApprovalWanted, m.event).approval_id if late else _label(move), False)


def _finished(outcome: Literal["completed", "failed", "cancelled"]) -> Callable[[Moment, Move], Filled]:
    def finished(m: Moment, move: Move) -> Filled:
        run = m.facts.run
        code: Code | None = None
        if outcome == "failed":
            code = run.code or Code.EXECUTION_FAILED
        elif move.row.source is RunState.FINISHING_UNDELIVERABLE:
            code = Code.OUTPUT_UNAVAILABLE
        return events.RunFinished(
            error_code=code,
            outcome=outcome,
            persistence=cast(Any, REPORTED[cast(Any, m.engine.state("persistence"))]),
            revision=run.revision,
            run_id=run.run_id,
            session_id=run.session_id,
        )

    return finished


FILL: Final[Mapping[Emit, Callable[[Moment, Move], Filled]]] = {
    Emit.INITIALIZE_RESULT: lambda m, _: Answer(m.facts.startup.request_id, _initialized(m.facts, m.engine)),
    Emit.INITIALIZE_ERROR: lambda m, _: Answer(
        m.facts.startup.request_id, m.facts.startup.failure or Code.STARTUP_FAILED
    ),
    Emit.INITIALIZE_CANCELLED: lambda m, _: Answer(m.facts.startup.request_id, Code.STARTUP_CANCELLED),
    Emit.STATUS_RESULT: lambda m, _: Answer(_request_id(m), status(m.facts, m.engine)),
    Emit.SHUTDOWN_RESULT: lambda m, _: Answer(_request_id(m), results.Stopping()),
    Emit.PROTOCOL_MISMATCH: lambda m, _: Answer(m.refused_id, Code.PROTOCOL_MISMATCH),
    Emit.REQUEST_LIMIT: lambda m, _: Answer(m.refused_id, Code.REQUEST_LIMIT),
    Emit.FRAME_TOO_LARGE: lambda m, _: Answer(None, Code.FRAME_TOO_LARGE),
    Emit.INCOMPLETE_FRAME: lambda m, _: Answer(None, Code.INCOMPLETE_FRAME),
    Emit.OPERATION_RESULT: _operation_answer,
    Emit.OPERATION_ERROR: _operation_error,
    Emit.OPERATION_CANCELLED: lambda m, _: Answer(m.facts.operation.request_id, Code.OPERATION_CANCELLED),
    Emit.OPERATION_CANCEL_RESULT: lambda m, _: Answer(
        _request_id(m),
        results.Cancelling(request_id=cast(OperationCancelParams, cast(Asked, m.asked).params).request_id),
    ),
    Emit.TURN_START_RESULT: lambda m, _: Answer(_request_id(m), results.TurnAccepted(run_id=m.facts.run.run_id)),
    Emit.TURN_CANCEL_RESULT: lambda m, _: Answer(_request_id(m), results.CancellationRequested()),
    Emit.APPROVAL_ANSWER_RESULT: lambda m, _: Answer(_request_id(m), results.ApprovalRecorded()),
    Emit.CLIENT_TOOL_RESULT_RESULT: lambda m, _: Answer(_request_id(m), results.ToolResultAccepted()),
    Emit.INPUT_PERSISTED: _told(events.InputPersisted, worker.InputAppended, durable=True),
    Emit.MESSAGE_DELTA: _told(events.MessageDelta, worker.Delta),
    Emit.MESSAGE_RECONCILE: _told(events.MessageReconcile, worker.Reconcile),
    Emit.ACTIVITY: _told(events.Activity, worker.ActivityChanged),
    Emit.TOOL_CARD: _told(events.ToolCard, worker.CardShown),
    Emit.APPROVAL_REQUESTED: _told(events.ApprovalRequested, worker.ApprovalWanted, expires_in_ms=LIMITS.approval_ms),
    Emit.DIAGNOSTIC: _told(events.Diagnostic, worker.Note),
    Emit.CLIENT_TOOL_CALL: _told(events.ClientToolCall, worker.CallWanted),
    Emit.CLIENT_TOOL_CANCEL: _call_cancel,
    Emit.RUN_COMPLETED: _finished("completed"),
    Emit.RUN_FAILED: _finished("failed"),
    Emit.RUN_CANCELLED: _finished("cancelled"),
    Emit.START_STARTUP: _start(WorkerKind.STARTUP),
    Emit.START_OPERATION: _start(WorkerKind.SESSION),
    Emit.START_TURN: _start(WorkerKind.TURN),
    Emit.CANCEL_STARTUP: lambda m, _: CancelWorker(m.facts.startup.job),
    Emit.CANCEL_OPERATION: lambda m, _: CancelWorker(m.facts.operation.job),
    Emit.CANCEL_TURN: lambda m, _: CancelWorker(m.facts.run.job),
    Emit.ALLOW: lambda m, move: ResolveApproval(m.facts.run.job, _label(move), True),
    Emit.DENY: _deny,
    Emit.RETURN_CALL: lambda m, move: ResolveCall(
        m.facts.run.job, _label(move), cast(ClientToolResultParams, cast(Asked, m.asked).params), None
    ),
    Emit.FAIL_CALL: lambda m, move: ResolveCall(
        m.facts.run.job, _label(move), None, REASONS[cast(Any, move.row.input)]
    ),
    Emit.RELEASE_PREVIOUS: lambda m, _: ReleaseLeases(Leases.PREVIOUS),
    Emit.RELEASE_NEW: lambda m, _: ReleaseLeases(Leases.NEW),
    Emit.RELEASE_ALL: lambda m, _: ReleaseLeases(Leases.ALL),
    Emit.START_CLEANUP: lambda m, _: StartCleanup(),
    Emit.EXIT: lambda m, _: Exit(EXIT_STATUS[cast(Any, m.engine.state("output"))]),
}
"""Emit -> what it becomes."""
