"""The protocol loop: one selector over the client's two pipes and the wake pipe. It never blocks on anything else.

Input is read 4,096 bytes at a time and never paused. After each line the answer is written at once, as far as the
pipe takes it, so that a client that reads is never punished for batching (D49). An event of the run moves into the
output queue only while no frame is pending there: the 32 places stay free for answers, and its 2,000 ms begin when it
can go. There is no polling: the select waits for the earliest deadline the core names.
"""

import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable
from types import FrameType

from localagent.core.commands import (
    CancelWorker,
    Command,
    Exit,
    ReleaseLeases,
    ResolveApproval,
    StartCleanup,
    StartWorker,
)
from localagent.core.connection import Connection
from localagent.protocol.limits import LIMITS

from .launch import Pipes
from .wake import Wake
from .workers import Workers


def monotonic_ms() -> float:
    """The clock of the loop."""
    return time.monotonic() * 1000


class Loop:
    """Drives one connection until it asks to exit."""

    def __init__(
        self,
        pipes: Pipes,
        connection: Connection,
        workers: Workers,
        wake: Wake,
        clock: Callable[[], float] = monotonic_ms,
    ) -> None:
        self._pipes, self._connection, self._workers = pipes, connection, workers
        self._wake, self._clock = wake, clock
        self._selector = selectors.DefaultSelector()
        self._status: int | None = None
        self._stop_asked = False
        self._refused: selectors.SelectorKey | None = None
        """What waits for the pipe to take bytes again, while it refuses them."""
        self._carry: dict[type, Callable[..., None]] = {
            StartWorker: workers.start,
            CancelWorker: workers.cancel,
            ResolveApproval: workers.resolve,
            ReleaseLeases: workers.release,
            StartCleanup: lambda _: workers.clean_up(),
            Exit: self._exit,
        }

    def run(self) -> int:
        """Serve until the core asks to exit; the status of the process."""
        self._selector.register(self._pipes.stdin, selectors.EVENT_READ, self._read)
        self._selector.register(self._wake.reader, selectors.EVENT_READ, self._woken)
        while self._status is None:
            for key, _ in self._selector.select(self._timeout()):
                key.data()
            self._carry_out(self._connection.tick(self._clock()))
            self._pump()
        return self._status

    def catch_signals(self) -> None:
        """SIGTERM and SIGINT end the input (D50); the wake pipe tells the loop."""
        signal.set_wakeup_fd(self._wake.writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._asked_to_stop)

    def _asked_to_stop(self, number: int, frame: FrameType | None) -> None:
        self._stop_asked = True

    def _timeout(self) -> float | None:
        due = self._connection.deadline()
        return None if due is None else max(0.0, due - self._clock()) / 1000

    def _read(self) -> None:
        try:
            data = os.read(self._pipes.stdin, LIMITS.read_batch_bytes)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end_input()
            return
        for commands in self._connection.receive(data, self._clock()):
            self._carry_out(commands)
            self._write()

    def _end_input(self) -> None:
        self._selector.unregister(self._pipes.stdin)
        self._carry_out(self._connection.end_of_input(self._clock()))

    def _woken(self) -> None:
        self._wake.hush()
        if self._stop_asked:
            self._stop_asked = False
            self._carry_out(self._connection.end_of_input(self._clock()))
        while (message := self._workers.urgent()) is not None:
            self._carry_out(self._connection.work(message, self._clock()))
            self._write()
        if self._workers.cleaned:
            self._carry_out(self._connection.cleaned(self._clock()))

    def _pump(self) -> None:
        """Write what waits, then let the run's events through one by one while the pipe takes them."""
        self._write()
        while self._connection.takes_events and (message := self._workers.next_event()) is not None:
            self._carry_out(self._connection.work(message, self._clock()))
            self._workers.taken(message)
            self._write()

    def _write(self) -> None:
        while self._connection.output:
            try:
                count = os.write(self._pipes.stdout, self._connection.output.head())
            except BlockingIOError:
                if self._refused is None:
                    self._refused = self._selector.register(self._pipes.stdout, selectors.EVENT_WRITE, self._write)
                    self._carry_out(self._connection.refused(self._clock()))
                return
            except OSError:
                self._carry_out(self._connection.broken(self._clock()))
                break
            self._carry_out(self._connection.wrote(count, self._clock()))
        if self._refused is not None:
            self._selector.unregister(self._pipes.stdout)
            self._refused = None

    def _carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            self._carry[type(command)](command)

    def _exit(self, command: Exit) -> None:
        self._status = command.status
