"""Audits of the tables: what can be seen without exploring.

Each audit yields one line per fault; a clean model yields none. ``python -m statemachines.check`` prints them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final

from statemachines.admission import ASSUMED, BEGINS_RUN, CLASSIFIED, LINE, LISTENING, METHODS, Fires
from statemachines.joint import CARRIED, JOINT
from statemachines.registry import MACHINES
from statemachines.rows import SUBJECT, MachineSpec, is_total

_CLAUSE: Final = re.compile(r"(?:[A-Z]+(?:-[A-Z]+)*-\d+|D\d{2,3})\Z")


def unique_rows(spec: MachineSpec) -> Iterator[str]:
    """(source, input) decides: no two rows share it."""
    counts = Counter((row.source, row.input) for row in spec.rows)
    for (source, given), count in counts.items():
        if count > 1:
            yield f"{spec.name}: {count} rows for {given.name} in {source.value}"


def known_ends(spec: MachineSpec) -> Iterator[str]:
    """Every end and input of a row is one of the machine's own."""
    for row in spec.rows:
        for end in (row.source, row.dest):
            if end not in spec.states:
                yield f"{spec.name}: unknown state {end!r}"
        if row.input not in spec.inputs:
            yield f"{spec.name}: unknown input {row.input!r}"


def total(spec: MachineSpec) -> Iterator[str]:
    """WORKER_, TIMER_, OUTPUT_ and EOF_ inputs have a row in every state, save those that come through a gate."""
    for given in spec.inputs:
        if (spec.name, given) in CARRIED:
            continue  # explore proves that a row exists wherever a gate can be open
        for state in spec.states:
            if is_total(given) and state not in spec.gone and (state, given) not in spec.table:
                yield f"{spec.name}: no row for {given.name} in {state.value}"


def used_inputs(spec: MachineSpec) -> Iterator[str]:
    """Every input occurs in a row."""
    for given in set(spec.inputs) - {row.input for row in spec.rows}:
        yield f"{spec.name}: {given.name} occurs in no row"


def reachable(spec: MachineSpec) -> Iterator[str]:
    """Every state is reached from the initial one along the machine's own rows."""
    seen, todo = {spec.initial}, [spec.initial]
    while todo:
        source = todo.pop()
        for row in spec.rows:
            if row.source is source and row.dest not in seen:
                seen.add(row.dest)
                todo.append(row.dest)
    for state in set(spec.states) - seen:
        yield f"{spec.name}: {state.value} is unreachable"


def dead_ends(spec: MachineSpec) -> Iterator[str]:
    """Exactly the declared finals have no way out that does not lead back to a final."""
    leaving = {row.source for row in spec.rows if row.dest is not row.source}
    for state in spec.states:
        if state not in leaving and state not in spec.finals:
            yield f"{spec.name}: {state.value} is a dead end and no final"
    for row in spec.rows:
        if row.source in spec.finals and row.dest not in spec.finals:
            yield f"{spec.name}: final {row.source.value} leads to {row.dest.value}"


def clauses(spec: MachineSpec) -> Iterator[str]:
    """Every row names a clause, well spelt."""
    for row in spec.rows:
        if not row.clauses or not all(map(_CLAUSE.match, row.clauses)):
            yield f"{spec.name}: {row.source.value} {row.input.name}: clauses {row.clauses}"


MACHINE_AUDITS: Final[tuple[Callable[[MachineSpec], Iterator[str]], ...]] = (
    unique_rows,
    known_ends,
    total,
    used_inputs,
    reachable,
    dead_ends,
    clauses,
)


def couplings() -> Iterator[str]:
    """Every coupling starts at an existing row in each of its sources and ends at inputs that have rows."""
    seen = Counter((joint.machine, joint.input, source) for joint in JOINT for source in joint.sources)
    yield from (f"coupling twice: {machine} {given.name}" for (machine, given, _), n in seen.items() if n > 1)
    for joint in JOINT:
        table = MACHINES[joint.machine].table
        for source in joint.sources:
            if (source, joint.input) not in table:
                yield f"coupling: {joint.machine} has no row for {joint.input.name} in {source.value}"
        for target in joint.then:
            if target is not SUBJECT and target[1] not in MACHINES[target[0]].inputs:
                yield f"coupling: {target[0]} knows no {target[1]!r}"
        if not joint.clauses or not all(map(_CLAUSE.match, joint.clauses)):
            yield f"coupling: {joint.machine} {joint.input.name}: clauses {joint.clauses}"


def admissions() -> Iterator[str]:
    """Whatever admission fires has a row in every state its structural checks allow; its checks name real states."""
    entries = [(each.method, (LISTENING, *each.checks), each.choices) for each in METHODS.values()]
    entries += [(check.name, (LISTENING,), (fires,)) for check, fires in LINE[1:] if fires]
    for name, checks, choices in entries:
        allowed = {name: frozenset(spec.states) for name, spec in MACHINES.items()}
        for machine, states in (pair for check in checks for pair in check.allowed):
            allowed[machine] &= states
        for fires in choices:
            yield from _fired(name, fires, allowed)
    for check in (check for _, checks, _ in entries for check in checks):
        for machine, states in check.allowed:
            if not states <= set(MACHINES[machine].states):
                yield f"check {check.name}: foreign states for {machine}"


def _fired(name: str, fires: Fires, allowed: Mapping[str, frozenset[Enum]]) -> Iterator[str]:
    spec = MACHINES[fires.machine]
    if fires.input not in spec.inputs:
        yield f"{name}: {fires.machine} knows no {fires.input!r}"
    begins = fires.input is BEGINS_RUN
    for state in {spec.initial} if begins else allowed[fires.machine]:
        if (state, fires.input) not in spec.table:
            yield f"{name}: {fires.machine} has no row for {fires.input.name} in {state.value}"


def vocabulary() -> Iterator[str]:
    """Carried subjects, classified reports and assumptions name existing inputs; every RECV_ input is fired."""
    named = [*CARRIED, *(gate for gates in CARRIED.values() for gate in gates)]
    named += [(fires.machine, fires.input) for cases in CLASSIFIED.values() for _, fires in cases]
    named += [(each.machine, each.input) for each in ASSUMED]
    for machine, given in named:
        if given not in MACHINES[machine].inputs:
            yield f"{machine} knows no {given!r}"
    fired = {fires.input for each in METHODS.values() for fires in each.choices}
    fired |= {fires.input for _, fires in LINE if fires}
    for spec in MACHINES.values():
        for given in spec.inputs:
            if given.name.startswith("RECV_") and given not in fired:
                yield f"{spec.name}: nothing fires {given.name}"


def audit() -> list[str]:
    """All faults of the whole model; empty when it is clean."""
    found = [line for spec in MACHINES.values() for each in MACHINE_AUDITS for line in each(spec)]
    return [*found, *couplings(), *admissions(), *vocabulary()]
