"""The frames of a transcript: decoded with the standard library, in order, by id, by event. Pure.

Our codec is left out on purpose: a peer's bytes are read by something that has no part in ours.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from json import loads
from typing import Any, Literal, cast

from .model import Record, Transcript
from .transcript import DECODED

Side = Literal["client", "backend"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of either side.

    ``record`` is the number of its record, ``t`` its time in ms if recorded. ``value`` is the decoded JSON, None where
    ``broken`` says that it is none: not UTF-8, no JSON, or without its LF. ``size`` counts the bytes without LF, -1
    where the capture holds no bytes. ``repeated`` says where a key stands twice: ``top`` in the frame itself,
    ``inside`` deeper; a repeated key has its last value.
    """

    record: int
    side: Side
    t: float | None
    data: bytes
    value: Any
    size: int
    broken: Literal["", "utf-8", "json", "cut"] = ""
    repeated: Literal["", "top", "inside"] = ""

    def get(self, key: str) -> Any:
        """A member of the frame; None if it has none of that name, or is no object."""
        return self.value.get(key) if isinstance(self.value, dict) else None

    @property
    def answer(self) -> bool:
        """True for an answer of the backend, also one with a null id."""
        return self.side == "backend" and self.get("type") == "response"

    @property
    def event(self) -> str | None:
        """The name of an event of the backend."""
        name = self.get("event") if self.side == "backend" else None
        return name if isinstance(name, str) else None

    @property
    def run_id(self) -> Any:
        """The run that an event belongs to."""
        data = self.get("data")
        return data.get("run_id") if isinstance(data, dict) else None


def decode(record: Record) -> Frame:
    """The frame of a ``client`` or ``backend`` record."""
    side, line = cast(Side, record.kind), record.data.removesuffix(b"\n")
    size = -1 if record.value == DECODED else len(line)

    def broken(why: Literal["utf-8", "json", "cut"]) -> Frame:
        return Frame(record.number, side, record.t, record.data, None, size, why)

    if not record.data.endswith(b"\n"):
        return broken("cut")
    repeats: list[bool] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        repeats.append(len(found) != len(pairs))
        return found

    try:
        value = loads(line.decode(), object_pairs_hook=members, parse_constant=_refuse)
    except UnicodeDecodeError:
        return broken("utf-8")
    except (ValueError, RecursionError):
        return broken("json")
    top = isinstance(value, dict) and repeats[-1]  # the outermost object ends last
    inside: Literal["", "inside"] = "inside" if any(repeats) else ""
    return Frame(record.number, side, record.t, record.data, value, size, "", "top" if top else inside)


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def frames(transcript: Transcript | Iterable[Record]) -> Iterator[Frame]:
    """The lines of both sides in the order of the transcript."""
    records = transcript.records if isinstance(transcript, Transcript) else transcript
    return (decode(record) for record in records if record.kind in ("client", "backend"))


def sent(transcript: Transcript | Iterable[Record]) -> Iterator[Frame]:
    """What the client sent."""
    return (frame for frame in frames(transcript) if frame.side == "client")


def received(transcript: Transcript | Iterable[Record]) -> Iterator[Frame]:
    """What the backend sent."""
    return (frame for frame in frames(transcript) if frame.side == "backend")


def answers(found: Iterable[Frame]) -> dict[str | None, list[Frame]]:
    """The answers by their ids, those with a null id under None, in order; ids of other kinds are left out."""
    by_id: dict[str | None, list[Frame]] = {}
    for frame in found:
        id_ = frame.get("id")
        if frame.answer and (id_ is None or isinstance(id_, str)):
            by_id.setdefault(id_, []).append(frame)
    return by_id


def events(found: Iterable[Frame], name: str | None = None, run_id: str | None = None) -> list[Frame]:
    """The events of one name, or of all, and of one run, or of all, in order."""
    return [
        frame
        for frame in found
        if frame.event is not None and name in (None, frame.event) and run_id in (None, frame.run_id)
    ]


def children(transcript: Transcript) -> list[list[Record]]:
    """The records child by child: each begins with its header, if it has one."""
    found: list[list[Record]] = [[]]
    for record in transcript.records:
        if record.kind == "header" and "transcript" in record.value and found[-1]:
            found.append([])
        found[-1].append(record)
    return found
