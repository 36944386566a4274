"""Tools of these tests: a store on a real disk, records as literal lines, a clock that stands still, a watched disk."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localagent.protocol.codes import Code
from localagent.protocol.results import HistoryEntry
from localagent.sessions import disk, paths
from localagent.sessions.clock import SYSTEM, Clock
from localagent.sessions.disk import Step
from localagent.sessions.errors import AppendFailed, Outcome, StoreError
from localagent.sessions.handle import Handle
from localagent.sessions.paths import Root
from localagent.sessions.records import Draft
from localagent.sessions.store import Store

SECOND = 1_000_000_000
DATA = Path(__file__).parent / "data"


class StillClock:
    """A clock that moves only when told to, or slept on."""

    def __init__(self, wall: int = 1_800_000_000 * SECOND) -> None:
        self.wall = wall
        self.steady = 0.0
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.steady += seconds
        self.wall += int(seconds * SECOND)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.steady, self.sleep)


class House:
    """A prepared root, a working directory, and what is needed to look behind the store's back."""

    def __init__(self, base: Path) -> None:
        self.base = base
        (base / "work").mkdir()
        self.cwd = paths.canonical(str(base / "work"))
        self.root: Root = paths.prepare(str(base / "home"))
        self.sessions = Path(self.root.path) / "sessions"

    def store(self, clock: Clock = SYSTEM) -> Store:
        return Store(self.root, self.cwd, clock)

    def file(self, session_id: str) -> Path:
        return self.sessions / f"{session_id}.jsonl"

    def lock(self, target: str) -> Path:
        return self.sessions / f".{target}.lock"

    def put(self, session_id: str, *lines: bytes, mode: int = 0o600) -> Path:
        """Write a session file by hand, each line with its LF."""
        return self.put_bytes(session_id, b"".join(line + b"\n" for line in lines), mode)

    def put_bytes(self, session_id: str, data: bytes, mode: int = 0o600) -> Path:
        path = self.file(session_id)
        path.write_bytes(data)
        path.chmod(mode)
        return path

    def line(self, session_id: str, kind: str, payload: Any, /, **fields: Any) -> bytes:
        return line(session_id, kind, payload, **{"cwd": self.cwd, **fields})

    def reopened(self, handle: Handle) -> Handle:
        """Release a handle, and open its session in another child."""
        handle.release()
        return self.store().open(handle.session_id)

    def names(self) -> set[str]:
        return set(os.listdir(self.sessions))


def line(session_id: str, kind: str, payload: Any, /, **fields: Any) -> bytes:
    """One canonical record, spelt by the standard library; ``fields`` replace or, with ``...``, remove fields."""
    record = {
        "event_id": "1f",
        "event_type": kind,
        "timestamp": "2026-03-02T08:00:01Z",
        "session_id": session_id,
        "cwd": "/home/ada/notes",
        "session_path": "/home/ada/notes",
        "payload": payload,
    } | fields
    kept = {name: value for name, value in record.items() if value is not ...}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def user(text: str) -> Draft:
    return Draft("user_input", {"origin": "user", "text": text})


def chunk(text: str) -> Draft:
    return Draft("assistant_chunk", {"text": text})


def answer(text: str) -> Draft:
    return Draft("assistant_output", {"text": text, "usage": None})


def turn(number: int, text: str = "") -> list[Draft]:
    return [user(f"prompt {number}"), chunk("an"), answer(text or f"answer {number}")]


FIRST = [("user", "prompt 1", False), ("assistant", "answer 1", False)]
"""What ``turn(1)`` is shown as."""


def refusal(call: Callable[[], object]) -> Code:
    """The code that ``call`` is refused with."""
    with pytest.raises(StoreError) as caught:
        call()
    return caught.value.code


def opening(house: House, session_id: str = "s") -> Code:
    """Why a session cannot be opened. The attempt must leave nothing behind."""
    before = house.names()
    code = refusal(lambda: house.store().open(session_id))
    assert house.names() == before
    return code


def all_parts(handle: Handle) -> list[HistoryEntry]:
    """Page through the current history."""
    revision = handle.revision
    assert revision is not None
    parts: list[HistoryEntry] = []
    cursor = None
    while True:
        page = handle.page(revision, cursor)
        parts.extend(page.entries)
        cursor = page.next_cursor
        if cursor is None:
            return parts


def shown(handle: Handle) -> list[tuple[str, str, bool]]:
    """(kind, text, partial) of each message, its parts joined."""
    messages: list[tuple[str, str, bool]] = []
    for part in all_parts(handle):
        if part.part:
            kind, text, partial = messages.pop()
            messages.append((kind, text + part.text, partial))
        else:
            messages.append((part.kind, part.text, part.partial))
    return messages


def is_complete(handle: Handle) -> bool:
    revision = handle.revision
    assert revision is not None
    page = handle.page(revision, None)
    while page.next_cursor is not None:
        page = handle.page(revision, page.next_cursor)
    return page.complete


@contextmanager
def watching(seen: Callable[[Step, bool], None]) -> Iterator[None]:
    """Watch the durable steps; what ``seen`` raises, the step raises."""
    before = disk.watch
    disk.watch = seen
    try:
        yield
    finally:
        disk.watch = before


@contextmanager
def failing(steps: Sequence[Step], fault: OSError) -> Iterator[list[tuple[Step, bool]]]:
    """Let the named steps fail before they do anything. Gives the steps that were begun or done."""
    log: list[tuple[Step, bool]] = []

    def seen(step: Step, done: bool) -> None:
        log.append((step, done))
        if step in steps and not done:
            raise fault

    with watching(seen):
        yield log


def begun(house: House) -> Handle:
    """A session of one turn, its history served."""
    handle = house.store().create()
    handle.append(turn(1))
    handle.refresh()
    return handle


def refused(handle: Handle, *drafts: Draft) -> Outcome:
    with pytest.raises(AppendFailed) as caught:
        handle.append(drafts or turn(2))
    return caught.value.outcome
