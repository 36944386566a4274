"""A recorded conversation as a case: the client's lines again, for another backend. Pure.

Requests are sent as they were, under new ids, and where a value of theirs had come from the first backend (a session,
a run, a cursor, a revision) the new backend's own stands in its place. Before each line the case waits for the
answers that the client had had by then, and for the events that it answers to. What is no sound request is sent byte
by byte. Nothing is expected: what comes is judged by the trace alone.
"""

import re
from collections.abc import Iterator, Mapping
from json import dumps
from typing import Any, Final

from localagent.conformance import cases, frames
from localagent.conformance.frames import Frame
from localagent.conformance.model import Case, Record, Transcript

_KEYS: Final = frozenset({"protocol", "version", "id", "method", "params"})
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,48}\Z")
_SHORTEST: Final = 8
"""Characters of a value that is taken for a name given by the backend."""
_NEAR_LIMIT: Final = 60_000
"""Lines from this size on keep their size, by spaces: it may be what they are about."""
_TURNING: Final = frozenset({"run.finished", "approval.requested", "client.tool.call"})
"""Events that a client waits for."""


class NothingToReplayError(ValueError):
    """A transcript without a line of a client."""


def to_case(transcript: Transcript) -> Case:
    """The case that plays the client's part of a transcript. Raises NothingToReplayError."""
    if not any(record.kind == "client" for record in transcript.records):
        raise NothingToReplayError("no line of a client is recorded there")
    steps = _Writer(transcript).steps()
    text = '[[case]]\nid = "replay.transcript"\ntitle = "The recorded conversation"\ntier = 0\n'
    return cases.parse(f"{text}steps = [\n{''.join(f'  {toml(each)},{chr(10)}' for each in steps)}]\n", "replay")[0]


def toml(value: Any) -> str:
    """A value of a case as TOML; None is what cases write for null."""
    if value is None:
        return '"$null"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml(key)} = {toml(each)}" for key, each in value.items()) + " }" if value else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    return repr(value)


def _strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """(text, path) of every text in a value that may be a name; keys that a path cannot hold are left out."""
    if isinstance(value, str):
        if len(value) >= _SHORTEST and not any(each.isspace() for each in value):
            yield value, path
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if key and not set(key) & set(".{}"):
                yield from _strings(each, f"{path}.{key}")
    elif isinstance(value, list):
        for i, each in enumerate(value):
            yield from _strings(each, f"{path}.{i}")


def _sound(frame: Frame) -> bool:
    """True for a line that is a request which can be written anew."""
    if frame.broken or frame.repeated or not isinstance(frame.value, dict) or set(frame.value) != _KEYS:
        return False
    try:
        dumps(frame.value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return False
    text = isinstance(frame.value["id"], str) and isinstance(frame.value["method"], str)
    return text and isinstance(frame.value["params"], dict) and frame.value["method"] != ""


class _Writer:
    """Goes through a transcript and writes the steps."""

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._used = {
            text for frame in frames.sent(transcript) if not frame.broken for text, _ in _strings(frame.get("params"))
        }
        self._names: dict[str, str] = {}
        """Id in the recording -> our name, which is our id."""
        self._values: dict[str, str] = {}
        """Value of the first backend -> where the second tells its own."""
        self._ours: set[str] = set()
        """Texts that the client came up with."""
        self._count = 0

    def steps(self) -> Iterator[dict[str, Any]]:
        """The steps, in the order of the recording."""
        began = False
        for record in self._transcript.records:
            if record.kind == "header" and began:
                self._names.clear()
                yield {"restart": True}
                began = False
            began = began or record.kind not in ("header", "damaged")
            match record.kind:
                case "client":
                    yield from self._client(frames.decode(record))
                case "backend":
                    yield from self._backend(frames.decode(record))
                case _:
                    yield from _other(record)

    def _next(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _client(self, frame: Frame) -> Iterator[dict[str, Any]]:
        if not _sound(frame):
            yield self._raw(frame)
            return
        self._ours |= {text for text, _ in _strings(frame.value["params"])} - set(self._values)
        name, recorded = self._next("r"), frame.value["id"]
        step = {"send": frame.value["method"], "as": name, "params": self._mapped(frame.value["params"])}
        envelope = {key: frame.value[key] for key in ("protocol", "version")}
        if recorded in self._names:  # it is used twice
            envelope["id"] = self._names[recorded]
        elif not _NAME.match(recorded):  # the id itself may be what the line is about
            envelope["id"] = recorded
            self._names[recorded] = name
        else:
            self._names[recorded] = name
        step["envelope"] = {key: self._mapped(value) for key, value in envelope.items()}
        if frame.size >= _NEAR_LIMIT:
            step["pad"] = frame.size
        yield step

    def _raw(self, frame: Frame) -> dict[str, Any]:
        recorded = frame.get("id")
        named = {"as": recorded} if isinstance(recorded, str) and _NAME.match(recorded) else {}
        if named:
            self._names[recorded] = recorded
        return {"hex": frame.data.hex(), **named}

    def _mapped(self, value: Any) -> Any:
        if isinstance(value, str):
            if value in self._values:
                return self._values[value]
            return f"${value}" if value.startswith("$") else value
        if isinstance(value, dict):
            return {key: self._mapped(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self._mapped(each) for each in value]
        return value

    def _backend(self, frame: Frame) -> Iterator[dict[str, Any]]:
        recorded = frame.get("id")
        if frame.answer and isinstance(recorded, str) and recorded in self._names:
            name = self._names[recorded]
            self._learn(name, frame, "result")
            yield {"answer": name, "any": True, "clauses": []}
        elif frame.event is not None:
            told = {text for text, _ in _strings(frame.get("data"))} - self._ours - set(self._values)
            if frame.event in _TURNING or told & self._used:
                name = self._next("e")
                self._learn(name, frame, "data")
                yield {"event": frame.event, "as": name, "clauses": []}

    def _learn(self, name: str, frame: Frame, key: str) -> None:
        for text, path in _strings(frame.get(key)):
            if text in self._used and text not in self._ours:
                self._values.setdefault(text, f"${name}.{key}{path}")


def _other(record: Record) -> Iterator[dict[str, Any]]:
    if record.kind == "closed":
        yield {"close": True}
    elif record.kind == "signal":
        yield {"signal": str(record.value).removeprefix("SIG")}
    elif record.kind == "mark" and record.value in ("stop reading", "read on"):
        yield {"reading": record.value == "read on"}
