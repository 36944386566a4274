"""A scripted turn on the real core, with something happening between any two of its steps.

The runner's calls drive the core directly, one after the other, so each interleaving is exact: before call k of the
turn the user cancels, the client stops, the input ends, the pipe breaks, an event turns out undeliverable, or a
minute passes. The transcript checker, which uses neither the tables nor the core, judges every step.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import pytest

from localagent.core import worker
from localagent.core.commands import CancelWorker, ResolveApproval
from localagent.runner import script
from localagent.runner.faults import FaultyHandle
from localagent.runner.scripted import Scripted
from localagent.runner.sink import Undeliverable
from localagent.runner.turn import run_turn
from localagent.sessions.records import Draft
from tests.kit.core_driver import Driver, Out
from tests.runner.kit import MemoryHandle, MemoryReceipt

PROMPTS = (
    "hello",
    "APPROVAL",
    "PARALLEL",
    "TOOL",
    "BROKEN TOOL",
    "THINK",
    "SECRET",
    "WARN",
    "FAIL",
    "CRASH",
    "REFUSE",
    "DISK",
    "STALL",
    "SLOW",
)


class Stopped(Exception):  # noqa: N818 - of the harness
    """The turn went on for longer than any of these scripts does."""


class DriverSink:
    """A turn's sink that feeds the core at once, and lets something happen before each call."""

    def __init__(self, driver: Driver, before: Callable[[int], None]) -> None:
        self.driver, self._before = driver, before
        self.calls = 0
        self._stop = False
        self._lost = False
        self._answers: dict[str, bool] = {}
        self._ids = itertools.count(1)

    def note(self, out: Out) -> None:
        """Carry out what the core asked for."""
        for command in out.commands:
            if isinstance(command, CancelWorker):
                self._stop = True
            elif isinstance(command, ResolveApproval):
                self._answers.setdefault(command.approval_id, command.allow)

    def lose(self) -> None:
        """A critical event found no place."""
        if not self._lost:
            self._lost = True
            self.note(self.driver.undeliverable())

    def step(self) -> None:
        """One more call of the turn."""
        self.calls += 1
        if self.calls > 400:
            raise Stopped
        self._before(self.calls)

    def _tell(self, event: worker.RunEvent) -> None:
        self.step()
        if self._lost:
            raise Undeliverable
        self.note(self.driver.event(event))

    # what the runner sees

    def cancelled(self) -> bool:
        return self._stop

    def wait(self, seconds: float) -> bool:
        self.step()
        self.note(self.driver.wait(min(seconds, 0.05) * 1000))
        if self.calls > 60 and not self._stop:  # a script that stalls waits for somebody to cancel it
            self.cancel()
        return self._stop

    def input_appended(self, message_id: str, revision: str) -> None:
        self._tell(worker.InputAppended(message_id, revision))

    def delta(self, message_id: str, text: str) -> None:
        self.step()
        if not self._lost:
            self.note(self.driver.event(worker.Delta(message_id, text, next(self._ids))))

    def reconcile(self, message_id: str, part: int, text: str, last_part: bool, partial: bool) -> None:
        self._tell(worker.Reconcile(message_id, part, text, last_part, partial))

    def activity(
        self,
        activity_id: str,
        kind: Literal["tool", "subagent", "compaction"],
        state: Literal["started", "completed", "failed"],
        name: str,
        summary: str,
    ) -> None:
        self._tell(worker.ActivityChanged(activity_id, kind, state, name, summary))

    def approval(self, summary: str) -> Callable[[], bool]:
        approval_id = f"00000000-0000-4000-8000-{next(self._ids):012x}"
        self._tell(worker.ApprovalWanted(approval_id, summary, self.driver.now))

        def answer() -> bool:
            self.step()
            run = self.driver.connection.facts.run
            if approval_id not in self._answers:
                named = {"session_id": run.session_id, "run_id": run.run_id, "approval_id": approval_id}
                self.note(self.driver.ask("approval.answer", {**named, "allow": True}))
            return self._answers.get(approval_id, False)

        return answer

    def diagnostic(self, code: str, summary: str) -> None:
        self._tell(worker.Note(code, summary))

    def append_failed(self, summary: str) -> None:
        self._tell(worker.AppendFailed(summary))

    def cancel(self) -> None:
        """The user stops the run."""
        run = self.driver.connection.facts.run
        self.note(self.driver.ask("turn.cancel", {"session_id": run.session_id, "run_id": run.run_id}))


ACTIONS: dict[str, Callable[[DriverSink], None]] = {
    "cancel": lambda sink: sink.cancel(),
    "shutdown": lambda sink: sink.note(sink.driver.ask("shutdown")),
    "end of input": lambda sink: sink.note(sink.driver.eof()),
    "broken pipe": lambda sink: sink.note(sink.driver.breaks()),
    "undeliverable": lambda sink: sink.lose(),
    "a minute": lambda sink: sink.note(sink.driver.wait(60_000)),
}


class StepHandle(MemoryHandle):
    """A store in memory whose appends are steps as well."""

    def __init__(self, sink: DriverSink) -> None:
        super().__init__(lambda name: None, lambda number: False)
        self._sink = sink

    def append(self, drafts: Sequence[Draft]) -> MemoryReceipt:
        self._sink.step()
        return super().append(drafts)


def _play(prompt: str, action: str, at: int) -> tuple[DriverSink, list[dict[str, Any]]]:
    """One turn with the action before call ``at``; all frames of the connection."""
    driver = Driver().ready().attach().turn()
    ids = itertools.count(1)

    def before(call: int) -> None:
        if call == at:
            ACTIONS[action](sink)

    sink = DriverSink(driver, before)
    handle = FaultyHandle(StepHandle(sink))
    runner = Scripted(script.built_in(), lambda: driver.now, handle.fail_append)
    ended = run_turn(prompt, handle, sink, runner, lambda: f"id{next(ids)}", lambda: driver.now)
    if ended.word == "failed" and not ended.input_stored:
        driver.event(worker.InputFailed(revision=ended.revision))
    driver.done(worker.TurnEnded(ended.word, ended.code, ended.revision))
    driver.gone()
    frames = driver.frames
    driver.finish()
    return sink, frames


def _every_step(prompt: str, action: str) -> Iterator[list[dict[str, Any]]]:
    for at in itertools.count(1):
        sink, frames = _play(prompt, action, at)
        if sink.calls < at:
            return
        yield frames


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("prompt", PROMPTS)
def test_whatever_happens_between_two_steps_the_run_ends_once(prompt: str, action: str) -> None:
    played = 0
    for frames in _every_step(prompt, action):
        played += 1
        events = [frame for frame in frames if "event" in frame]
        terminals = [frame for frame in events if frame["event"] == "run.finished"]
        if action == "broken pipe":
            assert len(terminals) <= 1
            continue
        assert len(terminals) == 1
        assert events[-1] is terminals[0]
        outcome, code = (terminals[0]["data"][name] for name in ("outcome", "error_code"))
        assert code in {"completed": (None,), "cancelled": (None, "output_unavailable")}.get(outcome, (code,))
        assert outcome != "failed" or code is not None
        _text_is_whole(events, outcome, code)
    assert played >= 4


def _text_is_whole(events: list[dict[str, Any]], outcome: str, code: str | None) -> None:
    """Every segment that showed text was reconciled (D80), unless an event was undeliverable."""
    shown = {each["data"]["message_id"] for each in events if each["event"] == "message.delta"}
    last = {each["data"]["message_id"]: each["data"] for each in events if each["event"] == "message.reconcile"}
    if code != "output_unavailable":
        assert shown <= set(last)
        assert all(data["partial"] == (outcome != "completed") for data in last.values())


def test_there_are_a_thousand_interleavings() -> None:
    steps = {prompt: _play(prompt, "cancel", 10**6)[0].calls for prompt in PROMPTS}
    assert sum(steps.values()) * len(ACTIONS) >= 1000, steps
