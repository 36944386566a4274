"""Lines must not depend on how their bytes arrive (FRAME-04 to FRAME-19, BOUND-01, BOUND-32)."""

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.protocol.framing import LineBuffer

FRAME = 65_536
LINES = [b'{"a":1}', b"\r", b'{"b":"\xc3\xa9"}\r']  # a CR is content, as is half a character
STREAM = b"".join(line + b"\n" for line in LINES)


def fed(buffer: LineBuffer, *pieces: bytes) -> list[bytes]:
    return [line for piece in pieces for line in buffer.feed(piece)]


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    return [stream[start:end] for start, end in pairwise([0, *places, len(stream)])]


def test_every_cut_and_every_pair_of_cuts() -> None:
    places = range(len(STREAM) + 1)
    cuts = [[place] for place in places] + [list(pair) for pair in combinations(places, 2)]
    for each in cuts:
        buffer = LineBuffer()
        assert fed(buffer, *cut(STREAM, each)) == LINES, each
        assert buffer.pending == b""
        assert not buffer.oversize


@given(
    stream=st.lists(st.sampled_from([b"\n", b"\r", b"\x0b", b"\x85", b"{", b"abc", b"\xe2\x80\xa8"])).map(b"".join),
    data=st.data(),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_any_partition_gives_the_lines_that_lf_alone_separates(stream: bytes, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    buffer = LineBuffer()
    *lines, rest = stream.split(b"\n")
    assert fed(buffer, *cut(stream, places)) == lines
    assert buffer.pending == rest


def test_lines_end_at_lf_only() -> None:
    """D05: what other protocols call a line end is content here."""
    line = b"a\rb\x0bc\x0cd\x1ce\x85f\xe2\x80\xa8g\r"
    assert LineBuffer().feed(line + b"\n") == [line]


def test_empty_lines_are_lines() -> None:
    assert LineBuffer().feed(b"\n\n\r\n") == [b"", b"", b"\r"]


def test_nothing_is_lost_at_the_end_of_input() -> None:
    """FRAME-16, FRAME-17, BASE-OP-52, BASE-OP-53: a complete request without its LF is pending, not a line."""
    buffer = LineBuffer()
    assert fed(buffer, b"first\n{", b"}") == [b"first"]
    assert buffer.pending == b"{}"


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("size", [FRAME - 1, FRAME, FRAME + 1])
def test_the_bound_counts_cr_and_not_lf(size: int, end: bytes) -> None:
    """FRAME-14, FRAME-18, BASE-OP-10: ``size`` is that of the line, its CR included."""
    cr = end[:-1]
    line = b"x" * (size - len(cr)) + cr
    buffer = LineBuffer()
    lines = fed(buffer, line + b"\n" + b"next\n")
    assert buffer.oversize == (size > FRAME)
    assert lines == ([] if size > FRAME else [line, b"next"])


def test_oversize_is_seen_on_byte_65537_without_an_lf() -> None:
    """FRAME-19, one byte at a time; linear time keeps this test short."""
    buffer = LineBuffer()
    for _ in range(FRAME):
        assert buffer.feed(b"x") == []
        assert not buffer.oversize
    assert buffer.feed(b"x") == []
    assert buffer.oversize
    assert buffer.pending == b"", "nothing more is held"


def test_a_full_line_may_still_get_its_lf() -> None:
    """FRAME-18: at 65,536 bytes the next byte decides."""
    buffer = LineBuffer()
    assert buffer.feed(b"x" * FRAME) == []
    assert not buffer.oversize
    assert buffer.feed(b"\n") == [b"x" * FRAME]
    assert not buffer.oversize


def test_after_an_oversize_line_everything_is_discarded() -> None:
    """D48, BASE-OP-51; what came before it still counts (BASE-OP-49)."""
    buffer = LineBuffer()
    assert buffer.feed(b"before\n" + b"x" * (FRAME + 1) + b"\nafter\n") == [b"before"]
    assert buffer.oversize
    assert buffer.pending == b""
    assert fed(buffer, b"\n", b"more\n", b"x") == []
    assert buffer.pending == b""


def test_an_oversize_line_in_two_pieces() -> None:
    buffer = LineBuffer()
    assert fed(buffer, b"x" * FRAME, b"x\nafter\n") == []
    assert buffer.oversize


def test_the_bound_is_on_each_line_not_on_the_stream() -> None:
    buffer = LineBuffer()
    lines = [bytes([65 + index]) * 40_000 for index in range(5)]
    stream = b"".join(line + b"\n" for line in lines)
    batches = [stream[start : start + 4096] for start in range(0, len(stream), 4096)]
    assert fed(buffer, *batches) == lines
    assert not buffer.oversize
