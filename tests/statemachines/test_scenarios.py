"""Every scenario holds, and together they leave no row, no coupling and no check out."""

from collections import Counter
from pathlib import Path

import pytest

from localagent.conformance import register
from statemachines.admission import CLASSIFIED, LINE, METHODS
from statemachines.connection import ConnectionState
from statemachines.registry import COUPLINGS, MACHINES
from statemachines.step import initial_world
from tests.kit.mutants import touched
from tests.kit.scenario_files import Scenario, ScenarioError, load, read
from tests.kit.scenarios import Gate, MismatchError, Place, play

SCENARIOS = load()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_scenario(scenario: Scenario) -> None:
    play(scenario)


def test_names_are_unique() -> None:
    counts = Counter(scenario.id for scenario in SCENARIOS)
    assert [name for name, count in counts.items() if count > 1] == []


def test_every_cited_clause_exists() -> None:
    for scenario in SCENARIOS:
        for clause in scenario.clauses:
            register.find(clause)  # raises for an unknown one


def test_whole_lives() -> None:
    """Each scenario of ``lives`` goes from the first line a child reads to its exit."""
    lives = [scenario for scenario in SCENARIOS if scenario.file.stem == "lives"]
    assert lives
    for scenario in lives:
        assert scenario.start == initial_world(scenario.start), scenario.id
        assert _end(scenario)["connection"] is ConnectionState.CLOSED, scenario.id


def _end(scenario: Scenario) -> dict[str, object]:
    end: dict[str, object] = dict(scenario.start)
    for each in scenario.steps:
        if hasattr(each, "expected"):
            end |= each.expected.states
    return end


def test_every_row_is_touched() -> None:
    rows: set[Place] = set().union(*(came_by.rows for _, came_by in touched()))
    missing = [
        f"{name}: {row.input.name} in {row.source.value}"
        for name, spec in MACHINES.items()
        for row in spec.rows
        if (name, row.source, row.input) not in rows
    ]
    assert missing == []


def test_every_coupling_is_touched_from_each_source() -> None:
    rows: set[Place] = set().union(*(came_by.rows for _, came_by in touched()))
    missing = [
        f"{name}: {joint.input.name} in {source.value}"
        for name, joints in COUPLINGS.items()
        for joint in joints
        for source in joint.sources
        if (name, source, joint.input) not in rows
    ]
    assert missing == []


def test_every_check_refuses_in_some_scenario() -> None:
    failed: set[Gate] = set().union(*(came_by.checks for _, came_by in touched()))
    checks = {("line", check.name) for check, _ in LINE}
    checks |= {(method, check.name) for method, admission in METHODS.items() for check in admission.checks}
    checks |= {(name, check.name) for name, cases in CLASSIFIED.items() for checks, _ in cases for check in checks}
    assert sorted(checks - failed) == []


HEADER = '{"scenario": "s", "about": "a", "clauses": ["ENV-24"], "given": {"connection": "ready"}}'


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ('{"recv": "status", "emits": []}', "emits status.result, expected nothing"),
        ('{"recv": "status", "emits": ["status.result"], "refused": "busy"}', "accepted, expected refused with busy"),
        ('{"recv": "turn.start"}', "refused with session_missing, expected accepted"),
        ('{"recv": "status", "discarded": true}', "accepted, expected discarded"),
        ('{"recv": "turn.start", "refused": "session_missing", "emits": ["start turn"]}', "refused without effect"),
        ('{"input": ["output", "OUTPUT_REFUSED"]}', "output is stalled, expected open (was open)"),
        ('{"ignored": ["output", ["TIMER_OUTPUT", "OUTPUT_REFUSED"]]}', "output is stalled, expected open"),
        ('{"recv": "status", "emits": ["status.result"], "states": {"run": "none"}}', "run was none before"),
        ('{"report": "queue emptied", "becomes": "OUTPUT_DRAINED"}', "becomes OUTPUT_EMPTIED"),
        ('{"input": ["output", "OUTPUT_REFUSED"], "states": {"output": "stalled"}, "through": {"output": ["lost"]}}',
         "goes through nothing, expected output lost"),
    ],
)  # fmt: skip
def test_a_wrong_expectation_is_named_with_its_place(tmp_path: Path, step: str, fault: str) -> None:
    file = tmp_path / "wrong.ndjson"
    file.write_text(f"{HEADER}\n{step}\n")
    (scenario,) = read(file)
    with pytest.raises(MismatchError) as caught:
        play(scenario)
    assert str(caught.value).startswith("wrong.ndjson:2: s: ")
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        '{"recv": "status", "emit": ["status.result"]}',
        '{"recv": "status", "emits": ["status.results"]}',
        '{"recv": "status", "fails": "params are valid"}',
        '{"recv": "status", "states": {"run": "gone"}}',
        '{"recv": "status", "states": {"run": "none", "run": "none"}}',
        '{"recv": "status", "states": {"message:m": "streaming"}}',
        '{"recv": "status", "refused": "busy", "discarded": true}',
        '{"recv": "approval.answer", "choice": "RECV_ALLOW"}',
        '{"recv": "approval.answer", "of": "approval:a", "choice": "RECV_ALLOW"}',
        '{"recv": "status", "choice": "RECV_STATUS"}',
        '{"input": ["connection", "RECV_STATUS"]}',
        '{"input": ["run", "JOINT_STOP"]}',
        '{"input": ["list", "WORKER_PAGE"]}',
        '{"input": ["run", "WORKER_DELTA"], "subject": ["list", "WORKER_PAGE"]}',
        '{"input": ["runs", "WORKER_DELTA"]}',
        '{"report": "queue emptied"}',
        '{"given": {}}',
        "[]",
        "",
    ],
)
def test_a_mistake_in_a_file_is_not_overlooked(tmp_path: Path, line: str) -> None:
    file = tmp_path / "mistaken.ndjson"
    file.write_text(f"{HEADER}\n{line}\n")
    with pytest.raises(ScenarioError, match=r"mistaken\.ndjson:2: "):
        read(file)


def test_a_scenario_keeps_the_promises_of_the_shell(tmp_path: Path) -> None:
    file = tmp_path / "broken.ndjson"
    file.write_text(
        '{"scenario": "s", "about": "a", "clauses": ["FLOW-30"], "given": {"connection": "stopping"}}\n'
        '{"input": ["connection", "WORKER_CLEANED"]}\n'
    )
    (scenario,) = read(file)
    with pytest.raises(ScenarioError, match="output is open, but teardown starts when the output has ended"):
        play(scenario)
