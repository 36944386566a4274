"""The bytes of a session file as lines, in bounded reads. LF alone ends a line: CR, NEL and U+2028 are text."""

import os
from collections.abc import Iterator
from typing import Final, Protocol

from .clock import CancelCheck, never, proceed

BLOCK: Final = 64 * 1024  # between two reads the cancel token is asked, and the interpreter is let go


class Digest(Protocol):
    """What this room needs of a hash."""

    def update(self, data: bytes, /) -> None:
        """Add bytes."""

    def digest(self) -> bytes:
        """The hash so far."""

    def copy(self) -> "Digest":
        """A hash that can go on from here by itself."""


def blocks(descriptor: int, length: int, cancelled: CancelCheck = never, start: int = 0) -> Iterator[bytes]:
    """Read a file from ``start`` to ``length``, in bytes; less if it has become shorter. Raises Cancelled."""
    position = start
    while position < length:
        proceed(cancelled)
        block = os.pread(descriptor, min(BLOCK, length - position), position)
        if not block:
            return
        position += len(block)
        yield block


def hashed(source: Iterator[bytes], digest: Digest) -> Iterator[bytes]:
    """Pass blocks on, adding each to ``digest``."""
    for block in source:
        digest.update(block)
        yield block


def split(source: Iterator[bytes]) -> Iterator[bytes]:
    """Cut blocks into lines, without LF and one CR before it; a last line without LF comes as it stands (REC-04)."""
    begun: list[bytes] = []
    for block in source:
        if b"\n" not in block:  # a long line is joined once, not once per block
            begun.append(block)
            continue
        lines = block.split(b"\n")
        lines[0] = b"".join((*begun, lines[0]))
        begun = [lines.pop()]
        for line in lines:
            yield line.removesuffix(b"\r")
    rest = b"".join(begun)
    if rest:
        yield rest


def count(source: Iterator[bytes]) -> int:
    """Count lines, a last one without LF included."""
    number, last = 0, b"\n"
    for block in source:
        number += block.count(b"\n")
        last = block[-1:]
    return number + (last != b"\n")


def last(descriptor: int, length: int) -> bytes:
    """Return what stands behind the last LF, reading backwards."""
    pieces: list[bytes] = []
    end = length
    while end:
        start = max(end - BLOCK, 0)
        piece = os.pread(descriptor, end - start, start)
        _, newline, line = piece.rpartition(b"\n")
        pieces.append(line)  # all of the piece when it holds no LF
        if newline:
            break
        end = start
    return b"".join(reversed(pieces))
