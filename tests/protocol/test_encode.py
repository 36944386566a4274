"""What ``encode`` refuses to write, and the bound of a frame."""

from typing import Any

import pytest

from localagent.protocol.codec import encode
from localagent.protocol.errors import FrameTooLong, Unwritable
from localagent.protocol.events import ClientToolCall, MessageReconcile, ToolCard
from localagent.protocol.messages import Frame, event, response
from localagent.protocol.results import HistoryEntry, HistoryPage

INSTANCE = "0b6e1f6c-52c1-4f0e-9a77-3d1c8f0e2a41"
LONE_SURROGATE = "\ud800"


def reconcile(text: str) -> Frame:
    data = MessageReconcile(
        last_part=True, message_id="m", part=0, partial=False, run_id="r", session_id="s", text=text
    )
    return event(INSTANCE, 1, data)


def call(arguments: dict[str, Any]) -> Frame:
    data = ClientToolCall(
        arguments=arguments,
        call_id="c",
        name="client__t",
        run_id="r",
        session_id="s",
        subagent_id=None,
        task_id=None,
        timeout_ms=30_000,
    )
    return event(INSTANCE, 1, data)


def card(card: dict[str, Any]) -> Frame:
    return event(INSTANCE, 1, ToolCard(activity_id="a", card=card, run_id="r", session_id="s"))


def history(card: dict[str, Any]) -> Frame:
    entry = HistoryEntry(
        kind="activity", last_part=True, message_id="m", part=0, partial=False, text="x", tool_card=card
    )
    page = HistoryPage(complete=True, entries=(entry,), next_cursor=None, revision="r", session_id="s")
    return response(INSTANCE, 1, "r1", page)


def plain(value: dict[str, Any]) -> dict[str, Any]:
    return {"data": value}


FREE = [call, card, history, plain]


@pytest.mark.parametrize("size", [65_535, 65_536])
def test_the_largest_frames(size: int) -> None:
    """BOUND-02: the LF counts."""
    text = "x" * (size - len(encode(reconcile(""))))
    assert len(encode(reconcile(text))) == size


def test_a_frame_too_long() -> None:
    text = "x" * (65_537 - len(encode(reconcile(""))))
    with pytest.raises(FrameTooLong, match="65537"):
        encode(reconcile(text))


def test_the_bound_counts_escapes() -> None:
    assert len(encode(reconcile("\x00" * 10_000))) == len(encode(reconcile(""))) + 60_000
    with pytest.raises(FrameTooLong):
        encode(reconcile("\x00" * 11_000))


@pytest.mark.parametrize("text", ["\n", "\r\n", "\x85\u2028\u2029", '"\\', "\x00\x1b[31m", "日本 😀"])
def test_one_frame_is_one_line(text: str) -> None:
    """FRAME-04, FRAME-05."""
    line = encode(reconcile(text))
    assert line.count(b"\n") == 1
    assert line.endswith(b"}\n")


def test_a_lone_surrogate() -> None:
    with pytest.raises(Unwritable):
        encode(reconcile(LONE_SURROGATE))
    with pytest.raises(Unwritable):
        encode(call({LONE_SURROGATE: 1}))


@pytest.mark.parametrize("bearer", FREE)
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_lacks(bearer: Any, number: float) -> None:
    """The encoder alone would write ``null`` and say nothing."""
    assert encode(bearer({"a": [1.5]}))
    with pytest.raises(Unwritable):
        encode(bearer({"a": [number]}))


@pytest.mark.parametrize("bearer", FREE)
def test_integers_that_cannot_be_read_back(bearer: Any) -> None:
    assert encode(bearer({"a": 10**4299}))
    with pytest.raises(Unwritable):
        encode(bearer({"a": 10**4300}))


@pytest.mark.parametrize(("bearer", "around"), [(call, 2), (card, 2), (history, 4), (plain, 1)])
def test_depth_of_free_json(bearer: Any, around: int) -> None:
    """BOUND-03 holds for both directions."""

    def nested(containers: int) -> dict[str, Any]:
        return {"a": nested(containers - 1)} if containers > 1 else {}

    assert encode(bearer(nested(32 - around)))
    with pytest.raises(Unwritable):
        encode(bearer(nested(33 - around)))


@pytest.mark.parametrize("bearer", FREE)
def test_nesting_beyond_the_recursion_limit(bearer: Any) -> None:
    value: dict[str, Any] = {}
    for _ in range(5_000):
        value = {"a": value}
    with pytest.raises(Unwritable):
        encode(bearer(value))


def test_free_json_is_written_by_key() -> None:
    """D70."""
    assert b'"arguments":{"a":{"y":1,"z":2},"b":[{"c":1,"d":2}]}' in encode(
        call({"b": [{"d": 2, "c": 1}], "a": {"z": 2, "y": 1}})
    )
