"""The bounds of a run, at the bound and on both sides of it (BOUND-12 to BOUND-15, EVT-28 to EVT-30)."""

from typing import Any

import pytest
from msgspec.structs import replace

from localagent.core.worker import ActivityChanged, Note
from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.runner import recorder
from localagent.runner.turn import Ended

from .kit import Trial
from .test_segments import Pieces


def _verdict(ended: Ended) -> tuple[str, Code | None]:
    return ended.word, ended.code


def _expected(within: bool) -> tuple[str, Code | None]:
    return ("completed", None) if within else ("failed", Code.CONTENT_LIMIT)


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_eight_mebibytes(extra: int) -> None:
    size = LIMITS.assistant_bytes + extra
    trial = Trial()
    ended = trial.play({"do": "flood", "bytes": size, "piece": 256 * 1024})
    assert _verdict(ended) == _expected(extra <= 0)
    assert len(trial.answer()) == min(size, LIMITS.assistant_bytes)
    assert trial.answer() == trial.stored_text() == "".join(trial.deltas().values())
    assert [event.code for event in trial.of(Note)] == ([] if extra <= 0 else ["content_limit"])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bounds, small enough to be met often."""
    bounds = replace(LIMITS, assistant_bytes=1000, assistant_segments=5, activities=20)
    monkeypatch.setattr(recorder, "LIMITS", bounds)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("letter", ["x", "t", "ä", "😀"])
@pytest.mark.parametrize("piece", [1, 7, 5000])
@pytest.mark.parametrize("tools", [False, True])
def test_text_up_to_the_bound_is_kept(letter: str, piece: int, tools: bool) -> None:
    """Whatever the letters (a `t` may begin `token` and is held), the pieces and the segments."""
    exact = 1000 // len(letter.encode())
    for count in range(exact - 3, exact + 4):
        text = letter * count
        pieces: list[str | None] = [text[at : at + piece] for at in range(0, count, piece)]
        if tools:
            pieces.insert(len(pieces) // 2, None)
        trial = Trial()
        ended = trial.run(Pieces(*pieces))
        assert _verdict(ended) == _expected(len(text.encode()) <= 1000)
        assert trial.answer() == letter * min(count, exact)
        assert trial.answer() == trial.stored_text() == "".join(trial.deltas().values())


@pytest.mark.usefixtures("small")
def test_marks_that_outgrow_their_secrets_count() -> None:
    trial = Trial()
    ended = trial.run(Pieces(*["sk-a "] * 150))
    assert _verdict(ended) == _expected(False)
    assert trial.answer() == ("<redacted> " * 150)[:1000]

    last = Trial()
    ended = last.run(Pieces("x" * 990, " sk-abcde"))
    assert _verdict(ended) == _expected(False)
    assert last.answer() == "x" * 990 + " <redacted"


@pytest.mark.usefixtures("small")
def test_a_bound_met_at_a_tool_boundary_keeps_the_tool_from_running() -> None:
    trial = Trial()
    ended = trial.run(Pieces("x" * 990, " sk-abcde", None))
    assert _verdict(ended) == _expected(False)
    assert trial.answer() == "x" * 990 + " <redacted"
    assert "tool_call" not in trial.handle.kinds()


@pytest.mark.usefixtures("small")
def test_a_muted_text_is_measured_as_it_comes() -> None:
    trial = Trial()
    ended = trial.run(Pieces("-----BEGIN RSA PRIVATE KEY-----\n", *["QUJD\n"] * 300))
    assert _verdict(ended) == _expected(False)
    assert len(trial.answer()) == 1000


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("segments", [4, 5, 6])
def test_segments(segments: int) -> None:
    trial = Trial()
    pieces = [piece for number in range(segments) for piece in (f"Segment {number}.", None, None)]
    ended = trial.run(Pieces(*pieces[: 3 * segments - 2]))
    assert _verdict(ended) == _expected(segments <= 5)
    assert list(trial.reconciled().values()) == [f"Segment {number}." for number in range(min(segments, 5))]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("calls", [19, 20, 21])
@pytest.mark.parametrize("at_once", [1, 2])
def test_activities(calls: int, at_once: int) -> None:
    call: dict[str, Any] = {"do": "call", "name": "bash"}
    trial = Trial()
    ended = trial.play(
        {"do": "say", "text": "Text."},
        *[call] * (calls - at_once),
        {"do": "together", "calls": [call] * at_once},
    )
    assert _verdict(ended) == _expected(calls <= 20)
    started = [event for event in trial.of(ActivityChanged) if event.state == "started"]
    assert len(started) == (calls if calls <= 20 else calls - at_once)
    assert trial.handle.kinds().count("tool_result") == len(started)
    assert trial.answer() == "Text."


def test_the_real_counts() -> None:
    call = {"do": "call", "name": "bash"}
    many = {"do": "repeat", "times": 513, "steps": [{"do": "say", "text": "x"}, call]}
    trial = Trial(judged=False)
    assert _verdict(trial.play(many)) == _expected(False)
    assert len(trial.reconciled()) == 512

    trial = Trial(judged=False)
    assert _verdict(trial.play({"do": "repeat", "times": 4097, "steps": [call]})) == _expected(False)
    assert len(trial.of(ActivityChanged)) == 2 * 4096


@pytest.mark.parametrize(("kib", "stored"), [(1024, True), (1025, False)])
def test_a_long_answer_stands_in_its_chunks_alone(kib: int, stored: bool) -> None:
    trial = Trial()
    trial.play({"do": "flood", "bytes": kib * 1024, "piece": 65536})
    assert ("text" in trial.handle.records[-1].payload) is stored
    assert trial.handle.entries()[-1].text == trial.answer()


def test_names_and_summaries_are_short() -> None:
    trial = Trial()
    trial.play(
        {"do": "call", "name": "bash", "arguments": {"command": "ä" * 5000}, "approval": "ä" * 5000},
        {"do": "note", "code": "long", "text": "ä" * 5000},
    )
    for event in [*trial.of(ActivityChanged), *trial.of(Note)]:
        assert len(event.summary.encode()) <= 1024
    assert all(len(event.name.encode()) <= 1024 for event in trial.of(ActivityChanged))
