"""Mutants of the model: each row broken once, to test the tests.

A mutant is one change of the tables: a row deleted, redirected or robbed of an emit, a coupling without one of its
targets or sources, an admission list without a check or with two in the wrong order. It is killed by a scenario that
fails (``by_scenario``) or by a property, a missing row or a stuck state that the explorer finds (``by_explorer``).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Final

from statemachines.admission import Check
from statemachines.explore import SLICES, compile_slice, explore
from statemachines.properties import always, goals
from statemachines.registry import COUPLINGS, MACHINES
from statemachines.rows import SUBJECT, JointRow, MachineSpec, Row
from statemachines.step import Tables, machine_of
from tests.kit.scenario_files import Scenario, ScenarioError, load
from tests.kit.scenarios import RULES, Gate, MismatchError, Place, Rules, Touched, play


class Change(StrEnum):
    """What was done to the model."""

    DELETED = "row deleted"
    REDIRECTED = "row redirected"
    SILENCED = "emit removed"
    UNCOUPLED = "coupling target removed"
    UNSOURCED = "coupling source removed"
    UNCHECKED = "check removed"
    REORDERED = "checks swapped"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed model, and where it was changed."""

    change: Change
    name: str
    machine: str
    """The changed machine; for an admission list, its name."""
    places: tuple[Place, ...]
    """Rows or coupling sources that a scenario must come by to see the change."""
    gates: tuple[Gate, ...]
    """Checks that must have failed in a scenario that can see the change."""
    rules: Rules


def row_name(machine: str, row: Row) -> str:
    """A row, for people and for lists of exceptions."""
    return f"{machine}, {row.source.value}, {row.input.name}"


def deletions() -> Iterator[Mutant]:
    """Each row of each machine deleted."""
    for name, spec in MACHINES.items():
        for i, row in enumerate(spec.rows):
            yield _of_row(Change.DELETED, spec, row, (*spec.rows[:i], *spec.rows[i + 1 :]), row_name(name, row))


def redirections() -> Iterator[Mutant]:
    """Each row of each machine sent to the state after its destination, in the machine's order."""
    for name, spec in MACHINES.items():
        for i, row in enumerate(spec.rows):
            dest = spec.states[(spec.states.index(row.dest) + 1) % len(spec.states)]
            rows = (*spec.rows[:i], replace(row, dest=dest), *spec.rows[i + 1 :])
            yield _of_row(Change.REDIRECTED, spec, row, rows, f"{row_name(name, row)} -> {dest.value}")


def silencings() -> Iterator[Mutant]:
    """Each row without each of the things it emits."""
    for name, spec in MACHINES.items():
        for i, row in enumerate(spec.rows):
            for j, emit in enumerate(row.emits):
                less = replace(row, emits=(*row.emits[:j], *row.emits[j + 1 :]))
                rows = (*spec.rows[:i], less, *spec.rows[i + 1 :])
                yield _of_row(Change.SILENCED, spec, row, rows, f"{row_name(name, row)} without {emit}")


def _of_row(change: Change, spec: MachineSpec, row: Row, rows: tuple[Row, ...], name: str) -> Mutant:
    tables = Tables({**MACHINES, spec.name: replace(spec, rows=rows)}, COUPLINGS)
    return Mutant(change, name, spec.name, ((spec.name, row.source, row.input),), (), Rules(tables))


def uncouplings() -> Iterator[Mutant]:
    """Each coupling row without each of its targets, and without each of its sources."""
    for machine, joints in COUPLINGS.items():
        for i, joint in enumerate(joints):
            for j, target in enumerate(joint.then):
                said = "subject" if target is SUBJECT else f"{target[0]} {target[1].name}"
                less = replace(joint, then=(*joint.then[:j], *joint.then[j + 1 :]))
                yield _of_joint(Change.UNCOUPLED, machine, i, less, f"{machine}, {joint.input.name} -> {said}")
            for source in sorted(joint.sources, key=MACHINES[machine].states.index):
                less = replace(joint, sources=joint.sources - {source})
                yield _of_joint(Change.UNSOURCED, machine, i, less, f"{machine}, {source.value}, {joint.input.name}")


def _of_joint(change: Change, machine: str, i: int, less: JointRow, name: str) -> Mutant:
    joints = COUPLINGS[machine]
    couplings = {**COUPLINGS, machine: (*joints[:i], less, *joints[i + 1 :])}
    places = tuple((machine, source, less.input) for source in joints[i].sources)
    return Mutant(change, name, machine, places, (), Rules(Tables(MACHINES, couplings)))


def misadmissions() -> Iterator[Mutant]:
    """Each check of each admission list removed; each two neighbours that say different codes swapped."""
    for i, (check, _) in enumerate(RULES.line):
        less = (*RULES.line[:i], *RULES.line[i + 1 :])
        yield _of_list(Change.UNCHECKED, "line", Rules(line=less), check)
    for i, (one, two) in enumerate(pairwise(RULES.line)):
        if one[0].code != two[0].code:
            swapped = (*RULES.line[:i], two, one, *RULES.line[i + 2 :])
            yield _of_list(Change.REORDERED, "line", Rules(line=swapped), one[0], two[0])
    for method, admission in RULES.methods.items():
        checks = admission.checks
        for i, check in enumerate(checks):
            lists = {**RULES.methods, method: replace(admission, checks=(*checks[:i], *checks[i + 1 :]))}
            yield _of_list(Change.UNCHECKED, method, Rules(methods=lists), check)
        for i, (before, after) in enumerate(pairwise(checks)):
            if before.code != after.code:
                order = (*checks[:i], after, before, *checks[i + 2 :])
                lists = {**RULES.methods, method: replace(admission, checks=order)}
                yield _of_list(Change.REORDERED, method, Rules(methods=lists), before, after)
    for report, cases in RULES.classified.items():
        for i, (checks, fires) in enumerate(cases):
            for check in checks:
                case = (tuple(each for each in checks if each is not check), fires)
                changed = {**RULES.classified, report: (*cases[:i], case, *cases[i + 1 :])}
                yield _of_list(Change.UNCHECKED, report, Rules(classified=changed), check)


def _of_list(change: Change, name: str, rules: Rules, *checks: Check) -> Mutant:
    gates = tuple((name, check.name) for check in checks)
    return Mutant(change, f"{name}: {', '.join(check.name for check in checks)}", name, (), gates, rules)


@cache
def touched() -> Sequence[tuple[Scenario, Touched]]:
    """Every scenario with what it comes by in the true model."""
    return tuple((scenario, play(scenario)) for scenario in load())


@cache
def _index() -> dict[Place | Gate, list[Scenario]]:
    index: dict[Place | Gate, list[Scenario]] = defaultdict(list)
    for scenario, came_by in touched():
        keys: set[Place | Gate] = {*came_by.rows, *came_by.checks}
        for key in keys:
            index[key].append(scenario)
    return index


def by_scenario(mutant: Mutant) -> str | None:
    """The first scenario that fails on the mutant, of those that come by its place."""
    keys: tuple[Place | Gate, ...] = mutant.places or mutant.gates
    for key in keys:
        for scenario in _index().get(key, ()):
            try:
                play(scenario, mutant.rules)
            except (MismatchError, ScenarioError):  # the latter: the change breaks a promise of the shell
                return scenario.id
    return None


SMALLEST_FIRST: Final = tuple(sorted((name for name in SLICES if name != "talk"), key=lambda name: len(SLICES[name])))
"""The slices to explore a mutant in. ``talk`` is left out: it is the product of two others, takes more than a minute
for each survivor, and of the survivors tried found none that those two had not."""


def by_explorer(mutant: Mutant, slices: Sequence[str] = SMALLEST_FIRST) -> str | None:
    """The first fault that exploring finds on the mutant, in the slices that hold its machine."""
    for name in slices:
        if mutant.machine in map(machine_of, SLICES[name]):
            model = compile_slice(SLICES[name], mutant.rules.tables)
            report = explore(model, always(model), goals(model))
            if report.faults:
                return f"{name}: {report.faults[0].partition(chr(10))[0]}"
    return None
