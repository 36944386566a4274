"""Lines that are no records: what is said of them, and the whole records that stand in them (REC-06, REC-56)."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.sessions.damage import complete_records, describe, is_record, owner
from tests.sessions.kit import line

RECORD = line("s", "user_input", {"text": 'a "quoted\\" \\ {[ brace]} \u2028'})
OTHER = line("s", "tool_call", {"id": "c", "name": "n", "arguments": {"a": [{"b": "}"}], "c": "\\"}})
FOREIGN = line("t", "user_input", {"text": "hi"})


def found(text: bytes) -> list[bytes]:
    return [text[start:end] for start, end in complete_records(text, "s")]


def test_a_torn_record_joined_by_another_at_every_cut() -> None:
    """REC-56: the suffix is kept, and nothing of the torn one."""
    for cut in range(1, len(RECORD)):
        assert found(RECORD[:cut]) == []
        assert found(RECORD[:cut] + OTHER) == [OTHER]
        assert found(OTHER[:cut] + RECORD) == [RECORD] or cut >= len(OTHER)


def test_a_whole_record_joined_by_a_torn_one_at_every_cut() -> None:
    for cut in range(1, len(OTHER)):
        assert found(RECORD + OTHER[:cut]) == [RECORD]


@pytest.mark.parametrize(
    "pieces",
    [
        [RECORD, OTHER],
        [RECORD, OTHER, RECORD],
        [RECORD[:50], OTHER, RECORD],
        [RECORD, OTHER[:50], RECORD],
        [RECORD[:50], OTHER, RECORD[:60]],
        [RECORD[:50], RECORD[:40], OTHER, RECORD[:60], RECORD],
        [b"\x00" * 999, RECORD],
        [RECORD, b"\x00" * 999],
        [b"\xef\xbb\xbf", RECORD],
        [b"\xff\xfe", RECORD, b"\xff"],
        [FOREIGN, RECORD],
        [RECORD, FOREIGN],
        [b"<<<<<<< HEAD ", RECORD],
        [b'"', RECORD],
        [b"{", RECORD],
        [RECORD, b"}"],
    ],
)
def test_every_whole_record_of_a_line(pieces: list[bytes]) -> None:
    assert found(b"".join(pieces)) == [each for each in pieces if each in (RECORD, OTHER)]


def test_a_record_in_any_spelling_ends_a_joined_line() -> None:
    spelt: list[dict[str, Any]] = [json.loads(RECORD), dict(reversed(json.loads(RECORD).items()))]
    for record in spelt:
        for text in (json.dumps(record), json.dumps(record, indent=1).replace("\n", " ")):
            assert found(RECORD[:33] + text.encode() + b" ") == [text.encode()]


def test_what_a_record_quotes_is_no_record() -> None:
    quoting = line("s", "tool_result", {"result": RECORD.decode()})
    for cut in range(1, len(quoting)):
        assert found(quoting[:cut]) == []


@given(st.lists(st.sampled_from([RECORD, OTHER, FOREIGN]), max_size=4), st.data())
def test_joined_records_are_all_found(whole: list[bytes], data: st.DataObject) -> None:
    torn = data.draw(st.sampled_from([RECORD, OTHER]))
    pieces = [*whole, torn[: data.draw(st.integers(1, len(torn) - 1))]]
    data.draw(st.randoms(use_true_random=False)).shuffle(pieces)
    assert found(b"".join(pieces)) == [each for each in pieces if is_record(each, "s")]


@pytest.mark.parametrize(
    "text",
    [
        b"{" * 2_000_000,
        b'{"a":' * 400_000,
        b"{}" * 1_000_000,
        b'"' * 2_000_001,
        b"\\" * 2_000_000 + b'"',
        b'{"event_id":"1","event_type":"' * 400_000,
        b'{"event_id":"1","event_type":"x"}' * 60_000,
        b"}" * 2_000_000,
    ],
    ids=range(8),
)
def test_lines_made_to_be_slow_are_not(text: bytes) -> None:
    """No assertion on time: one that is not linear does not end within the timeout of a test."""
    assert found(text) == []
    assert found(text + b" " + RECORD) in ([RECORD], [])
    assert isinstance(describe(text, "s"), str)


def test_random_bytes_are_survived() -> None:
    chance = random.Random(5)
    for _ in range(300):
        text = bytes(chance.choices(b'{}[]":,\\ae\x00\xff', k=60))
        assert found(text) == []
        assert describe(text, "s")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "an empty line"),
        (b" \t\r", "an empty line"),
        (b"\x00" * 1000, "1,000 NUL bytes"),
        (RECORD[:9] + b"\x00\x00", "a NUL byte at byte 10"),
        (b"\xef\xbb\xbf" + RECORD, "a byte order mark"),
        (RECORD[:20] + b"\xff", "invalid UTF-8 at byte 21"),
        (RECORD[:20], "no JSON: it ends too early"),
        (RECORD + b"x", "no JSON: trailing characters"),
        (b"[]", "JSON, but no object"),
        (b"null", "JSON, but no object"),
        (b"[" * 10_000, "nested more than 127 deep"),
        (line("s", "x", json.loads("[" * 127 + "]" * 127)), "nested more than 127 deep"),
        (RECORD.replace(b"quoted", b"\\ud800"), "a lone surrogate, or a number out of range"),
        (b'{"a":NaN}', "NaN or Infinity"),
        (line("s", "x", {}, event_type=...), "no event_type"),
        (line("s", "x", {}, payload=...), "no payload"),
        (line("s", "x", {}, session_id=7), "session_id is of the wrong type"),
        (line("s", "x", {}, cwd=None), "cwd is of the wrong type"),
        (line("s", "x", {}, event_id=7), "event_id is of the wrong type"),
        (line("s", "x", {}, timestamp="noon"), "timestamp is no RFC 3339 time"),
        (FOREIGN, "a record of another session"),
        (RECORD[:-1] + b',"cwd":""}', "a field occurs twice"),
    ],
)
def test_what_is_said_of_a_line(text: bytes, words: str) -> None:
    assert not is_record(text, "s")
    assert describe(text, "s") == words


def test_whose_record_a_line_is() -> None:
    assert owner(FOREIGN) == "t"
    for text in (FOREIGN[:-1], b"[]", b"{}", b"[" * 9999, line("t", "x", {}, session_id=7), FOREIGN + FOREIGN):
        assert owner(text) is None
