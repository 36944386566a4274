"""A sketch takes the lines that ``records.parse`` takes, and no others, and says of them what ``Facts`` says."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.sessions import instants, records
from localagent.sessions.errors import BadRecord
from localagent.sessions.facts import Facts
from localagent.sessions.sketch import Elsewhere, Sketch, Workspace
from tests.kit.profiles import examples

from .kit import line

HOME = "/home/ada/notes"
GOOD = line("s", "user_input", {"origin": "user", "text": "hello"})

TIMES = st.sampled_from(
    [
        *("2026-03-02T08:00:01Z", "2026-03-02T08:00:01.5Z", "2026-03-02T08:00:01.500Z", "2026-03-02T08:00:60Z"),
        *("2026-03-02T10:00:01+02:00", "2026-02-30T08:00:01Z", "2026-03-02t08:00:02z", "0000-01-01T00:00:00Z"),
        *("9999-12-31T23:59:59.9999999999Z", "2026-03-02T08:59:59", "2026-13-02T08:00:01Z", "2026-03-02T24:00:00Z"),
    ]
)
PAYLOADS: st.SearchStrategy[object] = st.one_of(
    st.fixed_dictionaries({"text": st.text(max_size=5)}),
    st.fixed_dictionaries({"title": st.sampled_from(["Tides", "", "a=b", "x" * 300, 'say "no"'])}),
    st.just({"aggregate": {"latest_title": "Plan"}}),
    st.sampled_from([None, [], "text", 5, {"deep": {"deeper": [{}]}}]),
)
KINDS = st.sampled_from(["user_input", "session_title", "compaction", "tomorrow", "Odd-Kind"])
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "timestamp": TIMES,
        "cwd": st.sampled_from([HOME, "", "/same", ..., "/h\u00f6me"]),
        "session_path": st.sampled_from([None, HOME, ..., "/x"]),
        "event_id": st.sampled_from(["1", None, ..., "ff", "XY"]),
        "session_id": st.sampled_from(["s", "s", "s", "t"]),
    },
)


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """A record, often as the one before, sometimes damaged."""
    text = line("s", draw(KINDS), draw(PAYLOADS), **draw(FIELDS))
    damage = draw(st.sampled_from(["none"] * 8 + ["cut", "byte", "cr", "space", "extra", "twice"]))
    if damage == "cut":
        return text[: draw(st.integers(0, len(text)))]
    if damage == "byte":
        at = draw(st.integers(0, len(text) - 1))
        return text[:at] + bytes([draw(st.integers(0, 255).filter(lambda byte: byte != 10))]) + text[at + 1 :]
    return {
        "cr": text + b"\r",
        "space": b" " + text + b" ",
        "extra": text[:-1] + b',"more":{}}',
        "twice": text[:-1] + b',"cwd":"/home/ada/notes"}',
    }.get(damage, text)


@settings(max_examples=examples(300, 20_000))
@given(st.lists(lines(), max_size=6))
def test_a_sketch_agrees_with_the_reader_of_records(texts: list[bytes]) -> None:
    known = {HOME, "/same", "/h\u00f6me"}
    workspace = Workspace(known.__contains__)
    for _ in range(2):  # the second time everything was judged before
        sketch, facts = Sketch("s", workspace), Facts()
        for text in texts:
            try:
                record = records.parse(text.removesuffix(b"\r"), "s")
            except BadRecord:
                with pytest.raises(BadRecord):
                    sketch.add(text)
                break
            if record.cwd and record.cwd not in known:
                with pytest.raises(Elsewhere):
                    sketch.add(text)
                break
            sketch.add(text)
            facts.add(record)
        entry = sketch.entry(busy=False)
        assert entry.title == facts.title
        assert entry.updated_at == (None if facts.newest is None else instants.spell(facts.newest))
        assert (entry.eligibility == "available") == bool(facts.cwds)


@pytest.mark.parametrize(
    "tail",
    [
        b'"payload":{}}}',
        b'"payload":{}',
        b'"payload":}',
        b'"payload":{},"payload":{}}',
        b'"payload":{"a":"\xff"}}',
        b'"payload":{"a":"\\ud800"}}',
        b'"payload":{"a":"\x01"}}',
        b'"payload":{"a":1e999}}',
        b'"payload":{"a":NaN}}',
        b'"payload":{} {}}',
        b'"payload":' + b"[" * 127 + b"]" * 127 + b"}",
        b'"payload":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
@pytest.mark.parametrize("padding", [0, 5000])
def test_a_line_that_begins_like_a_good_one_is_not_good_for_that(tail: bytes, padding: int) -> None:
    """Short lines and long ones are decoded in two ways."""
    begin = GOOD[: GOOD.index(b'"payload":')]
    bad = begin + tail.replace(b"{", b'{"pad":"' + b"x" * padding + b'","b":0,', 1).replace(b",}", b"}")
    for text in (begin + tail, bad):
        sketch = Sketch("s", Workspace({HOME}.__contains__))
        sketch.add(GOOD)
        with pytest.raises(BadRecord):
            sketch.add(text)


def test_the_disk_is_asked_once_for_each_directory_in_a_row() -> None:
    asked: list[str] = []

    def same(recorded: str) -> bool:
        asked.append(recorded)
        return True

    workspace = Workspace(same)
    for name in ("s", "t"):
        sketch = Sketch(name, workspace)
        for cwd in ("/a", "/a", "/b", "/b", "/a"):
            sketch.add(line(name, "user_input", {}, cwd=cwd))
    assert asked == ["/a", "/b", "/a", "/b", "/a"]
    workspace.forget()
    Sketch("s", workspace).add(line("s", "user_input", {}, cwd="/a"))
    assert asked[-1:] == ["/a"]
    assert len(asked) == 6


def test_the_fast_way_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a usual history only the first line goes the slow way, and that of the next session not even then."""
    slow = itertools.count()
    parse = records.parse
    monkeypatch.setattr(records, "parse", lambda text, owner: (next(slow), parse(text, owner))[1])
    workspace = Workspace({HOME}.__contains__)
    for name in ("s", "t"):
        sketch = Sketch(name, workspace)
        for second in range(30):
            sketch.add(line(name, "tool_result", {"result": {"a": []}}, timestamp=f"2026-03-02T08:{second:02d}:01.5Z"))
        assert sketch.entry(busy=False).updated_at == "2026-03-02T08:29:01.500Z"
    assert next(slow) == 1
