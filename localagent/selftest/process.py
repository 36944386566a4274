"""Faults of the process: launch, exit status, the end, the pace of the output."""

import os
from contextlib import suppress
from typing import Any

from .mutant import fault
from .tools import around, bounds, put, put_item


@fault
def unknown_flag_accepted() -> None:
    """Other arguments beside --stdio are passed over."""
    from localagent.shell import launch

    around(launch, "check")(lambda original, arguments: original(["--stdio"] if "--stdio" in arguments else arguments))


@fault
def missing_stdio_accepted() -> None:
    """serve needs no --stdio."""
    from localagent.shell import launch

    around(launch, "check")(lambda original, arguments: original(arguments or ["--stdio"]))


@fault
def any_stdin_served() -> None:
    """stdin and stdout need not be pipes."""
    from localagent.shell import launch

    @around(launch, "check")
    def check(original: Any, arguments: Any) -> None:
        if list(arguments) != ["--stdio"]:
            original(arguments)


@fault
def invalid_launch_succeeds() -> None:
    """An invalid launch ends with 0."""
    from localagent.shell import serve

    @around(serve, "serve")
    def ended(original: Any, arguments: Any) -> int:
        original(arguments)
        return 0


@fault
def store_before_initialize() -> None:
    """The store is made at launch."""
    from localagent.shell import launch

    @around(launch, "claim")
    def claim(original: Any, environ: Any) -> Any:
        os.makedirs(os.path.join(environ["MC_HOME"], "sessions"), 0o700, exist_ok=True)
        return original(environ)


def _exiting(status: Any) -> None:
    """Let the process end with what ``status`` makes of its status and the loop."""
    from localagent.shell.loop import Loop

    around(Loop, "run")(lambda original, self: status(original(self), self))


@fault
def shutdown_exits_1() -> None:
    """After shutdown the status is 1."""
    from localagent.core import fill
    from statemachines.rows import Emit

    asked = [False]
    told = fill.FILL[Emit.SHUTDOWN_RESULT]

    def tell(moment: Any, move: Any) -> Any:
        asked[0] = True
        return told(moment, move)

    put_item(fill.FILL, Emit.SHUTDOWN_RESULT, tell)
    _exiting(lambda status, loop: 1 if asked[0] else status)


@fault
def end_of_input_exits_1() -> None:
    """After the end of input the status is 1."""
    from localagent.shell.loop import Loop

    ended = [False]

    @around(Loop, "_end_input")
    def end(original: Any, self: Any) -> None:
        ended[0] = True
        original(self)

    _exiting(lambda status, loop: 1 if ended[0] else status)


@fault
def lost_output_exits_0() -> None:
    """A child that lost its output ends with 0."""
    _exiting(lambda status, loop: 0)


@fault
def end_of_input_ignored() -> None:
    """The end of input does not end the child."""
    from localagent.shell.loop import Loop

    put(Loop, "_end_input", lambda self: self._selector.unregister(self._pipes.stdin))


@fault
def shutdown_without_an_end() -> None:
    """After shutdown is answered the child goes on."""
    from localagent.core import connection
    from localagent.core.fill import Answer
    from localagent.protocol.results import Stopping

    @around(connection.Connection, "_step")
    def step(original: Any, self: Any, feed: Any, now: float, subject: Any = None, moment: Any = None) -> Any:
        if feed[1].name == "RECV_SHUTDOWN" and moment is not None:
            self._send(Answer(moment.asked.request.id, Stopping()), now)
            return self._settle(now)
        return original(self, feed, now, subject, moment)


@fault
def lines_behind_shutdown_answered() -> None:
    """A line behind shutdown is answered."""
    from localagent.core import connection
    from localagent.core.fill import Answer
    from localagent.protocol import codec
    from localagent.protocol.codes import Code
    from localagent.protocol.errors import Refused

    @around(connection.Connection, "_line")
    def line(original: Any, self: Any, given: bytes, now: float) -> Any:
        if not self.listening:
            with suppress(Refused):
                answer = Answer(codec.parse(given).id, Code.BUSY)
                self._seq += 1
                self.output.put(codec.encode(self._frame(answer)), now)
        return original(self, given, now)


@fault
def complaint_at_loss() -> None:
    """A child that loses its output says so on stderr."""
    from localagent.shell import launch

    shown = os.dup(2)

    def complain(status: int, loop: Any) -> int:
        if status:
            os.write(shown, b"output lost\n")
        return status

    put(launch, "claim", launch.claim)
    _exiting(complain)


@fault
def child_leaked() -> None:
    """A process of the backend's outlives it."""
    from localagent.shell.loop import Loop

    @around(Loop, "run")
    def run(original: Any, self: Any) -> int:
        import subprocess

        null = subprocess.DEVNULL
        subprocess.Popen(["sleep", "90"], stdin=null, stdout=null, stderr=null)
        return int(original(self))


@fault
def no_output_deadline() -> None:
    """What nobody takes waits for ever."""
    from localagent.core.output import OutputQueue

    put(OutputQueue, "deadline", property(lambda self: None))


@fault
def output_deadline_tripled() -> None:
    """What nobody takes is given up after 6,000 ms."""
    from localagent.core import output

    bounds(output, output_deadline_ms=6000)


@fault
def output_deadline_halved() -> None:
    """What nobody takes is given up after 1,000 ms."""
    from localagent.core import output

    bounds(output, output_deadline_ms=1000)


@fault
def deadline_reset_by_progress() -> None:
    """A reader that takes a little gets another 2,000 ms."""
    from localagent.core.output import OutputQueue

    @around(OutputQueue, "wrote")
    def wrote(original: Any, self: Any, number: int) -> None:
        original(self, number)
        if self._frames and number:
            import time

            line, _ = self._frames[0]
            self._frames[0] = line, time.monotonic() * 1000


@fault
def no_closing_deadline() -> None:
    """After the end of input a run is waited for without a bound."""
    from localagent.core import connection

    bounds(connection, closing_ms=60_000)


@fault
def no_deadline_at_all() -> None:
    """Output is drained without a bound: neither frames have one, nor has the end of input."""
    no_closing_deadline()
    no_output_deadline()


@fault
def overflow_kept() -> None:
    """Any number of answers may wait."""
    from localagent.core.output import OutputQueue

    put(OutputQueue, "full", property(lambda self: False))


@fault
def partial_write_repeated() -> None:
    """What a full pipe took of a frame is written again."""
    from localagent.core.output import OutputQueue

    @around(OutputQueue, "wrote")
    def wrote(original: Any, self: Any, number: int) -> None:
        whole = self._frames and self._written + number >= len(self._frames[0][0])
        original(self, number if whole else 0)


@fault
def reads_one_line_at_a_time() -> None:
    """Of the lines of one write only the first is read."""
    from localagent.protocol.framing import LineBuffer

    around(LineBuffer, "feed")(lambda original, self, data: original(self, data)[:1])


@fault
def startup_not_cancelled() -> None:
    """A startup that shutdown overtakes is never answered."""
    from localagent.core import connection
    from localagent.core.fill import Answer
    from localagent.protocol.codes import Code

    @around(connection.Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        if not (isinstance(filled, Answer) and filled.result is Code.STARTUP_CANCELLED):
            original(self, filled, now)


@fault
def slow_operations_block() -> None:
    """session.create keeps status waiting for six seconds."""
    from localagent.shell.workers import Workers

    @around(Workers, "start")
    def start(original: Any, self: Any, command: Any) -> None:
        original(self, command)
        if command.method == "session.create":
            import time

            time.sleep(6)
