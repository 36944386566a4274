"""One step of the joint machine: an input, what it couples to, and what leaves.

This is the plain reading of the tables, used by scenarios, the observer and tests. The explorer compiles the same
tables to integers, the core's engine runs them through ``transitions``; tests hold the three against each other.

A *world* maps instance names to states. An instance is named like its machine; of a machine with many instances
each is ``machine:label`` (``approval:a``).
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from statemachines.registry import COUPLINGS, MACHINES
from statemachines.rows import SUBJECT, Emit, JointRow, MachineSpec, Row, Scope

World = dict[str, Enum]
Feed = tuple[str, Enum]
"""An instance name and the input it takes."""


class ImpossibleInputError(Exception):
    """A table has no row for an input in its state: the fault of the model or its driver, never the peer's.

    The world given to :func:`step` is unchanged.
    """

    def __init__(self, instance: str, state: Enum, given: Enum) -> None:
        super().__init__(f"{instance}: no row for {given.name} in {state.value}")
        self.instance, self.state, self.input = instance, state, given


@dataclass(frozen=True, slots=True)
class Move:
    """One row taken by one instance."""

    instance: str
    row: Row


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables a step reads; the registry's by default, a mutant's or a slice's in tests."""

    machines: Mapping[str, MachineSpec]
    couplings: Mapping[str, tuple[JointRow, ...]]


TABLES = Tables(MACHINES, COUPLINGS)


def machine_of(instance: str) -> str:
    """The machine an instance belongs to."""
    return instance.partition(":")[0]


def initial_world(instances: Iterable[str], tables: Tables = TABLES) -> World:
    """Every instance in its initial state."""
    return {instance: tables.machines[machine_of(instance)].initial for instance in instances}


def fresh_run(world: World, tables: Tables = TABLES) -> World:
    """A copy in which everything that lives as long as a run is initial again: a new run has new models."""
    specs = {instance: tables.machines[machine_of(instance)] for instance in world}
    return {
        instance: specs[instance].initial if specs[instance].scope is Scope.RUN else state
        for instance, state in world.items()
    }


def step(
    world: Mapping[str, Enum], feed: Feed, subject: Feed | None = None, tables: Tables = TABLES
) -> tuple[World, list[Move]]:
    """Feed one input and follow the couplings, first in first out.

    ``subject`` is what a worker's message is about; a gate row lets it through. Returns the world after, and the
    moves in order (their emits, joined, are what leaves). Raises :class:`ImpossibleInputError` where a row is missing.
    """
    after = dict(world)
    moves: list[Move] = []
    queue = deque([feed])
    while queue:
        instance, given = queue.popleft()
        machine, state = machine_of(instance), after[instance]
        row = tables.machines[machine].table.get((state, given))
        if row is None:
            raise ImpossibleInputError(instance, state, given)
        after[instance] = row.dest
        moves.append(Move(instance, row))
        for joint in tables.couplings[machine]:
            if joint.input is given and state in joint.sources:
                queue.extend(_targets(joint, instance, after, subject))
    return after, moves


def _targets(joint: JointRow, source: str, world: Mapping[str, Enum], subject: Feed | None) -> Iterable[Feed]:
    for target in joint.then:
        if target is not SUBJECT:
            for instance in labelled(world, source, target[0]):
                yield instance, target[1]
        elif subject is not None:
            yield subject


def labelled(instances: Iterable[str], source: str, machine: str) -> list[str]:
    """The instances of ``machine`` that a coupling from ``source`` reaches: its namesake if labelled, else all."""
    label = source.partition(":")[2]
    wanted = f"{machine}:{label}"
    return [name for name in instances if machine_of(name) == machine and (not label or name == wanted)]


def emitted(moves: Iterable[Move]) -> tuple[Emit, ...]:
    """What the moves emit, in order."""
    return tuple(emit for move in moves for emit in move.row.emits)
