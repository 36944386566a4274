"""Scenarios: what goes in and what must come out, played against the tables (``docs/scenarios.md``).

The files are written by hand from the contract, never from the tables, so a wrong row shows as a scenario that fails;
``scenario_files.py`` reads them. ``play`` runs one against :class:`Rules`, by default the real ones, a mutant's in
``mutants.py``; where they do something else it raises :class:`MismatchError` with file and line. What it touched on
the way is its result.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from statemachines.admission import ASSUMED, BEGINS_RUN, CLASSIFIED, KNOWN, LINE, METHODS, Admission, Check, Fires
from statemachines.rows import Emit
from statemachines.step import (
    TABLES,
    Feed,
    ImpossibleInputError,
    Move,
    Tables,
    World,
    emitted,
    fresh_run,
    machine_of,
    step,
)
from tests.kit.scenario_files import (
    Expected,
    Ignored,
    Input,
    Recv,
    Report,
    Scenario,
    ScenarioError,
    Step,
    str_feed,
    subjects,
)

Place = tuple[str, Enum, Enum]
"""A row: (machine, state, input). A coupling row starts at several."""

Gate = tuple[str, str]
"""A check of an admission list: (the list's name, the check's name). The list of every line is called ``line``."""


class MismatchError(AssertionError):
    """The rules do something else than the scenario says."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Everything a scenario is played against."""

    tables: Tables = TABLES
    line: tuple[tuple[Check, Fires | None], ...] = LINE
    methods: Mapping[str, Admission] = field(default_factory=lambda: METHODS)
    classified: Mapping[str, tuple[tuple[tuple[Check, ...], Fires], ...]] = field(default_factory=lambda: CLASSIFIED)


RULES: Final = Rules()


@dataclass(slots=True)
class Touched:
    """What a scenario came by: rows taken (and so couplings followed), checks that failed."""

    rows: set[Place] = field(default_factory=set)
    checks: set[Gate] = field(default_factory=set)


def play(scenario: Scenario, rules: Rules = RULES) -> Touched:
    """Run one scenario; raises :class:`MismatchError` at the first step that differs."""
    player = _Player(scenario, rules, dict(scenario.start))
    for each in scenario.steps:
        player.take(each)
    return player.touched


@dataclass(slots=True)
class _Player:
    scenario: Scenario
    rules: Rules
    world: World
    touched: Touched = field(default_factory=Touched)

    def take(self, each: Step) -> None:
        match each:
            case Input():
                self._compare(each.line, str_feed(each.feed), each.expected, each.feed, each.subject)
            case Ignored():
                for given in each.inputs:
                    feed = (each.instance, given)
                    for subject in (None, *subjects(feed, self.world)):
                        self._compare(each.line, f"ignored {str_feed(feed)}", Expected(), feed, subject)
            case Recv():
                self._receive(each)
            case Report():
                fires = self._classify(each)
                if fires.input.name != each.becomes:
                    fault = f"becomes {fires.input.name}, expected {each.becomes}"
                    raise self._wrong(each.line, f"report {each.name}", [fault])
                self._compare(each.line, f"report {each.name}", each.expected, (fires.machine, fires.input))

    def _receive(self, each: Recv) -> None:
        said = f"recv {each.method}"
        code, fires, brings = self._admit(each)
        if code != each.expected.refused:
            raise self._wrong(each.line, said, [_verdict(each.expected.refused, code)])
        if fires is None:  # refused: nothing is fed, so nothing can leave or move
            if each.expected != Expected(refused=code):
                raise self._wrong(each.line, said, ["refused without effect, expected one"])
            return
        feed = (each.of if each.of and machine_of(each.of) == fires.machine else fires.machine, fires.input)
        self._compare(each.line, said, each.expected, feed, (brings.machine, brings.input) if brings else None)

    def _admit(self, each: Recv) -> tuple[str | None, Fires | None, Fires | None]:
        """The refusal code or None, what is fired, and the subject that goes along."""
        for check, closing in self.rules.line:
            if not self._passes(check, each.fails, each.of) or (check is KNOWN and each.method not in METHODS):
                self.touched.checks.add(("line", check.name))
                return check.code, closing, None
        admission = self.rules.methods.get(each.method)
        if admission is None:
            raise self._wrong(each.line, f"recv {each.method}", ["has no admission list"])
        for check in admission.checks:
            if not self._passes(check, each.fails, each.of):
                self.touched.checks.add((each.method, check.name))
                return check.code, None, None
        (fires,) = [one for one in admission.choices if each.choice in (None, one.input.name)]
        return None, fires, admission.brings

    def _classify(self, each: Report) -> Fires:
        """The last case has no checks: it takes what is left."""
        *cases, (_, otherwise) = self.rules.classified[each.name]
        for checks, fires in cases:
            failing = next((check for check in checks if not self._passes(check, each.fails)), None)
            if failing is None:
                return fires
            self.touched.checks.add((each.name, failing.name))
        return otherwise

    def _passes(self, check: Check, fails: frozenset[str], of: str | None = None) -> bool:
        if not check.structural:
            return check.name not in fails
        addressed = {machine_of(of): self.world[of]} if of else {}
        return check.passes({**self.world, **addressed})

    def _compare(self, line: int, said: str, expected: Expected, feed: Feed, subject: Feed | None = None) -> None:
        self._promised(line, said, feed)
        before = self.world
        start = fresh_run(before, self.rules.tables) if feed[1] is BEGINS_RUN else before
        try:
            after, moves = step(start, feed, subject, self.rules.tables)
        except ImpossibleInputError as error:
            raise self._wrong(line, said, [str(error)]) from error
        emits = emitted(moves)
        faults = []
        if emits != expected.emits:
            faults.append(f"emits {_names(emits)}, expected {_names(expected.emits)}")
        for instance, state in after.items():
            wanted = expected.states.get(instance, before[instance])
            if state is not wanted:
                faults.append(f"{instance} is {state.value}, expected {wanted.value} (was {before[instance].value})")
            elif instance in expected.states and state is before[instance]:
                faults.append(f"{instance} was {state.value} before: `states` lists what moves")
        if (through := _through(moves)) != expected.through:
            faults.append(f"goes through {_path(through)}, expected {_path(expected.through)}")
        if faults:
            raise self._wrong(line, said + (f" ({str_feed(subject)})" if subject else ""), faults)
        self.touched.rows |= {(machine_of(move.instance), move.row.source, move.row.input) for move in moves}
        self.world = after

    def _promised(self, line: int, said: str, feed: Feed) -> None:
        """The shell keeps its promises (``ASSUMED``); a scenario that breaks one tells of nothing real."""
        for promise in ASSUMED:
            about = promise.machine == machine_of(feed[0]) and promise.input is feed[1]
            if not about or self.world[feed[0]] not in promise.sources:
                continue
            for machine, allowed in (pair for check in promise.checks for pair in check.allowed):
                for instance, state in self.world.items():
                    if machine_of(instance) == machine and state not in allowed:
                        raise ScenarioError(f"{self._at(line, said)}: {instance} is {state.value}, but {promise.why}")

    def _at(self, line: int, said: str) -> str:
        return f"{self.scenario.file.name}:{line}: {self.scenario.name}: {said}"

    def _wrong(self, line: int, said: str, faults: Iterable[str]) -> MismatchError:
        return MismatchError("\n  ".join((self._at(line, said), *faults)))


def _through(moves: Iterable[Move]) -> dict[str, tuple[Enum, ...]]:
    """The states that each instance entered and left again."""
    paths: dict[str, tuple[Enum, ...]] = {}
    for move in moves:
        if move.row.dest is not move.row.source:
            paths[move.instance] = (*paths.get(move.instance, ()), move.row.dest)
    return {instance: path[:-1] for instance, path in paths.items() if len(path) > 1}


def _path(through: Mapping[str, Iterable[Enum]]) -> str:
    return ", ".join(f"{name} {state.value}" for name, states in through.items() for state in states) or "nothing"


def _names(emits: Iterable[Emit]) -> str:
    return ", ".join(emits) or "nothing"


def _verdict(wanted: str | None, got: str | None) -> str:
    words = ["accepted" if code is None else f"refused with {code}" if code else "discarded" for code in (got, wanted)]
    return f"{words[0]}, expected {words[1]}"
