"""The bounds of a projection (HISTP-11), and its property: extending is rebuilding, and both are the reference."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.protocol.codes import Code
from localagent.sessions import projection
from localagent.sessions.errors import BadRecord, StoreError
from localagent.sessions.projection import Projected, Projection
from localagent.sessions.records import Record
from tests.kit.profiles import examples
from tests.sessions import reference_projection
from tests.sessions.events import (
    Event,
    chunk,
    feed,
    output,
    seen,
    summary,
)


def test_ten_thousand_entries() -> None:
    full = feed([("diagnostic", {"message": "m"})] * 9_999)
    assert len(full.snapshot().entries) == 9_999
    full.add(Record("diagnostic", 0, "", {"message": "m"}))
    assert len(full.snapshot().entries) == 10_000
    full.add(Record("user_input", 0, "", {"origin": "provider_only"}))
    assert len(full.snapshot().entries) == 10_000
    full.add(Record("assistant_chunk", 0, "", {"text": "t"}))  # and with it, the diagnostic of an interruption
    with pytest.raises(StoreError) as caught:
        full.snapshot()
    assert caught.value.code is Code.HISTORY_LIMIT


@pytest.mark.parametrize("character", ["x", "\u65e5"])
def test_eight_mib_of_text(character: str) -> None:
    piece = character * (16_384 // len(character.encode()))
    exact = feed([("diagnostic", {"message": piece})] * 511)
    exact.add(
        Record("diagnostic", 0, "", {"message": piece + "y" * (projection.TEXT_BYTES - 512 * len(piece.encode()))})
    )
    assert len(exact.snapshot().entries) == 512
    exact.add(Record("user_input", 0, "", {"origin": "provider_only"}))
    assert len(exact.snapshot().entries) == 512
    exact.add(Record("diagnostic", 0, "", {"message": "z"}))
    for _ in range(2):
        with pytest.raises(StoreError):
            exact.snapshot()
        exact.add(Record("user_input", 0, "", {"origin": "provider_only"}))


def test_replaced_text_counts_once() -> None:
    half = "x" * (projection.TEXT_BYTES // 2 + 1)
    feed([chunk(half), output(half)]).snapshot()
    feed([summary(half, item_id="i"), summary(half, item_id="i")]).snapshot()


# the property: extending equals rebuilding, and both equal the reference

TEXTS = st.sampled_from(["", "a", "b", "ab", "\x1b[1m", "sk-", "sk-abcdef", "token", ": x", "\r\n", "\u65e5"])
IDS = st.sampled_from(["", "c", "d"])
NAMES = st.sampled_from(["bash", "shell", "read", "mcp"])
ORIGINS = st.sampled_from(["user", "steering", "provider_only"])
STATUSES = st.sampled_from([*reference_projection.WORDS, "complete"])


def build(kind: str, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[Event]:
    return st.tuples(st.just(kind), st.fixed_dictionaries(members))


RESULTS = st.fixed_dictionaries(
    {"tool_name": NAMES, "success": st.booleans(), "content": st.just(""), "metadata": st.just(None)}
)
EVENTS = st.one_of(
    build("user_input", text=TEXTS, origin=ORIGINS),
    build("assistant_chunk", text=TEXTS),
    build("assistant_output", text=TEXTS),
    build("assistant_output"),
    build("reasoning_summary", text=TEXTS, provider_summary=st.booleans(), item_id=IDS, turn_id=IDS),
    build("tool_call", id=IDS, name=NAMES, arguments=st.fixed_dictionaries({"command": TEXTS, "path": TEXTS})),
    build("code_mode_tool_call", id=IDS, name=NAMES, parent_call_id=IDS),
    build("tool_result", call_id=IDS, result=RESULTS),
    build("code_mode_tool_result", call_id=IDS, parent_call_id=IDS, result=RESULTS),
    build("turn_status", status=STATUSES, assistant_text=TEXTS, error_summary=TEXTS),
    build("diagnostic", message=TEXTS),
    build("compaction", summary=TEXTS),
    build("session_usage"),
)


@settings(max_examples=examples(300, 5_000))
@given(st.lists(EVENTS, max_size=25))
def test_extending_is_rebuilding_is_the_reference(events: list[Event]) -> None:
    expected = reference_projection.project(events)
    growing = Projection()
    earlier: list[tuple[Projected, tuple[projection.Entry, ...]]] = []
    try:
        for number, (kind, payload) in enumerate(events):
            growing.add(Record(kind, 0, "", payload))
            now = growing.snapshot()
            assert now.entries == feed(events[: number + 1]).snapshot().entries
            earlier.append((now, now.entries))
    except BadRecord:
        assert expected is None
        return
    assert seen(growing.snapshot()) == expected
    for projected, entries in earlier:  # immutable, and message ids unique
        assert projected.entries == entries
        assert len({entry.message_id for entry in entries}) == len(entries)
