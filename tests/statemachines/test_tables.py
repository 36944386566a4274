"""The tables by themselves: the product of states and inputs, the audits, and that the audits can fail."""

from dataclasses import replace
from enum import Enum

import pytest

from statemachines import check
from statemachines.admission import METHODS
from statemachines.connection import ConnectionInput, ConnectionState
from statemachines.joint import CARRIED, JOINT
from statemachines.registry import MACHINES
from statemachines.rows import KINDS, SUBJECT, Emit, Kind, MachineSpec, is_total, row
from statemachines.run import RunInput, RunState
from statemachines.step import ImpossibleInputError, step

PRODUCT = [
    pytest.param(spec, state, given, id=f"{spec.name}-{state.value}-{given.name}")
    for spec in MACHINES.values()
    for state in spec.states
    for given in spec.inputs
]


@pytest.mark.parametrize(("spec", "state", "given"), PRODUCT)
def test_each_cell_of_the_product_is_a_row_or_is_refused(spec: MachineSpec, state: Enum, given: Enum) -> None:
    # inputs of these kinds come from our own side at any time: they need a row in every living state
    must = is_total(given) and state not in spec.gone and (spec.name, given) not in CARRIED
    found = spec.table.get((state, given))
    assert found is not None or not must
    if found is None:
        with pytest.raises(ImpossibleInputError):
            step({spec.name: state}, (spec.name, given))
    else:
        assert found.dest in spec.states
        assert found.clauses


def test_the_model_is_clean() -> None:
    assert check.audit() == []


def test_every_emit_is_emitted_by_some_row() -> None:
    used = {emit for spec in MACHINES.values() for each in spec.rows for emit in each.emits}
    assert used == set(Emit)


def test_kinds_of_emits() -> None:
    assert KINDS[Emit.SHUTDOWN_RESULT] is Kind.RESPONSE
    assert KINDS[Emit.RUN_FAILED] is Kind.EVENT
    assert KINDS[Emit.EXIT] is Kind.COMMAND


def test_values_are_spelt_once_per_machine() -> None:
    for spec in MACHINES.values():
        assert len({state.value for state in spec.states}) == len(spec.states)
        assert len({given.value for given in spec.inputs}) == len(spec.inputs)


def test_each_theory_fits_a_screen() -> None:
    for spec in MACHINES.values():
        assert 3 <= len(spec.theory.splitlines()) <= 24, spec.name


def test_snapshots_influence_nothing() -> None:
    assert not [joint for joint in JOINT if joint.machine in ("history", "list", "discover", "catalog")]


def test_the_sixteen_methods_and_the_tool_result_have_an_admission_list() -> None:
    plain = [name for name in METHODS if "/" not in name]
    assert len(plain) == 17
    for name in METHODS:
        base = name.partition("/")[0]
        assert METHODS[name].checks[: len(METHODS[base].checks)] == METHODS[base].checks


# the audits must be able to fail: each gets a machine that is wrong in its way

CONNECTION = MACHINES["connection"]
C, CI = ConnectionState, ConnectionInput


def _with(*rows: object, drop: int = 0) -> MachineSpec:
    return replace(CONNECTION, rows=(*CONNECTION.rows[drop:], *rows))  # type: ignore[arg-type]


def test_audit_sees_a_doubled_row() -> None:
    spec = _with(CONNECTION.rows[0])
    assert list(check.unique_rows(spec)) == ["connection: 2 rows for RECV_INITIALIZE in uninitialized"]


def test_audit_sees_foreign_ends_and_inputs() -> None:
    spec = _with(row(C.READY, RunInput.JOINT_STOP, RunState.NONE, by="FLOW-23"))
    assert len(list(check.known_ends(spec))) == 2


def test_audit_sees_a_missing_row() -> None:
    spec = replace(CONNECTION, rows=tuple(each for each in CONNECTION.rows if each.input is not CI.WORKER_LATE))
    assert len(list(check.total(spec))) == 5
    assert list(check.used_inputs(spec)) == ["connection: WORKER_LATE occurs in no row"]


def test_audit_sees_an_unreachable_state() -> None:
    spec = replace(CONNECTION, rows=tuple(each for each in CONNECTION.rows if each.dest is not C.FAILED))
    assert list(check.reachable(spec)) == ["connection: failed is unreachable"]


def test_audit_sees_dead_ends() -> None:
    trapped = replace(CONNECTION, rows=tuple(each for each in CONNECTION.rows if each.source is not C.FAILED))
    assert list(check.dead_ends(trapped)) == ["connection: failed is a dead end and no final"]
    revived = _with(row(C.CLOSED, CI.RECV_STATUS, C.READY, by="STATUS-06"))
    assert list(check.dead_ends(revived)) == ["connection: final closed leads to ready"]


def test_audit_sees_a_row_without_a_clause() -> None:
    for by in ("", "nonsense"):
        spec = _with(row(C.CLOSED, CI.RECV_STATUS, C.CLOSED, by=by))
        assert len(list(check.clauses(spec))) == 1


def test_audit_sees_faulty_couplings(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = JOINT[0]
    faulty = (
        joint,
        joint,  # twice
        replace(joint, sources=frozenset({C.CLOSED})),  # no such row
        replace(joint, input=CI.RECV_STATUS, sources=frozenset({C.READY}), then=(("run", CI.RECV_STATUS),)),
        replace(joint, input=CI.WORKER_LATE, sources=frozenset({C.READY}), clauses=()),
    )
    monkeypatch.setattr(check, "JOINT", faulty)
    found = list(check.couplings())
    assert any("twice" in line for line in found)
    assert any("no row for RECV_SHUTDOWN in closed" in line for line in found)
    assert any("run knows no" in line for line in found)
    assert any("clauses ()" in line for line in found)


def test_audit_sees_faulty_admissions(monkeypatch: pytest.MonkeyPatch) -> None:
    status = METHODS["status"]
    bare = replace(status, checks=status.checks[1:])  # nothing keeps it from an uninitialized connection
    foreign = replace(status.checks[0], allowed=(("run", frozenset({C.READY})),))
    monkeypatch.setattr(check, "METHODS", {"bare": bare, "foreign": replace(status, checks=(foreign,))})
    found = list(check.admissions())
    assert any(line.startswith("status: connection has no row for RECV_STATUS in uninitialized") for line in found)
    assert any("foreign states for run" in line for line in found)


def test_audit_sees_unknown_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(METHODS["status"].choices[0], machine="run")
    monkeypatch.setattr(check, "METHODS", {"status": replace(METHODS["status"], choices=(wrong,))})
    assert any("run knows no" in line for line in check.admissions())
    assert any("nothing fires RECV_TURN_START" in line for line in check.vocabulary())
    monkeypatch.setattr(check, "CARRIED", {("run", CI.RECV_STATUS): (("message", CI.RECV_STATUS),)})
    assert len([line for line in check.vocabulary() if "knows no" in line]) == 2


def test_a_subject_is_no_target_of_its_own() -> None:
    assert all(target is SUBJECT or isinstance(target, tuple) for joint in JOINT for target in joint.then)
