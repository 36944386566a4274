"""The command line with real backends: judging a recording, holding it again, our own backend under test."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from localagent.cli import main
from localagent.conformance import cases, judge, play, processes, report, suite, transcript
from localagent.conformance.model import Calibration, Case, Target, Transcript, Verdict
from localagent.conformance.replay import NothingToReplayError, to_case
from localagent.protocol.names import EXTENSIONS

from .fakes import Bench, case

CASES = (case("frame.one", "FRAME-03", "FRAME-04"),)
Output = pytest.CaptureFixture[str]

OURS = [sys.executable, "-m", "localagent", "serve", "--stdio"]
REQUEST = '{"protocol":"magi-code.local-agent","version":1,"id":%s,"method":%s,"params":%s}'


def request(name: str, method: str, **params: Any) -> str:
    return REQUEST % (json.dumps(name), json.dumps(method), json.dumps(params))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture without times of our backend: a session, its history, a line that is no JSON."""
    place = tmp_path_factory.mktemp("conf-suite")
    environ = {**os.environ, "MC_HOME": str(place / "home")}
    child = subprocess.Popen(OURS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, text=True, bufsize=1)
    assert child.stdin is not None
    assert child.stdout is not None
    records: list[Any] = []

    def ask(text: str) -> Any:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(f"{text}\n")
        line = child.stdout.readline()
        records.extend([{"dir": "client", "line": text}, {"dir": "backend", "line": line.rstrip("\n")}])
        return json.loads(line)

    ask(request("a.1", "initialize", required_capabilities=[]))
    created = ask(request("new", "session.create"))
    session = created["result"]["session_id"]
    ask("{no json")
    ask(request("page", "history.page", session_id=session))
    ask(request("page", "status"))
    ask(request("bye", "shutdown"))
    child.stdin.close()
    records.append({"exit": child.wait(10)})
    child.stdout.close()
    file = place / "capture.ndjson"
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    return file


def test_a_foreign_capture_is_judged(recorded: Path, capsys: Output) -> None:
    status = main(["judge", str(recorded), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert status == found["status"]
    assert found["clauses"]["FRAME-03"] == "held"
    assert any("times" in each for each in found["not_judged"])
    main(["judge", str(recorded)])
    assert "not judged: deadlines" in capsys.readouterr().out


def test_a_truncated_capture_is_never_green(recorded: Path, tmp_path: Path, capsys: Output) -> None:
    lines = recorded.read_text().splitlines(keepends=True)
    cut = tmp_path / "cut.ndjson"
    for count in range(2, len(lines)):
        cut.write_text("".join(lines[:count]))
        assert main(["judge", str(cut)]) in (1, 2)
        assert "not go on to the end" in capsys.readouterr().out


def test_a_recording_becomes_a_case(recorded: Path) -> None:
    made = to_case(transcript.read(recorded))
    assert [each.kind for each in made.steps if each.kind not in ("answer", "event")] == [
        *("send", "send", "hex", "send", "send", "send")
    ]
    sends = [each for each in made.steps if each.kind == "send"]
    assert sends[0].args["envelope"]["id"] == "a.1"
    assert sends[2].args["params"] == {"session_id": "$r2.result.session_id"}
    assert sends[3].args["envelope"]["id"] == "r3"  # the id of the line before, as in the recording
    assert made.checks == ()
    with pytest.raises(NothingToReplayError):
        to_case(transcript.read(b'{"dir":"backend","line":"{}"}\n'))


def test_a_replay_holds_the_conversation_again(recorded: Path, tmp_path: Path, capsys: Output) -> None:
    again = tmp_path / "again.ndjson"
    status = main(["replay", str(recorded), "--save", str(again), "--", *OURS])
    text = capsys.readouterr().out
    assert status in (0, 1), text
    assert "replay.transcript" in again.read_text().splitlines()[0]
    frames = [json.loads(each.data) for each in transcript.read(again).records if each.kind == "backend"]
    assert not any(each.get("error", {}) and each["error"]["code"] == "not_attached" for each in frames)
    assert len(frames) >= 6


def test_our_backend_is_put_through_some_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    chosen = cases.parse(
        """
        [[case]]
        id = "frame.alive"
        title = "A request is answered"
        tier = 0
        clauses = ["STATUS-02"]
        steps = [ { send = "status", as = "one" }, { answer = "one", error = "not_initialized" } ]

        [[case]]
        id = "frame.wrong"
        title = "A case that asks for something else than the contract"
        tier = 0
        clauses = ["SHUT-04"]
        steps = [ { send = "shutdown", as = "one" }, { answer = "one", result = { state = "dancing" } } ]
        """
    )
    monkeypatch.setattr(cases, "load", lambda: chosen)
    assert main(["conform", "--report", str(tmp_path), "--", *OURS]) == 1
    found = {each.case.id: each for each in report.load(tmp_path).cases}
    own = {each.check: each for one in found.values() for each in one.results}
    assert own["frame.alive/e1"].verdict is Verdict.HELD
    assert own["frame.wrong/e1"].verdict is Verdict.VIOLATED
    assert own["sanity.first/start"].verdict is Verdict.HELD
    evidence = own["frame.wrong/e1"].record
    record = next(each for each in found["frame.wrong"].transcript.records if each.number == evidence)
    assert b"stopping" in record.data
    capsys.readouterr()
    file = tmp_path / "transcripts" / "frame.wrong.ndjson"
    assert main(["judge", str(file), "--json"]) == 1
    again = json.loads(capsys.readouterr().out)
    live = {each.check: str(each.verdict) for each in found["frame.wrong"].results}
    assert {each["check"]: each["verdict"] for each in again["checks"]} == live
    assert main(["judge", str(tmp_path / "transcripts" / "sanity.first.ndjson"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    live = {each.check: str(each.verdict) for each in found["sanity.first"].results}
    assert {each["check"]: each["verdict"] for each in again["checks"]} == live


def test_a_backend_that_does_not_exist(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.setattr(cases, "load", lambda: CASES)
    assert main(["conform", "--", "/nowhere/backend"]) == 2
    assert "did not answer" in capsys.readouterr().out


def left() -> list[Any]:
    """Children and threads of a run that are still there."""
    found = [each for each in processes.living() or () if each.parent == os.getpid() and each.session == each.pid]
    return [*found, *(each.name for each in threading.enumerate() if each.name.startswith("conformance"))]


def test_an_interrupt_leaves_no_child_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "GRACE_SECONDS", 0.5)
    mark = f"conf-suite-{os.getpid()}"
    target = Target((sys.executable, "-c", f"import time; time.sleep(60)  # {mark}"))
    one = suite.Suite(target, CASES, play=play.play, judge=judge.judge)
    threading.Timer(0.8, one.cut).start()
    assert one.run() == ((), "cut")
    assert left() == []


def test_a_listener_that_fails_leaves_no_child_behind() -> None:
    bench = Bench()

    def played(one: Case, target: Target, calibration: Calibration) -> Transcript:
        held = one.id == "frame.held"
        return play.play(one, target, calibration) if held else bench.play(one, target, calibration)

    def listen(event: suite.Event) -> None:
        if isinstance(event, suite.Done) and event.result.case.id == "frame.one":
            raise BrokenPipeError

    target = Target((sys.executable, "-c", "import time; time.sleep(60)"))
    steps = "steps = [{ pause_ms = 50000 }, { restart = true }, { pause_ms = 50000 }]"
    held = cases.parse(f'[[case]]\nid = "frame.held"\ntitle = "x"\ntier = 0\nclauses = ["FRAME-03"]\n{steps}\n')
    with pytest.raises(BrokenPipeError):
        suite.Suite(target, (*held, *CASES), play=played, judge=bench.judge, listen=listen).run()
    assert left() == []


ANSWERS = """
import json, sys
for count, line in enumerate(sys.stdin, 1):
    asked = json.loads(line)
    frame = {"protocol": "magi-code.local-agent", "version": 1, "seq": count, "type": "response", "id": asked["id"]}
    frame["instance_id"] = "5f0c3c0e-9a52-4c43-8f0a-8d8f6b1f3a11"
    %s
"""
REFUSES = 'print(json.dumps({**frame, "error": {"code": "%s"}}), flush=True)'


@pytest.mark.parametrize("extension", EXTENSIONS)
@pytest.mark.parametrize(
    ("does", "legal"),
    [
        (REFUSES % "unsupported_capability", True),
        (REFUSES % "busy", False),
        (REFUSES % "unsupported_capability" + "; sys.exit(7)", False),
        ("sys.exit(7)", False),
    ],
)
def test_an_extension_may_be_refused_and_no_more(extension: str, does: str, legal: bool) -> None:
    one = suite.asking(extension)
    played = play.play(one, Target((sys.executable, "-c", ANSWERS % does)))
    results = judge.judge(played, one, None)
    bad = [each for each in results if each.verdict in (Verdict.VIOLATED, Verdict.DEVIATION)]
    assert (bad == []) is legal, bad


def test_a_replay_of_what_cannot_be_started_is_inconclusive(recorded: Path, tmp_path: Path, capsys: Output) -> None:
    again = tmp_path / "again.ndjson"
    assert main(["replay", str(recorded), "--save", str(again), "--", "/nowhere/backend"]) == 2
    told = capsys.readouterr()
    assert "did not answer" in told.out
    assert "is not written" in told.err
    assert not again.exists()
