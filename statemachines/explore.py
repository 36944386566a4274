"""Breadth-first exploration of the joint tables, slice by slice, with the properties judged on every step.

A slice is a set of instances, the connection first; the rest of the model is left out, with every coupling into it.
Bounds: one connection, one attachment, one operation slot in three kinds, one run at a time, at most two approvals,
one segment, one activity with its card, one client call. Data is abstracted to free choice: a factual check may pass
or fail at any time (a failed one refuses and moves nothing), a timer may come whenever its state is on, and a worker
may say anything in any order except for ``admission.ASSUMED``; what it says out of place is a row to itself, an echo,
and echoes are not counted as transitions. Run-scoped machines fold back when the next run begins.

Three kinds of property: *always* (:mod:`statemachines.properties`, on every transition), *sometimes* (every row is
taken in some slice, every final is reached) and *never stuck* (from every reachable state ``closed`` is reachable
without the client, and what is owed is reachable by worker inputs alone).

Tables are compiled to integers first; a state is a tuple of small ones. Equal tables give equal counts, everywhere.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from statemachines.admission import ASSUMED, BEGINS_RUN, LINE, LISTENING, METHODS, STOPPING, Check, Fires
from statemachines.joint import CARRIED
from statemachines.rows import SUBJECT, Emit, Row, Scope, is_total
from statemachines.step import TABLES, Feed, Tables, labelled, machine_of

State = tuple[int, ...]

LIFECYCLE: Final = ("connection", "attachment", "operation", "run", "persistence", "output")
TALK: Final = ("channel", "approval:a", "message:m", "activity:t", "card:t", "client_call:c")

SLICES: Final[Mapping[str, tuple[str, ...]]] = {
    "lifecycle": LIFECYCLE,
    "asks": (*LIFECYCLE, "channel", "approval:a", "client_call:c"),
    "segments": (*LIFECYCLE, "channel", "message:m"),
    "cards": (*LIFECYCLE, "activity:t", "card:t"),
    "two approvals": (*LIFECYCLE, "channel", "approval:a", "approval:b"),
    "snapshots": (*LIFECYCLE, "history", "catalog"),
    "scans": (*LIFECYCLE, "list", "discover"),
    "talk": (*LIFECYCLE, *TALK),
}
"""Name -> the instances explored together. ``talk``, the product of three others, is for the deep profile."""

_SUBJECT: Final = -1
Compiled_Row = tuple[int, tuple[Emit, ...], tuple[tuple[int, int], ...], int]
"""Destination, emits, couplings as (instance, input) with ``_SUBJECT`` for the subject, index of the row."""


class StuckError(Exception):
    """A table has no row where an input came; the trace leads there."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing the environment may do: feed an input, with a subject or not, while its conditions hold."""

    label: str
    feed: tuple[int, int]
    subject: tuple[int, int] | None
    requires: tuple[tuple[int, frozenset[int]], ...]
    """Conditions that always apply: (instance, allowed states)."""
    assumes: tuple[tuple[frozenset[int], tuple[tuple[int, frozenset[int]], ...]], ...]
    """Conditions that apply in some states of the fed machine: (sources, conditions)."""
    begins_run: bool
    by: str
    """``client``, ``worker`` or ``other``: who makes this choice."""


@dataclass(frozen=True, slots=True)
class Step:
    """One explored transition, as properties see it."""

    before: State
    after: State
    emits: tuple[Emit, ...]
    choice: Choice


def count(step: Step, wanted: frozenset[Emit]) -> int:
    """How many of ``wanted`` a step emits."""
    return sum(emit in wanted for emit in step.emits)


Always = tuple[str, Callable[[Step], bool]]
"""A property of every transition: its name in plain words, and its judge."""

Goal = tuple[str, frozenset[str], Callable[[State], bool], Callable[[State], bool]]
"""What must stay reachable: its name, whose choices may be used, where it is owed, and what is then to be reached."""


@dataclass(frozen=True, slots=True)
class Judges:
    """Properties that read the same machines: a step that looks the same to them is judged once."""

    read: Callable[[State], object]
    """Picks from a state what the properties read."""
    properties: tuple[Always, ...]
    seen: set[tuple[object, ...]] = field(default_factory=set)

    def faults(self, step: Step) -> Iterator[str]:
        """Names of the properties that the step breaks."""
        key = (self.read(step.before), self.read(step.after), step.emits, id(step.choice))
        if key not in self.seen:
            self.seen.add(key)
            yield from (name for name, holds in self.properties if not holds(step))


@dataclass(slots=True)
class Model:
    """A slice compiled to integers."""

    instances: tuple[str, ...]
    tables: Tables
    index: dict[str, int]
    states: list[tuple[Enum, ...]]
    codes: list[dict[Enum, int]]
    inputs: list[tuple[Enum, ...]]
    table: list[dict[tuple[int, int], Compiled_Row]]
    rows: list[tuple[str, Row]]
    choices: tuple[Choice, ...] = ()
    run_scoped: tuple[tuple[int, int], ...] = ()
    initial: State = ()
    asked: set[int] = field(default_factory=set)
    """Positions that have been asked for since this was last cleared: what a group of properties reads."""

    def at(self, instance: str) -> int:
        """Position of an instance in a state tuple."""
        self.asked.add(self.index[instance])
        return self.index[instance]

    def of(self, machine: str) -> tuple[int, ...]:
        """Positions of all instances of a machine in this slice."""
        found = tuple(i for i, name in enumerate(self.instances) if machine_of(name) == machine)
        self.asked.update(found)
        return found

    def code(self, machine: str, *states: Enum) -> frozenset[int]:
        """The integers that stand for some states of a machine."""
        codes = self.codes[self.of(machine)[0]]
        return frozenset(codes[state] for state in states)

    def show(self, state: State) -> str:
        """A state for people: the instances that are not where they began."""
        parts = (
            f"{name}={self.states[i][code].value}"
            for i, (name, code) in enumerate(zip(self.instances, state, strict=True))
            if code != self.initial[i]
        )
        return ", ".join(parts) or "initial"


def compile_slice(instances: Iterable[str], tables: Tables = TABLES) -> Model:
    """Compile the tables of some instances to integers, with every choice of the environment."""
    names = tuple(instances)
    specs = [tables.machines[machine_of(name)] for name in names]
    model = Model(
        instances=names,
        tables=tables,
        index={name: i for i, name in enumerate(names)},
        states=[spec.states for spec in specs],
        codes=[{state: i for i, state in enumerate(spec.states)} for spec in specs],
        inputs=[spec.inputs for spec in specs],
        table=[],
        rows=[],
    )
    numbers: dict[tuple[str, Enum, Enum], int] = {}
    for i, spec in enumerate(specs):
        model.table.append({})
        for row in spec.rows:
            key = (spec.name, row.source, row.input)
            if key not in numbers:
                numbers[key] = len(model.rows)
                model.rows.append((spec.name, row))
            at = (model.codes[i][row.source], spec.inputs.index(row.input))
            model.table[i][at] = (model.codes[i][row.dest], row.emits, _coupled(model, i, row), numbers[key])
    model.initial = tuple(model.codes[i][spec.initial] for i, spec in enumerate(specs))
    model.run_scoped = tuple((i, model.initial[i]) for i, spec in enumerate(specs) if spec.scope is Scope.RUN)
    model.choices = tuple(_choices(model))
    return model


def _coupled(model: Model, i: int, row: Row) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for joint in model.tables.couplings[machine_of(model.instances[i])]:
        if joint.input is not row.input or row.source not in joint.sources:
            continue
        for target in joint.then:
            if target is SUBJECT:
                found.append((_SUBJECT, _SUBJECT))
            else:
                own = labelled(model.instances, model.instances[i], target[0])
                found += [(model.at(name), model.inputs[model.at(name)].index(target[1])) for name in own]
    return tuple(found)


def _choices(model: Model) -> Iterator[Choice]:
    """Everything a client, a worker, a timer or the pipe may do in this slice."""
    for method, admission in METHODS.items():
        for fires in admission.choices:
            yield from _requests(model, method, fires, (LISTENING, *admission.checks), admission.brings)
    for check, closing in LINE:
        if closing is not None:
            yield from _requests(model, check.name, closing, (LISTENING if check.code else STOPPING,))
    for name in model.instances:
        machine = machine_of(name)
        for given in model.tables.machines[machine].inputs:
            gates = CARRIED.get((machine, given))
            if gates is not None:
                for gate, brings in gates:
                    yield _choice(model, (gate, brings), (name, given))
            elif is_total(given):
                yield _choice(model, (name, given), None)


def _requests(
    model: Model, label: str, fires: Fires, checks: tuple[Check, ...], brings: Fires | None = None
) -> Iterator[Choice]:
    subject = (brings.machine, brings.input) if brings is not None and brings.machine in model.index else None
    for name in model.instances:
        if machine_of(name) == fires.machine:
            yield _choice(model, (name, fires.input), subject, _conditions(model, checks, name), label, "client")


def _choice(
    model: Model,
    feed: Feed,
    subject: Feed | None,
    requires: tuple[tuple[int, frozenset[int]], ...] = (),
    label: str = "",
    by: str = "",
) -> Choice:
    at = model.at(feed[0])
    said = f"{feed[0]} {feed[1].name}" + (f" ({subject[0]} {subject[1].name})" if subject else "")
    return Choice(
        label=f"{label}: {said}" if label else said,
        feed=(at, model.inputs[at].index(feed[1])),
        subject=(model.at(subject[0]), model.inputs[model.at(subject[0])].index(subject[1])) if subject else None,
        requires=requires,
        assumes=tuple(
            (frozenset(model.codes[at][state] for state in each.sources), _conditions(model, each.checks, feed[0]))
            for each in ASSUMED
            if each.machine == machine_of(feed[0]) and each.input is feed[1]
        ),
        begins_run=feed[1] is BEGINS_RUN,
        by=by or ("worker" if feed[1].name.startswith("WORKER_") else "other"),
    )


def _conditions(model: Model, checks: Iterable[Check], addressed: str) -> tuple[tuple[int, frozenset[int]], ...]:
    """Structural checks as (instance, allowed); of many instances the addressed one is meant, or all of them."""
    found: dict[int, frozenset[int]] = {}
    for check in checks:
        for machine, states in check.allowed:
            own = machine == machine_of(addressed)
            for i in (model.at(addressed),) if own else model.of(machine):
                allowed = frozenset(model.codes[i][state] for state in states)
                found[i] = found.get(i, allowed) & allowed
    return tuple(found.items())


def take(model: Model, state: State, choice: Choice, fired: set[int]) -> tuple[State, tuple[Emit, ...]] | None:
    """Carry out one choice. None when it cannot happen here, or is an echo that moves and emits nothing.

    Rows taken are added to ``fired``. Raises :class:`StuckError` where a table has no row.
    """
    at, given = choice.feed
    for i, allowed in choice.requires:
        if state[i] not in allowed:
            return None
    first = None if choice.begins_run else model.table[at].get((state[at], given))
    if first is not None and not first[2] and not first[1] and first[0] == state[at]:
        fired.add(first[3])
        return None
    for sources, conditions in choice.assumes:
        if state[at] in sources and any(state[i] not in allowed for i, allowed in conditions):
            return None
    after = list(state)
    if choice.begins_run:
        for i, code in model.run_scoped:
            after[i] = code
    emits: tuple[Emit, ...] = ()
    queue = [choice.feed]
    for i, taken in queue:
        if i == _SUBJECT:
            if choice.subject is None:
                continue
            i, taken = choice.subject
        row = model.table[i].get((after[i], taken))
        if row is None:
            raise StuckError(f"{model.instances[i]}: no row for {model.inputs[i][taken].name} in "
                             f"{model.states[i][after[i]].value}")  # fmt: skip
        after[i] = row[0]
        emits += row[1]
        queue += row[2]
        fired.add(row[3])
    return tuple(after), emits


@dataclass(slots=True)
class Report:
    """What an exploration found. ``faults`` is empty when all properties held."""

    states: int = 0
    transitions: int = 0
    fired: set[int] = field(default_factory=set)
    finals: set[tuple[str, Enum]] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)


def explore(model: Model, always: Iterable[Judges] = (), goals: Iterable[Goal] = (), *, most: int = 1) -> Report:
    """Visit every reachable state once; judge every transition; then ask what can be reached from where.

    Stops after ``most`` faults. Each fault ends with the shortest trace of choices that leads to it.
    """
    report = Report()
    came: dict[State, tuple[State, Choice] | None] = {model.initial: None}
    order = [model.initial]
    edges: list[tuple[int, int, str]] = []
    number = {model.initial: 0}
    judges = tuple(always)
    ended = frozenset(model.codes[0][state] for state in model.tables.machines[model.instances[0]].gone)
    for state in order:
        if state[0] in ended:
            continue  # the process is gone
        here = number[state]
        for choice in model.choices:
            try:
                taken = take(model, state, choice, report.fired)
            except StuckError as stuck:
                report.faults.append(f"no row: {stuck.what}\n{_trace(model, came, state, choice)}")
                taken = None
            if len(report.faults) >= most:
                return report
            if taken is None:
                continue
            after, emits = taken
            report.transitions += 1
            if after not in number:
                number[after] = len(order)
                order.append(after)
                came[after] = (state, choice)
            edges.append((here, number[after], choice.by))
            step = Step(state, after, emits, choice)
            for group in judges:
                for name in group.faults(step):
                    report.faults.append(f"{name}\n{_trace(model, came, state, choice)}")
    report.states = len(order)
    report.finals = {
        (machine_of(model.instances[i]), model.states[i][code])
        for i in range(len(model.instances))
        for code in {state[i] for state in order}
    }
    report.faults += _stuck(model, goals, came, order, edges)
    return report


def _trace_to(model: Model, came: dict[State, tuple[State, Choice] | None], state: State) -> str:
    step = came[state]
    before = f"{_trace(model, came, *step)}\n" if step else ""
    return f"{before}  in    {model.show(state)}"


def _trace(model: Model, came: dict[State, tuple[State, Choice] | None], state: State, last: Choice) -> str:
    lines = [f"  then  {last.label}", f"  in    {model.show(state)}"]
    while (step := came[state]) is not None:
        state = step[0]
        lines.append(f"  after {step[1].label}")
    return "\n".join(reversed(lines))


def _stuck(
    model: Model,
    goals: Iterable[Goal],
    came: dict[State, tuple[State, Choice] | None],
    order: list[State],
    edges: list[tuple[int, int, str]],
) -> Iterator[str]:
    """Never stuck: one backward pass over the stored transitions for each goal."""
    for name, by, owed, reached in goals:
        into: list[list[int]] = [[] for _ in order]
        for source, dest, who in edges:
            if who in by:
                into[dest].append(source)
        good = {i for i, state in enumerate(order) if reached(state)}
        todo = list(good)
        while todo:
            for source in into[todo.pop()]:
                if source not in good:
                    good.add(source)
                    todo.append(source)
        stuck = next((i for i, state in enumerate(order) if owed(state) and i not in good), None)
        if stuck is not None:
            yield f"stuck: {name}\n{_trace_to(model, came, order[stuck])}"
