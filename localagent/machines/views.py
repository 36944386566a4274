"""Which pictures there are, and what each shows. Data: the drawing is :mod:`localagent.machines.pictures`.

A machine has one picture, or several where one would not be read: each *view* then shows some of its rows. States may
be drawn as one box as far as they agree about every row that is shown, so a box never says more than the table. Every
row that moves, emits or couples is shown in at least one view.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from statemachines import connection, operation, run
from statemachines.registry import COUPLINGS, MACHINES
from statemachines.rows import Emit, MachineSpec, Row

C = connection.ConnectionState
R, RI = run.RunState, run.RunInput
W = operation.OperationState


def couples(machine: str, row: Row) -> bool:
    """True when another machine may move along with this row."""
    return any(joint.input is row.input and row.source in joint.sources for joint in COUPLINGS[machine])


def drawn(spec: MachineSpec) -> tuple[Row, ...]:
    """The rows that a picture must show: they move, emit or couple. The others ignore their input."""
    return tuple(row for row in spec.rows if not row.ignores or couples(spec.name, row))


def _every(_: Row) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class View:
    """One picture of a machine."""

    name: str
    machine: str
    title: str
    about: str
    """A sentence or two for the page that shows it."""
    shows: Callable[[Row], bool] = _every
    groups: tuple[tuple[Enum, ...], ...] = ()
    """States drawn as one box."""
    says: Mapping[tuple[Enum, Enum], str] = field(default_factory=dict)
    """(source, input) -> a wording that holds for all members of a group."""
    across: bool = False
    """Left to right instead of top to bottom."""
    abridges: bool = False
    """Rows of other views between the drawn states are hinted at."""
    context: tuple[Enum, ...] = ()
    """States drawn although no row that is shown ends there."""
    levels: tuple[tuple[Enum, ...], ...] = ()
    """States side by side, one level below the other; for views without edges."""
    frame: tuple[Enum, ...] = ()
    """States in a common frame, from which a hint leaves that holds for all of them."""
    frame_name: str = ""
    also: tuple[str, ...] = ()
    """Machines with the same table, which share the picture."""

    @property
    def spec(self) -> MachineSpec:
        """The machine it shows."""
        return MACHINES[self.machine]

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows it shows."""
        return tuple(row for row in drawn(self.spec) if self.shows(row))


def _stops(row: Row) -> bool:
    return row.dest in (C.STOPPING, C.CLOSED)


def _within(row: Row) -> bool:
    return row.source is row.dest


_CANCELS: Final = (RI.RECV_TURN_CANCEL, RI.JOINT_STOP, RI.JOINT_UNDELIVERABLE)


def _cancels(row: Row) -> bool:
    lost = R.FINISHING_UNDELIVERABLE in (row.source, row.dest)
    return not _within(row) and (row.input in _CANCELS or row.source in run.CANCELLING or lost)


def _main(row: Row) -> bool:
    return not _within(row) and not _cancels(row)


def _operation_words() -> dict[tuple[Enum, Enum], str]:
    """The wording of a result for any kind: its own, or another's."""
    table = MACHINES["operation"].rows
    results = {row.input for row in table if Emit.OPERATION_RESULT in row.emits}
    words = {
        (row.source, row.input): f"result of {'its' if Emit.OPERATION_RESULT in row.emits else 'another'} kind"
        for row in table
        if row.input in results
    }
    return words | {(row.source, row.input): "request admitted" for row in table if Emit.START_OPERATION in row.emits}


def _kinds(row: Row) -> bool:
    return row.source is W.IDLE or (row.source in operation.WORKING and Emit.OPERATION_RESULT in row.emits)


_REPORTING: Final = (R.FINISHING_COMPLETED, R.FINISHING_FAILED, R.FINISHING_CANCELLED)
_ASKED: Final = (R.CANCELLING_USER, R.CANCELLING_STOP)

_SPLIT: Final[Mapping[str, tuple[View, ...]]] = {
    "connection": (
        View(
            "connection", "connection", "Connection: startup and readiness",
            "From the first line to readiness. Every state drawn here can also stop; the other picture shows how.",
            shows=lambda row: not _stops(row), abridges=True, context=(C.STOPPING, C.CLOSED), frame=connection.LIVE,
            frame_name="live",
        ),
        View(
            "connection-stopping", "connection", "Connection: the ways to stop",
            "Six reasons, one manner: whatever stops the connection, output is drained or lost, cleanup follows, "
            "leases are released, and the exit comes last.",
            shows=_stops, groups=((C.UNINITIALIZED, C.READY, C.FAILED),), across=True,
        ),
    ),
    "operation": (
        View(
            "operation", "operation", "Session operation: one request, of any kind",
            "The three kinds walk the same way and differ in what a success does elsewhere; here they are one.",
            groups=(operation.WORKING, operation.CANCELLING), says=_operation_words(),
        ),
        View(
            "operation-kinds", "operation", "Session operation: the kinds and their results",
            "Which result ends which kind of request. Failure and cancellation are in the other picture.",
            shows=_kinds,
        ),
    ),
    "run": (
        View(
            "run", "run", "Run: from admission to run.finished",
            "The life of a turn as its user sees it. How it is cancelled, and what may be said meanwhile, "
            "are pictures of their own.",
            shows=_main, abridges=True, groups=(run.CANCELLING,), context=run.CANCELLING,
        ),
        View(
            "run-cancellation", "run", "Run: cancellation",
            "Who cancels is a state, because it decides what may still be said and how the run ends.",
            shows=_cancels, groups=(run.CANCELLABLE, _ASKED),
        ),
        View(
            "run-events", "run", "Run: what passes meanwhile",
            "What a run answers, lets through or denies without leaving its state.",
            shows=_within, groups=(_REPORTING,),
            levels=(run.CANCELLABLE, run.CANCELLING, run.FINISHING),
        ),
    ),
}  # fmt: skip


def _single(spec: MachineSpec, also: tuple[str, ...]) -> View:
    title = " and ".join([spec.title, *(MACHINES[name].title.lower() for name in also)])
    return View(spec.name, spec.name, title, "", also=also, across=spec.name in _ACROSS)


_ACROSS: Final = ("persistence", "channel", "card", "activity")


def _views() -> dict[str, View]:
    found: dict[str, View] = {}
    tables: dict[tuple[object, ...], list[str]] = {}
    for name, spec in MACHINES.items():
        tables.setdefault((spec.states, spec.inputs, spec.initial, spec.finals, spec.rows), []).append(name)
    for names in tables.values():
        first, *also = names
        views = _SPLIT.get(first) or (_single(MACHINES[first], tuple(also)),)
        found |= {view.name: view for view in views}
    return found


VIEWS: Final[Mapping[str, View]] = _views()
"""Name of a picture -> what it shows, in reading order of the machines."""


def views_of(machine: str) -> tuple[View, ...]:
    """The pictures of a machine; machines with equal tables share theirs."""
    return tuple(view for view in VIEWS.values() if machine in (view.machine, *view.also))
