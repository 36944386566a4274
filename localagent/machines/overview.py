"""The joint pictures: which machine moves which, and how an attachment is made."""

from collections.abc import Iterator
from enum import Enum
from textwrap import wrap
from typing import Final

from localagent.machines import dot
from localagent.machines.dot import Html, Told
from statemachines.joint import CARRIED, JOINT
from statemachines.registry import COUPLINGS, MACHINES
from statemachines.rows import SUBJECT, JointRow, MachineSpec, Scope

OVERVIEW: Final = "overview"
"""Name of the picture of all machines."""

TITLE: Final = "The machines and their couplings"
NARROW: Final = 17
"""Characters of a line in this picture, which has many columns."""

MOST_WORDS: Final = 4
"""Inputs that an arrow names; with more it says how many."""

Pair = tuple[str, str]

BESIDE: Final[Pair] = ("activity", "card")
"""Two machines that share a column."""


def moves() -> dict[Pair, list[tuple[Enum, JointRow]]]:
    """(machine, machine it moves) -> the inputs it feeds, each with the coupling row."""
    found: dict[Pair, list[tuple[Enum, JointRow]]] = {}
    for joint in JOINT:
        for target in joint.then:
            if target is not SUBJECT:
                found.setdefault((joint.machine, target[0]), []).append((target[1], joint))
    return found


def passes() -> dict[Pair, list[tuple[Enum, Enum]]]:
    """(gate, machine) -> the worker's inputs that the gate lets through to it, each with what brings it."""
    found: dict[Pair, list[tuple[Enum, Enum]]] = {}
    for (machine, given), carriers in CARRIED.items():
        for gate, brings in carriers:
            for last in _gates(gate, brings):
                found.setdefault((last, machine), []).append((given, brings))
    return found


def _gates(machine: str, given: Enum) -> Iterator[str]:
    """The machines that hand a subject on when ``machine`` takes ``given``: itself, or those behind it."""
    seen: dict[str, None] = {}
    for joint in COUPLINGS[machine]:
        if joint.input is given:
            for target in joint.then:
                seen |= dict.fromkeys([machine] if target is SUBJECT else _gates(*target))
    yield from seen


def _box_of() -> dict[str, tuple[str, ...]]:
    """Machine -> the machines drawn with it: those that take part in the same couplings in the same way."""
    alike: dict[object, list[str]] = {}
    for name in MACHINES:
        key = (
            MACHINES[name].states,
            frozenset((a, i) for (a, b), each in moves().items() if b == name for i, _ in each),
            frozenset(a for a, b in passes() if b == name),
            any(joint.machine == name for joint in JOINT) and name,
        )
        alike.setdefault(key, []).append(name)
    return {name: tuple(names) for names in alike.values() for name in names}


def overview() -> str:
    """All machines and the couplings between them."""
    box = _box_of()
    boxes = tuple(dict.fromkeys(box.values()))
    edges: dict[tuple[str, str, str], str] = {}
    for (source, dest), inputs in moves().items():
        if source != dest:
            values = _move(inputs, across=(source, dest) != BESIDE)
            ends = _id(box[source]), _id(box[dest])
            edges.setdefault((*ends, "moves"), dot.edge(*ends, values))
    for (source, dest), carried in passes().items():
        ends = _id(box[source]), _id(box[dest])
        edges.setdefault((*ends, "passes"), dot.edge(*ends, _pass(carried)))
    return dot.graph(
        OVERVIEW,
        [
            *dot.defaults(across=True, title=TITLE, foot=_foot()),
            *(dot.node(_id(each), _node(each)) for each in boxes),
            *edges.values(),
            dot.same_level(BESIDE),
        ],
    )


def _id(names: tuple[str, ...]) -> str:
    return "+".join(names)


def _node(names: tuple[str, ...]) -> dict[str, str]:
    spec = MACHINES[names[0]]
    own = [Told(MOVES, tuple(dict.fromkeys(given.value for given, _ in each)))
           for (source, dest), each in moves().items() if source == dest and source in names]  # fmt: skip
    values: dict[str, str] = {
        "label": dot.box([line for name in names for line in _title(MACHINES[name])], own),
        "tooltip": ", ".join(names),
    }
    return {**values, "fillcolor": RUN_FILL} if spec.scope is Scope.RUN else values


def _title(spec: MachineSpec) -> list[str]:
    return wrap(f"{spec.title}, each" if spec.many else spec.title, NARROW)


def _move(each: list[tuple[Enum, JointRow]], *, across: bool) -> dict[str, str]:
    words = tuple(dict.fromkeys(given.value for given, _ in each))
    if len(words) > MOST_WORDS:
        words = (f"{len(words)} inputs",)  # each is in the tooltip, and in the table
    told = (f"{joint.input.name} -> {given.name}: {' '.join(joint.clauses)}" for given, joint in each)
    tip = "\n".join(dict.fromkeys(told))
    label = dot.label([Told(MOVES, words)], across=across, wide=NARROW, after=3 if across else 72)
    return {**MOVES.edge, "label": label, "tooltip": tip, "labeltooltip": tip}


def _pass(each: list[tuple[Enum, Enum]]) -> dict[str, str]:
    tip = "\n".join(dict.fromkeys(f"{brings.name}: {given.name}" for given, brings in each))
    return {**PASSES.edge, "tooltip": tip}


RUN_FILL: Final = "#FBF3DF"
MOVES: Final = dot.Origin("moves", dot.INK, "solid", 1.1)
PASSES: Final = dot.Origin("lets a worker's message through", dot.WORKER.colour, "dashed", 1.1)


def _foot() -> Html:
    note = "words on an arrow: the inputs it feeds; tinted: lives as long as a run; each: several at once"
    return dot.legend(TITLE, (MOVES, PASSES), (), note)
