"""One record, one line: reading it with the tolerance and the strictness of REC-04 to REC-06, writing it (REC-07).

A line in canonical form (the fields in written order, no escapes before the payload) takes the fast way: one pattern
for everything before the payload, one decode of what follows it. If that decode takes all but the closing brace, no
field can stand behind the payload, and the pattern has seen every field before it: none occurs twice. Any other line
takes the slow way, which looks at each member. Both ways give the same record, or none.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from localagent.protocol.limits import LIMITS, MIB
from localagent.protocol.measure import compact, depth
from localagent.text.clean import scrub
from localagent.text.redact import redact_payload

from . import instants
from .errors import BadRecord

RECORD_BYTES: Final = 8 * MIB  # REC-07, LF included
_READ_DEPTH: Final = 127  # REC-06, the record itself counts
SHALLOW_BYTES: Final = 2 * (_READ_DEPTH - 1)
"""A payload of fewer bytes cannot be too deep: each container takes two."""
_WRITE_DEPTH: Final = 100  # REC-07, the payload counts one
_TOO_DEEP: Final = "<redacted: max depth>"

WRITTEN: Final = frozenset(
    {
        "user_input",
        "assistant_chunk",
        "assistant_output",
        "reasoning_summary",
        "tool_call",
        "tool_result",
        "diagnostic",
        "turn_status",
        "compaction",
        "session_title",
        "session_preferences",
        "tool_applied_preview",
        "code_mode_tool_call",
        "code_mode_tool_result",
        "code_mode_warning",
        "subagent_session",
        "task_scope",
    }
)
"""The kinds we write: the table of section 2.3, and no other (REC-10, REC-11)."""


class Record(Struct, frozen=True):
    """What a line says, as far as anybody here asks."""

    kind: str
    instant: int  # nanoseconds since 1970
    cwd: str  # empty: not recorded
    payload: Any


class Draft(Struct, frozen=True):
    """A record to be written. ``at`` is when it happened, in nanoseconds since 1970; None means now."""

    kind: str
    payload: Mapping[str, Any]
    at: int | None = None


class _Line(Struct):
    """The fields of the table in written order, with the types that readers demand (REC-04)."""

    event_type: str
    timestamp: str
    session_id: str
    payload: Any
    event_id: str | None = None
    cwd: str = ""
    session_path: str | None = None


class _Written(Struct):
    """The same in written order."""

    event_id: str
    event_type: str
    timestamp: str
    session_id: str
    cwd: str
    session_path: str | None
    payload: Any


_CONTAINERS: Final = frozenset({dict, list})
_FIELDS: Final = frozenset(_Line.__struct_fields__)
_PLAIN: Final = r'[^"\\\x00-\x1f]*'  # the inside of a string without escapes
_canonical = re.compile(
    rf'''
    \{{"event_id":"[0-9a-f]{{1,16}}",
    "event_type":"([a-z_]+)",
    "timestamp":"([0-9TZ:.-]+)",
    "session_id":"([A-Za-z0-9_-]+)",
    "cwd":"({_PLAIN})",
    (?:"session_path":(?:null|"{_PLAIN}"),)?
    "payload":
    '''.encode(),
    re.VERBOSE,
).match
decode: Final = msgspec.json.Decoder().decode
"""Read one JSON value, as strictly as REC-06 wants it but for its depth. Raises DecodeError, RecursionError."""


def parse(line: bytes, session_id: str) -> Record:
    """Read one line, without its LF and the CR before that. Raises BadRecord, also for a foreign session."""
    head = _canonical(line)
    if head is not None and line.endswith(b"}"):
        try:
            payload = decode(memoryview(line)[head.end() : -1])
            head[0].decode()  # what the pattern lets through need not be UTF-8
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _parse_slowly(line, session_id)
        kind, timestamp, owner, cwd = head.groups()
        instant = instants.parse(timestamp.decode())
        if instant is None or owner != session_id.encode() or too_deep(line, payload, 1):
            raise BadRecord("a timestamp, a session or a depth that is not allowed")
        return Record(kind.decode(), instant, cwd.decode(), payload)
    return _parse_slowly(line, session_id)


def _parse_slowly(line: bytes, session_id: str) -> Record:
    try:
        members = decode(line)
        fields = msgspec.convert(members, _Line, strict=True)
    except (msgspec.DecodeError, RecursionError) as fault:  # not JSON, no object, a field missing or mistyped
        raise BadRecord(str(fault)) from None
    instant = instants.parse(fields.timestamp)
    if instant is None or fields.session_id != session_id or too_deep(line, members, 0):
        raise BadRecord("a timestamp, a session or a depth that is not allowed")
    if _has_repeated_field(line):
        raise BadRecord("a field occurs twice")
    return Record(fields.event_type, instant, fields.cwd, fields.payload)


def too_deep(line: bytes, value: object, outside: int) -> bool:
    """Tell whether a line nests more than 127 containers. Its openings, strings included, are at least as many."""
    if type(value) is dict and _CONTAINERS.isdisjoint(map(type, value.values())):
        return False
    openings = line.count(b"{") + line.count(b"[")
    return openings > _READ_DEPTH and depth(value) + outside > _READ_DEPTH


def _has_repeated_field(line: bytes) -> bool:
    """Tell whether a field of the table occurs twice (REC-05); names are compared after unescaping."""
    names: list[str] = []

    def hook(members: list[tuple[str, object]]) -> None:
        names[:] = [name for name, _ in members if name in _FIELDS]  # the outermost object ends last

    json.loads(line.decode(), object_pairs_hook=hook, parse_int=len, parse_float=len)  # no number matters
    return len(set(names)) != len(names)


class Pen:
    """Writes the records of one session in one working directory."""

    def __init__(self, session_id: str, cwd: str, session_path: str) -> None:
        """Take the canonical ``cwd``. One that JSON cannot spell is not recorded, rather than recorded wrongly."""
        self._session_id = session_id
        self._cwd = cwd if _is_text(cwd) else ""
        self._session_path = session_path if _is_text(session_path) else None

    def payload(self, draft: Draft) -> Any:
        """Return the payload as it will stand on the disk: fitting (REC-07) and redacted (REC-08)."""
        return redact_payload(fit(draft.payload))

    def line(self, draft: Draft, payload: Any, event_id: str, now: int) -> bytes:
        """Return the line, LF included. Raises BadRecord for what may not be written."""
        if draft.kind not in WRITTEN:
            raise BadRecord(f"{draft.kind} is not a kind we write")
        moment = instants.spell(now if draft.at is None else draft.at)
        written = _Written(event_id, draft.kind, moment, self._session_id, self._cwd, self._session_path, payload)
        text = compact(written) + b"\n"
        most = LIMITS.selection_append_bytes if draft.kind == "session_preferences" else RECORD_BYTES
        if len(text) > most:
            raise BadRecord(f"a record of {len(text)} bytes")
        return text


def fit(value: Any, room: int = _WRITE_DEPTH) -> Any:
    """Return ``value`` in a shape that every reader can take (REC-07).

    Containers more than 100 deep give way to a mark. A number that JSON or 64 bits cannot carry becomes the string that
    spells it, and a lone surrogate the replacement character: nothing becomes ``null`` or is rounded in silence.
    """
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, Mapping):
        return {fit(str(key)): fit(each, room - 1) for key, each in value.items()} if room else _TOO_DEEP
    if isinstance(value, (list, tuple)):
        return [fit(each, room - 1) for each in value] if room else _TOO_DEEP
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _is_text(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
