"""The second backend does what the contract says, seen byte by byte; the suite proper is run on it elsewhere."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent.parent / "kit" / "other_backend.py"
ALL = ["initialize", "status", "shutdown", "session.create", "session.open", "session.list", "history.page"]
ALL += ["model.catalog", "selection.set", "turn.start", "turn.cancel", "approval.answer", "session.discover"]
ALL += ["model.catalog.status", "model.refresh", "operation.cancel"]


class Child:
    """A child and its pipes: lines go out as bytes, frames come in with the order they had."""

    def __init__(self, home: Path | None = None, **extra: str) -> None:
        env = {key: value for key, value in os.environ.items() if key not in ("MC_HOME", "OTHER_CATALOG")}
        env |= extra | ({"MC_HOME": str(home)} if home else {})
        command, pipe = [sys.executable, str(PROGRAM), "serve", "--stdio"], subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env=env)
        self.frames: list[dict[str, Any]] = []
        self.count = 0
        self.seq = 0
        self.size = 0

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe
            pipe.close()

    def raw(self, data: bytes) -> None:
        assert self.process.stdin
        while data:
            data = data[self.process.stdin.write(data) or 0 :]

    def send(self, method: str, params: Any = None, request_id: str | None = None) -> str:
        self.count += 1
        request_id = request_id or f"q{self.count}"
        frame = {"protocol": "magi-code.local-agent", "version": 1, "id": request_id, "method": method}
        self.raw(json.dumps({**frame, "params": {} if params is None else params}).encode() + b"\n")
        return request_id

    def read(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), line
        assert len(line) <= 65536
        frame: dict[str, Any] = json.loads(line)
        assert frame["seq"] > self.seq
        self.seq = frame["seq"]
        self.size = len(line)
        self.frames.append(frame)
        return frame

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while not wanted(frame := self.read()):
            pass
        return frame

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        request_id = self.send(method, params)
        return self.until(lambda frame: frame.get("id") == request_id)

    def result(self, method: str, params: Any = None) -> dict[str, Any]:
        result: dict[str, Any] = self.ask(method, params)["result"]
        return result

    def code(self, method: str, params: Any = None) -> str:
        error = self.ask(method, params)["error"]
        assert error.keys() == {"code"}
        return str(error["code"])

    def refused(self, data: bytes) -> tuple[str | None, str]:
        self.raw(data + b"\n")
        frame = self.read()
        return frame["id"], frame["error"]["code"]

    def event(self, name: str) -> dict[str, Any]:
        data: dict[str, Any] = self.until(lambda frame: frame.get("event") == name)["data"]
        return data

    def start(self, session_id: str, prompt: str) -> str:
        return str(self.result("turn.start", {"session_id": session_id, "prompt": prompt})["run_id"])

    def history(self, session_id: str, revision: str) -> tuple[list[dict[str, Any]], bool]:
        entries, cursor = [], None
        while True:
            page = self.result("history.page", {"session_id": session_id, "revision": revision, "cursor": cursor})
            entries += page["entries"]
            if (cursor := page["next_cursor"]) is None:
                return entries, page["complete"]

    def end(self, status: int) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(8) == status
        assert self.process.stderr
        assert self.process.stderr.read() == b""


@pytest.fixture
def child() -> Iterator[Child]:
    with Child() as started:
        started.result("initialize", {"required_capabilities": ALL})
        yield started


def line(**changes: Any) -> bytes:
    frame = {"protocol": "magi-code.local-agent", "version": 1, "id": "x", "method": "status", "params": {}}
    return json.dumps(frame | changes).encode()


def text_of(entries: list[dict[str, Any]], kind: str) -> str:
    return "".join(entry["text"] for entry in entries if entry["kind"] == kind)


def test_initialize_answers_late_and_says_everything() -> None:
    with Child() as child:
        assert child.code("session.create") == "not_initialized"
        assert child.code("initialize", {"required_capabilities": ["client.tools"]}) == "unsupported_capability"
        assert child.code("initialize", {"required_capabilities": ["status"] * 17}) == "invalid_params"
        first = child.send("initialize", {"required_capabilities": []})
        status = child.result("status")
        assert (status["state"], status["readiness"], status["selection"]) == ("starting", "initializing", None)
        assert child.code("session.create") == "not_initialized"
        result = child.until(lambda frame: frame.get("id") == first)["result"]
        assert sorted(result["capabilities"]) == sorted(ALL)
        assert result["status"]["state"] == "idle"
        assert child.code("initialize", {"required_capabilities": []}) == "already_initialized"
        assert child.code("session.discover") == "unsupported_capability"
        assert child.result("shutdown")["state"] == "stopping"
        child.end(0)


def test_a_turn_and_its_history(child: Child) -> None:
    created = child.result("session.create")
    assert len(created["session_id"]) == 64
    session = {"session_id": created["session_id"]}
    prompt = "Grüße an alle 🌍 " * 700
    assert child.code("turn.start", {**session, "prompt": " "}) == "invalid_params"
    child.start(created["session_id"], prompt)
    assert child.code("history.page", {**session, "revision": created["revision"]}) == "busy"
    finished = child.event("run.finished")
    assert (finished["outcome"], finished["persistence"], finished["error_code"]) == ("completed", "durable", None)
    assert next(frame["event"] for frame in child.frames if "event" in frame) == "input.persisted"
    parts: dict[str, list[str]] = {}
    for frame in child.frames:
        if frame.get("event") == "message.reconcile":
            data = frame["data"]
            known = parts.setdefault(data["message_id"], [])
            if data["part"] == 0:
                known.clear()
            assert data["part"] == len(known)
            known.append(data["text"])
            final = data["partial"]
    assert final is False
    entries, complete = child.history(created["session_id"], finished["revision"])
    assert complete
    assert text_of(entries, "user") == prompt
    assert max(len(entry["text"].encode()) for entry in entries) <= 12_000
    assert text_of(entries, "assistant") == "".join("".join(texts) for texts in parts.values())
    assert child.code("history.page", {**session, "revision": created["revision"]}) == "stale_revision"
    assert child.code("history.page", {"session_id": "no", "revision": finished["revision"]}) == "stale_session"


def test_a_long_reply_and_a_summary(child: Child) -> None:
    session_id = child.result("session.create")["session_id"]
    child.start(session_id, "LONG THINK")
    finished = child.event("run.finished")
    assert max(len(frame.get("data", {}).get("text", "").encode()) for frame in child.frames) <= 4000
    entries, _ = child.history(session_id, finished["revision"])
    assert text_of(entries, "reasoning_summary")
    assert len(text_of(entries, "assistant")) > 30_000


@pytest.mark.parametrize("allow", [True, False])
def test_approvals(child: Child, allow: bool) -> None:
    session_id = child.result("session.create")["session_id"]
    run_id = child.start(session_id, "PARALLEL please")
    first, second = (child.event("approval.requested")["approval_id"] for _ in range(2))
    answer = {"session_id": session_id, "run_id": run_id, "approval_id": first, "allow": allow}
    assert child.code("approval.answer", answer | {"approval_id": "other"}) == "stale_approval"
    assert child.result("approval.answer", answer)["recorded"] is True
    assert child.code("approval.answer", answer | {"allow": True}) == "stale_approval"
    if allow:
        assert child.result("approval.answer", answer | {"approval_id": second})["recorded"] is True
    seen = [frame["data"] for frame in child.frames if frame.get("event") == "run.finished"]
    finished = seen[0] if seen else child.event("run.finished")
    assert finished["outcome"] == ("completed" if allow else "failed")
    ran = [frame for frame in child.frames if frame.get("event") == "activity"]
    assert len(ran) == (4 if allow else 0)


def test_cancel_and_failures(child: Child) -> None:
    session_id = child.result("session.create")["session_id"]
    run_id = child.start(session_id, "STALL")
    child.event("message.reconcile")
    run = {"session_id": session_id, "run_id": run_id}
    assert child.result("status")["run_id"] == run_id
    assert child.code("turn.start", {"session_id": session_id, "prompt": "again"}) == "busy"
    assert child.result("turn.cancel", run)["cancellation_requested"] is True
    finished = child.event("run.finished")
    assert (finished["outcome"], finished["persistence"]) == ("cancelled", "durable")
    assert child.code("turn.cancel", run) == "stale_run"
    entries, complete = child.history(session_id, finished["revision"])
    assert complete
    assert entries[-1]["kind"] == "diagnostic"
    child.start(session_id, "FAIL")
    assert child.event("run.finished")["error_code"] == "execution_failed"
    child.start(session_id, "DEGRADED")
    finished = child.event("run.finished")
    assert (finished["persistence"], finished["revision"]) == ("degraded", None)
    opened = child.result("session.open", {"session_id": session_id})
    _, complete = child.history(session_id, opened["revision"])
    assert not complete


def test_listings(child: Child) -> None:
    names = []
    for _ in range(3):
        names.append(child.result("session.create")["session_id"])
        child.start(names[-1], "short")
        child.event("run.finished")
    child.result("session.create")
    for method, order in (("session.list", sorted(names)), ("session.discover", None)):
        page = child.result(method)
        found = page["sessions"]
        while page["next_cursor"]:
            page = child.result(method, {"revision": page["revision"], "cursor": page["next_cursor"]})
            found += page["sessions"]
        assert page["complete"]
        shown = [entry["session_id"] for entry in found]
        assert shown == order if order else sorted(shown) == sorted(names)
    page = child.result("session.list", {"limit": 1})
    follow = {"revision": page["revision"], "cursor": page["next_cursor"]}
    assert child.code("session.list", {"revision": page["revision"]}) == "invalid_params"
    child.result("session.create")
    assert child.code("session.list", follow) == "stale_revision"
    assert child.code("session.open", {"session_id": "nothing"}) == "session_missing"


def test_cancelling_an_operation(child: Child) -> None:
    target = child.send("session.create")
    child.send("operation.cancel", {"request_id": target})
    answers = [child.read(), child.read()]
    assert {"code": "operation_cancelled"} in [answer.get("error") for answer in answers]
    assert child.result("status")["session_id"] is None
    assert child.code("operation.cancel", {"request_id": target}) == "operation_missing"


def test_selection(tmp_path: Path) -> None:
    with Child(tmp_path, OTHER_CATALOG="1") as child:
        child.result("initialize", {"required_capabilities": ALL})
        session_id = child.result("session.create")["session_id"]
        catalog = child.result("model.catalog.status")
        chosen = {"session_id": session_id, "catalog_revision": catalog["revision"], "provider": "lumen"}
        chosen |= {"model": "lumen-pro", "selection_revision": child.result("status")["selection"]["revision"]}
        assert child.code("selection.set", chosen | {"effort": None}) == "invalid_params"
        assert child.code("selection.set", chosen | {"effort": {"mode": "set", "value": "max"}}) == "effort_unsupported"
        result = child.result("selection.set", chosen | {"effort": {"mode": "set", "value": "low"}})
        assert result["selection"] == child.result("status")["selection"]
        assert child.code("selection.set", chosen) == "stale_selection"
        refreshed = child.result("model.refresh", {"provider": "quarry"})
        assert refreshed["reason"] == "authentication_unavailable"
        with Child(tmp_path, OTHER_CATALOG="1") as second:
            second.result("initialize", {"required_capabilities": []})
            assert second.code("session.open", {"session_id": session_id}) == "session_busy"
            child.process.kill()
            assert child.process.wait()
            assert second.result("session.open", {"session_id": session_id})["durable"] is True
            assert second.result("status")["selection"]["requested_effort"] == "low"


def test_what_is_durable_outlives_a_killed_child(tmp_path: Path) -> None:
    with Child(tmp_path) as child:
        child.result("initialize", {"required_capabilities": []})
        session_id = child.result("session.create")["session_id"]
        child.start(session_id, "STALL")
        child.event("input.persisted")
    with Child(tmp_path) as child:
        child.result("initialize", {"required_capabilities": []})
        opened = child.result("session.open", {"session_id": session_id})
        entries, complete = child.history(session_id, opened["revision"])
        assert [entry["kind"] for entry in entries] == ["user", "diagnostic"]
        assert not complete


def test_a_home_that_cannot_be_used_fails_the_startup(tmp_path: Path) -> None:
    home = tmp_path / "file"
    home.touch()
    with Child(home) as child:
        assert child.code("initialize", {"required_capabilities": []}) == "startup_failed"
        assert child.result("status")["readiness"] == "startup_failed"
        assert child.code("session.create") == "startup_failed"
        child.end(0)


BAD = {
    b"": (None, "invalid_request"),
    b"\xff{}": (None, "invalid_request"),
    b"[]": (None, "invalid_request"),
    b"{} {}": (None, "invalid_request"),
    b'{"a":NaN}': (None, "invalid_request"),
    line(params={"a": "\ud800"}): ("x", "invalid_request"),
    line(more=1): ("x", "invalid_request"),
    line()[:-1] + b',"method":"status"}': ("x", "invalid_request"),
    line()[:-1] + b',"\\u0069d":"y"}': (None, "invalid_request"),
    line(id="ä"): (None, "invalid_request"),
    line(method="a b"): ("x", "invalid_request"),
    line(params=[]): ("x", "invalid_params"),
    line()[:-1]: (None, "invalid_frame"),
    line()[:-2] + b"]}": (None, "invalid_frame"),
    b'{"a': (None, "invalid_frame"),
    b'{"a":' * 33 + b"1" + b"}" * 33: (None, "invalid_frame"),
}


def test_bad_lines(child: Child) -> None:
    for data, answer in BAD.items():
        assert child.refused(data) == answer, data
    assert child.refused(b'{"a":' * 32 + b"1" + b"}" * 32) == (None, "invalid_request")
    assert child.refused(line(id="twice", params={"[": "}" * 40})) == ("twice", "invalid_params")
    assert child.refused(line(id="twice")) == ("twice", "duplicate_id")
    exact = line(id="exact")
    child.raw(b" " * (65_536 - len(exact)) + exact + b"\n")
    assert child.read()["id"] == "exact"
    child.raw(line(id="cut"))
    assert child.process.stdin
    child.process.stdin.close()
    assert child.read()["error"] == {"code": "incomplete_frame"}
    child.end(0)


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"x" * 65_537, "frame_too_large"), (line(version=2) + b"\n", "protocol_mismatch")],
)
def test_errors_that_close(child: Child, data: bytes, code: str) -> None:
    child.raw(data)
    assert child.read()["error"] == {"code": code}
    assert child.process.stdout
    assert child.process.stdout.read() == b""
    child.end(0)


def test_the_last_request_id(child: Child) -> None:
    feeder = threading.Thread(target=child.raw, args=(b"".join(line(id=f"n{n}") + b"\n" for n in range(4096)),))
    feeder.start()
    last = child.until(lambda frame: "error" in frame)
    feeder.join()
    assert (last["id"], last["error"]["code"]) == ("n4095", "request_limit")
    child.end(0)


def test_an_output_that_nobody_takes(child: Child) -> None:
    started = time.monotonic()
    for number in range(130):
        child.raw(line(id=f"n{number}") + b"\n")
        if child.process.poll() is not None:
            break
    assert child.process.wait(5) == 1
    assert time.monotonic() - started < 1.9


def test_an_output_that_stalls_for_two_seconds(child: Child) -> None:
    child.result("status")
    for number in range(16 * (4096 // child.size) + 20):  # what a pipe of sixteen pages takes, and twenty more
        child.raw(line(id=f"n{number}") + b"\n")
    started = time.monotonic()
    assert child.process.wait(5) == 1
    assert 1.5 < time.monotonic() - started < 2.7


def test_endings(child: Child) -> None:
    session_id = child.result("session.create")["session_id"]
    child.start(session_id, "STALL")
    child.event("message.reconcile")
    child.send("shutdown")
    assert child.event("run.finished")["outcome"] == "cancelled"
    child.send("status")
    assert child.process.stdout
    assert child.process.stdout.read() == b""
    child.end(0)


def test_end_of_input_during_a_run_and_a_signal(child: Child) -> None:
    session_id = child.result("session.create")["session_id"]
    child.start(session_id, "APPROVAL")
    child.event("approval.requested")
    child.end(0)
    with Child() as other:
        other.result("initialize", {"required_capabilities": []})
        other.process.send_signal(signal.SIGTERM)
        assert other.process.wait(5) == 0


def test_launches(tmp_path: Path) -> None:
    for arguments in ([], ["serve"], ["serve", "--stdio", "--more"]):
        done = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
    command = [sys.executable, str(PROGRAM), "serve", "--stdio"]
    with (tmp_path / "in").open("w+b") as file:
        done = subprocess.run(command, stdin=file, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
