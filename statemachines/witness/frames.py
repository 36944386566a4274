"""What a backend frame tells: which emit it is, of which instance, and which inputs would have made it.

An event names its instance by the id it carries (``message:m``), and most name the very input: a delta is
``WORKER_DELTA``, an ``activity`` says whether it started or ended. Such an input comes through its gate, as the
worker's messages do (``joint.CARRIED``). An answer tells no input by itself: that depends on the request.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple

from statemachines.activity import ActivityInput
from statemachines.approval import ApprovalInput
from statemachines.client_call import ClientCallInput
from statemachines.connection import ConnectionInput
from statemachines.joint import CARRIED
from statemachines.message import MessageInput
from statemachines.operation import OperationInput
from statemachines.rows import TERMINALS, Emit
from statemachines.run import RunInput
from statemachines.snapshot import SnapshotInput
from statemachines.step import Feed, machine_of
from statemachines.witness.ledger import SNAPSHOT_OF, Asked, Data

Fed = tuple[Feed, Feed | None]
"""An input, and the subject that it brings along."""

RESULTS: Final = frozenset(emit for emit in Emit if emit.value.endswith(".result"))
"""The emits that become a response with a result."""

CODE_OF: Final[Mapping[Emit, str]] = {
    Emit.INITIALIZE_CANCELLED: "startup_cancelled",
    Emit.OPERATION_CANCELLED: "operation_cancelled",
    Emit.PROTOCOL_MISMATCH: "protocol_mismatch",
    Emit.REQUEST_LIMIT: "request_limit",
    Emit.FRAME_TOO_LARGE: "frame_too_large",
    Emit.INCOMPLETE_FRAME: "incomplete_frame",
}
"""The emits that become a response with one certain code."""


@dataclass(frozen=True, slots=True)
class Told:
    """A backend frame, read."""

    kind: str
    """``event/NAME``, ``result`` or ``error``."""
    label: str
    emits: frozenset[Emit]
    names: frozenset[str]
    """The instances that may have emitted it; of an answer its id, empty for null."""
    data: Data
    code: str = ""
    feeds: tuple[Fed, ...] = ()
    """The inputs that it names."""
    instances: tuple[str, ...] = ()
    """The instances it names; they exist from then on."""

    @property
    def answers(self) -> bool:
        """True for a response."""
        return not self.kind.startswith("event/")


class _Named(NamedTuple):
    """An event that carries the id of an instance: ``emitter:id`` emits it, ``about:id`` takes the input."""

    emit: Emit
    key: str
    emitter: str
    about: str
    given: Callable[[Data], Enum | None]


_ACTIVITIES: Final[Mapping[Any, Enum]] = {
    "started": ActivityInput.WORKER_STARTED,
    "completed": ActivityInput.WORKER_COMPLETED,
    "failed": ActivityInput.WORKER_FAILED,
}
_CARDS: Final[Mapping[Any, Enum]] = {
    None: ActivityInput.WORKER_CARD_RUNNING,
    "success": ActivityInput.WORKER_CARD_SUCCESS,
    "failure": ActivityInput.WORKER_CARD_FAILURE,
    "cancelled": ActivityInput.WORKER_CARD_CANCELLED,
    "unknown": ActivityInput.WORKER_CARD_UNKNOWN,
    "interrupted": ActivityInput.WORKER_CARD_INTERRUPTED,
}
_OUTCOMES: Final[Mapping[Any, Emit]] = {emit.value.partition("/")[2]: emit for emit in TERMINALS}


def _word(data: Data, key: str) -> str | None:
    """A value that ought to be a word; empty when it is not."""
    value = data.get(key)
    return value if value is None or isinstance(value, str) else ""


def _card(data: Data) -> Enum | None:
    card = data.get("card")
    return _CARDS.get(_word(card, "outcome")) if isinstance(card, dict) else None


_NAMED: Final[Mapping[str, _Named]] = {
    "message.delta": _Named(Emit.MESSAGE_DELTA, "message_id", "message", "message",
                            lambda _: MessageInput.WORKER_DELTA),
    "message.reconcile": _Named(Emit.MESSAGE_RECONCILE, "message_id", "message", "message",
                                lambda d: MessageInput.WORKER_LAST_PART if d.get("last_part")
                                else MessageInput.WORKER_PART),
    "activity": _Named(Emit.ACTIVITY, "activity_id", "activity", "activity",
                       lambda d: _ACTIVITIES.get(_word(d, "state"))),
    "tool.card": _Named(Emit.TOOL_CARD, "activity_id", "card", "activity", _card),
    "approval.requested": _Named(Emit.APPROVAL_REQUESTED, "approval_id", "approval", "approval",
                                 lambda _: ApprovalInput.WORKER_ASK),
    "client.tool.call": _Named(Emit.CLIENT_TOOL_CALL, "call_id", "client_call", "client_call",
                               lambda _: ClientCallInput.WORKER_CALL),
    "client.tool.cancel": _Named(Emit.CLIENT_TOOL_CANCEL, "call_id", "client_call", "client_call",
                                 lambda _: ClientCallInput.WORKER_CALL_CANCELLED),
}  # fmt: skip

_PLAIN: Final[Mapping[str, tuple[Emit, frozenset[str], tuple[Enum, ...]]]] = {
    "input.persisted": (Emit.INPUT_PERSISTED, frozenset({"persistence"}), (RunInput.WORKER_INPUT_APPENDED,)),
    "diagnostic": (Emit.DIAGNOSTIC, frozenset({"run", "persistence"}),
                   (RunInput.WORKER_DIAGNOSTIC, RunInput.WORKER_APPEND_FAILED)),
}  # fmt: skip


def carried(subject: Feed) -> tuple[Fed, ...]:
    """The inputs that can bring a subject along, each with it."""
    instance, given = subject
    return tuple((gate, subject) for gate in CARRIED[machine_of(instance), given])


def read_event(name: str, data: Data) -> Told | None:
    """Read an event; None when it is none of the ten, or does not say enough."""
    kind = f"event/{name}"
    if name in _PLAIN:
        emit, names, inputs = _PLAIN[name]
        return Told(kind, name, frozenset({emit}), names, data, feeds=tuple((("run", each), None) for each in inputs))
    if name == "run.finished" and _word(data, "outcome") in _OUTCOMES:
        subject = ("history", SnapshotInput.WORKER_REVISED) if data.get("revision") is not None else None
        feeds: tuple[Fed, ...] = ((("run", RunInput.WORKER_GONE), subject),)
        label, emits = f"{name} {data['outcome']}", frozenset({_OUTCOMES[data["outcome"]]})
        return Told(kind, label, emits, frozenset({"run"}), data, feeds=feeds)
    named = _NAMED.get(name)
    given = named.given(data) if named else None
    if named is None or given is None:
        return None
    about, emitter = (f"{machine}:{data.get(named.key)}" for machine in (named.about, named.emitter))
    feeds = carried((about, given))
    if name == "client.tool.cancel":
        feeds = (((about, ClientCallInput.TIMER_EXPIRED), None), *feeds)
    label = " ".join((name, *(str(data[key]) for key in ("state", "reason") if key in data)))
    instances = tuple(dict.fromkeys((about, emitter)))
    return Told(kind, label, frozenset({named.emit}), frozenset({emitter}), data, "", feeds, instances)


def read_answer(frame: Data, label: str) -> Told:
    """Read a response."""
    name = frozenset({frame["id"] if isinstance(frame.get("id"), str) else ""})
    if "error" not in frame:
        return Told("result", f"{label} result", RESULTS, name, frame["result"])
    code = str(frame["error"].get("code"))
    emits = frozenset({Emit.INITIALIZE_ERROR, Emit.OPERATION_ERROR, *CODE_OF})
    return Told("error", f"{label} {code}", emits, name, frame["error"], code)


_FRESH: Final = (SnapshotInput.WORKER_FRESH_PAGE, SnapshotInput.WORKER_FRESH_LAST)
_FURTHER: Final = (SnapshotInput.WORKER_PAGE, SnapshotInput.WORKER_LAST_PAGE)


def startup_feeds(told: Told) -> tuple[Fed, ...]:
    """What the startup worker said, if this answers ``initialize``."""
    given = ConnectionInput.WORKER_START_FAILED if told.code else ConnectionInput.WORKER_STARTED
    return ((("connection", given), None),)


def work_feeds(asked: Asked, told: Told) -> tuple[Fed, ...]:
    """What the session worker said, if this answers ``asked``; several where frames do not show which."""
    if told.code:
        return _failed(asked, told.code)
    given, subject = OperationInput.WORKER_READ, None
    history = ("history", SnapshotInput.WORKER_REVISED)
    match asked.method:
        case "session.create" | "session.open":
            durable = told.data.get("durable") is True
            given = OperationInput.WORKER_ATTACHED_DURABLE if durable else OperationInput.WORKER_ATTACHED_LAZY
            return ((("operation", given), history),)
        case "selection.set":
            revised = told.data.get("history_revision") is not None
            return ((("operation", OperationInput.WORKER_SELECTED), history if revised else None),)
        case "model.refresh":
            revised = told.data.get("catalog_revision") is not None
            subject = ("catalog", SnapshotInput.WORKER_REVISED) if revised else None
        case _:
            pages = _FURTHER if asked.continues or asked.method == "history.page" else _FRESH
            subject = (SNAPSHOT_OF[asked.method], pages[told.data.get("next_cursor") is None])
    return ((("operation", given), subject),)


def _failed(asked: Asked, code: str) -> tuple[Fed, ...]:
    """A failed page may have spoilt its snapshot or not (BASE-OP-109, BASE-OP-127)."""
    given = OperationInput.WORKER_CANCELLED if code == "operation_cancelled" else OperationInput.WORKER_FAILED
    machine = SNAPSHOT_OF.get(asked.method)
    spoils = SnapshotInput.WORKER_CHANGED if asked.continues or machine == "history" else SnapshotInput.WORKER_DROPPED
    gate = ("operation", given)
    return ((gate, (machine, spoils)), (gate, None)) if machine else ((gate, None),)
