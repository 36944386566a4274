"""The streams that a child is given: pipes, as the contract wants them, or what it must refuse."""

import os
import pty
import socket
import tempfile
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stream:
    """One standard stream. The child's end and ours, which is a pipe that leads nowhere where there can be none."""

    kind: str
    child: int
    ours: int

    def written(self) -> bytes:
        """What a child has written to a file; nothing of other kinds."""
        return os.pread(self.child, 1 << 20, 0) if self.kind == "file" else b""

    def close(self) -> None:
        """Close the child's end."""
        os.close(self.child)


def make(kind: str, *, to_child: bool) -> Stream:
    """A stream of one of :data:`.steps.STREAMS`; ``closed`` is done by :func:`command`. Raises ``OSError``."""
    if kind == "pipe":
        reader, writer = os.pipe()
        return Stream(kind, reader, writer) if to_child else Stream(kind, writer, reader)
    if kind == "tty":
        ours, child = pty.openpty()
        return Stream(kind, child, ours)
    if kind == "socket":
        one, other = socket.socketpair()
        return Stream(kind, one.detach(), other.detach())
    reader, writer = os.pipe()
    ours, gone = (writer, reader) if to_child else (reader, writer)
    os.close(gone)
    if kind == "file":
        with tempfile.TemporaryFile() as file:
            return Stream(kind, os.dup(file.fileno()), ours)
    return Stream(kind, os.open(os.devnull, os.O_RDWR), ours)


def command(argv: list[str], stdin: str, stdout: str) -> list[str]:
    """The command line that starts ``argv`` with those streams closed that have to be."""
    closing = " ".join(["<&-"] * (stdin == "closed") + [">&-"] * (stdout == "closed"))
    return ["/bin/sh", "-c", f'exec "$0" "$@" {closing}', *argv] if closing else argv
