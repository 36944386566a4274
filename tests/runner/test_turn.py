"""Every kind of step, and what a client and a store see of it."""

from typing import Any

import pytest

from localagent.core.worker import ActivityChanged, AppendFailed, ApprovalWanted, Delta, InputAppended, Note, Reconcile
from localagent.protocol.codes import Code
from localagent.runner.provider import ProviderError, Stage, ToolCall, ToolResult, TurnFailure
from localagent.runner.sink import Cancelled
from localagent.runner.turn import Ended

from .kit import Clock, Trial

SAY = {"do": "say", "text": "One. "}
CALL: dict[str, Any] = {"do": "call", "name": "bash", "arguments": {"command": "ls -l"}, "result": "notes\n"}


def test_a_prompt_is_stored_then_echoed() -> None:
    trial = Trial()
    assert trial.ask("Hello") == Ended("completed", None, "fresh-2")
    assert trial.shown() == ["InputAppended", "Delta", "Reconcile"]
    assert trial.sink.events[0] == InputAppended("m1", "revision-1")
    assert trial.answer() == "You said: Hello"
    assert trial.handle.batches[0][0].payload == {"origin": "user", "text": "Hello"}
    assert trial.handle.kinds() == ["user_input", "assistant_chunk", "assistant_output"]
    assert [(entry.kind, entry.text, entry.partial) for entry in trial.handle.entries()] == [
        ("user", "Hello", False),
        ("assistant", "You said: Hello", False),
    ]


def test_pieces_leave_at_their_pace() -> None:
    trial = Trial()
    trial.play({"do": "say", "text": "abcdefgh", "piece": 3, "pause_ms": 40})
    assert trial.accepted == ["abc", "def", "gh"]
    assert trial.sink.waits == [0.04, 0.04]


def test_what_saying_takes_is_part_of_the_pace() -> None:
    trial = Trial(clock=Clock(tick=1))
    trial.play({"do": "say", "text": "x" * 50, "piece": 1, "pause_ms": 40})
    assert trial.clock.now == pytest.approx(49 * 40, abs=40)


def test_a_tool_splits_the_answer() -> None:
    trial = Trial()
    assert trial.play(SAY, CALL, {"do": "say", "text": "Two."}).word == "completed"
    assert trial.shown() == [
        *("InputAppended", "Delta", "Reconcile", "ActivityChanged", "Delta", "Reconcile"),
    ]
    assert [(event.partial, event.text) for event in trial.of(Reconcile)] == [
        (True, "One. "),
        (False, "One. "),
        (False, "Two."),
    ]
    assert [(event.state, event.name, event.summary) for event in trial.of(ActivityChanged)] == [
        ("started", "bash ls -l", "started"),
        ("completed", "bash ls -l", "completed"),
    ]
    first, second = trial.handle.batches[1:3]
    assert [draft.kind for draft in first] == ["assistant_chunk", "tool_call"]
    assert first[1].payload == {"arguments": {"command": "ls -l"}, "id": "call-1", "name": "bash"}
    assert second[0].payload["result"] == {
        "content": "notes\n",
        "metadata": {},
        "success": True,
        "tool_name": "bash",
    }
    assert [entry.text for entry in trial.handle.entries()] == ["prompt", "One. ", "bash ls -l: completed", "Two."]


def test_a_call_is_on_disk_before_it_shows_and_its_text_is_settled_before_that() -> None:
    trial = Trial()
    trial.play(SAY, CALL)
    calls = [name for name in trial.calls if name not in ("cancelled", "refresh")]
    assert calls == [
        *("append", "InputAppended", "Delta", "Reconcile", "append", "ActivityChanged"),
        *("append", "ActivityChanged", "Reconcile", "append"),
    ]


def test_a_tool_that_fails_is_a_result() -> None:
    trial = Trial()
    assert trial.play({**CALL, "success": False, "ms": 30}).word == "completed"
    assert [event.state for event in trial.of(ActivityChanged)] == ["started", "failed"]
    assert trial.sink.waits == [0.03]


@pytest.mark.parametrize(("answer", "said", "summary"), [(True, "Yes.", "completed"), (False, "No.", "denied")])
def test_an_approval_decides_the_branch(answer: bool, said: str, summary: str) -> None:
    trial = Trial(answers=[answer])
    call = {**CALL, "approval": "Run ls -l?", "allowed": [{"do": "say", "text": "Yes."}]}
    ended = trial.play({**call, "denied": [{"do": "say", "text": "No."}]})
    assert ended.word == "completed"
    assert [event.summary for event in trial.of(ApprovalWanted)] == ["Run ls -l?"]
    assert trial.answer() == said
    assert trial.of(ActivityChanged)[1].summary == summary
    result = trial.handle.records[2].payload["result"]
    assert result["success"] is answer
    assert ("not allow" in result["content"]) is not answer


def test_calls_of_one_message_start_together() -> None:
    trial = Trial(answers=[False, True])
    trial.play({"do": "together", "calls": [{**CALL, "approval": "First?"}, {**CALL, "approval": "Second?"}]})
    assert [(event.state, event.summary) for event in trial.of(ActivityChanged)] == [
        ("started", "started"),
        ("started", "started"),
        ("failed", "denied"),
        ("completed", "completed"),
    ]
    assert [draft.kind for draft in trial.handle.batches[1]] == ["tool_call", "tool_call"]
    assert [draft.payload["call_id"] for draft in trial.handle.records if draft.kind == "tool_result"] == [
        "call-1",
        "call-2",
    ]


def test_only_a_providers_summary_is_kept() -> None:
    trial = Trial()
    trial.play(
        SAY,
        {"do": "think", "text": "Kept.", "item_id": "rs_1"},
        {"do": "think", "text": "Raw.", "from_provider": False},
        {"do": "think", "text": "Kept, too."},
        {"do": "say", "text": "Two."},
    )
    payloads = [draft.payload for draft in trial.handle.records if draft.kind == "reasoning_summary"]
    assert payloads == [
        {"item_id": "rs_1", "provider_summary": True, "text": "Kept."},
        {"provider_summary": True, "text": "Kept, too."},
    ]
    assert [entry.text for entry in trial.handle.entries()] == ["prompt", "One. ", "Kept.", "Kept, too.", "Two."]
    assert list(trial.reconciled().values()) == ["One. ", "Two."]


def test_a_note_is_shown_and_stored() -> None:
    trial = Trial()
    trial.play(SAY, {"do": "note", "code": "slow", "text": "token=abcdef is slow"}, SAY)
    assert [(event.code, event.summary) for event in trial.of(Note)] == [("slow", "token=<redacted> is slow")]
    assert [entry.kind for entry in trial.handle.entries()] == ["user", "assistant", "diagnostic", "assistant"]


def test_usage_stands_with_the_answer() -> None:
    trial = Trial()
    trial.play({"do": "usage", "input": 3, "output": 4}, SAY)
    assert trial.handle.records[-1].payload == {
        "text": "One. ",
        "usage": {
            "cache_read": None,
            "cache_write": None,
            "input": 3,
            "output": 4,
            "reasoning_tokens": None,
            "total": 7,
        },
    }


def test_a_turn_without_a_word_is_answered_all_the_same() -> None:
    trial = Trial()
    assert trial.play(CALL).word == "completed"
    assert trial.handle.records[-1].payload == {"text": "", "usage": None}
    assert not trial.of(Delta)


@pytest.mark.parametrize("code", [Code.EXECUTION_FAILED, Code.PROVIDER_UNAVAILABLE, Code.STALE_SELECTION])
def test_a_failure_keeps_the_text(code: Code) -> None:
    trial = Trial()
    ended = trial.play(SAY, {"do": "fail", "code": code, "text": "key: sk-secret1 is bad"})
    assert (ended.word, ended.code) == ("failed", code)
    assert [(event.code, event.summary) for event in trial.of(Note)] == [(code, "key: <redacted> is bad")]
    assert trial.answer() == "One. "
    assert trial.handle.records[-1].payload == {
        "assistant_text": "One. ",
        "error_summary": "key: <redacted> is bad",
        "status": "failed",
    }


def test_a_crash_says_its_kind_and_no_more() -> None:
    trial = Trial()
    ended = trial.play(SAY, {"do": "crash", "text": "/home/ada/key.pem"})
    assert (ended.word, ended.code) == ("failed", Code.EXECUTION_FAILED)
    assert [event.summary for event in trial.of(Note)] == ["The runner failed: RuntimeError."]


def test_a_stall_ends_with_the_turn() -> None:
    trial = Trial()
    ended = trial.play(SAY, {"do": "pause", "ms": 5}, {"do": "stall"}, SAY)
    assert (ended.word, ended.code) == ("stopped", None)
    assert trial.sink.waits == [0.005, 3600]
    assert trial.handle.records[-1].payload == {"assistant_text": "One. ", "status": "cancelled"}
    assert trial.answer() == "One. "


def test_computing_takes_its_time_and_looks_up() -> None:
    trial = Trial(clock=Clock(tick=0.1))
    trial.play({"do": "compute", "ms": 50})
    assert trial.clock.now >= 50
    assert 20 <= len(trial.sink.waits) <= 60

    stopped = Trial(clock=Clock(tick=0.1))
    stopped.hook = lambda number, name: stopped.sink.cancel() if number == 20 else None
    assert stopped.play({"do": "compute", "ms": 5000}).word == "stopped"
    assert stopped.clock.now < 50


def test_no_chunk_record_waits_while_the_turn_does() -> None:
    trial = Trial()
    trial.play({"do": "flood", "bytes": 5000}, {"do": "pause", "ms": 100})
    calls = [name for name in trial.calls if name in ("append", "wait")]
    assert calls == ["append", "append", "wait", "append"]


def test_repeats_repeat() -> None:
    trial = Trial()
    trial.play({"do": "repeat", "times": 3, "steps": [SAY, CALL]})
    assert list(trial.reconciled().values()) == ["One. "] * 3
    assert len(trial.of(ActivityChanged)) == 6


def test_filler_is_exact_and_may_be_stamped() -> None:
    trial = Trial(clock=Clock(now=5))
    trial.play({"do": "flood", "bytes": 10_001, "piece": 400, "pause_ms": 0.5, "stamp": True})
    assert len(trial.answer()) == 10_001
    assert [len(piece) for piece in trial.accepted] == [400] * 25 + [1]
    assert trial.accepted[2].startswith("6.000 ")
    assert len(trial.sink.waits) == 25


def test_an_append_can_be_made_to_fail() -> None:
    trial = Trial()
    assert trial.play({"do": "fail_append"}, SAY).word == "completed"
    assert [event.code for event in trial.of(AppendFailed)] == ["persistence_degraded"]
    assert trial.handle.kinds() == ["user_input", "turn_status"]
    assert [(entry.text, entry.partial) for entry in trial.handle.entries()] == [
        ("prompt", False),
        ("One. ", True),
        ("Turn incomplete", True),
    ]


def test_a_prompt_without_a_rule_fails() -> None:
    from localagent.runner import script

    trial = Trial()
    played = script.parse(b'{"version": 1, "rules": [{"exact": "no", "steps": []}]}')
    assert trial.run(trial.scripted(played)).word == "failed"


class Speaker:
    """A runner made of one function."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def run(self, prompt: str, stage: Stage) -> None:
        self._run(stage)


def test_a_runner_cannot_swallow_a_failure() -> None:
    seen: list[object] = []

    def run(stage: Stage) -> None:
        for _ in range(2):
            try:
                stage.tools([(ToolCall("x" * 1025, "bash", {}), lambda: ToolResult(True, ""))])
            except TurnFailure as failure:
                seen.append(failure.code)
        stage.text("Never.")

    trial = Trial()
    ended = trial.run(Speaker(run))
    assert (ended.word, ended.code) == ("failed", Code.EXECUTION_FAILED)
    assert seen == [Code.EXECUTION_FAILED] * 2
    assert not trial.answer()


def test_a_runner_that_ignores_a_cancellation_has_completed() -> None:
    trial = Trial()
    seen: list[object] = []

    def run(stage: Stage) -> None:
        stage.text("Kept.")
        trial.sink.cancel()
        for _ in range(2):
            try:
                stage.text("Too late.")
            except Cancelled as cancelled:
                seen.append(cancelled)

    assert trial.run(Speaker(run)).word == "completed"
    assert len(seen) == 2
    assert trial.answer() == "Kept."


@pytest.mark.parametrize("fault", [SystemExit(3), KeyboardInterrupt(), MemoryError(), RecursionError()])
def test_no_exception_gets_away(fault: BaseException) -> None:
    def run(stage: Stage) -> None:
        stage.text("Kept.")
        raise fault

    trial = Trial()
    assert trial.run(Speaker(run)).word == "failed"
    assert trial.answer() == "Kept."


def test_a_tools_fault_is_its_result() -> None:
    results: list[ToolResult] = []

    def run(stage: Stage) -> None:
        results.extend(stage.tools([(ToolCall("a", "bash", {}), _broken)]))
        results.extend(stage.tools([]))
        raise ProviderError("enough")

    trial = Trial()
    assert trial.run(Speaker(run)).code is Code.EXECUTION_FAILED
    assert results == [ToolResult(False, "The tool failed: ZeroDivisionError.")]
    assert trial.of(Note)[0].summary == "enough"


def _broken() -> ToolResult:
    raise ZeroDivisionError


def test_lone_surrogates_and_controls_never_leave() -> None:
    foreign = "a\x1b[31mb\ud800c\r\nd"

    def run(stage: Stage) -> None:
        stage.text(foreign)
        stage.note("note", foreign)
        stage.tools([(ToolCall("c", "bash", {"command": foreign}, foreign), lambda: ToolResult(True, ""))])
        raise ProviderError(foreign)

    trial = Trial()
    trial.run(Speaker(run))
    assert trial.answer() == trial.stored_text() == "ab\ufffdc\nd"
    summaries = [event.summary for event in [*trial.of(Note), *trial.of(ApprovalWanted)]]
    assert summaries == ["ab\ufffdc\nd"] * 3
    assert {event.name for event in trial.of(ActivityChanged)} == {"bash ab\ufffdc\nd"}


def test_controls_alone_are_no_segment() -> None:
    trial = Trial()
    trial.play({"do": "say", "text": "\u0007"}, CALL, {"do": "say", "text": "\u0007"})
    assert not trial.of(Reconcile)
