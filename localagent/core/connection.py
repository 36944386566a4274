"""The connection: what a shell drives.

Everything comes in by a method with ``now`` in milliseconds, and every method returns the commands to carry out, in
order; frames wait in :attr:`Connection.output`. A step is always the same: classify what came into one named input,
let the engine move the machines, bring the data along, fill what the rows emitted.

>>> for commands in connection.receive(data, now):  # after each line:
...     carry_out(commands); try_to_write()  # then the next line is read
"""

from collections.abc import Callable, Iterator
from typing import Final, cast

from localagent.protocol.codec import encode, parse
from localagent.protocol.codes import Code
from localagent.protocol.errors import Refused, Unwritable
from localagent.protocol.framing import LineBuffer
from localagent.protocol.limits import LIMITS
from localagent.protocol.messages import Frame, error, event, response
from localagent.protocol.names import CAPABILITIES
from localagent.protocol.results import Output
from statemachines import admission
from statemachines.approval import ApprovalInput
from statemachines.channel import ChannelInput
from statemachines.client_call import ClientCallInput
from statemachines.connection import ConnectionInput
from statemachines.output import ENDED, OutputInput, OutputState
from statemachines.rows import Emit
from statemachines.step import Feed, Move

from . import effects, reports, routes, worker
from .commands import Command
from .engine import Engine
from .facts import Facts
from .fill import FILL, Answer, Filled, Moment
from .output import OutputQueue

_CLOSING: Final = {check: (fires.machine, fires.input) for check, fires in admission.LINE if fires is not None}


class Connection:
    """One child's side of the pipe.

    ``fresh_id`` gives a new UUID text at each call. ``served`` are the capabilities that exist so far: a call of
    another base method is ``unsupported_method``, requiring it ``unsupported_capability``.
    """

    def __init__(self, fresh_id: Callable[[], str], served: frozenset[str] = frozenset(CAPABILITIES)) -> None:
        self.facts = Facts(instance_id=fresh_id(), served=served)
        self.engine = Engine()
        self.output = OutputQueue()
        self._fresh_id = fresh_id
        self._lines = LineBuffer()
        self._seq = 0
        self._jobs = 0
        self._closing_at: float | None = None
        self._cleanup_at: float | None = None
        self._commands: list[Command] = []

    @property
    def listening(self) -> bool:
        """True while lines are admitted."""
        return self.engine.passes(admission.LISTENING)

    @property
    def closed(self) -> bool:
        """True when ``Exit`` has been asked for; whatever is fed then has no effect."""
        return self.engine.passes(admission.CLOSED)

    @property
    def takes_events(self) -> bool:
        """True when the run's next event may be fed: nothing is pending, so its deadline starts when it can go."""
        return not self.output

    def deadline(self) -> float | None:
        """When :meth:`tick` is due next; None when nothing is timed."""
        timed = [self.output.deadline, self._closing_at, self._cleanup_at]
        timed += [expires for _, expires in self._timed()]
        return min((each for each in timed if each is not None), default=None)

    # the client

    def receive(self, data: bytes, now: float) -> Iterator[list[Command]]:
        """Take bytes from the client and yield the commands of each line in turn.

        The next line is looked at when the iterator is advanced, so that a shell can write in between (D49). Once the
        connection stops, the rest is discarded without an answer (SHUT-05, D48).
        """
        if not self.listening:
            yield self._step(_CLOSING[admission.LISTENING], now)
            return
        for line in self._lines.feed(data):
            yield self._expire(now) + self._line(line, now)
        if self._lines.oversize and self.listening:
            yield self._step(_CLOSING[admission.SIZE], now)

    def end_of_input(self, now: float) -> list[Command]:
        """The client closed its end, or the process was asked to stop (D50)."""
        cut = bool(self._lines.pending)
        given = ConnectionInput.EOF_INSIDE_FRAME if cut else ConnectionInput.EOF_BETWEEN_FRAMES
        return self._step(("connection", given), now)

    def _line(self, line: bytes, now: float) -> list[Command]:
        if not self.listening:
            return self._step(_CLOSING[admission.LISTENING], now)
        try:
            request = parse(line)
        except Refused as refused:
            closes = admission.PROTOCOL if refused.code is Code.PROTOCOL_MISMATCH else None
            return self._refuse(refused.id, refused.code, closes, now)
        failed = routes.identity(request, self.facts)
        if failed is not None:
            return self._refuse(request.id, routes.CODES[failed.code], failed, now)
        verdict = routes.classify(request, self.facts, self.engine)
        if isinstance(verdict, Code):
            return self._refuse(request.id, verdict, None, now)
        if verdict.feed[1] is admission.BEGINS_RUN:
            self.engine.begin_run()
        self._jobs += effects.admit(verdict, self.facts, self._jobs + 1, self._fresh_id)
        moment = Moment(self.facts, self.engine, asked=verdict.asked)
        return self._step(verdict.feed, now, verdict.subject, moment)

    def _refuse(self, id_: str | None, code: Code, failed: admission.Check | None, now: float) -> list[Command]:
        """Answer with a code. Where the failed check closes the connection, the row of that input answers."""
        if failed in _CLOSING:
            return self._step(_CLOSING[failed], now, None, Moment(self.facts, self.engine, refused_id=id_))
        self._send(Answer(id_, code), now)
        return self._settle(now)

    # workers

    def work(self, message: worker.WorkerMessage, now: float) -> list[Command]:
        """Take a message of a worker. One whose job is over is ignored by a row."""
        kind = effects.kind_of(message.job, self.facts, self.engine)
        moment = Moment(self.facts, self.engine)
        if kind is None:
            return self._step(("connection", ConnectionInput.WORKER_LATE), now)
        if isinstance(message, worker.WorkerUndeliverable):
            waited = self._step(("channel", ChannelInput.WORKER_WAITS), now)
            return waited + self._step(("channel", ChannelInput.WORKER_UNDELIVERABLE), now)
        if isinstance(message, worker.WorkerEvent):
            moment.event = message.event
            feed, subject = reports.of_event(message.event)
        elif isinstance(message, worker.WorkerDone) and (word := effects.heard(message.word, kind)):
            moment.word = word
            feed, subject = reports.of_word(word)
        else:
            feed, subject = effects.departure(kind, self.facts)
        return self._step(feed, now, subject, moment)

    def cleaned(self, now: float) -> list[Command]:
        """The runtime is torn down; leases go, and the process ends."""
        return self._step(("connection", ConnectionInput.WORKER_CLEANED), now)

    # the pipe

    def wrote(self, count: int, now: float) -> list[Command]:
        """The pipe took ``count`` bytes of ``output.head()``. While it takes everything, that moves nothing."""
        self.output.wrote(count)
        if self.output or self._holds(admission.PUMPING):
            return []
        return self._classified("queue emptied", now)

    def refused(self, now: float) -> list[Command]:
        """The pipe would block."""
        return self._step(("output", OutputInput.OUTPUT_REFUSED), now)

    def broken(self, now: float) -> list[Command]:
        """Writing failed: the output is lost (FLOW-08)."""
        return self._step(("output", OutputInput.OUTPUT_BROKEN), now)

    # time

    def tick(self, now: float) -> list[Command]:
        """Let everything happen that is due: approvals and calls first, then the output's and the last deadlines."""
        commands = self._expire(now)
        if self.output.deadline is not None and self.output.deadline <= now:
            commands += self._step(("output", OutputInput.TIMER_OUTPUT), now)
        if self._closing_at is not None and self._closing_at <= now:
            commands += self._classified("closing deadline", now)
        if self._cleanup_at is not None and self._cleanup_at <= now:
            commands += self._step(("connection", ConnectionInput.TIMER_CLEANUP), now)
        return commands

    def _expire(self, now: float) -> list[Command]:
        """End the approvals and calls whose time is over, so that no later answer finds them pending (APPR-04)."""
        commands: list[Command] = []
        for feed in [feed for feed, expires in self._timed() if expires <= now]:
            commands += self._step(feed, now)
        return commands

    def _timed(self) -> Iterator[tuple[Feed, float]]:
        """The clocks that run: pending approvals and published calls, with the input that each will feed."""
        for name, expires in self.facts.run.approvals.items():
            if self.engine.passes(admission.PENDING_APPROVAL, f"approval:{name}"):
                yield (f"approval:{name}", ApprovalInput.TIMER_EXPIRED), expires
        for name, call in self.facts.run.calls.items():
            if self.engine.passes(admission.PENDING_CALL, f"client_call:{name}"):
                yield (f"client_call:{name}", ClientCallInput.TIMER_EXPIRED), call.deadline

    # one step

    def _step(self, feed: Feed, now: float, subject: Feed | None = None, moment: Moment | None = None) -> list[Command]:
        if self.closed:
            return []
        self._fire(feed, now, subject, moment or Moment(self.facts, self.engine))
        return self._settle(now)

    def _fire(self, feed: Feed, now: float, subject: Feed | None, moment: Moment) -> None:
        for move in self.engine.fire(feed, subject):
            effects.follow(move, moment)
            self._time(move, now)
            for emit in move.row.emits:
                self._send(FILL[emit](moment, move), now)

    def _time(self, move: Move, now: float) -> None:
        """Start and stop the two clocks of the way out (BOUND-29, BOUND-30)."""
        entered = move.row.dest if move.row.dest is not move.row.source else None
        if entered is OutputState.DRAINING:
            self._closing_at = now + LIMITS.closing_ms
        elif entered in ENDED:
            self._closing_at = None
            self.output.clear()
        if Emit.START_CLEANUP in move.row.emits:
            self._cleanup_at = now + LIMITS.cleanup_ms

    def _classified(self, report: str, now: float) -> list[Command]:
        """A report whose input depends on what is outstanding (``admission.CLASSIFIED``)."""
        for checks, fires in admission.CLASSIFIED[report]:
            if all(map(self._holds, checks)):
                return self._step((fires.machine, fires.input), now)
        raise AssertionError(f"{report}: no case applies")

    def _holds(self, check: admission.Check) -> bool:
        return not self.output if check is admission.QUEUE_EMPTY else self.engine.passes(check)

    def _settle(self, now: float) -> list[Command]:
        """End a step. A draining output with nothing to write and nothing to wait for is drained at once."""
        if not self.output and self._holds(admission.DRAINING) and self._holds(admission.NO_WORK):
            self._fire(("output", OutputInput.OUTPUT_DRAINED), now, None, Moment(self.facts, self.engine))
        commands, self._commands = self._commands, []
        return commands

    def _send(self, filled: Filled, now: float) -> None:
        """Queue a frame, or note a command. What is said after the output has ended is said to nobody."""
        if not isinstance(filled, Answer | Output):
            self._commands.append(filled)
        elif not self._holds(admission.OUTPUT_ENDED):
            self._seq += 1
            self._queue(self._frame(filled), now)

    def _frame(self, filled: Answer | Output) -> Frame:
        instance = self.facts.instance_id
        if isinstance(filled, Output):
            return event(instance, self._seq, filled)
        if isinstance(filled.result, Code):
            return error(instance, self._seq, filled.id, filled.result)
        return response(instance, self._seq, cast(str, filled.id), filled.result)

    def _queue(self, frame: Frame, now: float) -> None:
        """Queue a frame. The 33rd while the pipe refuses, or one that cannot be written at all, loses the output."""
        lost = OutputInput.OUTPUT_OVERFLOW if self.output.full and not self._holds(admission.PUMPING) else None
        if lost is None:
            try:
                self.output.put(encode(frame), now)
            except Unwritable:
                lost = OutputInput.OUTPUT_BROKEN
        if lost is not None:
            self._fire(("output", lost), now, None, Moment(self.facts, self.engine))
