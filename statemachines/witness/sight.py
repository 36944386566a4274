"""Sight: which clauses were looked at when a frame was judged, so that a silent judge can be told from a blind one.

A clause is looked at when a row was taken that a frame shows, when a shape or a rule was asked about a frame that
came, when a refusal came on a ground that frames show, and when a frame came that was none of those which the end of
some machine forbids. What was only supposed does not count. Whether the clause held, the findings say.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from typing import Any, Final

from statemachines.admission import LINE, METHODS
from statemachines.joint import CARRIED
from statemachines.registry import MACHINES
from statemachines.rows import KINDS, Kind, Row
from statemachines.step import World, machine_of
from statemachines.witness.facts import ALSO
from statemachines.witness.rules import RULES, shown
from statemachines.witness.search import Step
from statemachines.witness.shapes import SHAPES, parts
from statemachines.witness.view import View

_UNSEEN: Final = ("TIMER_", "OUTPUT_", "WORKER_LATE", "WORKER_CLEANED")
"""Inputs that no frame names."""


def _shows(row: Row) -> bool:
    return any(KINDS[emit] is not Kind.COMMAND for emit in row.emits)


def _visible(row: Row) -> bool:
    return _shows(row) or not (row.ignores or row.input.name.startswith(_UNSEEN))


def _forbidding(machine: str) -> frozenset[Enum]:
    """The inputs of a machine that make a frame where they are not ignored."""
    carried = {given for name, given in CARRIED if name == machine}
    gates = {given for feeds in CARRIED.values() for name, given in feeds if name == machine}
    return frozenset(carried | gates | {row.input for row in MACHINES[machine].rows if _shows(row)})


@cache
def _forbidden(machine: str, state: Enum) -> frozenset[str]:
    spec, inputs = MACHINES[machine], _forbidding(machine)
    if state not in spec.finals:  # elsewhere a row forbids for one of several reasons, and which shows nothing
        return frozenset()
    rows = (row for row in spec.rows if row.source is state and row.ignores and row.input in inputs)
    return frozenset(clause for row in rows if row.input.name.startswith("WORKER_") for clause in row.clauses)


def forbidden(world: World) -> Iterator[str]:
    """The clauses that forbid some other frame in these states."""
    for instance, state in world.items():
        yield from _forbidden(machine_of(instance), state)


def taken(steps: Iterable[Step]) -> Iterator[str]:
    """The clauses of the rows that frames show to have been taken."""
    for step in steps:
        if not step.inferred:
            row = MACHINES[machine_of(step.instance)].table[step.source, step.input]
            yield from step.clauses if _visible(row) else ()


def shaped(name: str, value: Any) -> Iterator[str]:
    """The clauses of a shape, of the keys that are there, and of the shapes within."""
    if name not in SHAPES or not isinstance(value, dict):
        return
    yield from SHAPES[name].clauses
    for field in SHAPES[name].fields:
        if field.key in value:
            yield from field.clauses
            for inner, part in parts(field, value[field.key]):
                yield from shaped(inner, part)


_NEEDS: Final = {"TC": "tool.cards", "CT": "client.tools"}
"""Family of clauses -> the capability without which their rules hold of nothing."""


def ruled(kind: str, view: View) -> Iterator[str]:
    """The clauses of the rules of which a frame of this kind shows something."""
    for clause in shown(kind, view):
        need = _NEEDS.get(clause.partition("-")[0])
        if need is None or need in view.negotiated:
            yield clause


def _cited() -> Iterator[str]:
    for name, spec in MACHINES.items():
        yield from (clause for row in spec.rows if _visible(row) for clause in row.clauses)
        yield from (clause for state in spec.states for clause in _forbidden(name, state))
    for shape in SHAPES.values():
        yield from shape.clauses
        yield from (clause for field in shape.fields for clause in field.clauses)
    for rule in RULES:
        yield from rule.by.split()
    for check in (*(check for check, _ in LINE), *(check for each in METHODS.values() for check in each.checks)):
        yield from check.clauses
    for also in ALSO:
        yield from also.by.split()


CLAUSES: Final = frozenset(_cited())
"""Every clause that can be looked at."""
