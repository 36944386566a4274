"""Exploration of every slice: properties, counts, and that the properties can fail."""

from dataclasses import replace

import pytest

from statemachines.connection import ConnectionInput, ConnectionState
from statemachines.explore import LIFECYCLE, SLICES, Model, Report, compile_slice, explore, take
from statemachines.properties import always, goals, unfired
from statemachines.registry import COUPLINGS, MACHINES
from statemachines.rows import Emit, Row
from statemachines.run import RunInput, RunState
from statemachines.step import TABLES, Tables, emitted, initial_world, step

COUNTS = {
    "lifecycle": (295, 3_802),
    "asks": (8_633, 122_641),
    "segments": (1_777, 24_769),
    "cards": (2_777, 41_534),
    "two approvals": (10_633, 148_441),
    "snapshots": (3_998, 86_183),
    "scans": (4_630, 106_403),
    "talk": (487_153, 8_243_497),
}
"""Slice -> reachable states, transitions (echoes not counted). A change of the tables changes them knowingly."""


def _explored(name: str) -> tuple[Model, Report]:
    """Explore a slice; it holds its properties and its counts."""
    model = compile_slice(SLICES[name])
    report = explore(model, always(model), goals(model), most=3)
    assert report.faults == []
    assert (report.states, report.transitions) == COUNTS[name]
    return model, report


def test_each_slice_holds_its_properties_and_each_row_is_taken_in_some_slice() -> None:
    assert unfired(_explored(name) for name in SLICES if name != "talk") == []


@pytest.mark.deep
def test_the_whole_talk_holds_its_properties() -> None:
    _explored("talk")


def test_the_explorer_and_the_plain_step_agree() -> None:
    model = compile_slice(LIFECYCLE)
    world = initial_world(LIFECYCLE)
    state = model.initial
    by_label = {choice.label: choice for choice in model.choices}
    for label in (
        "initialize: connection RECV_INITIALIZE",
        "connection WORKER_STARTED",
        "session.create: operation RECV_ATTACH",
        "operation WORKER_ATTACHED_LAZY",
        "turn.start: run RECV_TURN_START",
        "run WORKER_INPUT_APPENDED",
        "shutdown: connection RECV_SHUTDOWN",
    ):
        choice = by_label[label]
        taken = take(model, state, choice, set())
        assert taken is not None
        state, emits = taken
        instance = model.instances[choice.feed[0]]
        world, moves = step(world, (instance, model.inputs[choice.feed[0]][choice.feed[1]]))
        assert emitted(moves) == emits
        assert tuple(world[name] for name in model.instances) == tuple(
            model.states[i][code] for i, code in enumerate(state)
        )


# what must not pass unnoticed


def _tables(machine: str, old: Row, *new: Row) -> Tables:
    spec = MACHINES[machine]
    rows = tuple(each for each in spec.rows if each is not old) + new
    return Tables({**MACHINES, machine: replace(spec, rows=rows)}, COUPLINGS)


def _faults(tables: Tables, name: str = "lifecycle") -> list[str]:
    model = compile_slice(SLICES[name], tables)
    return explore(model, always(model), goals(model)).faults


def test_a_missing_row_is_found_with_its_trace() -> None:
    old = MACHINES["connection"].table[ConnectionState.STARTING, ConnectionInput.WORKER_STARTED]
    (fault,) = _faults(_tables("connection", old))
    assert fault.splitlines() == [
        "no row: connection: no row for WORKER_STARTED in starting",
        "  after initialize: connection RECV_INITIALIZE",
        "  in    connection=starting",
        "  then  connection WORKER_STARTED",
    ]


def test_a_broken_property_is_named() -> None:
    old = MACHINES["run"].table[RunState.FINISHING_COMPLETED, RunInput.WORKER_GONE]
    fault = _faults(_tables("run", old, replace(old, emits=(Emit.RUN_COMPLETED, Emit.RUN_COMPLETED))))[0]
    assert fault.startswith("exactly one terminal, when the run ends")


def test_a_state_without_a_way_out_is_found() -> None:
    spec = MACHINES["run"]
    trapped = tuple(
        replace(each, dest=each.source, emits=()) if each.source is RunState.FINISHING_FAILED else each
        for each in spec.rows
    )
    (fault,) = _faults(Tables({**MACHINES, "run": replace(spec, rows=trapped)}, COUPLINGS))
    assert fault.startswith("stuck: an owed terminal, by workers alone")
    assert "run=finishing(failed)" in fault


def test_a_row_that_is_never_taken_is_reported() -> None:
    model = compile_slice(LIFECYCLE)
    missing = unfired([(model, explore(model))])
    assert "approval: RECV_ALLOW in requested is never taken" in missing
    assert "approval: allowed is never reached" in missing


def test_counts_do_not_depend_on_the_order_of_the_tables() -> None:
    backwards = Tables({name: replace(spec, rows=spec.rows[::-1]) for name, spec in MACHINES.items()}, TABLES.couplings)
    model = compile_slice(LIFECYCLE, backwards)
    report = explore(model, always(model), goals(model))
    assert (report.states, report.transitions) == COUNTS["lifecycle"]


def test_a_state_is_shown_by_what_differs_from_the_beginning() -> None:
    model = compile_slice(LIFECYCLE)
    assert model.show(model.initial) == "initial"
    ready = (model.states[0].index(ConnectionState.READY), *model.initial[1:])
    assert model.show(ready) == "connection=ready"
