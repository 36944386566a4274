"""The tables as plain data, for other languages: what ``as_json`` prints."""

import hashlib
import json
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from localagent.machines.matrix import matrix
from statemachines.admission import ASSUMED, CLASSIFIED, JOBS, LINE, METHODS, Admission, Check, Fires
from statemachines.joint import CARRIED, JOINT
from statemachines.registry import MACHINES
from statemachines.rows import KINDS, SUBJECT, Emit, JointRow, MachineSpec, Row

Json = dict[str, Any]
CONTRACT: Final = "magi-code.local-agent, version 1"


def model() -> Json:
    """The whole model."""
    return {
        "contract": CONTRACT,
        "emits": {emit.value: KINDS[emit].value for emit in Emit},
        "machines": {name: machine(spec) for name, spec in MACHINES.items()},
        "couplings": [coupling(joint) for joint in JOINT],
        "carried": [
            {"subject": _feed(*subject), "by": [_feed(*gate) for gate in gates]} for subject, gates in CARRIED.items()
        ],
        "line": [{**_check(check), "fires": _fires(fires) if fires else None} for check, fires in LINE],
        "admission": [_admission(each) for each in METHODS.values()],
        "matrix": matrix(),
        "classified": {
            report: [
                {"checks": [_check(check) for check in checks], "becomes": _fires(fires)} for checks, fires in cases
            ]
            for report, cases in CLASSIFIED.items()
        },
        "assumed": [
            {
                "machine": each.machine,
                "input": each.input.name,
                "sources": _states(each.machine, each.sources),
                "checks": [_check(check) for check in each.checks],
                "why": each.why,
            }
            for each in ASSUMED
        ],
        "jobs": {kind: _check(check) for kind, check in JOBS.items()},
    }


def part(name: str) -> Json:
    """One machine with the couplings out of it and into it."""
    return {
        "contract": CONTRACT,
        "machine": machine(MACHINES[name]),
        "couplings_out": [coupling(joint) for joint in JOINT if joint.machine == name],
        "couplings_in": [coupling(joint) for joint in JOINT if any(_aims(target, name) for target in joint.then)],
    }


def _aims(target: object, name: str) -> bool:
    return isinstance(target, tuple) and target[0] == name


def machine(spec: MachineSpec) -> Json:
    """A machine and its rows."""
    return {
        "name": spec.name,
        "title": spec.title,
        "theory": spec.theory.strip(),
        "scope": spec.scope.value,
        "many": spec.many,
        "states": [state.value for state in spec.states],
        "initial": spec.initial.value,
        "finals": _states(spec.name, spec.finals),
        "gone": _states(spec.name, spec.gone),
        "inputs": {given.name: given.value for given in spec.inputs},
        "rows": [_row(row) for row in spec.rows],
    }


def _row(row: Row) -> Json:
    return {
        "source": row.source.value,
        "input": row.input.name,
        "dest": row.dest.value,
        "emits": [emit.value for emit in row.emits],
        "clauses": list(row.clauses),
    }


def coupling(joint: JointRow) -> Json:
    """A coupling row; a subject stands as the word ``subject``."""
    return {
        "machine": joint.machine,
        "input": joint.input.name,
        "sources": _states(joint.machine, joint.sources),
        "then": ["subject" if target is SUBJECT else _feed(*target) for target in joint.then],
        "clauses": list(joint.clauses),
    }


def _feed(name: str, given: Enum) -> Json:
    return {"machine": name, "input": given.name}


def _fires(fires: Fires) -> Json:
    return _feed(fires.machine, fires.input)


def _states(name: str, states: Iterable[Enum]) -> list[str]:
    chosen = set(states)
    return [state.value for state in MACHINES[name].states if state in chosen]


def _check(check: Check) -> Json:
    return {
        "check": check.name,
        "kind": "structural" if check.structural else "factual",
        "code": check.code,
        "allowed": {name: _states(name, states) for name, states in check.allowed},
        "clauses": list(check.clauses),
    }


def _admission(each: Admission) -> Json:
    return {
        "method": each.method,
        "checks": [_check(check) for check in each.checks],
        "fires": [_fires(fires) for fires in each.choices],
        "brings": _fires(each.brings) if each.brings else None,
        "clauses": list(each.clauses),
    }


def digest(data: Json) -> str:
    """SHA-256 over the canonical JSON: keys sorted, no white space, UTF-8, the digest itself left out."""
    plain = {key: value for key, value in data.items() if key != "digest"}
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def dump(data: Json) -> str:
    """The data with its digest, indented, as text."""
    return json.dumps({**data, "digest": digest(data)}, indent=2, ensure_ascii=False) + "\n"
