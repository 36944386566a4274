"""The pages of the machines, one each, and their index."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from diagrams.markdown import NOTICE, cite, code, codes, links, prose, table
from localagent.machines import pictures_of
from localagent.machines.attaching import ABOUT, ATTACHING, TITLE
from localagent.machines.overview import OVERVIEW
from localagent.machines.views import VIEWS, couples, drawn
from statemachines.joint import CARRIED, JOINT
from statemachines.registry import COUPLINGS, MACHINES
from statemachines.rows import SUBJECT, JointRow, MachineSpec, Row, Scope, Target

_ANCHOR = str.maketrans({" ": "-", "(": "", ")": ""})


def pages() -> dict[str, str]:
    """Path below ``docs/`` -> text."""
    return {
        "machines/index.md": _finished(_index(), "../"),
        **{f"machines/{name}.md": _finished(_machine(spec), "../") for name, spec in MACHINES.items()},
    }


def _finished(lines: Iterator[str], up: str) -> str:
    text = "\n".join(lines).rstrip() + "\n"
    targets = links(text, up)
    return text + ("\n" + "\n".join(targets) + "\n" if targets else "")


def _machine(spec: MachineSpec) -> Iterator[str]:
    yield from (NOTICE, "", f"# {spec.title}", "", prose(spec.theory), "")
    for name in pictures_of(spec.name):
        yield from _picture(name)
    yield from ("## States", "", *_states(spec))
    yield from ("## Rows", "", *_rows(spec))
    yield from _couplings(spec)


def _picture(name: str) -> Iterator[str]:
    title, about = (TITLE, ABOUT) if name == ATTACHING else (VIEWS[name].title, VIEWS[name].about)
    if about:
        yield from (about, "")
    yield from (f"![{title}](../../diagrams/{name}.svg)", "")


def _states(spec: MachineSpec) -> list[str]:
    lives = "as long as the child" if spec.scope is Scope.CHILD else "as long as a run; a new run has a new one"
    many = " Several live at once, each on its own." if spec.many else ""
    marks = [
        (
            f"[{state.value}](#{state.value.translate(_ANCHOR)})",
            ", ".join(
                words
                for words, holds in (
                    ("initial", state is spec.initial),
                    ("final", state in spec.finals),
                    ("the process is gone", state in spec.gone),
                )
                if holds
            ),
        )
        for state in spec.states
    ]
    return [f"It lives {lives}.{many}", "", *table(("State", ""), marks)]


def _rows(spec: MachineSpec) -> Iterator[str]:
    quiet = len(spec.rows) - len(drawn(spec))
    yield f"{len(spec.rows)} rows, {quiet} of them ignore their input: they neither move, nor emit, nor couple."
    yield ""
    for state in spec.states:
        rows = [row for row in spec.rows if row.source is state]
        rows.sort(key=lambda row: row.ignores and not couples(spec.name, row))
        yield from (f"### {state.value}", "")
        if rows:
            yield from table(("Input", "", "To", "Emits", "Clauses"), (_row(spec, row) for row in rows))
        else:
            yield from ("Takes no input.", "")


def _row(spec: MachineSpec, row: Row) -> tuple[str, ...]:
    ignored = row.ignores and not couples(spec.name, row)
    to = "*ignored*" if ignored else "stays" if row.dest is row.source else f"**{row.dest.value}**"
    return row.input.value, code(row.input.name), to, codes(emit.value for emit in row.emits), cite(row.clauses)


def _couplings(spec: MachineSpec) -> Iterator[str]:
    out = COUPLINGS[spec.name]
    into = [(joint, target[1].name) for joint in JOINT for target in joint.then
            if target is not SUBJECT and target[0] == spec.name]  # fmt: skip
    gates = [(given, gate) for (name, given), gates in CARRIED.items() if name == spec.name for gate in gates]
    if out:
        yield from ("## What it moves", "")
        yield from table(("When it takes", "in", "then", "Clauses"), (cells[1:] for cells in _coupled(out)))
    if into:
        yield from ("## What moves it", "")
        yield from table(
            ("When", "takes", "in", "it takes", "Clauses"),
            (
                (*cells[:3], code(given), cells[-1])
                for given, each in groupby(into, key=lambda pair: pair[1])
                for cells in _coupled([joint for joint, _ in each])
            ),
        )
    if gates:
        yield from ("## What is let through to it", "")
        yield "A worker's message about it passes a gate: what brings it must lead to a coupling to *its subject*."
        yield ""
        yield from table(
            ("It takes", "brought by"),
            ((code(given.name), f"{_link(name)} {code(brings.name)}") for given, (name, brings) in gates),
        )


def _coupled(joints: Iterable[JointRow]) -> Iterator[tuple[str, ...]]:
    """Coupling rows as cells; neighbours that differ in their input alone share a line."""
    for _, group in groupby(joints, key=lambda joint: (joint.machine, joint.sources, joint.then, joint.clauses)):
        same = list(group)
        inputs = "<br>".join(code(joint.input.name) for joint in same)
        then = "<br>".join(map(_target, same[0].then))
        yield _link(same[0].machine), inputs, _sources(same[0]), then, cite(same[0].clauses)


def _sources(joint: JointRow) -> str:
    states = MACHINES[joint.machine].states
    if joint.sources.issuperset(states):
        return "any state"
    return ", ".join(state.value for state in states if state in joint.sources)


def _target(target: Target) -> str:
    return "its subject" if target is SUBJECT else f"{_link(target[0])} {code(target[1].name)}"


def _link(name: str) -> str:
    return f"[{name}]({name}.md)"


def _index() -> Iterator[str]:
    yield from (NOTICE, "", "# The machines", "")
    yield (
        "The protocol is modelled as machines that each have one table. An arrow says that a row of one machine feeds "
        "an input to another; a dashed arrow, that a worker's message passes one machine before it reaches another. "
        "[How to read the tables](../explanation/model.md)."
    )
    yield from ("", f"![The machines and their couplings](../../diagrams/{OVERVIEW}.svg)", "")
    yield from table(
        ("Machine", "Lives as long as", "States", "Inputs", "Rows"),
        (
            (
                f"[{spec.title}]({name}.md)",
                f"the {spec.scope.value}" + (", several at once" if spec.many else ""),
                str(len(spec.states)),
                str(len(spec.inputs)),
                str(len(spec.rows)),
            )
            for name, spec in MACHINES.items()
        ),
    )
    yield from ("## All couplings", "")
    yield "In the order of the table; what follows is queued first in, first out, until nothing is left."
    yield ""
    yield from table(("When", "takes", "in", "then", "Clauses"), _coupled(JOINT))
    yield from ("```{toctree}", ":hidden:", "", *MACHINES, "```")
