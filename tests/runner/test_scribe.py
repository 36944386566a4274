"""When records leave for the store, by a clock that stands still unless told."""

from collections.abc import Callable, Sequence

from localagent.runner.scribe import Scribe
from localagent.sessions.records import Draft

from .kit import Clock, MemoryHandle

LINE = "x" * 999 + "\n"


class Desk:
    """A scribe, its clock, and what was handed on without waiting."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.handle = MemoryHandle(lambda name: None, lambda number: False)
        self.begun: list[list[Draft]] = []
        self.scribe = Scribe(self.handle, lambda summary: None, self.clock, self._later)

    def _later(self, drafts: Sequence[Draft]) -> Callable[[], object]:
        self.begun.append(list(drafts))
        return lambda: None

    def say(self, lines: int) -> None:
        for _ in range(lines):
            self.scribe.say(LINE)


def test_a_chunk_waits_for_others_but_not_longer_than_50_ms() -> None:
    desk = Desk()
    desk.say(5)
    desk.clock.now = 49
    desk.say(1)
    assert not desk.begun
    desk.clock.now = 50
    desk.say(1)
    assert [len(batch) for batch in desk.begun] == [1]


def test_what_is_no_whole_chunk_waits_for_the_rest() -> None:
    desk = Desk()
    desk.say(3)
    desk.clock.now = 5000
    desk.say(1)
    assert not desk.begun


def test_many_chunks_do_not_wait() -> None:
    desk = Desk()
    desk.say(4 * 200)
    assert [len(batch) for batch in desk.begun] == [64, 64, 64]


def test_a_long_wait_sends_what_would_be_overdue() -> None:
    desk = Desk()
    desk.say(5)
    desk.scribe.keep_time(49)
    assert not desk.begun
    desk.scribe.keep_time(50)
    assert len(desk.begun) == 1
    desk.scribe.keep_time(5000)
    assert len(desk.begun) == 1


def test_the_next_record_takes_the_chunks_along() -> None:
    desk = Desk()
    desk.say(6)
    desk.scribe.required(Draft("tool_call", {}))
    assert [draft.kind for draft in desk.handle.batches[0]] == ["assistant_chunk", "assistant_chunk", "tool_call"]
    desk.scribe.optional(Draft("diagnostic", {}))
    assert [draft.kind for draft in desk.handle.batches[1]] == ["diagnostic"]


def test_a_dead_disk_is_not_tried_for_every_chunk() -> None:
    failures: list[str] = []
    handle = MemoryHandle(lambda name: None, lambda number: True)
    scribe = Scribe(handle, failures.append, Clock())
    for _ in range(4 * 500):
        scribe.say(LINE)
    assert (handle.tried, len(failures)) == (2, 1)  # the batch, and the mark
    scribe.close(Draft("assistant_output", {"text": ""}))
    assert (handle.tried, len(failures)) == (4, 2)
    assert scribe.degraded
