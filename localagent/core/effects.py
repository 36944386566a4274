"""The data that goes along with requests, words and moves: jobs, identities, revisions, clocks. No rule stands here."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, cast

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.protocol.params import InitializeParams, TurnStartParams
from statemachines import attachment
from statemachines.admission import BEGINS_RUN, JOBS
from statemachines.approval import ApprovalInput
from statemachines.attachment import AttachmentInput
from statemachines.client_call import ClientCallInput
from statemachines.connection import ConnectionInput
from statemachines.operation import OperationInput
from statemachines.rows import TERMINALS, Emit
from statemachines.run import RunInput
from statemachines.snapshot import SnapshotInput
from statemachines.step import Feed, Move

from . import reports, worker
from .commands import WorkerKind
from .engine import Engine
from .facts import Call, Facts, Operation, Run
from .fill import Moment
from .routes import Accepted

_WORDS: Final = {
    WorkerKind.STARTUP: (worker.Started, worker.StartFailed),
    WorkerKind.SESSION: (
        worker.SessionAttached,
        worker.Read,
        worker.Selected,
        worker.OperationFailed,
        worker.OperationCancelled,
    ),
    WorkerKind.TURN: (worker.TurnEnded,),
}
"""Kind of worker -> the last words it may say."""


def admit(accepted: Accepted, facts: Facts, job: int, fresh_id: Callable[[], str]) -> int:
    """Note what an admitted request begins. Returns how many jobs it starts, 1 or 0; ``job`` is the next number."""
    asked, given = accepted.asked, accepted.feed[1]
    if given is ConnectionInput.RECV_INITIALIZE:
        startup = facts.startup
        startup.job, startup.request_id = job, asked.request.id
        startup.form, startup.tools = cast(InitializeParams, asked.params), asked.tools
    elif given is BEGINS_RUN:
        session_id = cast(TurnStartParams, asked.params).session_id
        facts.run = Run(job=job, run_id=fresh_id(), session_id=session_id)
    elif given in (OperationInput.RECV_ATTACH, OperationInput.RECV_READ, OperationInput.RECV_SELECT):
        facts.operation = Operation(job, asked.request.id, asked.method, asked.params)
    else:
        return 0
    return 1


def kind_of(job: int, facts: Facts, engine: Engine) -> WorkerKind | None:
    """The kind of a job that is not over; None for any other number."""
    numbers = (facts.run.job, facts.operation.job, facts.startup.job)
    for kind, number in zip(_KINDS, numbers, strict=True):
        if number == job and engine.passes(JOBS[kind]):
            return kind
    return None


_KINDS: Final = (WorkerKind.TURN, WorkerKind.SESSION, WorkerKind.STARTUP)


def heard(word: worker.LastWord, kind: WorkerKind) -> worker.LastWord | None:
    """The last word of a worker of this kind; None where it is another kind's, which is as good as no word.

    A turn worker that says another kind's word has failed, but it has not left yet (EVT-46).
    """
    if isinstance(word, _WORDS[kind]):
        return word
    return worker.TurnEnded("failed") if kind is WorkerKind.TURN else None


def departure(kind: WorkerKind, facts: Facts) -> tuple[Feed, Feed | None]:
    """A worker has left without, or after, its last word: the input, and for a run its history's fresh revision."""
    if kind is WorkerKind.STARTUP:
        return ("connection", ConnectionInput.WORKER_START_FAILED), None
    if kind is WorkerKind.SESSION:
        return ("operation", OperationInput.WORKER_GONE), None
    return ("run", RunInput.WORKER_GONE), reports.HISTORY_REVISED if facts.run.revision else None


# what a move brings along; a row that ignores its input brings nothing


def _started(move: Move, m: Moment) -> None:
    word = cast(worker.Started, m.word)
    startup = m.facts.startup
    startup.provider, startup.model, startup.context_id = word.provider, word.model, word.context_id
    startup.refreshable = word.refreshable
    m.facts.selection = word.selection


def _start_failed(move: Move, m: Moment) -> None:
    startup = m.facts.startup
    word = m.word if isinstance(m.word, worker.StartFailed) else worker.StartFailed(Code.STARTUP_FAILED)
    startup.failure, startup.context_id = word.code, word.context_id
    startup.provider, startup.model = word.provider, word.model


def _attached(move: Move, m: Moment) -> None:
    if move.row.dest in attachment.HELD:
        word = cast(worker.SessionAttached, m.word)
        m.facts.session_id = word.session_id
        m.facts.selection = word.selection or m.facts.selection


def _selected(move: Move, m: Moment) -> None:
    if Emit.OPERATION_RESULT in move.row.emits:  # else it is another kind's result, and nothing else moves (D82)
        m.facts.selection = cast("worker.Selected | worker.Read", m.word).selection or m.facts.selection


def _ended(move: Move, m: Moment) -> None:
    word, run = cast(worker.TurnEnded, m.word), m.facts.run
    run.revision, run.selection, run.code = word.revision, word.selection, word.code


def _input_failed(move: Move, m: Moment) -> None:
    event, run = cast(worker.InputFailed, m.event), m.facts.run
    run.code, run.revision = event.code, event.revision


def _approval_asked(move: Move, m: Moment) -> None:
    event = cast(worker.ApprovalWanted, m.event)
    m.facts.run.approvals[event.approval_id] = event.asked_at + LIMITS.approval_ms


def _call_asked(move: Move, m: Moment) -> None:
    event = cast(worker.CallWanted, m.event)
    m.facts.run.calls[event.call_id] = Call(event.task_id, event.subagent_id, event.asked_at + event.timeout_ms)


def _revised(move: Move, m: Moment) -> None:
    word, revision = m.word, m.facts.run.revision
    if isinstance(word, worker.SessionAttached):
        revision = word.revision
    elif isinstance(word, worker.Selected):
        revision = word.history_revision
    elif isinstance(word, worker.Read) and word.trace is not None:
        revision = word.trace.revision
    m.facts.revisions[move.instance] = revision or ""


_FOLLOW: Final[Mapping[Enum, Callable[[Move, Moment], None]]] = {
    ConnectionInput.WORKER_STARTED: _started,
    ConnectionInput.WORKER_START_FAILED: _start_failed,
    AttachmentInput.JOINT_ATTACHED_LAZY: _attached,
    AttachmentInput.JOINT_ATTACHED_DURABLE: _attached,
    OperationInput.WORKER_SELECTED: _selected,
    OperationInput.WORKER_READ: _selected,
    RunInput.WORKER_COMPLETED: _ended,
    RunInput.WORKER_FAILED: _ended,
    RunInput.WORKER_STOPPED: _ended,
    RunInput.WORKER_INPUT_FAILED: _input_failed,
    ApprovalInput.WORKER_ASK: _approval_asked,
    ClientCallInput.WORKER_CALL: _call_asked,
    SnapshotInput.WORKER_REVISED: _revised,
    SnapshotInput.WORKER_FRESH_PAGE: _revised,
    SnapshotInput.WORKER_FRESH_LAST: _revised,
}


def follow(move: Move, moment: Moment) -> None:
    """Bring the data along with one move."""
    brings = _FOLLOW.get(cast(Any, move.row.input))
    changes = move.row.dest is not move.row.source
    if brings is not None and (changes or move.row.input in _ALWAYS):
        brings(move, moment)
    if TERMINALS.intersection(move.row.emits):
        moment.facts.selection = moment.facts.run.selection or moment.facts.selection


_ALWAYS: Final = (
    AttachmentInput.JOINT_ATTACHED_LAZY,
    AttachmentInput.JOINT_ATTACHED_DURABLE,
    SnapshotInput.WORKER_REVISED,
    SnapshotInput.WORKER_FRESH_PAGE,
    SnapshotInput.WORKER_FRESH_LAST,
)
"""Inputs that bring something even where the state stays: another session, another revision."""
