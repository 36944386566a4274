"""The player: on children that misbehave, where it costs the case and nothing else, and on our own backend."""

import sys
from json import loads
from pathlib import Path
from typing import Any

import pytest

from localagent.conformance import play as player
from localagent.conformance import transcript, waiting
from localagent.conformance.cases import parse
from localagent.conformance.frames import children
from localagent.conformance.model import Calibration, Case, Target, Transcript
from localagent.conformance.seen import WAITING, Seen
from localagent.conformance.values import mismatch

OURS = (sys.executable, "-m", "localagent", "serve", "--stdio")


class Hasty(Calibration):
    """Little patience, for children that never answer."""

    @property
    def answer_ms(self) -> float:
        return 300.0

    @property
    def start_ms(self) -> float:
        return 800.0


@pytest.fixture
def short_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """No patience for the end either: 740 ms."""
    monkeypatch.setattr(waiting, "END_MS", 200.0)


def case(steps: str, *, tier: int = 0, more: str = "") -> Case:
    head = f'[[case]]\nid = "test.case"\ntitle = "A test"\ntier = {tier}\nclauses = ["FRAME-05"]\n{more}\n'
    return parse(f"{head}steps = [\n{steps}\n]\n")[0]


def play(some: Case, program: str | None = None, calibration: Calibration | None = None, **more: Any) -> Transcript:
    argv = OURS if program is None else (sys.executable, "-c", program)
    keep = more.pop("keep", 1 << 26)
    played = player.play(some, Target(argv, **more), calibration or Calibration(), keep)
    assert transcript.read(transcript.to_bytes(played)) == played
    assert [each.number for each in played.records] == list(range(1, len(played.records) + 1))
    assert played.complete
    assert played.records[-1].kind == "footer"
    return played


def marks(played: Transcript) -> list[str]:
    return [each.value for each in played.records if each.kind == "mark"]


def exits(played: Transcript) -> list[int]:
    return [each.value for each in played.records if each.kind == "exit"]


# our backend


def test_a_conversation_with_our_backend() -> None:
    some = case(
        """
        { start = true, require = ["session.list"] },
        { raw = "{", then = "\\n" }, { answer = "", error = "invalid_frame", as = "bad" },
        { send = "status", as = "s", times = 3 }, { answers = "s", times = 3 },
        { same = ["$s1.instance_id", "$init.instance_id"] }, { differ = ["$s1.seq", "$bad.seq"] },
        { send = "session.create", as = "new" }, { answer = "new", result = {} },
        { turn = "plain", session = "$new.result.session_id", as = "t" },
        { event = "input.persisted", run = "t" }, { event = "run.finished", run = "t", as = "fin" },
        { absent = "message.delta", since = "fin" }, { nothing = true },
        { send = "history.page", as = "h", retry = ["busy"], params = { revision = "$fin.data.revision", limit = 5 } },
        { answer = "h", error = "invalid_params" },
        { home = "unchanged" }, { home_has = "sessions" }, { home_lacks = "none/*" },
        { close = true }, { exit = [0], since = "close", within_ms = 2000 },
        { nothing = true },
        """,
        tier=1,
        more='prompts = ["plain"]',
    )
    played = play(some, prompts={"plain": "Hello"}, capabilities=frozenset({"status"}))
    assert played.header["case"] == "test.case"
    assert (played.header["prompts"], played.header["capabilities"]) == (["plain"], ["status"])
    assert exits(played) == [0]
    assert played.records[-1].value == {"end": "complete", "left": 0}
    assert [mark for mark in marks(played) if not mark.startswith("step")] == [
        next(mark for mark in marks(played) if mark.startswith("home 17 fails: created ")),
        "home 18 holds",
        "home 19 holds",
    ]
    assert sum(mark.startswith("step") for mark in marks(played)) == len(some.steps)
    seen = Seen()
    seen.feed(played.records)
    for step in some.steps:
        assert seen.passed(step) == []
        assert (seen.find(step) is not None) is (step.kind in WAITING)
    assert seen.lookup("fin")["data"]["outcome"] == "completed"
    assert seen.lookup("bad")["id"] is None
    assert not seen.running


def test_a_second_child_in_the_same_home_and_in_others() -> None:
    start = "{ start = true },"
    some = case(
        f"""
        {start} {{ match = "$init.result", pattern = "*" }},
        {{ send = "status", as = "a" }}, {{ answer = "a", result = {{}} }},
        {{ restart = true }}, {start} {{ same = ["$a.seq", 2] }},
        {{ restart = true, cwd = "other", home = "fresh" }}, {start}
        {{ restart = true }}, {{ kill = true }}, {{ exit = [-9] }},
        """
    )
    played = play(some)
    assert exits(played) == [0, 0, 0, -9]
    parts = children(played)
    assert [part[-1].value["end"] for part in parts] == ["restart", "restart", "restart", "complete"]
    assert all(part[0].kind == "header" for part in parts)


def test_files_are_written_before_and_while_the_child_runs() -> None:
    program = (
        "import os, sys\nhome = os.environ['MC_HOME']\n"
        "for line in sys.stdin:\n"
        " print(open(home + '/a/b').read() if os.path.exists(home + '/a/b') else 'none', flush=True)"
    )
    some = case(
        """
        { write = "a/b", text = "{cwd}" }, { raw = "1\\n" }, { pause_ms = 100 },
        { write = "a/b", hex = "4142", mode = 384 }, { home = "unchanged" },
        { delete = "a" }, { raw = "2\\n" }, { pause_ms = 100 },
        """,
        tier=2,
        more='fixture = "store"',
    )
    played = play(some, program)
    lines = [each.data for each in played.records if each.kind == "backend"]
    assert b"/work" in lines[0]
    assert lines[1] == b"none\n"
    assert any(mark.startswith("home 5 fails: changed ") for mark in marks(played))


def test_a_home_is_copied_and_the_program_is_found_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings").write_text("mine")
    script = tmp_path / "run.sh"
    script.write_text('#!/bin/sh\ncat "$MC_HOME/settings"; echo " $WORD"; rm "$MC_HOME/settings"\n')
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    target = Target(("./run.sh",), home=str(tmp_path), environ={"WORD": "word"})
    played = player.play(case("{ exit = [0] }"), target)
    assert [each.data for each in played.records if each.kind == "backend"] == [b"mine word\n"]
    assert (tmp_path / "settings").exists()


def test_our_backend_launched_otherwise() -> None:
    launches = (
        "args = []",
        'add = ["--stdio"]',
        'args = ["--stdio", "--verbose"]',
        'stdin = "tty"',
        'stdout = "file"',
    )
    for how in launches:
        played = play(
            case(f'{{ launch = {{ {how} }} }}, {{ exit = [2] }}, {{ nothing = true }}, {{ home = "unchanged" }}')
        )
        assert exits(played) != [0], how
        assert "home 4 holds" in marks(played)
        assert "backend" not in [each.kind for each in played.records]
    other = play(case("{ launch = { args = [] } }, { exit = [2] }"), "pass")
    assert marks(other) == ["skipped 1"]


# others

ASK = '{ start = true }, { send = "status", as = "s" }, { answer = "s", any = true }, { exit = [0] },'


def test_one_that_cannot_be_started() -> None:
    for steps in (ASK, "{ same = [1, 1] }"):
        played = player.play(case(steps), Target(("/no/such/program",)), Hasty())
        assert [each.kind for each in played.records][:2] == ["header", "mark"]
        assert marks(played)[0].startswith("never started: ")
        assert played.records[-1].value == {"end": "complete", "left": 0}


def test_one_that_crashes_at_start() -> None:
    played = play(case(ASK), "import sys; print('no'); sys.exit(3)")
    assert "missing init" in marks(played)
    assert "gave up 1" in marks(played)  # and perhaps that its input was not read any more
    assert exits(played) == [3]


def test_one_that_never_answers_but_ends_with_its_input() -> None:
    played = play(case(ASK), "import sys; sys.stdin.read()", Hasty())
    assert marks(played) == ["step 1", "missing init", "gave up 1"]
    assert exits(played) == [0]


@pytest.mark.usefixtures("short_end")
def test_one_that_ignores_the_end_of_its_input() -> None:
    some = case("{ close = true }, { exit = [0] }, { same = [1, 1] }")
    played = play(some, "import os, time; os.write(1, b'up\\n'); time.sleep(60)", Hasty())
    assert marks(played) == ["step 1", "step 2", "missing exit", "gave up 2", "killed", "gave up 0"]
    assert exits(played) == [-9]
    assert [each.value for each in played.records if each.kind == "signal"] == ["SIGKILL"]


ANSWERING = """
import json, sys
def say(**frame):
    print(json.dumps({"type": "response", **frame}), flush=True)
def event(name, **data):
    print(json.dumps({"type": "event", "event": name, "data": data}), flush=True)
busy = 2
for line in sys.stdin:
    request = json.loads(line)
    method, id_ = request["method"], request["id"]
"""


def test_what_is_asked_again_until_it_is_right() -> None:
    program = f"""{ANSWERING}
    if busy:
        busy -= 1
        say(id=id_, error={{"code": "busy"}})
    else:
        say(id=id_, result={{"time": (id_ + ".1").split(".")[1]}})
"""
    some = case(
        """
        { send = "a", as = "h", retry = ["busy"] }, { answer = "h", result = { time = "3" } },
        { send = "b", as = "u", until = { time = "2" } }, { answer = "u", result = { time = "2" } },
        { differ = ["$h.result.time", "$u.result.time"] }
        """
    )
    played = play(some, program)
    sent = [loads(each.data)["id"] for each in played.records if each.kind == "client"]
    assert sent == ["h", "h.2", "h.3", "u", "u.2"]
    assert "gave up" not in " ".join(marks(played))
    seen = Seen()
    seen.feed(played.records)
    for step in some.steps:
        seen.find(step)
    assert (seen.lookup("h")["id"], seen.lookup("u")["id"]) == ("h.3", "u.2")


def test_all_pages_and_all_text() -> None:
    program = f"""{ANSWERING}
    params = request["params"]
    if method == "turn.start":
        say(id=id_, result={{"run_id": "r"}})
        for n, text in enumerate(("a", "b", "c")):
            event("message.delta", run_id="r", message_id="m", part=n, text="?")
            event("message.reconcile", run_id="r", message_id="m", part=n, text=text, last_part=n == 2)
        event("message.reconcile", run_id="r", message_id="n", part=0, text="d", last_part=True)
        event("message.reconcile", run_id="q", message_id="o", part=0, text="e", last_part=True)
        event("message.reconcile", run_id="r", message_id="p", part=0, text="f", last_part=False)
        event("run.finished", run_id="r")
    elif busy:
        busy -= 1
        say(id=id_, error={{"code": "busy"}})
    elif method == "other":
        say(id=id_, error={{"code": "stale_revision"}})
    else:
        n = int(params.get("cursor", 0))
        page = [{{"kind": "assistant", "text": "cd" if n else "ab", "params": params}}, {{"kind": "user"}}]
        say(id=id_, result={{"choices": page, "revision": "v", "next_cursor": str(n + 1) if n < 2 else None}})
"""
    some = case(
        """
        { send = "turn.start", as = "t" }, { answer = "t", any = true }, { event = "run.finished" },
        { texts = "t", as = "live" },
        { match = "$live", pattern = { joined = "abcd", count = 2, deltas = 3 } },
        { pages = "model.catalog", as = "c", params = { limit = 2 }, result = { revision = "v" }, retry = ["busy"] },
        { match = "$c", pattern = { count = 3, items = { length = 6 }, revision = "v" } },
        { match = "$c.items.2.params", pattern = { limit = 2, revision = "v", cursor = "1", keys = "*" } },
        { match = "$c.items", pattern = { join = "text", where = { kind = "assistant" }, is = "abcdcd" } },
        """
    )
    played = play(some, program)
    sent = [loads(each.data)["id"] for each in played.records if each.kind == "client"]
    assert sent == ["t", "c.1", "c.2", "c.3", "c.4", "c.5"]
    assert "gave up" not in " ".join(marks(played))
    seen = Seen()
    seen.feed(played.records)
    for step in some.steps:
        assert (seen.find(step) is not None) is (step.kind in WAITING or step.kind == "texts")
    assert seen.lookup("live") == {"joined": "abcd", "count": 2, "deltas": 3}
    wrong = [
        mismatch(seen.lookup(step.args["match"][1:].partition(".")[0]), step.args["pattern"], seen.lookup)
        for step in some.steps
        if step.kind == "match" and "." not in step.args["match"]
    ]
    assert wrong == ["", ""]
    assert mismatch(seen.lookup("c")["items"], some.steps[-1].args["pattern"], seen.lookup) == ""
    refused = play(
        case('{ pages = "session.list", as = "l" }, { same = [1, 1] }'),
        program.replace('"other"', '"session.list"').replace("busy = 2", "busy = 0"),
    )
    assert marks(refused)[-1] == "refused l"


def test_events_pass_over_others_and_are_taken_in_turn() -> None:
    program = f"""{ANSWERING}
    if method == "initialize":
        say(id=id_, result={{"run_id": "r"}})
        for n in (1, 2, 3):
            event("activity", n=n, run_id="r" if n > 1 else "q")
            event("diagnostic", n=n, run_id="r")
        say(id=None, error={{"code": "busy"}})
        event("run.finished", run_id="r")
    else:
        say(id=id_, result={{}})
"""
    some = case(
        """
        { start = true },
        { event = "run.finished", as = "fin" },
        { event = "activity", run = "init", as = "two" },
        { event = "activity", where = { n = 3 }, as = "three" },
        { event = "diagnostic", as = "first" }, { event = "diagnostic", after = "two", as = "second" },
        { send = "x", as = "gone" }, { answer = "gone", or_null = true, any = true, as = "a" },
        { absent = "activity", since = "spawn", where = { n = 2 } },
        { nothing = true, since = "fin" },
        { absent_answer = "gone", since = "three" },
        { event = "approval.requested" },
        { same = [1, 1] },
        """
    )
    played = play(some, program, Hasty())
    assert "missing event approval.requested" in marks(played)
    assert marks(played)[-1] == "gave up 12"
    seen = Seen()
    seen.feed(played.records)
    passed = {step.number: (seen.passed(step), seen.find(step))[0] for step in some.steps[:11]}
    assert [seen.lookup(name)["data"]["n"] for name in ("two", "three", "first", "second")] == [2, 3, 1, 2]
    assert [len(passed[number]) for number in (9, 10, 11)] == [1, 1, 1]
    assert not seen.running


def test_a_refusal_and_a_reference_that_leads_nowhere_end_the_case() -> None:
    refusing = f"{ANSWERING}\n    say(id=id_, error={{'code': 'busy'}})"
    assert marks(play(case(ASK), refusing)) == ["step 1", "refused init"]
    some = case(
        '{ send = "a", as = "a" }, { answer = "a", any = true }, { send = "b", as = "b", params = { x = "$a.y" } }'
    )
    assert marks(play(some, refusing))[-2:] == ["missing $a.y", "skipped 3"]


@pytest.mark.usefixtures("short_end")
def test_one_that_floods_costs_one_case() -> None:
    some = case('{ send = "a", as = "a" }, { answer = "a", any = true }')
    program = "import os\nwhile True: os.write(1, b'{}' * 400 + b'\\n')"
    played = play(some, program, Hasty(), keep=10_000)
    assert "output is not kept any more" in marks(played)
    assert "gave up 2" in marks(played)
    assert "killed" in marks(played)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_what_a_child_leaves_behind_is_counted() -> None:
    program = (
        "import os, subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\nsys.stdin.read()\nos._exit(0)"
    )
    assert play(case("{ close = true }, { exit = [0] }, { nothing = true }"), program).records[-1].value["left"] == 1


def test_bad_bytes_broken_pipes_and_hanging_up() -> None:
    program = "import os, sys\nos.write(1, b'\\xff\\n')\nos.close(0)\nos.write(1, b'{')\nos._exit(1)"
    some = case('{ pause_ms = 1 }, { exit = [1] }, { send = "a", as = "a" }, { absent_answer = "a" }, { close = true }')
    played = play(some, program)
    assert [each.data for each in played.records if each.kind == "backend"] == [b"\xff\n", b"{"]
    assert "gave up" not in " ".join(marks(played))
    hung = play(case('{ hangup = true }, { nothing = true }, { reading = true }, { signal = "CONT" }'))
    assert "hangup" in marks(hung)
    assert exits(hung) == [0]
