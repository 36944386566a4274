"""The engine runs the tables through ``transitions``; ``statemachines.step`` reads them plainly. They must agree."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.core import engine as engine_module
from localagent.core.engine import CHILD, RUN, Engine
from statemachines import admission
from statemachines.approval import ApprovalInput, ApprovalState
from statemachines.attachment import AttachmentInput
from statemachines.connection import ConnectionInput
from statemachines.joint import CARRIED
from statemachines.message import MessageInput
from statemachines.operation import OperationInput
from statemachines.output import OutputInput
from statemachines.registry import MACHINES
from statemachines.rows import Row, is_total
from statemachines.run import RunInput, RunState
from statemachines.step import Feed, ImpossibleInputError, Move, World, fresh_run, initial_world, machine_of, step
from tests.kit import profiles

ROOT = Path(__file__).parents[2]
LABELS = ("a", "b")


def instances(machine: str) -> list[str]:
    return [f"{machine}:{label}" for label in LABELS] if MACHINES[machine].many else [machine]


FEEDS: list[Feed] = [
    (instance, given_input)
    for machine, spec in MACHINES.items()
    for instance in instances(machine)
    for given_input in spec.inputs
    if not given_input.name.startswith("JOINT_")
]
SUBJECTS: list[Feed] = [(instance, given_input) for machine, given_input in CARRIED for instance in instances(machine)]
WAY: list[Feed] = [
    ("connection", ConnectionInput.RECV_INITIALIZE),
    ("connection", ConnectionInput.WORKER_STARTED),
    ("operation", OperationInput.RECV_ATTACH),
    ("operation", OperationInput.WORKER_ATTACHED_LAZY),
    ("run", RunInput.RECV_TURN_START),
    ("run", RunInput.WORKER_INPUT_APPENDED),
]
"""The way to a run that executes; a walk begins somewhere along it."""
ALWAYS = [feed for feed in FEEDS if is_total(feed[1])]
GATES: list[Feed] = [("run", each) for each in (RunInput.WORKER_REPORT, RunInput.WORKER_DELTA, RunInput.WORKER_ASK)]
feeds = st.one_of(*[st.sampled_from(ALWAYS)] * 3, *[st.sampled_from(GATES)] * 3, st.sampled_from(FEEDS))
subjects = st.one_of(st.none(), st.sampled_from(SUBJECTS), st.sampled_from(SUBJECTS))


def carries(feed: Feed, subject: Feed | None) -> Feed | None:
    """The subject, if the input can bring it along."""
    if subject is None or (machine_of(feed[0]), feed[1]) not in CARRIED[machine_of(subject[0]), subject[1]]:
        return None
    return subject


def brought(world: World, *fed: Feed | None) -> World:
    """The world with all instances that this step could make."""
    after = dict(world)
    for feed in filter(None, fed):
        names = [feed[0], f"card:{feed[0].partition(':')[2]}"] if feed[0].startswith("activity") else [feed[0]]
        after |= {name: state for name, state in initial_world(names).items() if name not in after}
    return after


def known(engine: Engine, world: World) -> World:
    """The world without the instances that nothing has reached; those have not moved."""
    made = {name for machine in MACHINES for name in engine.instances(machine)}
    assert all(world[name] is MACHINES[machine_of(name)].initial for name in set(world) - made)
    return {name: state for name, state in world.items() if name in made}


def plainly(world: World, feed: Feed, subject: Feed | None) -> tuple[World, list[Move]] | ImpossibleInputError:
    """What the plain reading of the tables says."""
    try:
        return step(world, feed, subject)
    except ImpossibleInputError as impossible:
        return impossible


@settings(max_examples=profiles.examples(300, 10_000))
@given(st.integers(0, len(WAY)), st.lists(st.tuples(feeds, subjects), max_size=60))
def test_same_moves_and_same_states(along: int, walk: list[tuple[Feed, Feed | None]]) -> None:
    engine, world = Engine(), initial_world((*CHILD, *RUN))
    for feed, wanted in [*((feed, None) for feed in WAY[:along]), *walk]:
        subject = carries(feed, wanted)
        if feed == ("run", RunInput.RECV_TURN_START):
            engine.begin_run()
            world = known(engine, fresh_run(world))
        world = brought(world, feed, subject)
        expected = plainly(world, feed, subject)
        if isinstance(expected, ImpossibleInputError):
            with pytest.raises(ImpossibleInputError, match=re.escape(str(expected))):
                engine.fire(feed, subject)
            return
        after, moves = expected
        assert engine.fire(feed, subject) == moves
        world = known(engine, after)
        assert {name: engine.state(name) for name in world} == world


def test_a_missing_row_is_our_fault_and_moves_nothing_further() -> None:
    engine = Engine()
    with pytest.raises(ImpossibleInputError, match=r"run: no row for RECV_TURN_CANCEL in none"):
        engine.fire(("run", RunInput.RECV_TURN_CANCEL))
    assert engine.state("run") is RunState.NONE


def test_a_destination_that_differs_from_the_table_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = MACHINES["run"]
    wrong = Row(RunState.NONE, RunInput.RECV_TURN_START, RunState.EXECUTING, (), ("X-1",))
    monkeypatch.setitem(spec.table, (RunState.NONE, RunInput.RECV_TURN_START), wrong)
    with pytest.raises(AssertionError, match="the table says"):
        Engine().fire(("run", RunInput.RECV_TURN_START))


def test_a_new_run_has_new_machines() -> None:
    """Runs, channels, approvals, segments: all anew. What belongs to the child stays."""
    engine = Engine()
    engine.fire(("connection", ConnectionInput.RECV_INITIALIZE))
    engine.fire(("output", OutputInput.OUTPUT_REFUSED))
    engine.fire(("attachment", AttachmentInput.JOINT_ATTACHED_LAZY))
    for _ in range(2):
        engine.begin_run()
        engine.fire(("run", RunInput.RECV_TURN_START))
        assert (engine.state("run"), engine.instances("approval")) == (RunState.ADMITTED, ())
        engine.fire(("run", RunInput.WORKER_INPUT_APPENDED))
        engine.fire(("run", RunInput.WORKER_ASK), ("approval:a", ApprovalInput.WORKER_ASK))
        engine.fire(("run", RunInput.WORKER_DELTA), ("message:m", MessageInput.WORKER_DELTA))
        assert (engine.instances("approval"), engine.instances("message")) == (("approval:a",), ("message:m",))
        assert engine.passes(admission.PENDING_APPROVAL, "approval:a")
        engine.fire(("run", RunInput.WORKER_COMPLETED))
        assert engine.state("approval:a") is ApprovalState.VOID
        assert not engine.passes(admission.PENDING_APPROVAL, "approval:a")
    assert engine.state("connection").value == "starting"
    assert engine.state("output").value == "stalled"


def test_an_instance_that_nothing_has_reached_is_in_its_initial_state() -> None:
    engine = Engine()
    assert engine.state("approval:never") is ApprovalState.NONE
    assert not engine.passes(admission.PENDING_APPROVAL, "approval:never")
    assert (engine.instances("approval"), engine.instances("run")) == ((), ("run",))


def test_a_connection_leaves_nothing_behind() -> None:
    """The library's machines are shared by all connections; they must not hold on to any."""
    Engine().fire(("connection", ConnectionInput.RECV_INITIALIZE))
    assert [engine_module._library_machine(name).models for name in (*CHILD, *RUN)] == [[]] * len((*CHILD, *RUN))


def test_the_library_knows_the_rows_that_move_and_nothing_else() -> None:
    for name, spec in MACHINES.items():
        library = engine_module._library_machine(name)
        arrows = {
            (transition.source, event.name, transition.dest)
            for event in library.events.values()
            for transitions in event.transitions.values()
            for transition in transitions
        }
        assert arrows == {(r.source.name, r.input.name, r.dest.name) for r in spec.rows if r.dest is not r.source}


def test_transitions_is_imported_by_the_engine_alone() -> None:
    users = set()
    for room in ("localagent", "statemachines", "diagrams", "tests"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "transitions" in text else ():
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
                if any(name.partition(".")[0] == "transitions" for name in names):
                    users.add(path.relative_to(ROOT).as_posix())
    assert users == {"localagent/core/engine.py"}
