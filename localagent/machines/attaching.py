"""How an attachment is made: ``creating`` and ``opening`` shown beside the states of the attachment.

They are no states of the attachment, because the child stays attached as before until they succeed; they are the
kind ``attach`` of the session operation. The picture is worked out by stepping both machines together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from localagent.machines import dot
from localagent.machines.dot import Html, Told, Word
from localagent.machines.pictures import word
from statemachines.attachment import AttachmentState
from statemachines.operation import OperationInput, OperationState
from statemachines.registry import MACHINES
from statemachines.rows import Emit
from statemachines.step import emitted, step

ATTACHING: Final = "attachment-attaching"
"""Name of the picture."""
TITLE: Final = "Attachment: creating and opening"
ABOUT: Final = (
    "While a session is created or opened the attachment stays what it was; only success replaces it. "
    "H is that earlier state, to which everything else leads back."
)

_BEFORE: Final = (AttachmentState.NONE, AttachmentState.LAZY, AttachmentState.DURABLE)
_PENDING: Final = (OperationState.WORKING_ATTACH, OperationState.CANCELLING_ATTACH)
_OTHERS: Final = (OperationInput.WORKER_READ, OperationInput.WORKER_SELECTED)
_FRAME: Final = "cluster_attachment"
_BACK: Final = "H"
_MAKING: Final = "creating or opening"


@dataclass(frozen=True, slots=True)
class End:
    """What one input does to a pending attach, from one earlier state."""

    pending: OperationState
    before: AttachmentState
    given: OperationInput
    operation: Enum
    attachment: Enum
    emits: tuple[Emit, ...]


def ends() -> Iterator[End]:
    """Every input that a pending attach takes while the connection is live, from every earlier state."""
    for pending in _PENDING:
        for before in _BEFORE:
            for given in OperationInput:
                if (pending, given) in MACHINES["operation"].table and given is not OperationInput.JOINT_STOP:
                    after, moves = step({"operation": pending, "attachment": before}, ("operation", given))
                    yield End(pending, before, given, after["operation"], after["attachment"], emitted(moves))


def _goal(end: End) -> str:
    if end.operation in _PENDING:
        return _MAKING
    return _BACK if end.given not in _succeeds() else end.attachment.value


def _succeeds() -> tuple[OperationInput, ...]:
    return (OperationInput.WORKER_ATTACHED_LAZY, OperationInput.WORKER_ATTACHED_DURABLE)


def attaching() -> str:
    """The DOT text of the picture. Raises :class:`ValueError` where a failed attach would change the attachment."""
    found: dict[str, list[End]] = {}
    for end in ends():
        goal = _goal(end)
        if goal == _BACK and end.attachment is not end.before:
            raise ValueError(f"{end.given.name} moves the attachment from {end.before.value}")
        found.setdefault(goal, []).append(end)
    start = Told(dot.CLIENT, (OperationInput.RECV_ATTACH.value,), (word(Emit.START_OPERATION),))
    begin = {**dot.CLIENT.edge, "label": dot.label([start], across=False), "ltail": _FRAME}
    history = {
        "shape": "circle",
        "label": _BACK,
        "width": "0.3",
        "height": "0.3",
        "margin": "0",
        "tooltip": "as before",
    }
    inside = [dot.node(each.value, {"label": dot.box([each.value], ())}) for each in _BEFORE]
    return dot.graph(
        ATTACHING,
        [
            *dot.defaults(across=False, title=TITLE, foot=_foot()),
            *dot.frame(_FRAME, "attachment", [*inside, dot.node(_BACK, history)]),
            dot.node(_MAKING, _box(found.pop(_MAKING))),
            dot.edge(_BEFORE[0].value, _MAKING, begin),
            *(dot.edge(_MAKING, goal, _edge(each)) for goal, each in found.items()),
        ],
    )


def _box(each: list[End]) -> dict[str, str]:
    tip = f"operation: {', '.join(each.value for each in _PENDING)}"
    return {"label": dot.box([_MAKING], _told(dot.CLIENT, each)), "tooltip": tip}


def _edge(each: list[End]) -> dict[str, str]:
    return {**dot.WORKER.edge, "label": dot.label(_told(dot.WORKER, each), across=False)}


def _told(kind: dot.Origin, each: list[End]) -> list[Told]:
    variants: dict[tuple[OperationInput, OperationState], list[tuple[Emit, ...]]] = {}
    for end in each:
        variants.setdefault((end.given, end.pending), []).append(end.emits)
    found: dict[tuple[Word, ...], dict[str, None]] = {}
    for (given, _), emits in variants.items():
        words = "result of another kind" if given in _OTHERS else given.value
        other = variants.get((given, _PENDING[0]), emits)
        words += ", once cancelled" if other != emits else ""
        says = tuple(_emit(emit, emits) for emit in max(emits, key=len))
        found.setdefault(says, {})[words] = None
    return [Told(kind, tuple(inputs), says) for says, inputs in found.items()]


def _emit(emit: Emit, variants: list[tuple[Emit, ...]]) -> Word:
    words, command = word(emit)
    return words if all(emit in each for each in variants) else f"{words}, if any", command


def _foot() -> Html:
    return dot.legend(TITLE, (dot.CLIENT, dot.WORKER), (("frame", False), ("command", True)),
                      "worked out from the tables of operation and attachment together")  # fmt: skip
