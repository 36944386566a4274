"""A turn without a shell: a sink that records, a handle in memory, and the tables as judge of what leaves."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from localagent.core import reports, worker
from localagent.runner import script
from localagent.runner.faults import FaultyHandle
from localagent.runner.provider import Runner, Stage
from localagent.runner.scribe import Handle, Later
from localagent.runner.scripted import Scripted
from localagent.runner.sink import Undeliverable
from localagent.runner.turn import Ended, run_turn
from localagent.sessions.projection import Entry, Projection
from localagent.sessions.records import Draft, Record
from statemachines.attachment import AttachmentState
from statemachines.channel import ChannelInput
from statemachines.registry import MACHINES
from statemachines.rows import TERMINALS, Emit
from statemachines.run import RunInput
from statemachines.step import Feed, World, emitted, initial_world, step

EMITS = {
    worker.InputAppended: Emit.INPUT_PERSISTED,
    worker.AppendFailed: Emit.DIAGNOSTIC,
    worker.Note: Emit.DIAGNOSTIC,
    worker.Delta: Emit.MESSAGE_DELTA,
    worker.Reconcile: Emit.MESSAGE_RECONCILE,
    worker.ActivityChanged: Emit.ACTIVITY,
    worker.ApprovalWanted: Emit.APPROVAL_REQUESTED,
}
TERMINAL = {"completed": Emit.RUN_COMPLETED, "failed": Emit.RUN_FAILED, "stopped": Emit.RUN_CANCELLED}


class Judge:
    """Feeds every event of a turn to the machines. An event that they do not let through is a fault of the turn."""

    def __init__(self) -> None:
        singles = (name for name, spec in MACHINES.items() if not spec.many)
        self.world: World = initial_world(singles)
        self.world["attachment"] = AttachmentState.LAZY
        self.frames: list[Emit] = []
        self.lost = False
        self._feed(("run", RunInput.RECV_TURN_START))

    def cancel(self) -> None:
        self._feed(("run", RunInput.RECV_TURN_CANCEL))

    def undeliverable(self) -> None:
        if not self.lost:
            self.lost = True
            self._feed(("channel", ChannelInput.WORKER_WAITS))
            self._feed(("channel", ChannelInput.WORKER_UNDELIVERABLE))

    def event(self, event: worker.RunEvent) -> None:
        feed, subject = reports.of_event(event)
        if subject is not None:
            machine, _, label = subject[0].partition(":")
            self.world.setdefault(subject[0], MACHINES[machine].initial)
            if machine == "activity":
                self.world.setdefault(f"card:{label}", MACHINES["card"].initial)
        emits = self._feed(feed, subject)
        denied = isinstance(event, worker.ApprovalWanted) and emits == (Emit.DENY,)
        assert denied or emits == (EMITS[type(event)],), (event, emits)

    def end(self, ended: Ended) -> None:
        if not ended.input_stored and ended.word == "failed":
            self._feed(reports.of_event(worker.InputFailed())[0])
        else:
            self._feed(reports.of_word(worker.TurnEnded(ended.word, ended.code, ended.revision))[0])
        self._feed(("run", RunInput.WORKER_GONE))
        assert [each for each in self.frames if each in TERMINALS] == [TERMINAL[ended.word]]

    def _feed(self, feed: Feed, subject: Feed | None = None) -> tuple[Emit, ...]:
        self.world, moves = step(self.world, feed, subject)
        self.frames += emitted(moves)
        return emitted(moves)


class Lenient(Judge):
    """Lets everything pass."""

    def _feed(self, feed: Feed, subject: Feed | None = None) -> tuple[Emit, ...]:
        return ()

    def event(self, event: worker.RunEvent) -> None: ...

    def end(self, ended: Ended) -> None: ...


@dataclass
class Clock:
    """Milliseconds. ``tick`` is what looking at it takes."""

    now: float = 0
    tick: float = 0

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


class FakeSink:
    """Implements Sink. ``before`` is called with the name of each method before it does anything."""

    def __init__(self, clock: Clock, before: Callable[[str], None], judge: Judge) -> None:
        self.judge = judge
        self.events: list[worker.RunEvent] = []
        self.waits: list[float] = []
        self.answers: Iterator[bool] = iter(lambda: True, None)
        self.lost = False
        self._clock, self._before = clock, before
        self._cancelled = False
        self._approvals = count(1)

    def cancel(self) -> None:
        if not self._cancelled:
            self._cancelled = True
            self.judge.cancel()

    def lose(self) -> None:
        """From now on no event finds a place."""
        self.lost = True

    def cancelled(self) -> bool:
        self._before("cancelled")
        return self._cancelled

    def wait(self, seconds: float) -> bool:
        self._before("wait")
        self.waits.append(seconds)
        self._clock.now += seconds * 1000
        if seconds >= 3600:
            self.cancel()  # who waits for an hour has been stopped by somebody
        return self._cancelled

    def input_appended(self, message_id: str, revision: str) -> None:
        self._take(worker.InputAppended(message_id, revision))

    def delta(self, message_id: str, text: str) -> None:
        self._take(worker.Delta(message_id, text))

    def reconcile(self, message_id: str, part: int, text: str, last_part: bool, partial: bool) -> None:
        self._take(worker.Reconcile(message_id, part, text, last_part, partial))

    def activity(
        self,
        activity_id: str,
        kind: Literal["tool", "subagent", "compaction"],
        state: Literal["started", "completed", "failed"],
        name: str,
        summary: str,
    ) -> None:
        self._take(worker.ActivityChanged(activity_id, kind, state, name, summary))

    def approval(self, summary: str) -> Callable[[], bool]:
        self._take(worker.ApprovalWanted(f"approval-{next(self._approvals)}", summary, self._clock.now))
        return lambda: next(self.answers) and not self._cancelled

    def diagnostic(self, code: str, summary: str) -> None:
        self._take(worker.Note(code, summary))

    def append_failed(self, summary: str) -> None:
        self._take(worker.AppendFailed(summary))

    def _take(self, event: worker.RunEvent) -> None:
        self._before(type(event).__name__)
        if self.lost:
            if isinstance(event, worker.Delta):
                return
            self.judge.undeliverable()
            raise Undeliverable
        assert sum(len(text.encode()) for text in _texts(event)) <= 4000
        self.judge.event(event)
        self.events.append(event)


def _texts(event: worker.RunEvent) -> list[str]:
    return [value for value in (getattr(event, name, None) for name in ("text", "summary")) if value is not None]


@dataclass
class MemoryReceipt:
    message_id: str
    revision: str


class MemoryHandle:
    """Implements Handle. ``fails`` tells, by the number of the append from 0, whether it fails."""

    def __init__(self, before: Callable[[str], None], fails: Callable[[int], bool]) -> None:
        self.batches: list[list[Draft]] = []
        self.tried = 0
        self._before, self._fails = before, fails

    def append(self, drafts: Sequence[Draft]) -> MemoryReceipt:
        self._before("append")
        assert drafts
        self.tried += 1
        if self._fails(self.tried - 1):
            raise OSError("no space left in memory")
        self.batches.append(list(drafts))
        return MemoryReceipt(f"m{len(self.batches)}", f"revision-{self.tried}")

    def refresh(self) -> str:
        self._before("refresh")
        return f"fresh-{self.tried}"

    @property
    def records(self) -> list[Draft]:
        return [draft for batch in self.batches for draft in batch]

    def kinds(self) -> list[str]:
        return [draft.kind for draft in self.records]

    def entries(self) -> list[Entry]:
        """What history would show."""
        projection = Projection()
        for draft in self.records:
            projection.add(Record(draft.kind, 0, "", draft.payload))
        return list(projection.snapshot().entries)


class _SpyStage:
    """Notes the text that the stage takes without complaint."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.accepted: list[str] = []

    def text(self, piece: str) -> None:
        self._stage.text(piece)
        self.accepted.append(piece)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stage, name)


@dataclass
class Trial:
    """One turn. Set what should go wrong, then :meth:`run`."""

    clock: Clock = field(default_factory=Clock)
    fails: Callable[[int], bool] = lambda number: False
    hook: Callable[[int, str], None] = lambda number, name: None
    answers: Sequence[bool] | None = None
    later: Callable[[Handle], Later] | None = None
    real: Handle | None = None
    """A handle to use instead of the one in memory."""
    judged: bool = True
    """The tables are slow with thousands of activities."""

    def __post_init__(self) -> None:
        self.calls: list[str] = []
        self.sink = FakeSink(self.clock, self._before, Judge() if self.judged else Lenient())
        self.handle = MemoryHandle(self._before, lambda number: self.fails(number))
        self.faulty = FaultyHandle(self.real or self.handle)
        self.accepted: list[str] = []

    def run(self, runner: Runner, prompt: str = "prompt") -> Ended:
        """Run the turn and judge it."""
        if self.answers is not None:
            self.sink.answers = iter(self.answers)
        later = self.later(self.faulty) if self.later else None
        ids = (f"id-{number}" for number in count(1))
        ended = run_turn(prompt, self.faulty, self.sink, _Spied(runner, self), ids.__next__, self.clock, later)
        self.sink.judge.end(ended)
        self._check_texts(ended)
        return ended

    def play(self, *steps: dict[str, Any], prompt: str = "prompt") -> Ended:
        """Run the turn with the given steps of a script."""
        played = script.parse(json.dumps({"version": 1, "rules": [{"steps": steps}]}).encode())
        return self.run(self.scripted(played), prompt)

    def ask(self, prompt: str) -> Ended:
        """Run the turn with the built-in script."""
        return self.run(self.scripted(script.built_in()), prompt)

    def scripted(self, played: script.Script) -> Scripted:
        return Scripted(played, self.clock, self.faulty.fail_append)

    def _before(self, name: str) -> None:
        self.calls.append(name)
        self.hook(len(self.calls) - 1, name)

    def _check_texts(self, ended: Ended) -> None:
        """What holds for every turn: reconciliations are whole, the last ones are final and as partial as the run."""
        whole = self.reconciled()
        if not self.sink.lost:
            events = [*self.of(worker.Delta), *self.of(worker.Reconcile)]
            assert set(whole) == {event.message_id for event in events}
            last = {event.message_id: event for event in self.of(worker.Reconcile)}
            assert all(event.partial is (ended.word != "completed") for event in last.values())

    # what there is to see

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.sink.events if isinstance(event, kind)]

    def shown(self) -> list[str]:
        """The kinds of the events, repeats of one kind as one."""
        names = [type(event).__name__ for event in self.sink.events]
        return [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]

    def deltas(self) -> dict[str, str]:
        """Message id -> its deltas, joined."""
        joined: dict[str, str] = {}
        for event in self.of(worker.Delta):
            joined[event.message_id] = joined.get(event.message_id, "") + event.text
        return joined

    def reconciled(self) -> dict[str, str]:
        """Message id -> its text by the last whole reconciliation; checks the numbering of the parts."""
        whole: dict[str, str] = {}
        parts: list[worker.Reconcile] = []
        for event in self.of(worker.Reconcile):
            assert event.part == len(parts)
            assert event.text
            assert all(each.message_id == event.message_id and each.partial is event.partial for each in parts)
            parts.append(event)
            if event.last_part:
                whole[event.message_id] = "".join(each.text for each in parts)
                parts = []
        assert not parts or self.sink.lost
        return whole

    def answer(self) -> str:
        return "".join(self.reconciled().values())

    def stored_text(self) -> str:
        return "".join(draft.payload["text"] for draft in self.handle.records if draft.kind == "assistant_chunk")


@dataclass
class _Spied:
    runner: Runner
    trial: Trial

    def run(self, prompt: str, stage: Stage) -> None:
        spy = _SpyStage(stage)
        self.trial.accepted = spy.accepted
        self.runner.run(prompt, spy)
