"""The tables, run by the ``transitions`` library. Nothing else in the project imports it.

The library's machines are built from the rows (trigger = input name, no conditions, no callbacks). A step looks the
cell up in the table first, so what the library does is known before it is asked, and asserts where it arrived. Only
rows that change a state are triggered: a trigger costs fifty table look-ups, and most inputs change nothing.
"""

from collections import deque
from enum import Enum
from functools import cache
from typing import Any, Final

from statemachines.admission import Check
from statemachines.registry import COUPLINGS, MACHINES
from statemachines.rows import SUBJECT, JointRow, Scope
from statemachines.step import Feed, ImpossibleInputError, Move, machine_of

CHILD: Final = tuple(name for name, spec in MACHINES.items() if spec.scope is Scope.CHILD and not spec.many)
RUN: Final = tuple(name for name, spec in MACHINES.items() if spec.scope is Scope.RUN and not spec.many)


class _Model:
    """What the library moves: one instance of one machine. ``state`` is written by the library, once it has begun.

    Models are not added to the library's machine, which outlives every connection: it would keep each one for good,
    and warn of every method that it does not bind.
    """

    def __init__(self, instance: str, state: Enum) -> None:
        self.instance, self.state = instance, state


@cache
def _library_machine(name: str) -> Any:
    from transitions import Machine  # with the first move of any machine, so that the first answer need not wait for it

    spec = MACHINES[name]
    return Machine(
        model=None,
        states=list(spec.states),
        initial=spec.initial,
        transitions=[
            {"trigger": row.input.name, "source": row.source, "dest": row.dest}
            for row in spec.rows
            if row.dest is not row.source
        ],
        auto_transitions=False,
    )


@cache
def _couplings(name: str, given: Enum, source: Enum) -> tuple[JointRow, ...]:
    return tuple(joint for joint in COUPLINGS[name] if joint.input is given and source in joint.sources)


class Engine:
    """All instances of one connection and where they stand."""

    def __init__(self) -> None:
        self._models: dict[str, _Model] = {}
        self._many: dict[str, list[str]] = {name: [] for name, spec in MACHINES.items() if spec.many}
        for name in (*CHILD, *RUN):
            self._add(name)

    def state(self, instance: str) -> Enum:
        """The state of an instance; the initial one for an instance that no input has reached yet."""
        model = self._models.get(instance)
        return MACHINES[machine_of(instance)].initial if model is None else model.state

    def instances(self, machine: str) -> tuple[str, ...]:
        """The instances of a machine that exist."""
        return tuple(self._many.get(machine, (machine,)))

    def passes(self, check: Check, addressed: str = "") -> bool:
        """The answer of a structural check; ``addressed`` is the instance meant where a machine has many."""
        for machine, allowed in check.allowed:
            model = self._models.get(machine)
            state = self.state(addressed) if model is None else model.state
            if state not in allowed:
                return False
        return True

    def begin_run(self) -> None:
        """Everything that lives as long as a run is made anew."""
        for instance in [name for name in self._models if MACHINES[machine_of(name)].scope is Scope.RUN]:
            del self._models[instance]
        for instances in self._many.values():
            instances.clear()
        for name in RUN:
            self._add(name)

    def fire(self, feed: Feed, subject: Feed | None = None) -> list[Move]:
        """Feed an input and follow the couplings, first in first out; the moves in order.

        Raises :class:`ImpossibleInputError` where a table has no row, with what was moved before still moved: it is
        our fault, and the connection must not be used any more.
        """
        moves: list[Move] = []
        queue = deque([feed])
        while queue:
            instance, given = queue.popleft()
            move = self._take(instance, given)
            moves.append(move)
            for joint in _couplings(machine_of(instance), given, move.row.source):
                for target in joint.then:
                    if target is not SUBJECT:
                        queue.extend((each, target[1]) for each in self._reached(instance, target[0]))
                    elif subject is not None:
                        queue.append(subject)
        return moves

    def _take(self, instance: str, given: Enum) -> Move:
        spec = MACHINES[machine_of(instance)]
        model = self._models.get(instance) or self._add(instance)
        row = spec.table.get((model.state, given))
        if row is None:
            raise ImpossibleInputError(instance, model.state, given)
        if row.dest is not row.source:
            _library_machine(spec.name).events[given.name].trigger(model)
            if model.state is not row.dest:
                raise AssertionError(f"{instance}: {given.name} led to {model.state}, the table says {row.dest}")
        return Move(instance, row)

    def _reached(self, source: str, machine: str) -> tuple[str, ...]:
        label = source.partition(":")[2]
        return (f"{machine}:{label}",) if label else self.instances(machine)

    def _add(self, instance: str) -> _Model:
        name = machine_of(instance)
        model = self._models[instance] = _Model(instance, MACHINES[name].initial)
        if name in self._many:
            self._many[name].append(instance)
        return model
