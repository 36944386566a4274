"""Durable before acknowledged: the process is killed at the step, and the store is read by another child."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.child import Child

PROMPT = "remember the milk"

KILLER = """
import os, signal
from localagent.sessions import disk

def watch(step, done):
    if (step.name, done) == ({step!r}, {done!r}) and os.path.exists({armed!r}):
        os.kill(os.getpid(), signal.SIGKILL)

disk.watch = watch
from localagent.cli import main
main(["serve", "--stdio"])
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def _killed_at(home: Path, step: str, done: bool) -> tuple[str, list[dict[str, Any]]]:
    """Run a turn in a child that dies at a step of its first append; the session, and what left before."""
    armed = home.parent / "armed"
    code = KILLER.format(step=step, done=done, armed=str(armed))
    with Child(home, program=(sys.executable, "-c", code), arguments=()) as child:
        session = (child.initialize(), child.create())[1]
        armed.touch()
        child.ask("turn.start", session_id=session, prompt=PROMPT)
        frames = []
        try:
            while True:
                frames.append(child.frame())
        except AssertionError:
            assert child.wait() == -9
    return session, frames


def _history(home: Path, session: str) -> list[dict[str, Any]] | str:
    """The entries of a session as another child shows them, or the code of its refusal."""
    with Child(home) as child:
        child.initialize()
        opened = child.call("session.open", session_id=session)
        if "error" in opened:
            return str(opened["error"]["code"])
        revision = opened["result"]["revision"]
        page = child.call("history.page", session_id=session, revision=revision)
        entries: list[dict[str, Any]] = page["result"]["entries"]
        return entries


@pytest.mark.parametrize(
    ("step", "done"),
    [
        ("SESSION_CREATE", False),
        ("SESSION_CREATE", True),
        ("SESSION_WRITE", False),
        ("SESSION_WRITE", True),
        ("SESSION_SYNC", False),
        ("SESSION_SYNC_DIRECTORY", False),
    ],
)
def test_killed_before_the_last_sync_nothing_was_acknowledged(home: Path, step: str, done: bool) -> None:
    session, frames = _killed_at(home, step, done)
    assert [frame.get("event") for frame in frames] == [None]  # the admission, and no input.persisted
    history = _history(home, session)
    whole = isinstance(history, list) and [entry["text"] for entry in history if entry["kind"] == "user"]
    assert history == "session_missing" or whole in ([], [PROMPT])  # all of the record or nothing of it


def test_killed_right_after_the_acknowledgement_the_input_is_there(home: Path) -> None:
    with Child(home) as child:
        session = (child.initialize(), child.create())[1]
        child.ask("turn.start", session_id=session, prompt=PROMPT)
        child.frames_until("input.persisted")
        child.process.kill()
        assert child.wait() == -9
    history = _history(home, session)
    assert isinstance(history, list)
    assert (history[0]["kind"], history[0]["text"]) == ("user", PROMPT)


def test_a_lazy_session_that_died_is_missing(home: Path) -> None:
    with Child(home) as child:
        session = (child.initialize(), child.create())[1]
        child.process.kill()
        child.wait()
    assert _history(home, session) == "session_missing"


def test_a_session_held_by_a_living_child_is_busy_and_free_when_it_ends(home: Path) -> None:
    with Child(home) as child:
        session = (child.initialize(), child.create())[1]
        child.turn(session, PROMPT)
        assert _history(home, session) == "session_busy"
        child.process.kill()  # its locks stay behind, but the kernel knows that nobody holds them
        child.wait()
    assert isinstance(_history(home, session), list)


def test_a_replaced_attachment_is_free_for_others(home: Path) -> None:
    with Child(home) as child:
        first = (child.initialize(), child.create())[1]
        child.turn(first, PROMPT)
        assert child.create() != first
        # the keeper lets the old leases go off the loop: another child opens it as soon as that is done
        assert _until_free(home, first)


def _until_free(home: Path, session: str) -> bool:
    return any(isinstance(_history(home, session), list) for _ in range(20))


@pytest.mark.parametrize(
    "prompt", ["SECRET", "hello", "THINK", "BROKEN TOOL", "PARALLEL", "WARN", "DISK", "FAIL", "REFUSE"]
)
def test_what_was_shown_is_what_is_stored(home: Path, prompt: str) -> None:
    with Child(home) as child:
        session = (child.initialize(), child.create())[1]
        child.ask("turn.start", session_id=session, prompt=prompt)
        frames: list[dict[str, Any]] = []
        while not frames or frames[-1].get("event") != "run.finished":
            frames.append(child.frame())
            if frames[-1].get("event") == "approval.requested":
                asked = frames[-1]["data"]
                names = ("session_id", "run_id", "approval_id")
                child.ask("approval.answer", **{name: asked[name] for name in names}, allow=True)
        finished = frames[-1]["data"]
        live = child.call("history.page", session_id=session, revision=finished["revision"])["result"]["entries"]
        assert b"ghp_" not in child.raw
        assert finished["persistence"] == ("degraded" if prompt == "DISK" else "durable")
    stored = _history(home, session)
    assert isinstance(stored, list)
    told = [{**entry, "message_id": ""} for entry in live]
    assert told == [{**entry, "message_id": ""} for entry in stored]
    last: dict[str, str] = {}
    for frame in frames:
        if frame.get("event") == "message.reconcile":
            data = frame["data"]
            last[data["message_id"]] = data["text"] if data["part"] == 0 else last[data["message_id"]] + data["text"]
    if prompt != "DISK":
        assert [entry["text"] for entry in stored if entry["kind"] == "assistant"] == list(last.values())
