"""The tables as text for a terminal."""

from collections.abc import Iterator

from localagent.machines import data
from localagent.machines.views import couples, views_of
from statemachines.joint import JOINT
from statemachines.registry import COUPLINGS, MACHINES
from statemachines.rows import SUBJECT, JointRow, MachineSpec, Row


def index() -> str:
    """All machines, a line each, and the digest of the whole model."""
    wide = max(map(len, MACHINES))
    lines = [
        f"{name:<{wide}}  {spec.title}: {len(spec.states)} states, {len(spec.inputs)} inputs, {len(spec.rows)} rows"
        for name, spec in MACHINES.items()
    ]
    return "\n".join([*lines, f"digest  {data.digest(data.model())}"]) + "\n"


def machine(spec: MachineSpec) -> str:
    """One machine: its theory, its rows by state, its couplings."""
    lines = [
        spec.title,
        "=" * len(spec.title),
        spec.theory.strip(),
        "",
        f"states: {', '.join(_state(spec, state.value) for state in spec.states)}",
        f"lives as long as the {spec.scope.value}" + (", several at once" if spec.many else ""),
        f"pictures: {', '.join(view.name for view in views_of(spec.name))}",
    ]
    for state in spec.states:
        lines += ["", state.value, *_rows(spec, [row for row in spec.rows if row.source is state])]
    out = COUPLINGS[spec.name]
    into = [joint for joint in JOINT if any(each is not SUBJECT and each[0] == spec.name for each in joint.then)]
    for words, joints in (("couplings out of it", out), ("couplings into it", into)):
        if joints:
            lines += ["", words, *(f"  {line}" for joint in joints for line in _coupling(joint))]
    return "\n".join(lines) + "\n"


def _state(spec: MachineSpec, name: str) -> str:
    marks = [word for word, states in (("initial", {spec.initial}), ("final", spec.finals)) if
             name in {state.value for state in states}]  # fmt: skip
    return f"{name} ({', '.join(marks)})" if marks else name


def _rows(spec: MachineSpec, rows: list[Row]) -> Iterator[str]:
    told = [row for row in rows if not row.ignores or couples(spec.name, row)]
    wide = max((len(row.input.name) for row in told), default=0)
    for row in told:
        goes = "stays" if row.dest is row.source else f"-> {row.dest.value}"
        emits = f"  / {', '.join(emit.value for emit in row.emits)}" if row.emits else ""
        yield f"  {row.input.name:<{wide}}  {goes}{emits}  [{' '.join(row.clauses)}]"
    ignored = [row.input.name for row in rows if row not in told]
    if ignored:
        yield f"  ignored: {', '.join(ignored)}"


def _coupling(joint: JointRow) -> Iterator[str]:
    sources = [state.value for state in MACHINES[joint.machine].states if state in joint.sources]
    yield f"{joint.machine} {joint.input.name} in {', '.join(sources)}  [{' '.join(joint.clauses)}]"
    for target in joint.then:
        yield "  then its subject" if target is SUBJECT else f"  then {target[0]} {target[1].name}"
