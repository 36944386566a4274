"""Bytes in any cut to complete lines: the only part of this room that remembers anything (FRAME-04 to FRAME-19)."""

from .limits import LIMITS


class LineBuffer:
    """Cuts a stream of bytes into lines. Only LF ends a line; a CR is part of the line it stands in (FRAME-13, D05).

    ``oversize`` turns true, for good, on byte 65,537 of a line, without waiting for its LF (FRAME-18, FRAME-19). From
    then on everything is discarded, that line included: only ``frame_too_large`` is left to answer (FRAME-20, D48).

    Holds at most one partial line (BOUND-32). Time is linear in the bytes fed, however they are cut.
    """

    __slots__ = ("_partial", "oversize")

    def __init__(self) -> None:
        self._partial = bytearray()
        self.oversize = False

    @property
    def pending(self) -> bytes:
        """The bytes of the line that no LF has ended yet. Any left at end of input: ``incomplete_frame`` (FRAME-17)."""
        return bytes(self._partial)

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the stream and return the lines they complete, in order, without their LF.

        Lines before an oversize one are still returned; read ``oversize`` after them.
        """
        if self.oversize:
            return []
        lines = data.split(b"\n")  # not splitlines: CR, VT, NEL and the like are content
        rest = lines.pop()
        if lines:
            if self._partial:
                lines[0] = bytes(self._partial + lines[0])
            self._partial = bytearray(rest)
        else:
            self._partial += rest
        for index, line in enumerate(lines):
            if len(line) > LIMITS.frame_bytes:
                self._discard()
                return lines[:index]
        if len(self._partial) > LIMITS.frame_bytes:
            self._discard()
        return lines

    def _discard(self) -> None:
        self.oversize = True
        self._partial.clear()
