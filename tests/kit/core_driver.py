"""A shell without I/O around the core: it carries bytes, messages, time and a pretended pipe, and records all of it.

Everything that goes in and comes out becomes a step of a transcript, and the checker judges each one as it comes.
After each line, message and tick the driver writes as a shell would: as much as :attr:`Driver.room` allows, then it
reports a refusal.
"""

import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from localagent.core import worker
from localagent.core.commands import Command as CoreCommand
from localagent.core.commands import StartWorker
from localagent.core.connection import Connection
from localagent.core.output import OutputQueue
from localagent.protocol.results import Attached, ListingPage, Selection

from .transcript import Checker
from .transcript_steps import Command, Ended, NextLine, Reported, Said, Sent, Step, Took

BASE: Final = (
    *("initialize", "status", "shutdown", "session.create", "session.open", "session.list", "session.discover"),
    *("model.catalog", "model.catalog.status", "model.refresh", "operation.cancel", "selection.set", "history.page"),
    *("turn.start", "turn.cancel", "approval.answer"),
)
OPTIONAL: Final = ("session.discover", "model.catalog.status", "model.refresh", "operation.cancel")
EXTENDED: Final = (*OPTIONAL, "tool.cards", "client.tools")
SERVED: Final = frozenset((*BASE, "tool.cards", "client.tools"))
EMPTY: Final[dict[str, object]] = {}
TOOL: Final = {"name": "client__pick", "description": "Pick a file.", "input_schema": {"type": "object"}}
SELECTION: Final = Selection(
    effective_effort="high",
    effort_support="supported",
    model="m1",
    permitted_efforts=("default", "low", "high"),
    provider="p1",
    requested_effort="high",
    revision="sel1",
)
STARTED: Final = worker.Started("p1", "m1", "c" * 64, SELECTION)


def fresh_ids() -> Callable[[], str]:
    """UUIDs by counting, so that every run of a test is the same."""
    counter = itertools.count(1)
    return lambda: uuid(next(counter))


def uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012x}"


def request(id_: str, method: str, params: object, **other: object) -> bytes:
    """One line; ``other`` overrides members of the envelope."""
    envelope = {"protocol": "magi-code.local-agent", "version": 1, "id": id_, "method": method, "params": params}
    return json.dumps(envelope | other, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """The same bytes, cut at these places."""
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(places)]


def attached(session_id: str = "s1", durable: bool = False, revision: str = "h1") -> worker.SessionAttached:
    result = Attached(durable=durable, notices=(), revision=revision, session_id=session_id)
    selection = msgspec.structs.replace(SELECTION, revision=f"sel-{revision}")
    return worker.SessionAttached(result, session_id, durable, revision, selection)


def listed(revision: str = "l1", cursor: str | None = "k1") -> worker.Read:
    page = ListingPage(complete=cursor is None, next_cursor=cursor, notices=(), revision=revision, sessions=())
    effect = worker.Effect.FRESH_LAST if cursor is None else worker.Effect.FRESH
    return worker.Read(page, worker.Traced("list", effect, revision))


class RecordingQueue(OutputQueue):
    """The core's own queue; it also remembers each frame as it is queued."""

    def __init__(self) -> None:
        super().__init__()
        self.queued: list[bytes] = []

    def put(self, line: bytes, now: float) -> None:
        super().put(line, now)
        self.queued.append(line)


@dataclasses.dataclass(slots=True)
class Out:
    """What came of one call of the driver, over all its steps."""

    frames: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    commands: list[CoreCommand] = dataclasses.field(default_factory=list)

    @property
    def answers(self) -> list[tuple[str | None, str | dict[str, Any]]]:
        """The responses: id, and the code or the result."""
        found = [frame for frame in self.frames if frame["type"] == "response"]
        return [(frame["id"], frame["error"]["code"] if "error" in frame else frame["result"]) for frame in found]

    @property
    def events(self) -> list[str]:
        return [frame["event"] for frame in self.frames if frame["type"] == "event"]

    def short(self) -> list[str]:
        """One readable line for each frame, then one for each command."""
        return [*map(_short_frame, self.frames), *map(_short_command, self.commands)]


class Driver:
    """A connection, its clock, its pipe, its transcript, and the checker that judges it."""

    def __init__(self, served: frozenset[str] = SERVED, check: bool = True) -> None:
        self.connection = Connection(fresh_ids(), served)
        self.output = self.connection.output = RecordingQueue()
        self.checker = Checker()
        self.now = 0.0
        self.room: int | None = None
        """How many bytes the pipe will take before it refuses; None for all."""
        self.steps: list[Step] = []
        self.started: list[StartWorker] = []
        self.sound = True
        self._check = check
        self._ids = itertools.count(1)

    @property
    def frames(self) -> list[dict[str, Any]]:
        """All frames so far."""
        return [json.loads(frame) for step in self.steps for frame in step.frames]

    @property
    def job(self) -> int:
        """The number of the job that was started last."""
        return self.started[-1].job

    # the client

    def send(self, data: bytes) -> Out:
        """Bytes of the client; between two lines the pipe is written to."""
        out = Out()
        given: Sent | NextLine = Sent(data)
        for commands in self.connection.receive(data, self.now):
            self._record(given, commands, out)
            self._pump(out)
            given = NextLine()
        if isinstance(given, Sent):
            self._record(given, [], out)
        return out

    def ask(self, method: str, params: object = EMPTY, id_: str | None = None) -> Out:
        """One request, with an id of its own unless one is given."""
        return self.send(request(id_ or f"auto{next(self._ids)}", method, params))

    def eof(self) -> Out:
        return self._step(Ended(), self.connection.end_of_input)

    # workers

    def event(self, event: worker.RunEvent, job: int | None = None) -> Out:
        number = self.job if job is None else job
        said = Said(number, "event", type(event).__name__, _plain(event))
        return self._step(said, lambda now: self.connection.work(worker.WorkerEvent(number, event), now))

    def done(self, word: worker.LastWord, job: int | None = None) -> Out:
        number = self.job if job is None else job
        said = Said(number, "done", type(word).__name__, _plain(word))
        return self._step(said, lambda now: self.connection.work(worker.WorkerDone(number, word), now))

    def gone(self, job: int | None = None) -> Out:
        number = self.job if job is None else job
        return self._step(Said(number, "gone"), lambda now: self.connection.work(worker.WorkerGone(number), now))

    def undeliverable(self, job: int | None = None) -> Out:
        number = self.job if job is None else job
        message = worker.WorkerUndeliverable(number)
        return self._step(Said(number, "undeliverable"), lambda now: self.connection.work(message, now))

    def cleaned(self) -> Out:
        return self._step(Reported("cleaned"), self.connection.cleaned)

    # time and the pipe

    def wait(self, ms: float) -> Out:
        """Time passes; the clock is looked at once, at the end."""
        self.now += ms
        return self._step(Reported("time"), self.connection.tick)

    def take(self, room: int | None) -> Out:
        """From now on the pipe takes so many bytes more, or everything."""
        self.room = room
        out = Out()
        self._pump(out)
        return out

    def breaks(self) -> Out:
        return self._step(Reported("broke"), self.connection.broken)

    # a way to the usual places

    def ready(self, *capabilities: str) -> "Driver":
        """Initialized and ready."""
        tools = {"client_tools": [TOOL]} if "client.tools" in capabilities else {}
        self.ask("initialize", {"required_capabilities": [*capabilities], **tools})
        self.done(STARTED)
        return self

    def attach(self, session_id: str = "s1") -> "Driver":
        """Attached to a new session."""
        self.ask("session.create")
        self.done(attached(session_id))
        return self

    def turn(self) -> "Driver":
        """A turn was accepted."""
        self.ask("turn.start", {"session_id": self.connection.facts.session_id, "prompt": "hello"})
        return self

    def executing(self) -> "Driver":
        """Its input is stored."""
        self.turn().event(worker.InputAppended("in1", "h2"))
        return self

    def finish(self) -> int:
        """Let everything end as it should: workers leave, the pipe takes, the runtime is torn down. The status."""
        self.take(None)
        if not self.checker.ended:
            self.eof()
        for job in [*self.checker.jobs]:
            self.gone(job)
        if self.checker.status is None:
            self.cleaned()
        assert self.checker.status is not None
        return self.checker.status

    # recording

    def _step(self, given: Ended | Said | Reported, call: Callable[[float], list[CoreCommand]]) -> Out:
        out = Out()
        self._record(given, call(self.now), out)
        self._pump(out)
        return out

    def _pump(self, out: Out) -> None:
        while self.output and self.room != 0:
            data = bytes(self.output.head()[: self.room])
            self.room = None if self.room is None else self.room - len(data)
            self._record(Took(data), self.connection.wrote(len(data), self.now), out)
        if self.output:
            self._record(Reported("refused"), self.connection.refused(self.now), out)

    def _record(
        self, given: Sent | NextLine | Ended | Said | Took | Reported, commands: Sequence[CoreCommand], out: Out
    ) -> None:
        frames, self.output.queued = tuple(self.output.queued), []
        told = tuple(Command(type(each).__name__, _plain(each)) for each in commands)
        step = Step(self.now, given, frames, told)
        self.steps.append(step)
        out.frames += map(json.loads, frames)
        out.commands += commands
        self.started += [each for each in commands if isinstance(each, StartWorker)]
        if self._check:
            self.sound = False  # until the checker has let the step pass
            self.checker.check(step)
            self.sound = True


def _plain(value: msgspec.Struct) -> Mapping[str, Any]:
    """The fields of a message or command as plain JSON values."""
    fields: Mapping[str, Any] = _json(msgspec.to_builtins(value))
    return fields


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json(each) for key, each in value.items()}
    return [_json(each) for each in value] if isinstance(value, list | tuple) else value


_TELLING: Final[Mapping[str, tuple[str, ...]]] = {
    "run.finished": ("outcome", "persistence", "revision", "error_code"),
    "message.delta": ("message_id", "part"),
    "message.reconcile": ("message_id", "part"),
    "activity": ("activity_id", "state"),
    "diagnostic": ("code",),
    "client.tool.cancel": ("reason",),
}


def _short_frame(frame: Mapping[str, Any]) -> str:
    if frame["type"] == "response":
        return f"< {frame['id'] or 'null'} {frame['error']['code'] if 'error' in frame else 'ok'}"
    told = (frame["data"][key] for key in _TELLING.get(frame["event"], ()))
    return " ".join((f"* {frame['event']}", *("-" if each is None else str(each) for each in told)))


def _short_command(command: CoreCommand) -> str:
    values = [value for value in msgspec.structs.astuple(command) if value is not None]
    kept = values[:2] if isinstance(command, StartWorker) else values
    told = (type(value).__name__ if isinstance(value, msgspec.Struct) else str(value) for value in kept)
    return " ".join((f"! {type(command).__name__}", *told))
