"""A child at the level of bytes: its pipes, its time, its end. Nothing of the protocol.

One thread per child, the *pump*, owns the three pipes and never blocks on one of them: a child that does not read, or
that floods, holds up nobody. Whatever crosses is cut into lines and kept with the time of the last byte, in ms from the
child's start. The caller's thread gives orders and waits for records.

The child leads a session of its own. It is reaped at the very end, so that its group's number cannot be given to others
before the group has been counted and killed.
"""

import contextlib
import itertools
import os
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Final

from . import processes
from .model import Record
from .pump import KEEP_BYTES, Kept, Pump
from .streams import Stream, command, make

OWN: Final = "MC_"
"""How variables begin that would choose a backend's settings: none is inherited, or cases would mean others."""
GRACE: Final = 1.0
"""Seconds that processes of the group have to be gone after their leader."""


class Child:
    """One process under test.

    ``first`` is the number of its first record; ``keep`` how many bytes of output are kept at most; ``stdin`` and
    ``stdout`` are of :data:`.steps.STREAMS`; ``start`` is how a process is made of it. Raises ``OSError`` when it
    cannot be started. :meth:`end` must be called, whatever happens.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        environ: Mapping[str, str],
        first: int = 1,
        keep: int = KEEP_BYTES,
        stdin: str = "pipe",
        stdout: str = "pipe",
        start: processes.Start = processes.start,
    ) -> None:
        began = time.monotonic()
        made: list[Stream] = []
        try:
            for kind, to_child in ((stdin, True), (stdout, False), ("pipe", False)):
                made.append(make(kind, to_child=to_child))
            streams = (made[0].child, made[1].child, made[2].child)
            inherited = {key: value for key, value in os.environ.items() if not key.startswith(OWN)}
            self._process = start(command(list(argv), stdin, stdout), streams, cwd, {**inherited, **environ})
        except BaseException:
            _close(made)
            raise
        self.pid: Final = self._process.pid
        self._kept = Kept(began, first)
        try:
            self._pump = Pump((made[0].ours, made[1].ours, made[2].ours), self._kept, keep)
        except BaseException:
            _abandon(self._process)
            _close(made)
            raise
        self._stdout = made[1]
        for each in made:
            if each is not self._stdout or stdout != "file":
                each.close()
        self._waiter = threading.Thread(target=self._await_exit, name=f"wait {self.pid}", daemon=True)
        try:
            self._waiter.start()
        except BaseException:
            _abandon(self._process)
            self._pump.stop()
            raise

    def _await_exit(self) -> None:
        status = processes.wait(self._process)
        self._pump.exited(status, self._kept.now())

    # orders

    def send(self, data: bytes, pieces: int | None = None, every_ms: int = 0, cut: Sequence[int] = ()) -> None:
        """Write bytes when the pipe takes them.

        If wanted in pieces of so many bytes, or cut at these offsets, with so many ms between the pieces.
        """
        places = sorted({0, len(data), *(min(each, len(data)) for each in cut)})
        for start, end in itertools.pairwise(places):
            self._pump.write(data[start:end], pieces, every_ms / 1000)

    def close_input(self) -> None:
        """End its input behind all that was sent."""
        self._pump.close_input()

    def read(self, reading: bool) -> None:
        """Stop reading its output, or go on."""
        self._pump.pace(None if reading else 0, 0.0)

    def read_slowly(self, size: int, every_ms: int) -> None:
        """Read at most so many bytes of its output in so many ms."""
        self._pump.pace(size, every_ms / 1000)

    def hang_up(self) -> None:
        """Close our end of its output."""
        self._pump.hang_up()

    def pipe_bytes(self, size: int) -> bool:
        """Make the pipe of its output that large; False where that cannot be done."""
        return self._pump.pipe_bytes(size)

    def signal(self, name: str) -> None:
        """Send a signal to the child alone: ``TERM``, ``KILL``... Later than what was sent, if the pipe takes that."""
        self._pump.flush(1.0)
        with contextlib.suppress(ProcessLookupError):
            self._kept.add("signal", value=f"SIG{name}")
            if not self.exited:  # where it was reaped already, its number may be another's
                os.kill(self.pid, signal.Signals[f"SIG{name}"])

    def mark(self, text: str) -> None:
        """Note something in the records."""
        self._kept.add("mark", value=text)

    # what came

    def records(self, after: int = 0) -> list[Record]:
        """Its records from a place in their list."""
        return self._kept.since(after)

    def wait(self, known: int, until: float) -> list[Record]:
        """The records behind the first ``known``; waits for one until that time of the monotonic clock."""
        return self._kept.wait(known, until)

    def now(self) -> float:
        """Milliseconds since its start."""
        return self._kept.now()

    @property
    def exited(self) -> bool:
        """True once it has ended."""
        return self._kept.exited

    @property
    def overflowed(self) -> bool:
        """True once more came than is kept."""
        return self._pump.overflowed

    @property
    def input_closed(self) -> bool:
        """True once nothing can be sent any more."""
        return self._pump.input_closed

    def wait_exit(self, seconds: float) -> int | None:
        """Its exit status, negative for a signal; None if it has not ended by then."""
        until, known = time.monotonic() + seconds, 0
        while True:
            found = self.wait(known, until)
            for record in found:
                if record.kind == "exit":
                    status: int = record.value
                    return status
            if not found:
                return None
            known += len(found)

    def descendants(self) -> int | None:
        """How many processes it has below it, at any depth; None where that cannot be seen."""
        return processes.descendants(self.pid)

    def descriptors(self) -> int | None:
        """How many file descriptors it has open; None where that cannot be seen."""
        return processes.descriptors(self.pid)

    # the end

    def end(self) -> int:
        """Kill it and its group, read what is left, reap it; how many of the group outlived it. Safe to call twice."""
        if self._pump.stopped:
            return 0
        with contextlib.suppress(ProcessLookupError):
            if not self.exited:
                os.kill(self.pid, signal.SIGKILL)
        self._waiter.join()
        until = time.monotonic() + GRACE
        while (left := processes.group(self.pid)) and time.monotonic() < until:
            time.sleep(0.01)
        if left:
            processes.kill_group(self.pid)
        self._process.wait()
        self._pump.stop()
        if self._stdout.kind == "file":
            *lines, rest = self._stdout.written().split(b"\n")  # LF alone ends a line
            for line in [*(line + b"\n" for line in lines), *([rest] if rest else [])]:
                self._kept.add("backend", line)
            self._stdout.close()
        return left


def _close(streams: Sequence[Stream]) -> None:
    """Close both ends."""
    for each in streams:
        each.close()
        os.close(each.ours)


def _abandon(process: processes.Started) -> None:
    """Kill a process that nobody can watch, and reap it."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGKILL)
    processes.kill_group(process.pid)
    process.wait()
