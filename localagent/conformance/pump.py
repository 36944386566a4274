"""The thread that moves a child's bytes, and the records that it makes of them."""

import codecs
import contextlib
import fcntl
import os
import select
import selectors
import struct
import termios
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from .model import Record
from .seen import HANGUP, STOPPED

KEEP_BYTES: Final = 64 * 1024 * 1024
"""Bytes of output that are kept of one child; the rest is read and dropped, and a mark tells."""
KEEP_ERRORS: Final = 1024 * 1024
"""The same for standard error, whose mark is another: nothing is expected of it."""
EACH: Final = 100
"""What a line costs beside its bytes, so that millions of empty lines are bounded too."""
READ: Final = 65_536
OVERFLOW: Final = "output is not kept any more"
ERRORS_OVERFLOW: Final = "standard error is not kept any more"
BROKEN: Final = "input is not read any more"
FAULT: Final = "harness fault"
"""How the mark of our own failure begins."""


class Kept:
    """The records of a child, for two threads."""

    def __init__(self, began: float, first: int) -> None:
        self._began, self._first = began, first
        self._records: list[Record] = []
        self._changed = threading.Condition()
        self.exited = False

    def now(self) -> float:
        """Milliseconds since the child's start."""
        return round((time.monotonic() - self._began) * 1000, 3)

    def add(self, kind: str, data: bytes = b"", value: Any = None, t: float | None = None) -> None:
        """Append a record, at this moment unless ``t`` is given."""
        with self._changed:
            t = self.now() if t is None else t
            self._records.append(Record(self._first + len(self._records), kind, t, data, value))
            self.exited |= kind == "exit"
            self._changed.notify_all()

    def since(self, after: int) -> list[Record]:
        """The records from a place in the list on."""
        with self._changed:
            return self._records[after:]

    def wait(self, known: int, until: float) -> list[Record]:
        """The records behind the first ``known``; waits for one until that time of the monotonic clock."""
        with self._changed:
            while len(self._records) <= known and (patience := until - time.monotonic()) > 0:
                self._changed.wait(patience)
            return self._records[known:]


@dataclass(slots=True)
class _Write:
    """Bytes to write, at most ``piece`` at once, ``gap`` seconds between pieces, not before ``due``.

    Without ``piece``: the end of input. ``done`` is set when it is written or given up.
    """

    data: memoryview
    piece: int
    gap: float
    done: threading.Event
    due: float = 0.0


class Pump:
    """Moves bytes between three pipes and the records. Owns the descriptors: stdin, stdout, stderr of the child."""

    def __init__(self, fds: tuple[int, int, int], kept: Kept, keep: int = KEEP_BYTES) -> None:
        self._in, self._out, self._err = fds
        self._kept, self._keep, self._keep_errors = kept, keep, KEEP_ERRORS
        self._selector = selectors.DefaultSelector()
        self._wake_out, self._wake_in = os.pipe()
        for fd in (*fds, self._wake_out, self._wake_in):
            os.set_blocking(fd, False)
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._orders: deque[Callable[[], None]] = deque()
        self._writes: deque[_Write] = deque()
        self._line, self._answer, self._error = bytearray(), bytearray(), ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._size, self._every, self._due = READ, 0.0, 0.0
        self._open = {self._in, self._out, self._err}
        self._written = threading.Event()
        self._written.set()
        self._errors_lost = self.overflowed = self.input_closed = self.stopped = False
        self._running = True
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # there is no room for a thread; the pipes are still the caller's
            self._selector.close()
            os.close(self._wake_out)
            os.close(self._wake_in)
            raise

    # orders, from any thread

    def write(self, data: bytes, piece: int | None, gap: float) -> None:
        """Write bytes, behind those that wait."""
        if data:
            self._push(_Write(memoryview(data), piece or READ, gap, threading.Event()))

    def close_input(self) -> None:
        """Close the child's input behind what waits."""
        self._push(_Write(memoryview(b""), 0, 0.0, threading.Event()))

    def _push(self, write: _Write) -> None:
        def order() -> None:
            if self._in in self._open:
                self._writes.append(write)
            else:
                if not write.piece:
                    self._kept.add("closed")
                write.done.set()

        self._written = write.done
        self._order(order)

    def flush(self, seconds: float) -> bool:
        """Wait until all that this thread ordered is written or given up; False if it is not by then."""
        return self._written.wait(seconds)

    def pace(self, size: int | None, every: float) -> None:
        """Read ``size`` bytes every so many seconds; None: all, 0: nothing. In force when this returns."""

        def order() -> None:
            self._size, self._every, self._due = READ if size is None else size, every, 0.0
            slow = f"slow: {size} bytes every {every * 1000:.0f} ms"
            self._kept.add("mark", value="read on" if size is None else slow if size else STOPPED)

        self._order(order, wait=True)

    def hang_up(self) -> None:
        """Close our end of the child's output. In force when this returns."""

        def order() -> None:
            if self._out in self._open:
                self._close(self._out)
            self._kept.add("mark", value=HANGUP)

        self._order(order, wait=True)

    def pipe_bytes(self, size: int) -> bool:
        """Make the pipe of the child's output that large; False where that cannot be done."""
        resize = getattr(fcntl, "F_SETPIPE_SZ", None)
        resized: list[int] = []

        def order() -> None:
            with contextlib.suppress(OSError):
                if resize is not None and self._out in self._open:
                    resized.append(fcntl.fcntl(self._out, resize, size))

        self._order(order, wait=True)
        return bool(resized)

    def exited(self, status: int, t: float) -> None:
        """The child has ended, at ``t``: what it has written is read first, whatever the pace."""

        def order() -> None:
            for fd, take in ((self._out, self._output), (self._err, self._errors)):
                left = _waiting(fd) if fd in self._open else 0
                while left > 0 and (data := _read(fd, min(left, READ))):
                    left -= len(data)
                    take(data, t)
                if fd in self._open and _ended(fd):
                    self._took(fd, b"", take)
            self._kept.add("exit", value=status, t=t)

        self._order(order)

    def stop(self) -> None:
        """Read what is there, then close everything. The child and its group must have been killed."""

        def order() -> None:
            self._size, self._every, self._due = READ, 0.0, 0.0
            self._writes.clear()
            self._running = False

        self._order(order)
        self._thread.join()
        self.stopped = True

    def _order(self, order: Callable[[], None], *, wait: bool = False) -> None:
        done = threading.Event()

        def carry_out() -> None:
            order()
            done.set()

        self._orders.append(carry_out)
        with contextlib.suppress(BlockingIOError, OSError):  # full: it is awake; closed: it has gone
            os.write(self._wake_in, b".")
        if wait:
            done.wait(5.0)  # it never blocks; should it have failed, a mark tells

    # the thread

    def _run(self) -> None:
        try:
            while self._running:
                now = time.monotonic()  # one moment for both: what is not due for one must be awaited by the other
                self._arm(now)
                for key, _ in self._selector.select(self._patience(now)):
                    self._ready(key.fd)
                while self._orders:
                    self._orders.popleft()()
            self._drain()
        except Exception as error:
            self._kept.add("mark", value=f"{FAULT}: {error!r}")
        finally:
            for fd in (*self._open, self._wake_in, self._wake_out):
                os.close(fd)
            self._open.clear()
            self._selector.close()

    def _ready(self, fd: int) -> None:
        if fd == self._wake_out:
            _read(fd, READ)
        elif fd == self._in:
            self._write()
        elif fd == self._out:
            self._due = time.monotonic() + self._every
            self._took(fd, _read(fd, min(self._size, READ)), self._output)
        else:
            self._took(fd, _read(fd, READ), self._errors)

    def _took(self, fd: int, data: bytes | None, take: Callable[[bytes, float | None], None]) -> None:
        if data:
            take(data, None)
        elif data is not None:
            self._close(fd)
            take(b"", None)

    def _drain(self) -> None:
        """What is still in the pipes, without waiting for those who hold them open."""
        for fd, take in ((self._out, self._output), (self._err, self._errors)):
            left = KEEP_BYTES  # a process that escaped may go on for ever
            while fd in self._open and left > 0 and (data := _read(fd, READ)) is not None:
                left -= len(data)
                self._took(fd, data, take)
        if self._line:
            self._kept.add("client", bytes(self._line))
        if self._answer:
            self._keep_line(bytes(self._answer), None)
        if self._error:
            self._kept.add("stderr", value=self._error)

    def _arm(self, now: float) -> None:
        """Have the selector watch what may be moved now."""
        write = bool(self._writes) and self._writes[0].due <= now
        wanted = {self._out: self._size > 0 and self._due <= now, self._err: True, self._in: write}
        for fd, want in wanted.items():
            watched = fd in self._selector.get_map()
            if watched and not (want and fd in self._open):
                self._selector.unregister(fd)
            elif want and not watched and fd in self._open:
                self._selector.register(fd, selectors.EVENT_WRITE if fd == self._in else selectors.EVENT_READ)

    def _patience(self, now: float) -> float | None:
        """Seconds to the next thing that is due by the clock."""
        due = [self._due] if self._size > 0 and self._out in self._open else []
        due += [self._writes[0].due] if self._writes else []
        late = [each - now for each in due if each > now]
        return min(late) if late else None

    def _close(self, fd: int) -> None:
        if fd in self._selector.get_map():
            self._selector.unregister(fd)
        self._open.discard(fd)
        os.close(fd)

    # what is written

    def _write(self) -> None:
        """Write until the pipe is full, or the time of the next piece has not come."""
        while self._writes:
            first = self._writes[0]
            if not first.piece:
                self._end_input(None)
                return
            if first.due > time.monotonic():
                return
            try:
                count = os.write(self._in, first.data[: min(first.piece, READ)])
            except BlockingIOError:
                return
            except OSError:
                self._end_input(BROKEN)
                return
            self._wrote(bytes(first.data[:count]))
            first.data, first.due = first.data[count:], time.monotonic() + first.gap if first.gap else 0.0
            if not first.data:
                self._writes.popleft().done.set()
                if self._writes:
                    self._writes[0].due = first.due

    def _wrote(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._kept.add("client", bytes(self._line) + line + b"\n")
            self._line.clear()
        self._line += rest

    def _end_input(self, why: str | None) -> None:
        """Close the child's input, because that was ordered or because the child has closed it."""
        if self._line:
            self._kept.add("client", bytes(self._line))
            self._line.clear()
        self._close(self._in)
        self.input_closed = True
        if why is not None:
            self._kept.add("mark", value=why)
        if why is None or any(not each.piece for each in self._writes):
            self._kept.add("closed")
        while self._writes:
            self._writes.popleft().done.set()

    # what is read

    def _output(self, data: bytes, t: float | None) -> None:
        """Bytes of its output, none at its end; ``t`` says when it was all there at the latest."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._keep_line(bytes(self._answer) + line + b"\n", t)
            self._answer.clear()
        self._answer += rest
        if len(self._answer) > self._keep:
            self._overflow()
        if not data:
            if self._answer:
                self._keep_line(bytes(self._answer), t)
                self._answer.clear()
            self._kept.add("eof", value="stdout")

    def _keep_line(self, line: bytes, t: float | None) -> None:
        self._keep -= len(line) + EACH
        if self._keep < 0:
            self._overflow()
        else:
            self._kept.add("backend", line, t=t)

    def _overflow(self) -> None:
        self._keep = -1
        self._answer.clear()
        if not self.overflowed:
            self.overflowed = True
            self._kept.add("mark", value=OVERFLOW)

    def _errors(self, data: bytes, t: float | None) -> None:
        """Bytes of its standard error, none at its end; whole lines make a record."""
        self._error += self._decoder.decode(data, final=not data)
        end = self._error.rfind("\n") + 1 if data else len(self._error)
        start = max(end, len(self._error) - KEEP_ERRORS)
        if end and self._keep_errors >= 0:
            self._keep_errors -= end + EACH
            self._kept.add("stderr", value=self._error[:end], t=t)
        elif (end or start) and not self._errors_lost:
            self._errors_lost = True
            self._kept.add("mark", value=ERRORS_OVERFLOW)
        self._error = self._error[start:]


def _read(fd: int, size: int) -> bytes | None:
    """Bytes that are there, none at the end, None where nothing is there now."""
    try:
        return os.read(fd, size)
    except BlockingIOError:
        return None
    except OSError:  # a descriptor that broke has ended
        return b""


def _ended(fd: int) -> bool:
    """True if a pipe is empty and nobody can write to it any more."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return [events for _, events in poll.poll(0)] == [select.POLLHUP]


def _waiting(fd: int) -> int:
    """How many bytes stand in a pipe."""
    found: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]
    return found
