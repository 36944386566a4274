"""The properties every slice is judged by, assembled.

*Always* is made for a compiled slice from :mod:`statemachines.always_child` and :mod:`statemachines.always_run`, and
left out where the slice lacks a machine it speaks of. ``goals`` says what must stay reachable, ``unfired`` which rows
and finals no slice has shown.
"""

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from operator import itemgetter
from typing import Final

from statemachines import always_child, always_run
from statemachines.connection import ConnectionState as Connection
from statemachines.explore import Always, Goal, Judges, Model, Report
from statemachines.operation import BUSY
from statemachines.run import ACTIVE
from statemachines.step import TABLES, Tables, machine_of

_GROUPS: Final[tuple[tuple[str, Callable[[Model], Iterable[Always]]], ...]] = (
    ("connection", always_child.connection),
    ("connection", always_child.attachment),
    ("connection", always_child.operation),
    ("connection", always_child.snapshots),
    ("connection", always_run.run),
    ("approval", always_run.approvals),
    ("channel", always_run.channel),
    ("client_call", always_run.calls),
    ("message", always_run.segments),
    ("card", always_run.cards),
)


def always(model: Model) -> tuple[Judges, ...]:
    """The properties that speak of the machines of this slice, grouped by what they read."""
    groups = []
    for needs, group in _GROUPS:
        if any(machine_of(name) == needs for name in model.instances):
            model.asked.clear()
            properties = tuple(group(model))
            groups.append(Judges(itemgetter(*sorted(model.asked)), properties))
    return tuple(groups)


def goals(m: Model) -> Iterator[Goal]:
    """What must stay reachable in this slice."""
    conn, op, run = m.at("connection"), m.at("operation"), m.at("run")
    closed = m.code("connection", Connection.CLOSED)
    starting = m.code("connection", Connection.STARTING)
    busy, active = m.code("operation", *BUSY), m.code("run", *ACTIVE)
    anyone_else, workers = frozenset({"worker", "other"}), frozenset({"worker"})
    yield "closed, without the client", anyone_else, lambda s: True, lambda s: s[conn] in closed
    yield (
        "an owed answer, by workers alone",
        workers,
        lambda s: s[conn] not in closed and s[op] in busy,
        lambda s: s[op] not in busy,
    )
    yield (
        "an owed terminal, by workers alone",
        workers,
        lambda s: s[conn] not in closed and s[run] in active,
        lambda s: s[run] not in active,
    )
    yield "an owed startup, by workers alone", workers, lambda s: s[conn] in starting, lambda s: s[conn] not in starting


def unfired(explored: Iterable[tuple[Model, Report]], tables: Tables = TABLES) -> list[str]:
    """*Sometimes*: rows that no exploration has taken, and finals that none has reached."""
    taken: set[tuple[str, Enum, Enum]] = set()
    reached: set[tuple[str, Enum]] = set()
    for model, report in explored:
        reached |= report.finals
        for number in report.fired:
            name, row = model.rows[number]
            taken.add((name, row.source, row.input))
    missing = [
        f"{name}: {row.input.name} in {row.source.value} is never taken"
        for name, spec in tables.machines.items()
        for row in spec.rows
        if (name, row.source, row.input) not in taken
    ]
    missing += [
        f"{name}: {final.value} is never reached"
        for name, spec in tables.machines.items()
        for final in spec.finals
        if (name, final) not in reached
    ]
    return missing
