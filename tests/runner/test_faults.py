"""Whatever goes wrong at whichever call of a turn: one outcome, the accepted text kept, and only legal events.

The trial's sink feeds every event to the tables, so each test here also tells that nothing left out of order.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from localagent.core.worker import ActivityChanged, AppendFailed, ApprovalWanted, InputAppended
from localagent.protocol.codes import Code
from localagent.runner.provider import Stage
from localagent.runner.scribe import Handle, Later
from localagent.sessions import errors
from localagent.sessions.records import Draft

from .kit import Trial

TOOL: dict[str, Any] = {"do": "call", "name": "bash", "arguments": {"command": "ls"}, "result": "notes", "ms": 10}
STEPS: list[dict[str, Any]] = [
    {"do": "say", "text": "First this. ", "piece": 4, "pause_ms": 60},
    {**TOOL, "approval": "Run ls?", "allowed": [{"do": "say", "text": "Allowed. "}]},
    {"do": "think", "text": "Hm."},
    {"do": "say", "text": "Then the tok"},
    {"do": "together", "calls": [TOOL, {**TOOL, "approval": "Again?"}]},
    {"do": "note", "code": "slow", "text": "Slow today."},
    {"do": "flood", "bytes": 9000, "piece": 900, "pause_ms": 20},
]


def _play(trial: Trial) -> Any:
    return trial.play(*STEPS)


def _calls() -> list[str]:
    trial = Trial()
    _play(trial)
    return trial.calls


CALLS = _calls()
CRITICAL = {"InputAppended", "Reconcile", "ActivityChanged", "ApprovalWanted", "Note"}


def _intact(trial: Trial) -> None:
    """What must hold whatever happened: the text is kept, in events and in the store, and no call is left open."""
    accepted = "".join(trial.accepted)
    stored = trial.stored_text()
    if not trial.sink.lost:
        assert trial.answer() == accepted
        assert "".join(trial.deltas().values()) == accepted
        states = {event.activity_id: event.state for event in trial.of(ActivityChanged)}
        assert "started" not in states.values()
    if not trial.of(AppendFailed):
        assert stored == accepted
        assert trial.handle.kinds().count("tool_call") == trial.handle.kinds().count("tool_result")


def _last(trial: Trial) -> tuple[str, Any]:
    draft = trial.handle.records[-1]
    return draft.kind, draft.payload.get("status")


@pytest.mark.parametrize("at", range(len(CALLS)))
def test_cancelled_at_any_call(at: int) -> None:
    trial = Trial()
    trial.hook = lambda number, name: trial.sink.cancel() if number == at else None
    ended = _play(trial)
    assert ended.code is None
    assert trial.calls.count("refresh") == 1
    if not ended.input_stored:
        assert ended.word == "stopped"
        assert not trial.handle.records
        return
    _intact(trial)
    assert len(trial.of(InputAppended)) == 1
    assert ended.word in ("stopped", "completed")
    assert _last(trial) == (("turn_status", "cancelled") if ended.word == "stopped" else ("assistant_output", None))
    if ended.word == "completed":
        assert trial.accepted[-1].endswith(" again, ") or len("".join(trial.accepted)) > 9000


@pytest.mark.parametrize("at", range(len(CALLS)))
def test_undeliverable_at_any_call(at: int) -> None:
    trial = Trial()
    trial.hook = lambda number, name: trial.sink.lose() if number == at else None
    ended = _play(trial)
    if not CRITICAL.intersection(CALLS[at:]):
        assert (ended.word, _last(trial)) == ("completed", ("assistant_output", None))
    else:
        assert (ended.word, ended.code) == ("stopped", Code.OUTPUT_UNAVAILABLE)
        assert _last(trial) == ("turn_status", "cancelled")
    _intact(trial)


@pytest.mark.parametrize("at", range(CALLS.count("append")))
@pytest.mark.parametrize("count", [1, 2, 99])
def test_appends_that_fail(at: int, count: int) -> None:
    trial = Trial(fails=lambda number: at <= number < at + count)
    ended = _play(trial)
    if at == 0:
        assert (ended.word, ended.code, ended.input_stored) == ("failed", Code.PERSISTENCE_FAILED, False)
        assert not trial.sink.events
        return
    assert trial.of(AppendFailed)
    _intact(trial)
    kinds = [batch[-1].kind for batch in _batches()]
    required = kinds[at] in ("tool_call", "tool_result")
    if required:
        assert (ended.word, ended.code) == ("failed", Code.PERSISTENCE_FAILED)
    if kinds[at] == "tool_call":
        assert trial.calls.count("wait") < CALLS.count("wait")  # the tool was not run
    marks = [draft for draft in trial.handle.records if draft.payload.get("status") == "incomplete"]
    assert len(marks) <= 1
    if count == 1:
        assert len(trial.of(AppendFailed)) == 1
        assert len(marks) == (0 if required else 1)
        assert ended.word == ("failed" if required else "completed")
        assert any(entry.partial for entry in trial.handle.entries())


def _batches() -> list[list[Draft]]:
    trial = Trial()
    _play(trial)
    return trial.handle.batches


@pytest.mark.parametrize("at", range(len(CALLS)))
def test_cancelled_at_any_call_on_a_dead_disk(at: int) -> None:
    """Two faults at once: from one call on the disk is dead, and the turn is cancelled."""
    trial = Trial()
    trial.hook = lambda number, name: trial.sink.cancel() if number == at else None
    trial.fails = lambda number: len(trial.calls) > at
    ended = _play(trial)
    if ended.input_stored:
        _intact(trial)
        assert ended.word in ("stopped", "failed", "completed")


def test_a_denial_by_cancellation_does_not_run_the_tool() -> None:
    trial = Trial()
    trial.hook = lambda number, name: trial.sink.cancel() if name == "ApprovalWanted" else None
    assert trial.play({**TOOL, "approval": "Run?"}).word == "stopped"
    assert trial.of(ApprovalWanted)
    assert not trial.sink.waits
    assert [(event.state, event.summary) for event in trial.of(ActivityChanged)] == [
        ("started", "started"),
        ("failed", "interrupted"),
    ]
    result = trial.handle.records[2].payload["result"]
    assert result["success"] is False


def test_what_cannot_be_shown_is_not_run() -> None:
    trial = Trial()
    trial.hook = lambda number, name: trial.sink.lose() if name == "ActivityChanged" else None
    trial.play(TOOL, {"do": "say", "text": "Never."})
    assert not trial.sink.waits
    assert not trial.accepted
    assert trial.handle.kinds() == ["user_input", "tool_call", "tool_result", "turn_status"]


def test_a_turn_that_was_cancelled_meanwhile_asks_no_provider() -> None:
    trial = Trial()
    trial.hook = lambda number, name: trial.sink.cancel() if name == "InputAppended" else None
    prompts: list[str] = []

    class Provider:
        def run(self, prompt: str, stage: Stage) -> None:
            prompts.append(prompt)

    assert trial.run(Provider()).word == "stopped"
    assert not prompts


def test_a_turn_is_marked_incomplete_once() -> None:
    notes = [{"do": "note", "code": "n", "text": "N."}] * 4
    trial = Trial(fails=lambda number: number in (1, 4))
    assert trial.play(*notes).word == "completed"
    assert len(trial.of(AppendFailed)) == 2
    assert trial.handle.kinds().count("turn_status") == 1


def test_a_mark_that_failed_goes_with_the_answer() -> None:
    trial = Trial(fails=lambda number: number in (1, 2))
    assert trial.play({"do": "note", "code": "n", "text": "N."}, {"do": "say", "text": "Text."}).word == "completed"
    assert [draft.kind for draft in trial.handle.batches[-1]] == ["assistant_chunk", "assistant_output", "turn_status"]
    assert trial.handle.entries()[1].partial


def test_a_faulty_handle_counts() -> None:
    trial = Trial()
    trial.faulty.fail_append(count=2, after=2)
    outcomes = []
    for _ in range(6):
        try:
            trial.faulty.append([Draft("diagnostic", {})])
            outcomes.append(True)
        except errors.AppendFailed:
            outcomes.append(False)
    assert outcomes == [True, True, False, False, True, True]


def test_a_cancellation_before_anything_stores_nothing() -> None:
    trial = Trial()
    trial.sink.cancel()
    ended = trial.ask("Hello")
    assert (ended.word, ended.code, ended.revision, ended.input_stored) == ("stopped", None, "fresh-0", False)
    assert not trial.sink.events


def test_no_projection_means_no_revision() -> None:
    trial = Trial()

    def hook(number: int, name: str) -> None:
        if name == "refresh":
            raise OSError

    trial.hook = hook
    assert trial.ask("Hello").revision is None


def test_a_broken_sink_is_a_failed_turn() -> None:
    """A fault of ours must not take the outcome away."""
    trial = Trial(judged=False)

    def hook(number: int, name: str) -> None:
        if name == "Reconcile":
            raise RuntimeError("a bug")

    trial.hook = hook
    trial._check_texts = lambda ended: None  # type: ignore[method-assign]
    ended = trial.ask("Hello")
    assert (ended.word, ended.code) == ("failed", Code.EXECUTION_FAILED)


# appends that another thread does


def _deferred(handle: Handle) -> Later:
    """Appends happen when they are waited for: as late as a writer thread could do them."""

    def begin(drafts: Sequence[Draft]) -> Callable[[], object]:
        batch = list(drafts)
        return lambda: handle.append(batch)

    return begin


def test_later_appends_come_before_the_next_record() -> None:
    trial = Trial(later=_deferred)
    trial.play({"do": "flood", "bytes": 20_000, "piece": 1000, "pause_ms": 20}, TOOL)
    assert trial.stored_text() == "".join(trial.accepted)
    assert trial.handle.kinds().index("tool_call") == 1 + 5
    first = trial.calls.index("append", trial.calls.index("append") + 1)
    assert trial.calls[first:].count("Delta") <= 1


@pytest.mark.parametrize("at", range(1, 5))
def test_a_later_append_that_fails_is_told(at: int) -> None:
    trial = Trial(later=_deferred, fails=lambda number: number == at)
    ended = trial.play({"do": "flood", "bytes": 20_000, "piece": 1000, "pause_ms": 20})
    assert ended.word == "completed"
    assert len(trial.of(AppendFailed)) == 1
    assert trial.handle.kinds().count("turn_status") == 1
    assert trial.answer() == "".join(trial.accepted)
