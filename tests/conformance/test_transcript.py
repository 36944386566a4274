"""Transcripts: written and read back exactly; foreign and damaged ones read as far as they can be."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.conformance import frames, transcript
from localagent.conformance.model import Record, Transcript

_times = st.one_of(st.none(), st.floats(0, 1e9, allow_nan=False))
_texts = st.text(max_size=20)
_bytes = st.binary(max_size=30)
_contents = st.one_of(
    st.tuples(st.sampled_from(["client", "backend"]), _times, _bytes, st.none()),
    st.tuples(st.sampled_from(["eof", "signal", "mark", "stderr"]), _times, st.just(b""), _texts),
    st.tuples(st.just("exit"), _times, st.just(b""), st.integers(-64, 255)),
    st.tuples(st.just("closed"), _times, st.just(b""), st.none()),
    st.tuples(st.just("footer"), _times, st.just(b""), st.just({"end": "complete", "left": 0})),
    st.tuples(st.just("damaged"), st.none(), st.sampled_from([b"{", b"[1]", b'{"dir": "client"}', b"\xff"]), st.none()),
)


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    records = [Record(1, "header", value={"transcript": transcript.FORMAT, "case": None})]
    for kind, t, data, value in draw(st.lists(_contents, max_size=12)):
        records.append(Record(records[-1].number + draw(st.integers(1, 2)), kind, t, data, value))
    return Transcript(tuple(records))


@given(transcripts())
def test_reading_undoes_writing(some: Transcript) -> None:
    assert transcript.read(transcript.to_bytes(some)) == some


@given(st.binary(max_size=300))
def test_nothing_that_is_read_raises(data: bytes) -> None:
    found = transcript.read(data)
    list(frames.frames(found))
    assert transcript.read(transcript.to_bytes(found)).records == found.records or b"{" in data


@given(transcripts(), st.integers(0, 400))
def test_what_was_cut_off_is_read_up_to_there(some: Transcript, size: int) -> None:
    found = transcript.read(transcript.to_bytes(some)[:size])
    whole = [each for each in found.records if each.kind != "damaged"]
    assert set(map(repr, whole[:-1])) <= set(map(repr, some.records))


def test_files(tmp_path: Path) -> None:
    some = Transcript((Record(1, "header", value={"transcript": transcript.FORMAT}), Record(2, "exit", 1.5, value=0)))
    transcript.write(some, tmp_path / "a")
    with (tmp_path / "b").open("wb") as file:
        transcript.write(some, file)
    assert transcript.read(tmp_path / "a") == transcript.read(str(tmp_path / "b")) == some
    assert not some.complete


def test_a_foreign_capture_of_frames() -> None:
    found = transcript.read(
        b'{"what": "mine"}\n'
        b'{"direction": "client", "frame": {"id": "a", "n": 1.0}}\n\n'
        b'{"direction": "backend", "frame": {"type": "response", "id": "a"}}\n'
        b'{"dir": "client", "closed": true}\n{"exit": 0}\n{"dir": "nobody", "line": ""}\n{"dir": "client"}\n'
    )
    assert [(each.number, each.kind) for each in found.records] == [
        (1, "header"),
        (2, "client"),
        (4, "backend"),
        (5, "closed"),
        (6, "exit"),
        (7, "damaged"),
        (8, "damaged"),
    ]
    told = list(frames.frames(found))
    assert [each.value for each in told] == [{"id": "a", "n": 1.0}, {"type": "response", "id": "a"}]
    assert [each.size for each in told] == [-1, -1]
    assert transcript.read(transcript.to_bytes(found)) == found


def test_a_foreign_capture_of_lines_with_and_without_their_lf() -> None:
    bare = transcript.read(b'{"dir": "client", "line": "{}"}\n{"dir": "backend", "line": "{}"}')
    assert [each.data for each in bare.records] == [b"{}\n", b"{}\n"]
    cut = transcript.read(b'{"dir": "client", "line": "{}\\n"}\n{"dir": "client", "line": "{"}')
    assert [each.data for each in cut.records] == [b"{}\n", b"{"]


@pytest.mark.parametrize(
    ("data", "value", "broken", "repeated"),
    [
        (b'{"a":1}\n', {"a": 1}, "", ""),
        (b'{"a":1,"a":2}\r\n', {"a": 2}, "", "top"),
        (b'{"a":{"b":1,"b":2}}\n', {"a": {"b": 2}}, "", "inside"),
        (b'[{"b":1,"b":2}]\n', [{"b": 2}], "", "inside"),
        (b'{"a":1}', None, "cut", ""),
        (b'{"a":NaN}\n', None, "json", ""),
        (b"\n", None, "json", ""),
        (b'"\xff"\n', None, "utf-8", ""),
        (b"[" * 100_000 + b"\n", None, "json", ""),
    ],
)
def test_a_line_is_decoded(data: bytes, value: object, broken: str, repeated: str) -> None:
    frame = frames.decode(Record(1, "backend", data=data))
    assert (frame.value, frame.broken, frame.repeated) == (value, broken, repeated)
    assert frame.size == len(data.removesuffix(b"\n"))


def test_answers_and_events() -> None:
    lines = [
        b'{"type":"response","id":"a","result":{}}\n',
        b'{"type":"response","id":null,"error":{}}\n',
        b'{"type":"event","event":"activity","data":{"run_id":"r"}}\n',
        b'{"type":"response","id":"a","error":{}}\n',
    ]
    head = {"transcript": transcript.FORMAT}
    records = [Record(1, "header", value=head), *(Record(i, "backend", data=line) for i, line in enumerate(lines, 2))]
    some = Transcript((*records, Record(6, "header", value=head), Record(7, "client", data=b"{}\n")))
    told = list(frames.received(some))
    assert {key: [each.record for each in found] for key, found in frames.answers(told).items()} == {
        "a": [2, 5],
        None: [3],
    }
    assert [each.record for each in frames.events(told, "activity", "r")] == [4]
    assert frames.events(told, "activity", "q") == frames.events(told, "diagnostic") == []
    assert [each.record for each in frames.sent(some)] == [7]
    assert [len(each) for each in frames.children(some)] == [5, 2]
