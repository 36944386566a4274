"""The observer: explains every frame of a conversation by rows of the machines.

The states are hidden; frames are what is seen. A backend frame is an emit of some row, so for each the observer looks
for the shortest run of inputs that emit nothing, followed by one that emits this frame. Whatever it had to suppose on
the way (the runner's last word, a timer, a full channel) is marked as inferred; nothing is supposed before a frame
needs it. Where several explanations are equally short all are kept, a handful at most, until later frames decide.

Lines of the client wait in a queue. The backend reads them in the order sent, each at some moment before its answer,
so a line is processed when an answer shows that it must have been: what is answered at once leaves its answers in
that order, asynchronous methods (``WORKER_CODES``) are admitted in that order and answered later. So may ``turn.start``
be, before its events. Admission is judged at that moment: a result needs every check to pass, a refusal needs one that
can fail.

Beside the states the contents are judged, by shape and by rule. A frame that no row explains, or whose content is at
fault, is a :class:`Finding`; the observer then takes the frame as told and goes on. What frames cannot show: when
something happened, what was never sent, whether a text is true. Pure: decoded frames in, explanations out.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from statemachines.admission import LISTENING
from statemachines.connection import ConnectionState
from statemachines.operation import OperationState
from statemachines.registry import MACHINES
from statemachines.rows import Emit
from statemachines.run import OVER
from statemachines.step import World, initial_world
from statemachines.witness import amiss, frames, search, sight
from statemachines.witness.amiss import Blame
from statemachines.witness.frames import Told
from statemachines.witness.leaving import leave
from statemachines.witness.ledger import Asked, Data, Ledger, Line
from statemachines.witness.owed import names_of
from statemachines.witness.predicates import kind_of
from statemachines.witness.rules import violations
from statemachines.witness.search import Guess, Step
from statemachines.witness.shapes import SHAPES, SIXTEEN, Fault, misshapen
from statemachines.witness.view import NOBODY

__all__ = ["PLAIN", "Explanation", "Finding", "Line", "Observer", "Source", "Step"]


class Source(StrEnum):
    """Where something was seen."""

    CLIENT = "client"
    BACKEND = "backend"
    PROCESS = "process"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something the contract excludes: which frame, what, and the machine, its state and the clauses that say so."""

    frame: int
    what: str
    machine: str
    state: str
    clauses: tuple[str, ...]

    @property
    def clause(self) -> str:
        """The first of the clauses, which says most."""
        return self.clauses[0]

    @property
    def reading(self) -> bool:
        """True when only our reading of an open point excludes it: to be told, not to be held against a peer."""
        return "D87" in self.clauses or all("-OP-" in clause for clause in self.clauses)


@dataclass(frozen=True, slots=True)
class Explanation:
    """One frame, explained: the rows that were taken, what remains uncertain, what is wrong."""

    frame: int
    source: Source
    label: str
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    looked: frozenset[str] = frozenset()
    """The clauses that were looked at, whether they held or not."""


PLAIN: Final = Line()
"""A line of which only the value is known."""

KEYS: Final = frozenset(
    field.key for name, shape in SHAPES.items() if name.startswith("frame/") for field in shape.fields
)
"""The keys of frames."""
_ALONE: Final = tuple(name for name, spec in MACHINES.items() if not spec.many)


class Observer:
    """Replays a conversation, frame by frame, in the order in which it was recorded.

    ``claimed`` are the base capabilities that the backend is held to: by the contract all sixteen.
    """

    def __init__(self, claimed: frozenset[str] = SIXTEEN) -> None:
        self._ledger = Ledger(claimed)
        self._guesses = [Guess(initial_world(_ALONE))]
        self.number = 0
        """Of the last frame. May be set, to follow the lines of a file."""
        self._overtaken: set[Asked] = set()
        """Lines whose answers came out of turn, or not at all: told once."""
        self._status: int | None = None
        self._open: list[Blame] = []
        """What was missing when the process ended."""
        self.findings: list[Finding] = []
        """Everything found so far."""
        self._looked: set[str] = set()
        """The clauses looked at for the frame at hand."""

    @property
    def world(self) -> World:
        """The likeliest states at the moment."""
        return dict(self._guesses[0].world)

    @property
    def guesses(self) -> int:
        """How many explanations are still open."""
        return len(self._guesses)

    @property
    def left(self) -> tuple[str, ...]:
        """What is open at the moment: lines not answered, frames not sent, a run that goes on."""
        return tuple(each.what for each in self._left())

    def client(self, frame: object, line: Line = PLAIN) -> Explanation:
        """A line of the client. It is explained with the answer that shows how it was processed."""
        self.number += 1
        return self._queue(self._ledger.ask(self.number, frame, line))

    def client_closed(self, *, inside_frame: bool = False) -> Explanation:
        """The client closed its end, between two frames or inside one."""
        self.number += 1
        return self._queue(Asked(self.number, ends="inside" if inside_frame else "between"))

    def backend(self, frame: object, line: Line = PLAIN) -> Explanation:
        """A frame of the backend."""
        self.number += 1
        self._looked.update(sight.forbidden(self._guesses[0].world))
        if not isinstance(frame, dict):
            fault = self._fault(Fault("no JSON object", ("FRAME-03", "FRAME-06")))
            return self._tell(Source.BACKEND, "no frame", found=[fault])
        faults = [Fault("the frame is too large", ("BOUND-02",))] if line.size >= 65536 else []
        faults += [Fault("a key occurs twice", ("FRAME-03",))] if line.repeated else []
        return self._event(frame, faults) if "event" in frame else self._answer(frame, faults)

    def exited(self, status: int) -> Explanation:
        """The process ended."""
        self.number += 1
        label = f"exit status {status}"
        self._open, self._status = [*self._left(), *self._untold()], status
        if status < 0 or (self._ledger.seq == 0 and status):
            return self._tell(Source.PROCESS, label, notes=("a signal, or a failed launch: frames say nothing of it",))
        found = leave(self._fresh(), self._ledger, status)
        if not found:
            what = f"{label}, although a run or output was left" if status == 0 else f"{label} is none of the contract"
            blame = self._blame("output", what, "FLOW-18", "FLOW-19", "FLOW-20", "D40", "D41")
            return self._tell(Source.PROCESS, label, found=[blame])
        self._guesses = found
        return self._tell(Source.PROCESS, label, found[0])

    def finish(self, *, in_time: bool = False) -> Explanation:
        """The trace is at its end: what was never answered, what was never sent.

        ``in_time``: the process ended before the closing deadline, so that nothing was given up for it.
        """
        self.number += 1
        label = "end of trace"
        if self._status is None:
            notes = tuple(f"open: {each.what}" for each in self._left())
            return self._tell(Source.PROCESS, label, notes=notes)
        if self._status != 0 or self._guesses[0].ended:  # nothing need be delivered (FLOW-10, FLOW-21, FLOW-22)
            return self._tell(Source.PROCESS, label, notes=tuple(f"excused: {each.what}" for each in self._open))
        sure = [
            each for each in self._open if each.machine == "connection" or (in_time and each.machine == "operation")
        ]
        late = tuple(f"{each.what}: the closing deadline has passed (BASE-OP-61, D89)"
                     for each in self._open if each.machine == "operation" and not in_time)  # fmt: skip
        return self._tell(Source.PROCESS, label, notes=late, found=sure)

    def _left(self) -> Iterator[Blame]:
        guess = self._guesses[0]
        for asked in guess.queue if LISTENING.passes(guess.world) else ():
            if not asked.ends:
                yield self._blame("connection", f"{asked.label} was not answered", "FLOW-05")
            if asked.ends or asked.method == "shutdown":
                break  # what came behind is not read
        for asked in guess.deferred:
            yield self._blame("connection", f"{asked.label} was not answered", "FLOW-05")
        for item in (each for each in guess.owed if each.emit is not Emit.CLIENT_TOOL_CANCEL):
            what = item.emit.value if item.emit else " ".join(item.codes)
            yield self._blame("connection", f"{what} was not sent", "FLOW-05", "SHUT-09")
        if guess.work is not None:
            yield self._blame("operation", f"{guess.work.label} was not answered", "SHUT-10", "BASE-OP-61")
        if guess.world["connection"] is ConnectionState.STARTING and guess.startup is not None:
            yield self._blame("connection", f"{guess.startup.label} was not answered", "NEG-21")
        if guess.world["run"] not in OVER:
            yield self._blame("run", "run.finished was not sent", "EVT-45")

    def _untold(self) -> Iterator[Blame]:
        """Calls that have ended without a word to the client: that there must be one is a reading."""
        for item in self._guesses[0].owed:
            if item.emit is Emit.CLIENT_TOOL_CANCEL:
                yield self._blame("connection", f"{item.emit.value} was not sent", "CT-OP-23", "CT-OP-34")

    # lines of the client

    def _queue(self, asked: Asked) -> Explanation:
        self._guesses = [replace(guess, queue=(*guess.queue, asked)) for guess in self._fresh()]
        if asked.ends or any(LISTENING.passes(guess.world) for guess in self._guesses):
            return self._tell(Source.CLIENT, asked.label)
        self._guesses = [self._discard(guess) for guess in self._guesses]
        return self._tell(Source.CLIENT, asked.label, self._guesses[0])

    def _discard(self, guess: Guess) -> Guess:
        for asked in guess.queue:
            guess = search.end(replace(guess, queue=guess.queue[1:]), asked) or guess
        return replace(guess, queue=())

    def _fresh(self) -> list[Guess]:
        """The guesses, ready for the next frame."""
        least = min(guess.cost for guess in self._guesses)
        return [
            replace(each, cost=each.cost - least, taste=0, steps=(), notes=(), grounds=()) for each in self._guesses
        ]

    # frames of the backend

    def _event(self, frame: Data, faults: list[Fault]) -> Explanation:
        name, data = frame["event"], frame.get("data")
        faults += self._misshapen("frame/event", frame, "frame")
        if f"event/{name}" not in SHAPES:
            faults.append(Fault(f"the event {name} is unknown", ("EVT-02",)))
        elif isinstance(data, dict):
            faults += self._misshapen(f"event/{name}", data, "data")
        told = frames.read_event(str(name), data) if isinstance(data, dict) else None
        if told is None:
            return self._envelope(str(name), frame, None, list(map(self._fault, faults)))
        kept = search.explain(self._fresh(), self._ledger, told)
        blame = None if kept else amiss.blame_event(self._fresh()[0], self._ledger, told)
        if not kept and (turn := search.admitting(self._guesses[0])) is not None and turn.asked is not None:
            self._overtaken.add(turn.asked)
        self._guesses = kept or [amiss.event_as_told(self._fresh()[0], told, begins=self._begins(told))]
        explanation = self._judged(told, told.kind, frame, faults, blame, NOBODY)
        with suppress(KeyError, TypeError, AttributeError):  # a misshapen event is noted as far as it goes
            self._ledger.note_event(str(name), told.data, sound=not faults)
        return explanation

    def _answer(self, frame: Data, faults: list[Fault]) -> Explanation:
        kind = "error" if "error" in frame else "result"
        faults += self._misshapen(f"frame/{kind}", frame, "frame")
        faults += [Fault("both result and error", ("ENV-15",))] if {"result", "error"} <= set(frame) else []
        asked = self._addressed(frame)
        label = asked.label if asked else f"answer {frame.get('id')}"
        if not isinstance(frame.get(kind), dict):
            return self._envelope(label, frame, None, list(map(self._fault, faults)))
        told = frames.read_answer(frame, label)
        if asked is not None and kind == "result" and f"result/{asked.method}" in SHAPES:
            faults += self._misshapen(f"result/{asked.method}", told.data, "result")
        if asked is not None and asked in self._overtaken:
            self._overtaken.discard(asked)
            kept, blame = self._fresh(), None
        else:
            kept = search.explain(self._fresh(), self._ledger, told)
            blame = None if kept else amiss.blame_answer(self._fresh()[0], self._ledger, told, asked)
        self._guesses = kept or self._as_told(told, asked)
        rules = f"result/{asked.method}" if asked is not None and kind == "result" else ""
        explanation = self._judged(told, rules, frame, faults, blame, asked or NOBODY)
        if asked is not None:
            self._note(asked, told, sound=not faults)
        return explanation

    def _addressed(self, frame: Data) -> Asked | None:
        """The line that an answer is for. Of two with one id, only the second is a duplicate (BASE-OP-42)."""
        name = frame["id"] if isinstance(frame.get("id"), str) else ""
        error = frame.get("error")
        code = str(error.get("code")) if isinstance(error, dict) else ""
        waiting: list[Asked | None] = []
        for guess in self._guesses:
            waiting += [guess.work, guess.startup if guess.world["connection"] is ConnectionState.STARTING else None]
            waiting += [*guess.deferred, *guess.queue, *(item.asked for item in guess.owed)]
        found = [each for each in (*waiting, *self._overtaken) if each and name in names_of(each, code)]
        found.sort(key=lambda each: each.formed and (not name or each.fresh == (code == "duplicate_id")))
        return found[0] if found else None

    def _as_told(self, told: Told, asked: Asked | None) -> list[Guess]:
        """Go on from the likeliest guess; lines that the answer has overtaken are not missed again."""
        before = self._fresh()[0]
        after = amiss.answer_as_told(before, told, asked)
        self._overtaken |= {*before.queue, *filter(None, [before.work])} - {*after.queue, after.work, asked}
        return [after]

    def _misshapen(self, name: str, value: object, at: str) -> list[Fault]:
        self._looked.update(sight.shaped(name, value))
        return list(misshapen(name, value, at))

    def _begins(self, told: Told) -> bool:
        """Whether an event belongs to a run whose admission was not seen."""
        session, run = told.data.get("session_id"), told.data.get("run_id")
        if not isinstance(run, str) or run in self._ledger.runs or self._guesses[0].world["run"] not in OVER:
            return False
        self._ledger.begin(str(session), run)
        return True

    def _note(self, asked: Asked, told: Told, *, sound: bool) -> None:
        if told.code:
            self._ledger.note_error(asked, told.code)
            idle = (step.dest is OperationState.IDLE for step in self._guesses[0].steps)
            self._ledger.worked = self._ledger.worked or any(idle)  # it may have to be cleaned up (BASE-OP-105)
            return
        with suppress(KeyError, TypeError, AttributeError):  # a misshapen result is noted as far as it goes
            self._ledger.note_result(asked, told.data)
        if sound:
            self._ledger.note_page(asked, told.data)

    # what is told

    def _judged(
        self, told: Told, rules: str, frame: Data, faults: list[Fault], blame: Blame | None, asked: Asked
    ) -> Explanation:
        """Judge the content, then put the explanation together."""
        guess = self._guesses[0]
        if blame is None:
            self._looked.update(guess.grounds, sight.taken(guess.steps))
        if faults:  # it is misshapen: what it tells is not sure, and no rule can be asked
            return self._envelope(told.label, frame, guess, list(map(self._fault, faults)))
        view = replace(search.view(guess, self._ledger, asked), data=told.data)
        kinds = ("event", rules, f"{rules}/{told.data.get('error_code')}") if rules.startswith("event/") else (rules,)
        envelope = replace(view, data=frame)
        self._looked.update(sight.ruled("frame", envelope), *(sight.ruled(kind, view) for kind in kinds))
        faults = [
            *violations("frame", envelope),
            *(f for kind in kinds for f in violations(kind, view) if not self._unsettled(f, guess, told.data)),
        ]
        return self._envelope(told.label, frame, guess, [*([blame] if blame else []), *map(self._fault, faults)])

    def _unsettled(self, fault: Fault, guess: Guess, data: Data) -> bool:
        """Whether a status speaks of a turn that is being admitted: of none yet, or of a run not told yet."""
        if not {"STATUS-14", "STATUS-15"} & set(fault.clauses) or search.admitting(guess) is None:
            return False
        state, run = data["state"], data["run_id"]
        return (state, run) == ("idle", None) or (state == "running" and run not in (None, *self._ledger.runs))

    def _envelope(self, label: str, frame: Data, guess: Guess | None, found: list[Blame]) -> Explanation:
        """Take the envelope down, and say what is odd about it without being a fault."""
        ledger, seq, instance = self._ledger, frame.get("seq"), frame.get("instance_id")
        skipped = isinstance(seq, int) and 0 < ledger.seq < seq - 1
        notes: tuple[str, ...] = (f"seq skips from {ledger.seq} to {seq}",) if skipped else ()
        further = sorted(set(frame) - KEYS)  # which is open, as for events (BASE-OP-163)
        notes += (f"further keys (BASE-OP-47): {' '.join(further)}",) if further else ()
        ledger.seq, ledger.told = seq if isinstance(seq, int) else ledger.seq, kind_of(frame)
        ledger.instance = instance if isinstance(instance, str) else ledger.instance
        return self._tell(Source.BACKEND, label, guess, notes, found)

    def _fault(self, fault: Fault) -> Blame:
        return self._blame("frame", fault.what, *fault.clauses)

    def _blame(self, machine: str, what: str, *clauses: str) -> Blame:
        state = self._guesses[0].world.get(machine)
        return Blame(what, machine, state.value if state else "", clauses)

    def _tell(
        self,
        source: Source,
        label: str,
        guess: Guess | None = None,
        notes: tuple[str, ...] = (),
        found: Iterable[Blame] = (),
    ) -> Explanation:
        first = {blame.clauses[0]: blame for blame in reversed(list(found))}  # one fault shows once
        findings = tuple(Finding(self.number, *blame) for blame in reversed(first.values()))
        self.findings += findings
        notes = (*(guess.notes if guess else ()), *notes)
        if len(self._guesses) > 1:
            notes = (*notes, f"{len(self._guesses)} explanations are open")
        looked, self._looked = frozenset(self._looked), set()
        return Explanation(self.number, source, label, guess.steps if guess else (), notes, findings, looked)
