"""What steps of a case find in what was seen: the frame that an ``answer`` or an ``event`` means, names, moments. Pure.

The player asks while the child talks, the judge asks a whole transcript; both ask here, and so mean the same frames.
Which frame a step means depends on nothing but the order of the frames:

- an answer: the one with that id, the ``nth`` with it from 0 (the loader says which), wherever it stands; of those with
  a null id, and with ``or_null`` where no other has come, the first that no step has found. A request that was sent
  again stands for the last time it was;
- an event: the first with that name (of that ``run``, matching ``where``) behind the frame named by ``after``, or
  behind the last one of that name that an ``event`` step has found. Events of other names may stand before it;
- a barrier (``absent``, ``absent_answer``, ``nothing``): the answer to its ``status``; where that cannot come any more,
  the end of the output. Without ``since`` it looks at all behind the last frame that earlier steps have found.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from .frames import Frame, decode
from .gather import pages, texts
from .lines import BARRIER, barrier_id, page_id
from .model import Record, Step
from .values import DanglingError, lookup, mismatch

ASKED: Final = "approval.requested"
"""The event that asks for an approval."""
BARRIERS: Final = frozenset({"absent", "absent_answer", "nothing"})
WAITING: Final = BARRIERS | {"start", "turn", "answer", "answers", "event", "pages", "exit"}
"""The kinds of steps that wait for something; the others do something, or compare what came."""
STOPPED: Final = "stop reading"
"""The mark of the moment from which the child's output is not read."""
HANGUP: Final = "hangup"
"""The mark of the moment when we closed the end of the pipe that we read."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a step means: its frames, or the record of the exit or of the end of output."""

    frames: tuple[Frame, ...] = ()
    record: Record | None = None

    @property
    def number(self) -> int:
        """The number of its last record."""
        return max([frame.record for frame in self.frames] + [self.record.number if self.record else 0])


class Seen:
    """What has come from the child so far, and the names that steps gave to it."""

    def __init__(self) -> None:
        self.named: dict[str, Frame] = {}
        """By name, also from earlier children."""
        self.restart()

    def restart(self) -> None:
        """Another child: what the first one said counts no more, the names of it stay."""
        self.frames: list[Frame] = []
        """What the backend sent."""
        self.last = 0
        """The number of the last record that a step has found."""
        self.exit: Record | None = None
        self.end: Record | None = None
        """The end of its output, or its exit where that came first: nothing comes behind it but by others."""
        self._answers: dict[str | None, list[Frame]] = {}
        self._events: dict[str, list[Frame]] = {}
        self.repeated: dict[str, str] = {}
        """By id on the wire of a request that was sent again: the id that it had the last time."""
        self._taken: set[int] = set()
        """Numbers of the answers without an id that steps have found."""
        self._latest: dict[str, int] = {}
        """By event, the number of the last one that a step has found."""
        self._approvals: set[str] = set()
        """Ids of the approvals whose requests steps have found."""
        self._moments: dict[str, Record] = {}
        self.starting: set[str] = set()
        """Ids of the ``initialize`` that are not answered yet."""

    def feed(self, records: Iterable[Record]) -> None:
        """Further records of this child."""
        for record in records:
            match record.kind:
                case "backend":
                    self._frame(decode(record))
                case "client":
                    self._request(decode(record))
                case "eof" | "exit":
                    self.end = self.end or record
                    self.exit = record if record.kind == "exit" else self.exit
                case "closed":
                    self._moments["close"] = record
                case "signal":
                    self._moments["signal"] = record
                case "mark" if record.value == STOPPED:
                    self._moments["stop"] = record
                case "mark" if record.value == HANGUP:
                    self.end = self.end or record
                case "header":
                    self._moments["spawn"] = record

    def _request(self, frame: Frame) -> None:
        """A request was sent; names have no dots, so that ``name.2`` is a repetition."""
        id_ = frame.get("id")
        if frame.get("method") == "initialize" and isinstance(id_, str):
            self.starting.add(id_)
        name, dot, time = id_.rpartition(".") if isinstance(id_, str) else ("", "", "")
        if dot and time.isdigit() and name != BARRIER:
            self.repeated[name] = f"{name}.{time}"

    def _frame(self, frame: Frame) -> None:
        self.frames.append(frame)
        id_ = frame.get("id")
        if frame.answer and (id_ is None or isinstance(id_, str)):
            self.starting.discard(id_ or "")
            self._answers.setdefault(id_, []).append(frame)
        elif frame.event is not None:
            self._events.setdefault(frame.event, []).append(frame)

    # what steps mean

    def lookup(self, name: str) -> Any:
        """The frame of that name, decoded. Raises ``KeyError``."""
        return self.named[name].value

    def find(self, step: Step) -> Found | None:
        """What a step waits for, and the names that it gives; None if it has not come. Kinds that do not wait: None."""
        found = self._find(step)
        if found is not None:
            self.last = max(self.last, found.number)
        return found

    def _find(self, step: Step) -> Found | None:
        args = step.args
        match step.kind:
            case "start" | "turn":
                return self._all([(args.get("as", "init"), args["id"], args["nth"])])
            case "answer":
                return self._one(step)
            case "answers":
                return self._all(zip(args["answers"], args["ids"], args["nths"], strict=True))
            case "event":
                return self._event(step)
            case "absent" | "absent_answer" | "nothing":
                barrier = self.answer(barrier_id(step))
                if barrier is None:
                    return None if self.end is None else Found(record=self.end)
                return Found((barrier,))
            case "pages":
                return self._pages(step)
            case "texts":
                return self._texts(step)
            case "exit":
                return None if self.exit is None else Found(record=self.exit)
            case _:
                return None

    def answer(self, id_: str | None, nth: int = 0) -> Frame | None:
        """The ``nth`` answer with that id, if it has come."""
        found = self._answers.get(id_ and self.repeated.get(id_, id_), [])
        return found[nth] if nth < len(found) else None

    def _one(self, step: Step) -> Found | None:
        args = step.args
        frame = self.answer(args["id"], args["nth"]) if args["answer"] else None
        if frame is None and (not args["answer"] or "or_null" in args):
            frame = next((each for each in self._answers.get(None, ()) if each.record not in self._taken), None)
        if frame is None:
            return None
        if frame.get("id") is None:
            self._taken.add(frame.record)
        for name in filter(None, (args["answer"], args.get("as"))):
            self.named[name] = frame
        return Found((frame,))

    def _all(self, wanted: Iterable[tuple[str, str | None, int]]) -> Found | None:
        found = [(name, self.answer(id_, nth)) for name, id_, nth in wanted]
        frames = tuple(frame for _, frame in found if frame is not None)
        self.named |= {name: frame for name, frame in found if frame is not None and name}
        return Found(frames) if len(frames) == len(found) else None

    def _event(self, step: Step) -> Found | None:
        name = step.args["event"]
        after = self.named.get(step.args.get("after", ""))
        start = self._latest.get(name, 0) if after is None else after.record
        for frame in self._events.get(name, ()):
            if frame.record > start and self._fits(frame, step):
                self._latest[name] = frame.record
                self._approvals |= approval_id(frame)
                if "as" in step.args:
                    self.named[step.args["as"]] = frame
                return Found((frame,))
        return None

    def _pages(self, step: Step) -> Found | None:
        """The answers to all pages; they are named together, as :func:`.gather.pages` gives them."""
        found: list[Frame] = []
        while (answer := self.answer(page_id(step, len(found) + 1))) is not None:
            found.append(answer)
        results = [each.get("result") for each in found if each.get("result") is not None]
        last = found[-1].get("result") if found else None
        if not isinstance(last, dict) or last.get("next_cursor") is not None:
            return None
        self.named[step.args["as"]] = replace(found[-1], value=pages(step.args["pages"], results))
        return Found(tuple(found))

    def _texts(self, step: Step) -> Found | None:
        """All text of a run so far, named together, as :func:`.gather.texts` gives it."""
        told = self.named.get(step.args["texts"])
        run = None if told is None else run_id(told)
        if told is None or run is None:
            return None
        self.named[step.args["as"]] = replace(told, value=texts([each.value for each in self.frames], run))
        return Found()

    def _of_run(self, frame: Frame, step: Step) -> bool:
        run = step.args.get("run")
        return run is None or (run in self.named and frame.run_id == run_id(self.named[run]))

    def _fits(self, frame: Frame, step: Step) -> bool:
        """True if an event is of the run and the kind that a step names."""
        if not self._of_run(frame, step):
            return False
        try:
            wanted = [step.args["where"]] if "where" in step.args else []
            wanted += [step.args["data"]] if step.kind == "absent" and "data" in step.args else []
            return not any(mismatch(frame.get("data"), each, self.lookup) for each in wanted)
        except DanglingError:
            return False

    def moment(self, name: str) -> Record | Frame | None:
        """The record or frame that ``since`` names: its ``t`` is a time, its number the place. None if it was not."""
        return self.named.get(name) or self._moments.get(name)

    def unmet(self, step: Step) -> str:
        """Why what is behind a ``given`` is not reached; nothing where its value is as it must be."""
        reference = step.args["given"]
        try:
            return mismatch(lookup(reference, self.lookup), step.args["pattern"], self.lookup, reference)
        except DanglingError as error:
            return f"{error} was not seen"

    def span(self, step: Step) -> tuple[int, int] | None:
        """The numbers of the records between which an absence is claimed, both excluded; None without a barrier.

        To be asked before :meth:`find` of the same step has moved ``last``.
        """
        barrier = self._find(step)
        if barrier is None:
            return None
        moment = self.moment(step.args["since"]) if "since" in step.args else None
        start = self.last if moment is None else moment.record if isinstance(moment, Frame) else moment.number
        return start, barrier.number

    def passed(self, step: Step) -> list[Frame]:
        """The frames that contradict an absence: of that event or answer, or any; as :meth:`span` is asked."""
        span = self.span(step) if step.kind in BARRIERS else None
        inside = [] if span is None else [frame for frame in self.frames if span[0] < frame.record < span[1]]
        match step.kind:
            case "absent":
                return [each for each in inside if each.event == step.args["absent"] and self._fits(each, step)]
            case "absent_answer":
                return [each for each in inside if each.answer and each.get("id") == step.args["id"]]
            case _:
                return [each for each in inside if not str(each.get("id")).startswith(f"{BARRIER}.")]

    def unanswered(self, step: Step) -> bool:
        """True if the run of a step has asked for an approval that no step means: nobody will answer it."""
        asked = [each for each in self._events.get(ASKED, ()) if self._of_run(each, step)]
        return any(approval_id(each) - self._approvals for each in asked)

    @property
    def running(self) -> bool:
        """True while an accepted run has not finished, as far as was seen."""
        begun = {id_ for found in self._answers.values() for each in found if (id_ := run_id(each)) is not None}
        return bool(begun - {frame.run_id for frame in self._events.get("run.finished", ())})


def run_id(frame: Frame) -> str | None:
    """The run that an answer tells of, or an event belongs to."""
    result = frame.get("data" if frame.event is not None else "result")
    found = result.get("run_id") if isinstance(result, dict) else None
    return found if isinstance(found, str) else None


def approval_id(frame: Frame) -> set[str]:
    """The approval that an event asks for, if it does."""
    data = frame.get("data") if frame.event == ASKED else None
    found = data.get("approval_id") if isinstance(data, dict) else None
    return {found} if isinstance(found, str) else set()
