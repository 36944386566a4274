"""What the judge reads of a transcript: its children, their lines, their ends. Pure.

A transcript holds one child or, where a case restarts it, several; each begins with a header of ours. The client's
records are a stream of bytes that LFs cut into lines, whatever pieces they were written in. Bytes are read with nothing
but the JSON of the standard library: the codec under judgement is not asked.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from json import loads
from math import inf
from typing import Any, Final

from localagent.conformance.model import Record, Transcript
from localagent.conformance.seen import HANGUP, STOPPED
from localagent.conformance.transcript import DECODED
from localagent.observe import decode
from statemachines.observe import Line

FRAME_BYTES: Final = 65_536
"""The bound on a line of the client, without its LF (BOUND-01)."""
STOPS: Final = frozenset({"SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT"})
"""Signals that ask a process to end: what it does then is its own affair (D50)."""
BROKEN: Final = "input is not read any more"
OVERFLOW: Final = "output is not kept any more"
FAULT: Final = "harness fault"
"""How notes of the driver begin (:mod:`.pump`)."""
_GAVE_UP: Final = re.compile(r"gave up (\d+)\Z")
_STEP: Final = re.compile(r"step (\d+)\Z")
_SKIPPED: Final = re.compile(r"skipped (\d+)\Z")
"""Notes of the player (:mod:`.play`)."""
_DIGITS: Final = 4_000
"""Longer numbers are too long for the standard library."""
FATAL: Final = frozenset({"protocol_mismatch", "request_limit", "frame_too_large"})
"""The codes behind which the backend closes (ERR-05)."""


_UNREAD: Final = (STOPPED, "read slowly", "slow", HANGUP, OVERFLOW)
"""How marks begin that tell that output was not read as it came."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing in the order in which it was seen: ``client`` and ``backend`` lines, ``closed``, ``signal``, ``exit``.

    ``cut`` of a client's end tells that a line was under way. ``value`` is the decoded frame, None for no JSON; the
    name of a signal, or the exit status.
    """

    kind: str
    record: int
    t: float | None
    value: Any = None
    line: Line = field(default_factory=Line)
    data: bytes = b""
    cut: bool = False

    @property
    def frame(self) -> Mapping[str, Any]:
        """The frame as far as it is an object."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def name(self) -> str:
        """The id of a response, empty where it is null; the name of an event has ``event``."""
        found = self.frame.get("id")
        return found if isinstance(found, str) else ""

    @property
    def code(self) -> str:
        """The code of an error, else empty."""
        error = self.frame.get("error")
        code = error.get("code") if isinstance(error, dict) else None
        return code if isinstance(code, str) else ""

    @property
    def answers(self) -> bool:
        """True for a response of the backend."""
        return self.kind == "backend" and "event" not in self.frame and bool(self.frame)


@dataclass(frozen=True)
class Child:
    """One process: its records as they are, and what was seen, line by line."""

    records: tuple[Record, ...]
    seen: tuple[Item, ...]
    ours: bool
    """Recorded by the suite: times, ends of both streams and the exit are all there."""

    @cached_property
    def backend(self) -> list[Item]:
        """The whole lines of the backend."""
        return [each for each in self.seen if each.kind == "backend"]

    @property
    def middle(self) -> bool:
        """Recorded by others, from somewhere behind ``initialize``: what came before cannot be known."""
        seq = self.backend[0].frame.get("seq") if self.backend else None
        begun = self.ours or any(each.frame.get("method") == "initialize" for each in self.client)
        return not begun and type(seq) is int and seq > 1

    def last_words(self) -> Record | None:
        """What it has said on stderr behind the last thing that it was sent, or that was done to it.

        Before its first frame it may be telling that it starts: that is nothing of it.
        """
        end, begun = self.first("exit"), self.first("backend")
        if begun is None:
            return None
        acts = (each.number for each in self.records if _is_act(each))
        after = max((each for each in acts if end is None or each < end.number), default=0)
        after = max(after, begun.number)
        said = (each for each in self.records if each.kind == "stderr" and words(each.value))
        return next((each for each in said if each.number > after), None)

    @cached_property
    def client(self) -> list[Item]:
        """The whole lines of the client."""
        return [each for each in self.seen if each.kind == "client"]

    @cached_property
    def sent(self) -> Mapping[str, Item]:
        """The first line of the client with each id."""
        return {each.name: each for each in reversed(self.client) if each.name}

    @cached_property
    def given_up(self) -> Mapping[int, Record]:
        """The steps that the player waited for in vain, each with its note; 0 is the end of the child."""
        found = ((_GAVE_UP.match(words(each.value)), each) for each in self.marks)
        return {int(match[1]): each for match, each in found if match}

    @cached_property
    def begun(self) -> Mapping[int, int]:
        """The steps that the player has begun: each with the place of its note. Empty where it takes no note of it."""
        found = ((_STEP.match(words(each.value)), i) for i, each in enumerate(self.records) if each.kind == "mark")
        return {int(match[1]): i for match, i in found if match}

    @cached_property
    def over(self) -> Mapping[int, int]:
        """Those steps with the place where the next one begins, or the end."""
        places = list(self.begun.values())
        return dict(zip(self.begun, [*places[1:], len(self.records)], strict=False))

    @cached_property
    def skipped(self) -> frozenset[int]:
        """The steps that could not be played."""
        found = (_SKIPPED.match(words(each.value)) for each in self.marks)
        return frozenset(int(match[1]) for match in found if match)

    def first(self, kind: str) -> Record | None:
        """The first record of a kind."""
        return next((each for each in self.records if each.kind == kind), None)

    @cached_property
    def signals(self) -> list[Record]:
        """What was sent to the process."""
        return [each for each in self.records if each.kind == "signal"]

    @cached_property
    def marks(self) -> list[Record]:
        """What the player noted down."""
        return [each for each in self.records if each.kind == "mark"]

    def marked(self, *words: str) -> bool:
        """Whether a mark begins with one of these words."""
        return any(str(each.value).startswith(words) for each in self.marks)

    @property
    def unread(self) -> bool:
        """Output was not read as it came: it may be lost, or stand at a later place."""
        return self.marked(*_UNREAD)

    @property
    def broken(self) -> Record | None:
        """The note that nothing could be written any more."""
        return next((each for each in self.marks if words(each.value).startswith(BROKEN)), None)

    @property
    def timed(self) -> bool:
        """Whether lines bear times."""
        return all(each.t is not None for each in self.seen)


def _is_act(record: Record) -> bool:
    """Something was sent to the child or done to it; other marks are notes of the player."""
    return record.kind in ("client", "closed", "signal") or (
        record.kind == "mark" and words(record.value).startswith(_UNREAD)
    )


def words(value: object) -> str:
    """A mark, whatever was recorded as one."""
    return value if isinstance(value, str) else ""


def groups(transcript: Transcript) -> list[list[Record]]:
    """The records, child by child; at least one group."""
    found: list[list[Record]] = [[]]
    for record in transcript.records:
        mine = record.kind == "header" and "transcript" in record.value
        if mine and any(each.kind != "header" for each in found[-1]):
            found.append([])
        found[-1].append(record)
    return found


def children(transcript: Transcript) -> tuple[Child, ...]:
    """The children of a transcript, in order; at least one."""
    ours = "transcript" in transcript.header
    return tuple(Child(tuple(group), tuple(_seen(_moved(group), ours=ours)), ours) for group in groups(transcript))


def _moved(records: list[Record]) -> list[Record]:
    """The records, a line that is too large before its refusal: it is answered before its last byte is sent."""
    for i, record in enumerate(records):
        if record.kind == "backend" and b'"frame_too_large"' in record.data:
            large = [each for each in records if each.kind == "client" and len(each.data.rstrip(b"\n")) > FRAME_BYTES]
            if large and large[0].number > record.number:
                rest = [each for each in records[i:] if each is not large[0]]
                return [*records[:i], large[0], *rest]
            break
    return records


def _seen(records: list[Record], *, ours: bool) -> Iterator[Item]:
    input_, output = _Input(records, ours=ours), b""
    for record in records:
        match record.kind:
            case "client":
                yield from input_.take(record)
            case "closed":
                yield from input_.end(record)
            case "backend":
                *lines, output = (output + record.data).split(b"\n")
                yield from (_line("backend", record, line) for line in lines)
            case "exit" | "signal":
                yield Item(record.kind, record.number, record.t, record.value)


def _line(kind: str, record: Record, line: bytes) -> Item:
    """One line, decoded. What is no UTF-8 has no value."""
    try:
        value, told = _decoded(line.decode())
    except UnicodeDecodeError:
        value, told = None, Line(len(line), broken=True)
    if record.value == DECODED:  # nothing is known of its bytes
        told = replace(told, size=0)
    return Item(kind, record.number, record.t, value, told, line)


def _decoded(text: str) -> tuple[Any, Line]:
    """As :func:`localagent.observe.decode`; a number of thousands of digits, which is JSON too, becomes infinite."""
    value, told = decode(text)
    if told.broken:
        with suppress(ValueError, RecursionError):
            return loads(text, parse_int=_whole, parse_constant=_refuse), replace(told, broken=False)
    return value, told


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) < _DIGITS else inf


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


class _Input:
    """The stream of the client, cut into lines."""

    def __init__(self, records: list[Record], *, ours: bool) -> None:
        self.rest = b""
        self.skip = False
        """The line under way was too large: it was taken as it stood, what follows of it is no line."""
        self.closed = False
        last = max((each.number for each in records if each.kind == "client"), default=0)
        told = ours or any(each.kind == "closed" for each in records)
        self.last = 0 if told else last
        """The record where the input ended, where no other record says so."""

    def take(self, record: Record) -> Iterator[Item]:
        """Bytes were sent."""
        if self.closed:
            return
        *lines, self.rest = (self.rest + record.data).split(b"\n")
        for line in lines:
            if not self.skip:
                yield _line("client", record, line)
            self.skip = False
        if len(self.rest) > FRAME_BYTES:
            if not self.skip:
                size = Line(len(self.rest), broken=True)
                yield Item("client", record.number, record.t, None, size, self.rest)
            self.rest, self.skip = b"", True
        elif self.rest and record.number == self.last:
            yield from self.end(record)

    def end(self, record: Record) -> Iterator[Item]:
        """The input ended."""
        if not self.closed:
            self.closed = True
            yield Item("closed", record.number, record.t, cut=bool(self.rest) and not self.skip)


def rest_of_output(child: Child) -> bytes:
    """What the backend sent behind its last LF."""
    return b"".join(each.data for each in child.records if each.kind == "backend").rpartition(b"\n")[2]
