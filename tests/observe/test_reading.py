"""Captures as files: what is read from them, what is shown, and the exit status."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from localagent.observe import Seen, decode, explain, observe_file, read_capture, render, to_data
from tests.kit.mutations import CAPTURES, load
from tests.observe.traces import INSTANCE, PROTOCOL, Trace

CLIENT = {"protocol": PROTOCOL, "version": 1, "id": "r1", "method": "shutdown", "params": {}}
BACKEND = {
    "protocol": PROTOCOL, "version": 1, "type": "response", "instance_id": INSTANCE, "seq": 1, "id": "r1",
    "result": {"state": "stopping"},
}  # fmt: skip


def capture(folder: Path, *records: Any) -> Path:
    path = folder / "capture.ndjson"
    path.write_text("".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in records))
    return path


def line(side: str, frame: object, end: str = "\n") -> dict[str, str]:
    return {"dir": side, "line": json.dumps(frame) + end}


def observed(path: Path, json: bool = False) -> tuple[int, str]:
    out = io.StringIO()
    return observe_file(path, json, out), out.getvalue()


@pytest.mark.parametrize("name", ["plain", "tools", "discovery"])
def test_a_capture_of_the_published_backend_is_explained(name: str) -> None:
    status, text = observed(CAPTURES / f"{name}.ndjson")
    assert status == 0
    assert text.endswith(f"{len(load(name)) + 1} frames, all explained\n")


def test_frames_are_numbered_like_the_lines_of_the_file(tmp_path: Path) -> None:
    path = capture(tmp_path, {"capture": "x"}, "", line("client", CLIENT), line("backend", BACKEND), {"exit": 0})
    assert [each.frame for each in explain(read_capture(path))] == [3, 4, 5, 6]


def test_lines_and_decoded_frames_say_the_same(tmp_path: Path) -> None:
    lines = capture(tmp_path, line("client", CLIENT), line("backend", BACKEND), {"exit": 0})
    told = [to_data(each) for each in explain(read_capture(lines))]
    frames = capture(
        tmp_path, {"direction": "client", "frame": CLIENT}, {"direction": "backend", "frame": BACKEND}, {"exit": 0}
    )
    assert [to_data(each) for each in explain(read_capture(frames))] == told
    assert all(not each["findings"] for each in told)


def test_lines_may_have_been_recorded_without_their_end(tmp_path: Path) -> None:
    path = capture(tmp_path, line("client", CLIENT, ""), line("backend", BACKEND, ""), {"exit": 0})
    assert observed(path)[0] == 0


def test_the_end_of_input_is_recorded_or_seen_in_a_cut_line(tmp_path: Path) -> None:
    start = [line("client", CLIENT), line("backend", BACKEND)]
    closed = read_capture(capture(tmp_path, *start, {"dir": "client", "closed": True}))[-1]
    assert (closed.seen, closed.value) == (Seen.CLOSED, False)
    cut = read_capture(capture(tmp_path, *start, {"dir": "client", "line": '{"proto'}))[-1]
    assert (cut.seen, cut.value) == (Seen.CLOSED, True)
    incomplete = {**BACKEND, "id": None, "error": {"code": "incomplete_frame"}}
    del incomplete["result"]
    path = capture(tmp_path, {"dir": "client", "line": '{"proto'}, {"dir": "client", "closed": True},
                   line("backend", incomplete), {"exit": 0})  # fmt: skip
    assert observed(path)[0] == 0


def test_a_cut_frame_of_the_backend_is_no_frame(tmp_path: Path) -> None:
    status, text = observed(capture(tmp_path, line("client", CLIENT), {"dir": "backend", "line": '{"id":"r'}))
    assert status == 1
    assert "no JSON object" in text


@pytest.mark.parametrize("damage", ["{", "[]", '{"dir": "nobody", "line": ""}', '{"dir": "client"}', "[" * 5000])
def test_a_damaged_line_is_a_finding_and_the_rest_is_read(tmp_path: Path, damage: str) -> None:
    path = capture(tmp_path, line("client", CLIENT), damage, line("backend", BACKEND), {"exit": 0})
    told = list(explain(read_capture(path)))
    findings = [finding for each in told for finding in each.findings]
    assert [(each.frame, each.machine, each.clauses) for each in findings] == [(2, "capture", ("FRAME-03",))]
    assert told[2].steps[0].input.name == "RECV_SHUTDOWN"


def test_bytes_that_are_no_text_are_read_as_damage(tmp_path: Path) -> None:
    path = tmp_path / "capture.ndjson"
    path.write_bytes(b"\xff\xfe\n" + json.dumps({"exit": 2}).encode() + b"\n")
    assert observed(path)[0] == 1


@pytest.mark.parametrize(
    ("text", "broken", "repeated"),
    [
        ('{"a":1,"b":{"c":1}}\n', False, ""),
        ('{"a":1,"a":2}', False, "top"),
        ('{"a":1,"\\u0061":2}', False, "top"),
        ('{"a":{"b":1,"b":2}}', False, "params"),
        ('{"a":NaN}', True, ""),
        ('{"a":1}{', True, ""),
        ("[" * 100000, True, ""),
        ("", True, ""),
    ],
)
def test_decoding_tells_what_a_value_does_not(text: str, broken: bool, repeated: str) -> None:
    _, told = decode(text)
    assert (told.broken, told.repeated, told.size) == (broken, repeated, len(text.rstrip("\n")))


def test_the_text_has_columns_and_marks_what_is_inferred() -> None:
    text = render(Trace().running().whole().finished().told)
    lines = [each for each in text.splitlines() if "run:" in each]
    assert "~run:" in lines[-2]
    assert " run:" in lines[-1]
    assert len({each.index("run:") for each in lines}) == 1
    assert len({each.index(" -> ") for each in lines if "executing -> " in each}) == 1


def test_identifiers_are_shortened_for_people() -> None:
    text = render(Trace().running().approval().told)
    assert "approval:b81f0c95:" in text
    assert "b81f0c95-3d47" not in text


def test_findings_and_notes_stand_below_their_frame(tmp_path: Path) -> None:
    trace = Trace().ready().ask("status").error("busy").activity("completed")
    lines = render(trace.told).splitlines()
    assert any(
        each.strip().startswith("FINDING: busy is no answer to status r2 (connection ready; D22)") for each in lines
    )
    activity = Trace().running().activity("completed")
    assert "reading: activity completed has no row here (activity:a1 none; BASE-OP-172)" in render(activity.told)
    refused = render(Trace().attached().cancel().error("stale_run").told)
    assert "note: refused: not run active (TURN-23)" in refused


def test_the_json_form_holds_everything(tmp_path: Path) -> None:
    path = capture(tmp_path, line("client", CLIENT), line("backend", {**BACKEND, "seq": 2}), {"exit": 0})
    status, text = observed(path, json=True)
    told = json.loads(text)
    assert status == 1
    assert [each["label"] for each in told] == ["shutdown r1", "shutdown r1 result", "exit status 0", "end of trace"]
    assert told[1]["steps"][0] == {
        "instance": "connection", "source": "uninitialized", "input": "RECV_SHUTDOWN", "dest": "stopping",
        "clauses": ["SHUT-02", "SHUT-03", "SHUT-04"], "inferred": False,
    }  # fmt: skip
    assert told[1]["findings"] == [
        {"what": "the first seq is not 1", "machine": "frame", "state": "", "clauses": ["ENV-28"], "reading": False}
    ]
