"""Scenario files: what they may say, and the strict reader that turns them into steps (``docs/scenarios.md``).

A typing mistake is a :class:`ScenarioError` with file and line, never a step that checks less than it seems to.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

from statemachines.admission import CLASSIFIED, LINE, METHODS
from statemachines.joint import CARRIED
from statemachines.registry import MACHINES
from statemachines.rows import Emit, is_total
from statemachines.step import Feed, World, initial_world, machine_of

FOLDER: Final = Path(__file__).parents[1] / "scenarios"


class ScenarioError(Exception):
    """A scenario file is wrong in itself: its author's fault, whatever the tables say."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a step must do: exactly what leaves, exactly which instances move; or how a line is refused."""

    emits: tuple[Emit, ...] = ()
    states: Mapping[str, Enum] = field(default_factory=dict)
    through: Mapping[str, tuple[Enum, ...]] = field(default_factory=dict)
    """States that an instance passes on its way, where it moves more than once."""
    refused: str | None = None
    """The code of the refusal; empty where the line is discarded without an answer."""


@dataclass(frozen=True, slots=True)
class Input:
    """A message of a worker, a timer, the pipe, or the end of input."""

    line: int
    feed: Feed
    subject: Feed | None
    expected: Expected


@dataclass(frozen=True, slots=True)
class Ignored:
    """Inputs that have a row here and no effect, whatever subject they carry."""

    line: int
    instance: str
    inputs: tuple[Enum, ...]


@dataclass(frozen=True, slots=True)
class Recv:
    """A line of the client; ``fails`` names the factual checks that fail, all others pass."""

    line: int
    method: str
    of: str | None
    choice: str | None
    fails: frozenset[str]
    expected: Expected


@dataclass(frozen=True, slots=True)
class Report:
    """A report of the shell and the input it becomes, by the checks of ``CLASSIFIED``."""

    line: int
    name: str
    becomes: str
    fails: frozenset[str]
    expected: Expected


Step = Input | Ignored | Recv | Report


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story: a start and its steps."""

    file: Path
    line: int
    name: str
    about: str
    clauses: tuple[str, ...]
    start: World
    steps: list[Step] = field(default_factory=list)

    @property
    def id(self) -> str:
        """Readable and unique: file and name."""
        return f"{self.file.stem}: {self.name}"


def subjects(feed: Feed, world: Mapping[str, Enum]) -> list[Feed]:
    """Every subject that an input can carry, among the instances that are there."""
    gate = (machine_of(feed[0]), feed[1])
    return [
        (instance, given)
        for (machine, given), gates in CARRIED.items()
        if gate in gates
        for instance in world
        if machine_of(instance) == machine
    ]


def str_feed(feed: Feed) -> str:
    """An instance and its input, for people."""
    return f"{feed[0]} {feed[1].name}"


_HEADER: Final = {"scenario", "about", "clauses", "given", "instances"}
_OUTCOME: Final = {"emits", "states", "through"}
_KEYS: Final = {
    "input": {"input", "subject"} | _OUTCOME,
    "ignored": {"ignored"},
    "recv": {"recv", "of", "choice", "fails", "refused", "discarded"} | _OUTCOME,
    "report": {"report", "becomes", "fails"} | _OUTCOME,
}
"""Step kind -> the keys its line may have."""

_CLAUSE: Final = re.compile(r"(?:[A-Z]+(?:-[A-Z]+)*-\d+|D\d{2,3})\Z")
_SINGLES: Final = tuple(name for name, spec in MACHINES.items() if not spec.many)


def load(folder: Path = FOLDER) -> tuple[Scenario, ...]:
    """All scenarios of a folder, files in order of their names. Raises :class:`ScenarioError`."""
    return tuple(scenario for file in sorted(folder.glob("*.ndjson")) for scenario in read(file))


def read(file: Path) -> list[Scenario]:
    """The scenarios of one file: each header line begins one, the step lines behind it belong to it."""
    found: list[Scenario] = []
    for number, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        try:
            record = json.loads(text, object_pairs_hook=_unique)
            if "scenario" in record:
                found.append(_header(file, number, record))
            else:
                found[-1].steps.append(_step(number, record, found[-1].start))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise ScenarioError(f"{file.name}:{number}: {type(error).__name__}: {error}") from error
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError(f"a key occurs twice in {[key for key, _ in pairs]}")
    return record


def _known(record: dict[str, Any], keys: set[str]) -> None:
    if foreign := set(record) - keys:
        raise ValueError(f"unknown keys {sorted(foreign)}")


def _header(file: Path, line: int, record: dict[str, Any]) -> Scenario:
    _known(record, _HEADER)
    given: dict[str, str] = record.get("given", {})
    names = dict.fromkeys((*_SINGLES, *record.get("instances", ()), *given))
    start = initial_world(names)
    start |= {instance: _state(instance, value) for instance, value in given.items()}
    clauses = tuple(record["clauses"])
    if not clauses or not all(map(_CLAUSE.match, clauses)) or not record["about"]:
        raise ValueError("a scenario says in `about` and `clauses` what it shows")
    return Scenario(file, line, record["scenario"], record["about"], clauses, start)


def _step(line: int, record: dict[str, Any], world: World) -> Step:
    (kind,) = set(record) & set(_KEYS)
    _known(record, _KEYS[kind])
    match kind:
        case "input":
            feed = _feed(record["input"], world)
            subject = _feed(record["subject"], world) if "subject" in record else None
            if (machine_of(feed[0]), feed[1]) in CARRIED:
                raise ValueError(f"{str_feed(feed)} comes as a subject only")
            if subject is not None and subject not in subjects(feed, world):
                raise ValueError(f"{str_feed(feed)} cannot carry {str_feed(subject)}")
            return Input(line, feed, subject, _expected(record, world))
        case "ignored":
            instance, names = record["ignored"]
            return Ignored(line, instance, tuple(_feed((instance, name), world)[1] for name in names))
        case "recv":
            return _recv(line, record, world)
        case _:
            facts = {check.name for checks, _ in CLASSIFIED[record["report"]] for check in checks}
            return Report(line, record["report"], record["becomes"], _fails(record, facts), _expected(record, world))


def _recv(line: int, record: dict[str, Any], world: World) -> Recv:
    method, of, choice = record["recv"], record.get("of"), record.get("choice")
    facts = {check.name for check, _ in LINE if not check.structural}
    if of is not None and of not in world:
        raise ValueError(f"no instance {of}")
    if (admission := METHODS.get(method)) is not None:
        facts |= {check.name for check in admission.checks if not check.structural}
        many = any(MACHINES[fires.machine].many for fires in admission.choices)
        if many != (of is not None) or (len(admission.choices) > 1) != (choice is not None):
            raise ValueError(f"{method}: `of` or `choice` is missing or out of place")
        if choice is not None and choice not in {fires.input.name for fires in admission.choices}:
            raise ValueError(f"{method}: no choice {choice}")
    return Recv(line, method, of, choice, _fails(record, facts), _expected(record, world))


def _fails(record: dict[str, Any], facts: set[str]) -> frozenset[str]:
    names = record.get("fails", [])
    fails = frozenset([names] if isinstance(names, str) else names)
    if unknown := fails - facts:
        raise ValueError(f"no such factual check: {sorted(unknown)}")
    return fails


def _expected(record: dict[str, Any], world: World) -> Expected:
    emits = tuple(Emit(name) for name in record.get("emits", ()))
    states = {instance: _state(instance, value) for instance, value in record.get("states", {}).items()}
    passed: dict[str, list[str]] = record.get("through", {})
    through = {instance: tuple(_state(instance, value) for value in values) for instance, values in passed.items()}
    if missing := {*states, *through} - set(world):
        raise ValueError(f"no instances {sorted(missing)}")
    if record.get("discarded", True) is not True or {"discarded", "refused"} <= set(record):
        raise ValueError("`discarded` is true or absent, and excludes `refused`")
    return Expected(emits, states, through, "" if "discarded" in record else record.get("refused"))


def _feed(pair: Sequence[str], world: World) -> Feed:
    instance, name = pair
    if instance not in world:
        raise ValueError(f"no instance {instance}")
    given = next((each for each in MACHINES[machine_of(instance)].inputs if each.name == name), None)
    if given is None:
        raise ValueError(f"{instance} knows no input {name}")
    if not is_total(given):
        raise ValueError(f"{name}: RECV_ inputs come by `recv`, JOINT_ inputs by couplings only")
    return instance, given


def _state(instance: str, value: str) -> Enum:
    return type(MACHINES[machine_of(instance)].initial)(value)
