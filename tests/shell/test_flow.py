"""Bytes and time at the process: batching, floods, slow readers, the end of input in every phase."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.kit.child import Child, line, texts


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.parametrize("count", [33, 100])
def test_many_requests_in_one_write_are_all_answered(home: Path, count: int) -> None:
    with Child(home) as child:
        child.send(b"".join(line(f"q{i}", "status") for i in range(count)))
        frames = [child.frame() for _ in range(count)]
        assert [frame["id"] for frame in frames] == [f"q{i}" for i in range(count)]
        assert [frame["seq"] for frame in frames] == list(range(1, count + 1))


def test_a_client_that_writes_without_reading_is_not_deadlocked(home: Path) -> None:
    with Child(home) as child:
        child.initialize()
        # far more answers than the pipe holds: the child goes on reading, and gives up when 33 frames wait
        child.send(b"".join(line(f"q{i}", "status") for i in range(200)))
        received = 0
        try:
            for _ in range(200):
                child.frame()
                received += 1
        except AssertionError:
            assert child.wait() == 1
        assert received <= 200
        assert child.stderr() == b""


def test_a_stalled_pipe_overflows_silently(home: Path) -> None:
    with Child(home) as child:
        child.initialize()
        status = len(line("x", "status")) + 600  # an answer is longer than this
        more_than_the_pipe_holds = 65536 // status + 400
        child.send(b"".join(line(f"q{i}", "status") for i in range(more_than_the_pipe_holds)))
        assert child.wait() == 1
        assert child.stderr() == b""


def test_a_trickling_reader_has_two_seconds(home: Path) -> None:
    with Child(home) as child:
        session = (child.initialize(), child.create())[1]
        child.ask("turn.start", session_id=session, prompt="FLOOD")
        begin = time.monotonic()
        assert child.process.stdout is not None
        fd = child.process.stdout.fileno()
        # nothing is read until the pipe is full; then a byte now and then is no progress that counts
        exited_after = None
        while time.monotonic() - begin < 6:
            try:
                child.process.wait(0.1)
            except subprocess.TimeoutExpired:
                os.read(fd, 1)
                continue
            exited_after = time.monotonic() - begin
            break
        assert exited_after is not None
        assert 1.9 <= exited_after <= 3.5
        assert child.process.returncode == 1
        assert child.stderr() == b""


def test_oversize_is_told_at_byte_65537_without_waiting_for_a_line_feed(home: Path) -> None:
    with Child(home) as child:
        child.send(b"x" * 65537)
        frame = child.frame()
        assert (frame["id"], frame["error"]) == (None, {"code": "frame_too_large"})
        assert (child.rest(), child.wait(), child.stderr()) == (b"", 0, b"")


def test_garbage_leaves_the_connection_usable(home: Path) -> None:
    with Child(home) as child:
        for junk in (
            b"\n",
            b"junk\n",
            b"[1]\n",
            b"\xff\xfe\n",
            b'{"a":1}{"b":2}\n',
            b'{"a":"' + b"x" * 50000 + b'"}\n',
        ):
            child.send(junk)
            assert child.frame()["error"]["code"] == "invalid_request"
        child.send(b"[" * 40 + b"\n")
        assert child.frame()["error"]["code"] == "invalid_frame"
        assert child.call("status")["error"] == {"code": "not_initialized"}


@pytest.mark.parametrize(("version", "code"), [(2, "protocol_mismatch"), (1, "not_initialized")])
def test_a_foreign_version_ends_the_connection_with_0(home: Path, version: int, code: str) -> None:
    with Child(home) as child:
        child.send(line("r1", "status").replace(b'"version": 1', f'"version": {version}'.encode()))
        assert child.frame()["error"] == {"code": code}
        if version == 2:
            assert (child.rest(), child.wait()) == (b"", 0)


PHASES: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "before initialize": [],
    "starting": [("initialize", {"required_capabilities": []})],
    "creating": [("initialize", {"required_capabilities": []}), ("status", {}), ("session.create", {})],
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("way", ["end of input", "shutdown"])
def test_the_end_in_each_phase_is_orderly(home: Path, phase: str, way: str) -> None:
    with Child(home) as child:
        for method, params in PHASES[phase]:
            child.ask(method, **params)
            if method == "status":
                child.answer("r2")
        if way == "shutdown":
            child.ask("shutdown", "end")
        else:
            child.close_input()
        child.rest()
        assert (child.wait(), child.stderr()) == (0, b"")
    assert not list(home.glob("sessions/.*.lock"))


@pytest.mark.parametrize("way", ["end of input", "shutdown"])
@pytest.mark.parametrize("prompt", ["SLOW please", "STALL", "APPROVAL"])
def test_the_end_during_a_turn_cancels_it_and_keeps_the_text(home: Path, prompt: str, way: str) -> None:
    with Child(home) as child:
        session = (child.initialize(), child.create())[1]
        child.ask("turn.start", session_id=session, prompt=prompt)
        frames = child.frames_until("approval.requested" if prompt == "APPROVAL" else "message.delta")
        if way == "shutdown":
            child.ask("shutdown", "end")
        else:
            child.close_input()
        frames += child.frames_until("run.finished")
        finished = frames[-1]["data"]
        assert (finished["outcome"], finished["persistence"], finished["error_code"]) == ("cancelled", "durable", None)
        seen = "".join(texts(frames, "message.delta"))
        assert seen
        assert "".join(texts(frames, "message.reconcile")).endswith(seen)
        child.rest()
        assert (child.wait(), child.stderr()) == (0, b"")
    with Child(home) as child:
        child.initialize()
        opened = child.call("session.open", session_id=session)["result"]
        page = child.call("history.page", session_id=session, revision=opened["revision"])["result"]
        assert seen in "".join(entry["text"] for entry in page["entries"] if entry["kind"] == "assistant")
        assert page["complete"] is True


def test_several_approvals_are_pending_at_once_and_the_first_answer_wins(home: Path) -> None:
    with Child(home) as child:
        session = (child.initialize(), child.create())[1]
        child.ask("turn.start", session_id=session, prompt="PARALLEL")
        asked = [child.frames_until("approval.requested")[-1]["data"] for _ in range(2)]
        names = ("session_id", "run_id", "approval_id")
        first, second = ({name: each[name] for name in names} for each in asked)
        assert child.call("approval.answer", **second, allow=False)["result"] == {"recorded": True}
        assert child.call("approval.answer", **second, allow=True)["error"] == {"code": "stale_approval"}
        child.ask("approval.answer", **first, allow=True)
        frames = child.frames_until("run.finished")
        ends = [frame["data"]["state"] for frame in frames if frame.get("event") == "activity"]
        assert ends == ["completed", "failed"]  # in the order of the calls; the denied one did not run (D63)
        assert frames[-1]["data"]["outcome"] == "completed"


def test_a_killed_parent_leaves_no_child(home: Path) -> None:
    script = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-m', 'localagent', 'serve', '--stdio'],"
        " stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    parent = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, timeout=20, check=False)
    pid = int(parent.stdout)
    until = time.monotonic() + 10
    while _lives(pid) and time.monotonic() < until:
        os.sched_yield()
    assert not _lives(pid)


def _lives(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"
