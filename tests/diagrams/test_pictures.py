"""The pictures against the tables, and the pictures against the eye.

What a picture shows is read back from its committed DOT text through the layout program, and held against rows; the
drawing code is not asked.
"""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from localagent.machines import PICTURES, pictures_of
from localagent.machines.attaching import ends
from localagent.machines.pictures import boxes, says, words
from localagent.machines.views import VIEWS, View, drawn
from statemachines.attachment import AttachmentState
from statemachines.joint import JOINT
from statemachines.registry import COUPLINGS, MACHINES
from statemachines.rows import SUBJECT, Row
from tests.diagrams import geometry

PLACE = Path(__file__).parent.parent.parent / "diagrams"
NEWLINE = "\\n"
"""As DOT writes it."""
WIDEST = 825
"""Points: 1,100 pixels."""

LOOKS = {
    "RECV": ("#0072B2", "solid", "1.3"),
    "WORKER": ("#00805F", "dashed", "1.3"),
    "TIMER": ("#C4500A", "dotted", "1.8"),
    "OUTPUT": ("#A8437F", "solid", "2.8"),
    "EOF": ("#A8437F", "solid", "2.8"),
    "JOINT": ("#4A4A4A:white:#4A4A4A", "solid", "1"),
}


@pytest.fixture(scope="module")
def reports() -> dict[str, dict[str, Any]]:
    return {name: geometry.load(PLACE / f"{name}.dot") for name in PICTURES}


@pytest.mark.parametrize("name", PICTURES)
def test_nothing_lies_on_words_and_nothing_is_cut_off(name: str, reports: dict[str, dict[str, Any]]) -> None:
    found = geometry.layout(reports[name])
    assert list(geometry.faults(found)) == []
    width = re.search(r'<svg width="(\d+)pt"', (PLACE / f"{name}.svg").read_text())
    assert width
    assert int(width[1]) <= WIDEST


def test_the_eye_sees_faults(tmp_path: Path) -> None:
    source = tmp_path / "bad.dot"
    source.write_text(
        'digraph { graph [layout=neato]; node [shape=box]; a [pos="0,0!"]; b [pos="4,0!", label="under the line"];'
        ' c [pos="8,0!"]; d [pos="8,0.1!"]; a -> c; }'
    )
    found = list(geometry.faults(geometry.layout(geometry.load(source))))
    for kind in ("words on words", "line through words", "line through a box"):
        assert any(line.startswith(kind) for line in found), (kind, found)


def _edges(report: dict[str, Any]) -> Iterator[tuple[set[str], set[str], dict[str, Any]]]:
    names = {each["_gvid"]: each["name"] for each in report["objects"]}
    for each in report.get("edges", []):
        yield set(names[each["tail"]].split("+")), set(names[each["head"]].split("+")), each


def _shown_by_edge(row: Row, report: dict[str, Any]) -> bool:
    wanted = f"{row.input.name}: {' '.join(row.clauses)}"
    look = LOOKS[row.input.name.partition("_")[0]]
    for tail, head, edge in _edges(report):
        if row.source.value in tail and row.dest.value in head and wanted in edge.get("tooltip", "").split(NEWLINE):
            label = unescape(edge["label"])
            assert (edge["color"], edge["style"], edge["penwidth"]) == look, wanted
            assert all(emit.value in label for emit in row.emits), wanted
            return True
    return False


def _shown_in_box(row: Row, report: dict[str, Any]) -> bool:
    wanted = f"{row.input.name}: {' '.join(row.clauses)}"
    return any(
        row.source.value in each["name"].split("+") and wanted in each.get("tooltip", "").split(NEWLINE)
        for each in report["objects"]
        if "pos" in each
    )


def _matters(machine: str, row: Row) -> bool:
    moves = row.dest is not row.source or bool(row.emits)
    return moves or any(joint.input is row.input and row.source in joint.sources for joint in COUPLINGS[machine])


@pytest.mark.parametrize("machine", MACHINES)
def test_every_row_that_matters_is_in_a_picture(machine: str, reports: dict[str, dict[str, Any]]) -> None:
    own = [reports[name] for name in pictures_of(machine)]
    for row in MACHINES[machine].rows:
        if _matters(machine, row):
            shown = _shown_in_box if row.dest is row.source else _shown_by_edge
            assert any(shown(row, report) for report in own), (row.source, row.input)


@pytest.mark.parametrize("name", VIEWS)
def test_no_arrow_without_rows(name: str, reports: dict[str, dict[str, Any]]) -> None:
    spec = VIEWS[name].spec
    inputs = {given.value: given for given in spec.inputs}
    for tail, head, edge in _edges(reports[name]):
        if "start" in tail or edge.get("style") == "invis":
            continue
        for tip in edge["tooltip"].split(NEWLINE):
            given = inputs[tip].name if tip in inputs else tip.partition(":")[0]  # hints name inputs by their words
            ends = {(row.source.value, row.dest.value) for row in spec.rows if row.input.name == given}
            assert any((source, dest) in ends for source in tail for dest in head), (tip, tail, head)


@pytest.mark.parametrize("name", VIEWS)
def test_marks_of_initial_and_final_states(name: str, reports: dict[str, dict[str, Any]]) -> None:
    spec = VIEWS[name].spec
    finals = {state.value for state in spec.finals}
    boxes = {each["name"]: each for each in reports[name]["objects"] if "pos" in each and each["name"] != "start"}
    for box, each in boxes.items():
        states = set(box.split("+"))
        assert states <= finals or not states & finals
        assert (each.get("peripheries") == "2") == (states <= finals)
    started = [head for tail, head, _ in _edges(reports[name]) if tail == {"start"}]
    assert started == [set(box.split("+")) for box in boxes if spec.initial.value in box.split("+")]


@pytest.mark.parametrize("view", VIEWS.values(), ids=lambda view: view.name)
def test_states_share_a_box_only_where_they_agree(view: View) -> None:
    nodes = boxes(view)
    home = {state: node for node in nodes for state in node}
    for node in nodes:
        does = [
            {(words(view, row), home[row.dest], says(view, row)) for row in view.rows if row.source is state}
            for state in node
        ]
        assert all(each == does[0] for each in does), node


@pytest.mark.parametrize("machine", MACHINES)
def test_the_note_counts_what_is_left_out(machine: str, reports: dict[str, dict[str, Any]]) -> None:
    spec = MACHINES[machine]
    ignored = sum(not _matters(machine, row) for row in spec.rows)
    for name in pictures_of(machine):
        if name in VIEWS:
            said = " ".join(text.words for text in geometry.layout(reports[name]).texts if text.owner == "legend")
            assert f"{len(VIEWS[name].rows)} rows" in said
            assert (f"{ignored} ignored inputs" in said) == bool(ignored)
    assert len(drawn(spec)) == len(spec.rows) - ignored


def test_the_overview_shows_every_coupling(reports: dict[str, dict[str, Any]]) -> None:
    found = list(_edges(reports["overview"]))
    boxes = [each for each in reports["overview"]["objects"] if "pos" in each]
    for joint in JOINT:
        for target in joint.then:
            if target is SUBJECT:
                continue
            name, given = target
            if name == joint.machine:
                assert any(name == each["name"] and given.value in each["label"] for each in boxes)
                continue
            tip = f"{joint.input.name} -> {given.name}: {' '.join(joint.clauses)}"
            assert any(
                joint.machine in tail and name in head and tip in edge.get("tooltip", "") for tail, head, edge in found
            ), (joint.machine, target)


def test_a_pending_attach_leaves_the_attachment_alone() -> None:
    for end in ends():
        if "ATTACHED" not in end.given.name:
            assert end.attachment is end.before
        else:
            assert end.attachment in (AttachmentState.LAZY, AttachmentState.DURABLE)
