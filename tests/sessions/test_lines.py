"""Bytes to lines (REC-04)."""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localagent.sessions import lines
from localagent.sessions.errors import Cancelled

BYTES = st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"\xe2\x80\xa8", b"\x0b"]), max_size=30).map(b"".join)


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    return iter([data[start : start + size] for start in range(0, len(data), size)])


@given(BYTES, st.integers(1, 7))
def test_lines_end_at_lf_alone_however_the_bytes_are_cut(data: bytes, size: int) -> None:
    whole = data.split(b"\n")
    last = whole.pop()
    expected = [line[:-1] if line.endswith(b"\r") else line for line in whole] + ([last] if last else [])
    assert list(lines.split(pieces(data, size))) == expected
    assert lines.count(pieces(data, size)) == len(expected)


@pytest.mark.parametrize("size", [0, 1, lines.BLOCK - 1, lines.BLOCK, lines.BLOCK + 1, 2 * lines.BLOCK + 1])
@pytest.mark.parametrize("head", [b"", b"x\n", b"\n\n"])
def test_the_last_line_is_found_from_behind(tmp_path: Path, size: int, head: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(head + b"y" * size)
    with path.open("rb") as file:
        assert lines.last(file.fileno(), len(head) + size) == b"y" * size
        assert b"".join(lines.blocks(file.fileno(), len(head) + size)) == head + b"y" * size
        assert all(len(block) <= lines.BLOCK for block in lines.blocks(file.fileno(), len(head) + size))
        assert b"".join(lines.blocks(file.fileno(), len(head) + size + 5)) == head + b"y" * size


def test_a_long_line_is_joined_once(tmp_path: Path) -> None:
    """Linear, not quadratic: joining 1,000 blocks one by one would move 32 GB."""
    block = b"y" * lines.BLOCK
    assert [len(line) for line in lines.split(iter([block] * 1_000))] == [1_000 * lines.BLOCK]


def test_blocks_are_hashed_and_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"z" * (lines.BLOCK + 1))
    digest = hashlib.sha256()
    descriptor = os.open(path, os.O_RDONLY)
    asked: list[bool] = []

    def cancelled() -> bool:
        asked.append(True)
        return len(asked) > 1

    try:
        assert sum(map(len, lines.hashed(lines.blocks(descriptor, lines.BLOCK + 1), digest))) == lines.BLOCK + 1
        with pytest.raises(Cancelled):
            list(lines.blocks(descriptor, lines.BLOCK + 1, cancelled))
    finally:
        os.close(descriptor)
    assert digest.digest() == hashlib.sha256(path.read_bytes()).digest()
