"""Records: what a line must be, what it may be, and what we write (REC-04 to REC-08)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from localagent.protocol.measure import depth
from localagent.sessions import records
from localagent.sessions.errors import BadRecord
from localagent.sessions.records import RECORD_BYTES, Draft, Pen, Record, fit, parse
from tests.sessions.kit import line

SECOND = 1_000_000_000
INSTANT = 1_772_438_401 * SECOND
GOOD = line("s", "user_input", {"text": "hi"})
RECORD = Record("user_input", INSTANT, "/home/ada/notes", {"text": "hi"})


def with_field(**fields: Any) -> bytes:
    return line("s", "user_input", {"text": "hi"}, **fields)


def nested(containers: int) -> Any:
    value: Any = {}
    for _ in range(containers - 1):
        value = {"a": value} if _ % 2 else [value]
    return value


def in_both_ways(text: bytes) -> Record:
    """Read a canonical line, and the same line with a space in front of it, which goes the slow way."""
    record = parse(text, "s")
    assert parse(b" " + text, "s") == record
    return record


def test_a_canonical_line() -> None:
    assert in_both_ways(GOOD) == RECORD


@pytest.mark.parametrize(
    ("text", "record"),
    [
        (with_field(event_id=...), RECORD),
        (with_field(event_id=None), RECORD),
        (with_field(event_id="not hex"), RECORD),
        (with_field(session_path=...), RECORD),
        (with_field(session_path=None), RECORD),
        (with_field(cwd=...), replace(RECORD, cwd="")),
        (with_field(cwd=""), replace(RECORD, cwd="")),
        (with_field(cwd="/tmp/\u65e5\u672c"), replace(RECORD, cwd="/tmp/\u65e5\u672c")),
        (with_field(cwd='/tmp/"\\'), replace(RECORD, cwd='/tmp/"\\')),
        (with_field(timestamp="2026-03-02T09:00:01.5+01:00"), replace(RECORD, instant=INSTANT + SECOND // 2)),
        (with_field(event_type="NEW-kind.2"), replace(RECORD, kind="NEW-kind.2")),
        (with_field(payload=None), replace(RECORD, payload=None)),
        (with_field(payload=[1, "x"]), replace(RECORD, payload=[1, "x"])),
        (with_field(extra={"payload": 1}), RECORD),
        (GOOD + b"  ", RECORD),
        (b"\t" + GOOD, RECORD),
        (GOOD + b"\r", RECORD),
        (json.dumps(json.loads(GOOD), indent=1).replace("\n", " ").encode(), RECORD),
        (json.dumps(dict(reversed(json.loads(GOOD).items()))).encode(), RECORD),
        (GOOD.replace(b'"payload"', b'"p\\u0061yload"'), RECORD),
        (GOOD[:-1] + b',"extra":1,"extra":2}', RECORD),
    ],
)
def test_what_readers_tolerate(text: bytes, record: Record) -> None:
    """REC-04, REC-05."""
    assert parse(text, "s") == record


@pytest.mark.parametrize("name", ["event_type", "timestamp", "session_id", "payload"])
def test_a_required_field_that_is_missing(name: str) -> None:
    with pytest.raises(BadRecord):
        parse(with_field(**{name: ...}), "s")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("event_id", value) for value in (1, True)],
        *[("event_type", value) for value in (None, 1)],
        *[("timestamp", value) for value in (None, 1, "", "yesterday", "2026-03-02T08:00:01", "2026-02-30T08:00:01Z")],
        *[("session_id", value) for value in (None, 1, "", "S", "t")],
        *[("cwd", value) for value in (None, 1)],
        *[("session_path", value) for value in (1, False)],
    ],
)
def test_a_field_of_the_wrong_type_or_value(name: str, value: Any) -> None:
    with pytest.raises(BadRecord):
        parse(with_field(**{name: value}), "s")


@pytest.mark.parametrize("name", sorted(json.loads(GOOD)))
def test_a_field_that_occurs_twice(name: str) -> None:
    value = json.dumps(json.loads(GOOD)[name]).encode()
    quoted = f'"{name}":'.encode()
    escaped = f'"\\u{ord(name[0]):04x}{name[1:]}":'.encode()
    for key in (quoted, escaped):
        for text in (GOOD[:-1] + b"," + key + value + b"}", b"{" + key + value + b"," + GOOD[1:]):
            with pytest.raises(BadRecord):
                parse(text, "s")


def test_a_key_that_occurs_twice_inside_the_payload_is_none_of_our_business() -> None:
    assert in_both_ways(GOOD.replace(b'{"text"', b'{"cwd":1,"cwd":2,"text"')).payload == {"cwd": 2, "text": "hi"}


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" ",
        b"\r",
        b"null",
        b"[]",
        json.dumps(list(json.loads(GOOD).values())).encode(),
        b'"x"',
        b"{}",
        GOOD[:-1],
        GOOD + GOOD,
        GOOD + b"}",
        GOOD + b"\x00",
        b"\x00" * 40,
        b"\xef\xbb\xbf" + GOOD,
        GOOD.replace(b"hi", b"h\xff"),
        GOOD.replace(b"hi", b"\xed\xa0\x80"),
        GOOD.replace(b"hi", b"h\x00"),
        GOOD.replace(b"hi", b"\\ud800"),
        GOOD.replace(b"hi", b"\\udc00\\ud800"),
        GOOD.replace(b'"hi"', b"NaN"),
        GOOD.replace(b'"hi"', b"Infinity"),
        GOOD.replace(b'"hi"', b"-Infinity"),
        GOOD.replace(b'"hi"', b"1e999"),
        GOOD.replace(b'"hi"', b"01"),
        GOOD.replace(b"/home/ada/notes", b"/home/ada/\xff"),
        GOOD.replace(b'"session_path":"/home/ada/notes"', b'"session_path":"\xff"'),
        GOOD.replace(b'"session_path":"/home/ada/notes"', b'"session_path":"\t"'),
    ],
)
def test_bad_lines(text: bytes) -> None:
    """REC-06."""
    with pytest.raises(BadRecord):
        parse(text, "s")


def test_every_cut_of_a_line_is_bad() -> None:
    for length in range(len(GOOD)):
        with pytest.raises(BadRecord):
            parse(GOOD[:length], "s")


@pytest.mark.parametrize(
    ("containers", "good"), [(125, True), (126, True), (127, False), (2_000, False), (10**5, False)]
)
def test_at_most_127_containers(containers: int, good: bool) -> None:
    """The record is one of them."""
    text = GOOD.replace(b'{"text":"hi"}', b"[" * containers + b"]" * containers)
    for each in (text, b" " + text, GOOD[:-1] + b',"x":' + b"[" * containers + b"]" * containers + b"}"):
        if good:
            parse(each, "s")
        else:
            with pytest.raises(BadRecord):
                parse(each, "s")


def test_brackets_in_text_are_no_containers() -> None:
    assert in_both_ways(GOOD.replace(b"hi", b"[{" * 500)).payload == {"text": "[{" * 500}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(JSON, st.text(max_size=20), st.booleans())
def test_the_fast_and_the_slow_way_agree(payload: Any, cwd: str, ascii_only: bool) -> None:
    fields = {
        "event_id": "1",
        "event_type": "x",
        "timestamp": "2026-03-02T08:00:01Z",
        "session_id": "s",
        "cwd": cwd,
        "payload": payload,
    }
    text = json.dumps(fields, ensure_ascii=ascii_only, separators=(",", ":")).encode(errors="surrogatepass")
    try:
        fast: object = parse(text, "s")
    except BadRecord:
        fast = None
    try:
        slow: object = records._parse_slowly(text, "s")
    except BadRecord:
        slow = None
    assert fast == slow


# writing


def write(draft: Draft, pen: Pen | None = None, event_id: str = "1f", now: int = INSTANT) -> bytes:
    pen = pen or Pen("s", "/home/ada/notes", "/home/ada/notes")
    return pen.line(draft, pen.payload(draft), event_id, now)


def test_what_we_write() -> None:
    """REC-04: the fields in order, the payload's keys sorted, compact, an LF."""
    assert (
        write(Draft("user_input", {"text": "h\u00e9\u2028", "origin": "user"}))
        == (
            '{"event_id":"1f","event_type":"user_input","timestamp":"2026-03-02T08:00:01Z","session_id":"s",'
            '"cwd":"/home/ada/notes","session_path":"/home/ada/notes","payload":{"origin":"user","text":"h\u00e9\u2028"}}\n'
        ).encode()
    )
    assert b'"timestamp":"1970-01-01T00:00:01Z"' in write(Draft("user_input", {}, at=SECOND))


def test_every_kind_we_write_and_no_other() -> None:
    for kind in records.WRITTEN:
        assert parse(write(Draft(kind, {}))[:-1], "s").kind == kind
    for kind in ("rewind", "session_usage", "hook_diagnostic", "abort_recovery", "invented", ""):
        with pytest.raises(BadRecord):
            write(Draft(kind, {}))


def test_payloads_are_redacted_and_the_envelope_is_not() -> None:
    """REC-08, CRED-12."""
    pen = Pen("s", "/home/sk-abc", "/home/sk-abc")
    written = json.loads(write(Draft("tool_call", {"a": ["see sk-abcdef"], "client_secret": "plain"}), pen))
    assert written["payload"] == {"a": ["see <redacted>"], "client_secret": "<redacted>"}
    assert written["cwd"] == "/home/sk-abc"


def test_a_directory_that_json_cannot_spell_is_not_recorded() -> None:
    written = json.loads(write(Draft("user_input", {}), Pen("s", "/tmp/\udcff", "/tmp/\udcff")))
    assert (written["cwd"], written["session_path"]) == ("", None)


@pytest.mark.parametrize(("containers", "kept"), [(99, 99), (100, 100), (101, 100), (5_000, 100)])
def test_payloads_nest_at_most_100_containers(containers: int, kept: int) -> None:
    value = nested(containers) if containers < 900 else None
    if value is None:
        value = {}
        for _ in range(containers):
            value = {"a": value}
    assert depth(fit(value)) == kept
    assert ("<redacted: max depth>" in json.dumps(fit(value))) == (containers > 100)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (2**64 - 1, 2**64 - 1),
        (2**64, str(2**64)),
        (-(2**63), -(2**63)),
        (-(2**63) - 1, str(-(2**63) - 1)),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (-0.0, -0.0),
        (True, True),
        ("\ud800x", "\ufffdx"),
        (("a", ["b"]), ["a", ["b"]]),
        ({1: None}, {"1": None}),
    ],
)
def test_what_readers_cannot_take_is_spelt_out(value: Any, written: Any) -> None:
    """REC-07."""
    assert fit({"v": value}) == {"v": written}


def test_what_is_not_json_is_our_mistake() -> None:
    with pytest.raises(TypeError):
        fit({"v": b"x"})


@pytest.mark.parametrize(("kind", "most"), [("assistant_chunk", RECORD_BYTES), ("session_preferences", 4096)])
def test_the_size_of_a_record(kind: str, most: int) -> None:
    """REC-07; section 2.3: 4,096 bytes for the append of session_preferences. The LF counts."""
    room = most - len(write(Draft(kind, {"text": ""})))
    words = ("word " * (room // 5 + 1))[:room]
    for spare in (1, 0):
        assert len(write(Draft(kind, {"text": words[: room - spare]}))) == most - spare
    with pytest.raises(BadRecord):
        write(Draft(kind, {"text": words + "x"}))


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_what_we_write_is_canonical_and_reads_back(payload: dict[str, Any]) -> None:
    text = write(Draft("tool_call", payload))
    head = records._canonical(text)
    assert head is not None
    pen = Pen("s", "", "")
    assert parse(text[:-1], "s").payload == json.loads(json.dumps(pen.payload(Draft("tool_call", payload))))
