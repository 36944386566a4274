"""The vocabulary of the model: rows, coupling rows, machines, and what a row may emit.

A machine is a finite table of rows ``(source, input, dest, emits, clause)``. ``(source, input)`` is unique, and there
are no guards: whatever depends on data is settled by a classifier before a table is asked, so an input's name says
all that matters. Names say where an input comes from:

``RECV_``    a line from the client, already admitted (refusals stand in :mod:`statemachines.admission` alone)
``WORKER_``  a message from the startup, session or turn worker
``TIMER_``   a deadline passed
``OUTPUT_``  the pipe took, refused or broke
``EOF_``     the client closed its end
``JOINT_``   another machine moved (:mod:`statemachines.joint`)

For the ``WORKER_``, ``TIMER_``, ``OUTPUT_`` and ``EOF_`` inputs a machine's table is total: what is late or out of
place is a row to itself that emits nothing, so a broken worker cannot reach the wire. ``RECV_`` inputs have rows
exactly where admission can fire them, ``JOINT_`` inputs and those that come through a gate (``joint.CARRIED``) where
they can arrive; ``check`` and ``explore`` prove it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final


class Name(Enum):
    """Base of all states and inputs. They are looked up all the time, so they hash by identity."""

    __hash__ = object.__hash__


class Kind(StrEnum):
    """What an emit becomes: a frame on the pipe, or a command to the shell."""

    RESPONSE = "response"
    EVENT = "event"
    COMMAND = "command"


class Emit(StrEnum):
    """Everything a row may emit, as a name; the core fills it with data. See :data:`KINDS`."""

    # responses
    INITIALIZE_RESULT = "initialize.result"
    INITIALIZE_ERROR = "initialize.error"
    INITIALIZE_CANCELLED = "initialize.cancelled"
    STATUS_RESULT = "status.result"
    SHUTDOWN_RESULT = "shutdown.result"
    PROTOCOL_MISMATCH = "error.protocol_mismatch"
    REQUEST_LIMIT = "error.request_limit"
    FRAME_TOO_LARGE = "error.frame_too_large"
    INCOMPLETE_FRAME = "error.incomplete_frame"
    OPERATION_RESULT = "operation.result"
    OPERATION_ERROR = "operation.error"
    OPERATION_CANCELLED = "operation.cancelled"
    OPERATION_CANCEL_RESULT = "operation.cancel.result"
    TURN_START_RESULT = "turn.start.result"
    TURN_CANCEL_RESULT = "turn.cancel.result"
    APPROVAL_ANSWER_RESULT = "approval.answer.result"
    CLIENT_TOOL_RESULT_RESULT = "client.tool.result.result"
    # events
    INPUT_PERSISTED = "input.persisted"
    MESSAGE_DELTA = "message.delta"
    MESSAGE_RECONCILE = "message.reconcile"
    ACTIVITY = "activity"
    TOOL_CARD = "tool.card"
    APPROVAL_REQUESTED = "approval.requested"
    DIAGNOSTIC = "diagnostic"
    CLIENT_TOOL_CALL = "client.tool.call"
    CLIENT_TOOL_CANCEL = "client.tool.cancel"
    RUN_COMPLETED = "run.finished/completed"
    RUN_FAILED = "run.finished/failed"
    RUN_CANCELLED = "run.finished/cancelled"
    # commands
    START_STARTUP = "start startup"
    START_OPERATION = "start operation"
    START_TURN = "start turn"
    CANCEL_STARTUP = "cancel startup"
    CANCEL_OPERATION = "cancel operation"
    CANCEL_TURN = "cancel turn"
    ALLOW = "allow"
    DENY = "deny"
    RETURN_CALL = "return call"
    FAIL_CALL = "fail call"
    RELEASE_PREVIOUS = "release previous leases"
    RELEASE_NEW = "release new leases"
    RELEASE_ALL = "release all leases"
    START_CLEANUP = "start cleanup"
    EXIT = "exit"


_COMMANDS: Final = tuple(Emit)[tuple(Emit).index(Emit.START_STARTUP) :]
_EVENTS: Final = tuple(Emit)[tuple(Emit).index(Emit.INPUT_PERSISTED) : tuple(Emit).index(Emit.START_STARTUP)]

KINDS: Final[Mapping[Emit, Kind]] = {
    emit: Kind.COMMAND if emit in _COMMANDS else Kind.EVENT if emit in _EVENTS else Kind.RESPONSE for emit in Emit
}

TERMINALS: Final = frozenset({Emit.RUN_COMPLETED, Emit.RUN_FAILED, Emit.RUN_CANCELLED})
"""The three spellings of ``run.finished``, by outcome."""


@dataclass(frozen=True, slots=True)
class Row:
    """One legal move: in ``source``, ``input`` leads to ``dest`` and emits ``emits`` in that order.

    ``clauses`` are the ids of the sentences that demand it.
    """

    source: Enum
    input: Enum
    dest: Enum
    emits: tuple[Emit, ...]
    clauses: tuple[str, ...]

    @property
    def ignores(self) -> bool:
        """True for a row to itself that emits nothing."""
        return self.source is self.dest and not self.emits


class Subject(Enum):
    """The place of a coupling row's target that the input itself brings along (see :class:`JointRow`)."""

    SUBJECT = "subject"


SUBJECT: Final = Subject.SUBJECT

Target = tuple[str, Enum] | Subject


@dataclass(frozen=True, slots=True)
class JointRow:
    """Coupling: when ``machine`` takes ``input`` in one of ``sources``, each of ``then`` is fired, first in first out.

    ``then`` names a machine and an input; a machine with several instances gets it on all of them, or on the namesake
    of an instance that has a label. ``SUBJECT`` stands
    for the (machine, input) that a worker's message is about, an event's own segment for example: the coupling is
    then a gate, and where no gate lets the subject through the message has no effect.
    """

    machine: str
    input: Enum
    sources: frozenset[Enum]
    then: tuple[Target, ...]
    clauses: tuple[str, ...]


class Scope(StrEnum):
    """How long one instance of a machine lives."""

    CHILD = "child"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class MachineSpec:
    """A machine: its states in drawing order, its inputs, its rows, and the text of its theory (from the module)."""

    name: str
    title: str
    states: tuple[Enum, ...]
    inputs: tuple[Enum, ...]
    initial: Enum
    finals: frozenset[Enum]
    rows: tuple[Row, ...]
    theory: str
    scope: Scope = Scope.CHILD
    gone: frozenset[Enum] = frozenset()
    """States in which the process has ended: they take no input at all."""
    many: bool = False
    """True when several instances live at once (approvals, segments, activities, client calls)."""
    table: Mapping[tuple[Enum, Enum], Row] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", {(row.source, row.input): row for row in self.rows})


def row(source: Enum, given: Enum, dest: Enum, *emits: Emit, by: str) -> Row:
    """One row; ``by`` holds clause ids separated by spaces."""
    return Row(source, given, dest, emits, tuple(by.split()))


def rows(sources: Iterable[Enum], given: Enum, dest: Enum, *emits: Emit, by: str) -> tuple[Row, ...]:
    """The same move from several sources."""
    return tuple(row(source, given, dest, *emits, by=by) for source in sources)


def stay(sources: Iterable[Enum], given: Enum, *emits: Emit, by: str) -> tuple[Row, ...]:
    """Rows to themselves: the input is answered (``emits``) or ignored (none), and nothing moves."""
    return tuple(row(source, given, source, *emits, by=by) for source in sources)


TOTAL_PREFIXES: Final = ("WORKER_", "TIMER_", "OUTPUT_", "EOF_")
"""Inputs of these prefixes have a row in every state."""


def is_total(given: Enum) -> bool:
    """True for an input that every state of its machine must have a row for."""
    return given.name.startswith(TOTAL_PREFIXES)
