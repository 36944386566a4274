"""The export of the tables: nothing is lost on the way, and nothing is needed for it."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localagent import machines
from localagent.machines import data
from localagent.machines.matrix import COLUMNS, matrix
from statemachines.admission import LINE, METHODS
from statemachines.joint import JOINT
from statemachines.registry import MACHINES
from statemachines.rows import SUBJECT, Emit

PLACE = Path(__file__).parent.parent / "diagrams"

# typed by hand from section 19.4 of the base page; A accepted, - none, S startup code
NI, AI, OM, SM = "not_initialized", "already_initialized", "operation_missing", "session_missing"
SR, SA, SC = "stale_run", "stale_approval", "stale_client_tool_call"
SESSION = [NI, NI, "A", "A", "busy", "busy", "S", "-"]
ON_ATTACHMENT = [NI, NI, SM, "A", "busy", "busy", "S", "-"]
TYPED = {
    "initialize": ["A", AI, AI, AI, AI, AI, AI, "-"],
    "status": [NI, "A", "A", "A", "A", "A", "A", "-"],
    "shutdown": ["A", "A", "A", "A", "A", "A", "A", "-"],
    "session.create": SESSION,
    "session.open": SESSION,
    "session.list": SESSION,
    "session.list/continuation": SESSION,
    "session.discover": SESSION,
    "model.catalog": SESSION,
    "model.catalog/continuation": SESSION,
    "model.catalog.status": SESSION,
    "model.catalog.status/continuation": SESSION,
    "model.refresh": SESSION,
    "operation.cancel": ["unsupported_capability", OM, OM, OM, "A", OM, OM, "-"],
    "selection.set": ON_ATTACHMENT,
    "history.page": ON_ATTACHMENT,
    "turn.start": ON_ATTACHMENT,
    "turn.cancel": [NI, NI, SR, SR, SR, "A", "S", "-"],
    "approval.answer": [NI, NI, SA, SA, SA, "A", "S", "-"],
    "client.tool.result": ["unsupported_method", NI, SC, SC, SC, "A", "S", "-"],
}


def test_the_matrix_is_the_one_typed_by_hand() -> None:
    short = {"accepted": "A", "none": "-", "startup code": "S"}
    found = {method: [short.get(code, code) for code in row.values()] for method, row in matrix().items()}
    assert found == TYPED
    assert len(COLUMNS) == 8


@pytest.fixture(scope="module")
def exported() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(machines.as_json())
    return loaded


def test_json_holds_every_row(exported: dict[str, Any]) -> None:
    assert list(exported["machines"]) == list(MACHINES)
    for name, spec in MACHINES.items():
        each = exported["machines"][name]
        states = {state.value: state for state in spec.states}
        rows = [
            (states[row["source"]], row["input"], states[row["dest"]], row["emits"], row["clauses"])
            for row in each["rows"]
        ]
        assert rows == [
            (row.source, row.input.name, row.dest, [emit.value for emit in row.emits], list(row.clauses))
            for row in spec.rows
        ]
        assert each["initial"] == spec.initial.value
        assert {states[value] for value in each["finals"]} == spec.finals
        assert list(each["inputs"]) == [given.name for given in spec.inputs]


def test_json_holds_couplings_admission_and_vocabulary(exported: dict[str, Any]) -> None:
    then = [
        ["subject" if target is SUBJECT else {"machine": target[0], "input": target[1].name} for target in joint.then]
        for joint in JOINT
    ]
    assert [each["then"] for each in exported["couplings"]] == then
    assert [set(each["sources"]) for each in exported["couplings"]] == [
        {state.value for state in joint.sources} for joint in JOINT
    ]
    assert [each["check"] for each in exported["line"]] == [check.name for check, _ in LINE]
    assert [each["method"] for each in exported["admission"]] == list(METHODS)
    for each in exported["admission"]:
        checks = METHODS[each["method"]].checks
        assert [check["code"] for check in each["checks"]] == [check.code for check in checks]
        assert [check["kind"] == "structural" for check in each["checks"]] == [check.structural for check in checks]
    assert set(exported["emits"]) == {emit.value for emit in Emit}
    assert exported["matrix"] == matrix()


@pytest.mark.parametrize("name", [None, *MACHINES])
def test_the_digest_can_be_checked_by_anybody(name: str | None) -> None:
    loaded = json.loads(machines.as_json(name))
    digest = loaded.pop("digest")
    canonical = json.dumps(loaded, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert digest == hashlib.sha256(canonical.encode()).hexdigest()


def test_one_machine_as_json() -> None:
    loaded = json.loads(machines.as_json("card"))
    assert loaded["machine"] == json.loads(machines.as_json())["machines"]["card"]
    assert loaded["couplings_out"] == []
    assert {each["machine"] for each in loaded["couplings_in"]} == {"activity"}


def test_the_index_names_every_machine_and_the_digest() -> None:
    text = machines.as_text()
    assert [line.split()[0] for line in text.splitlines()] == [*MACHINES, "digest"]
    assert text.split()[-1] == data.digest(data.model()) == json.loads(machines.as_json())["digest"]


@pytest.mark.parametrize("name", MACHINES)
def test_text_tells_every_row(name: str) -> None:
    spec = MACHINES[name]
    parts = re.split(r"\n\n(?=[^\n]+\n  )", machines.as_text(name))
    told = {part.partition("\n")[0]: part for part in parts}
    for row in spec.rows:
        part = told[row.source.value]
        assert re.search(rf"\b{row.input.name}\b", part), (row.source, row.input)
        if row.dest is not row.source:
            assert re.search(rf"  {row.input.name} +-> {re.escape(row.dest.value)}(  |$)", part, re.MULTILINE)
    for line in machines.as_text(name).splitlines():
        assert line == line.rstrip()


@pytest.mark.parametrize("name", machines.PICTURES)
def test_dot_is_the_committed_text(name: str) -> None:
    committed = (PLACE / f"{name}.dot").read_text()
    if name in MACHINES:
        assert machines.as_dot(name).startswith(committed)
    else:
        assert machines.as_dot(name) == committed


def test_dot_of_a_machine_is_all_of_its_pictures() -> None:
    assert machines.pictures_of("run") == ("run", "run-cancellation", "run-events")
    parts = [(PLACE / f"{name}.dot").read_text() for name in machines.pictures_of("run")]
    assert machines.as_dot("run") == "".join(parts)
    assert machines.as_dot() == (PLACE / "overview.dot").read_text()
    assert machines.pictures_of("discover") == machines.pictures_of("list")
    assert machines.pictures_of("attachment") == ("attachment", "attachment-attaching")


_STATE = re.compile(r'    state "(.+)" as (s_\w+)')
_ARROW = re.compile(r"    (\[\*\]|s_\w+) --> (\[\*\]|s_\w+)(?: : (.+))?")


@pytest.mark.parametrize("name", MACHINES)
def test_mermaid_says_what_the_table_says(name: str) -> None:
    spec = MACHINES[name]
    first, *lines = machines.as_mermaid(name).splitlines()
    assert first == "stateDiagram-v2"
    states: dict[str, str] = {}
    arrows: dict[tuple[str, str], list[str]] = {}
    notes: dict[str, list[str]] = {}
    note = ""
    for line in lines:
        if match := re.fullmatch(r"    note right of (s_\w+)", line):
            note = match[1]
        elif line == "    end note":
            note = ""
        elif note:
            notes.setdefault(note, []).append(line.strip())
        elif match := _STATE.fullmatch(line):
            states[match[2]] = match[1]
        else:
            match = _ARROW.fullmatch(line)
            assert match, line
            arrows[match[1], match[2]] = (match[3] or "").split("<br/>")
    assert list(states.values()) == [state.value for state in spec.states]
    ids = {value: key for key, value in states.items()}
    assert ("[*]", ids[spec.initial.value]) in arrows
    assert {tail for tail, head in arrows if head == "[*]"} == {ids[state.value] for state in spec.finals}
    moving = {(ids[row.source.value], ids[row.dest.value]) for row in spec.rows if row.dest is not row.source}
    assert {ends for ends in arrows if "[*]" not in ends} == moving
    for row in spec.rows:
        words = row.input.value + (f" / {', '.join(emit.value for emit in row.emits)}" if row.emits else "")
        if row.dest is not row.source:
            assert words in arrows[ids[row.source.value], ids[row.dest.value]]
        elif row.emits:
            assert words in notes[ids[row.source.value]]


@pytest.mark.parametrize("export", [machines.as_text, machines.as_json, machines.as_dot, machines.as_mermaid])
def test_unknown_names(export: Callable[[str], str]) -> None:
    with pytest.raises(machines.UnknownMachineError, match="no machine is called 'daemon'; there are connection, "):
        export("daemon")


def test_nothing_else_is_loaded_for_it() -> None:
    program = (
        "import sys; from localagent import machines; machines.as_json(); machines.as_dot('run'); "
        "print({'graphviz', 'transitions', 'msgspec'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
