"""What is wrong with a line that is no record, and which complete records stand in it (REC-05, REC-06, REC-56). Pure.

A writer who does not look at the tail before it appends joins its record to what stands there (REC-34): to a torn
record, or to a whole one that lacked only its LF. Each complete record of such a line can be had back. JSON decides
where: a value that ends where the line ends has one possible beginning, which counting brackets from behind finds, and
the same holds from the front.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from localagent.protocol.measure import depth

from . import instants, records
from .errors import BadRecord

_DEPTH: Final = 127  # REC-06
_MISSES: Final = 16  # no crash joins so many torn records; a line made to be slow does
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r\n"
_TEXTS: Final = ("event_type", "timestamp", "session_id")
_TEXTS_OR_NULL: Final = ("event_id", "session_path")

_written = re.compile(rb'\{"event_id":"[0-9a-f]{1,16}","event_type":"').search
_forwards = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|["{}\[\]]', re.DOTALL).finditer
_backwards = re.compile(rb'"[^"]*+(?:"(?=\\)[^"]*+)*+"|["{}\[\]]').finditer
"""Strings and brackets of a line read from its end: there the ``\\`` follows the quote that it escapes."""


def is_record(line: bytes, session_id: str) -> bool:
    """Tell whether ``line``, with or without its line end, is a record of the session."""
    try:
        records.parse(line.removesuffix(b"\n").removesuffix(b"\r"), session_id)
    except BadRecord:
        return False
    return True


def owner(line: bytes) -> str | None:
    """Return the session that a whole record belongs to; None for a line that is no record of any."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    named = value.get("session_id") if isinstance(value, dict) else None
    return named if isinstance(named, str) and is_record(line, named) else None


def complete_records(line: bytes, session_id: str) -> list[tuple[int, int]]:
    """Return where complete records of the session stand in a bad line, as (start, end) in bytes, in order.

    First those that begin or end the line, then those that begin or end the rest; what is left is searched for records
    in the order of fields that both programs write.
    """
    start, end = 0, len(line.rstrip(_BLANK))
    front: list[tuple[int, int]] = []
    back: list[tuple[int, int]] = []

    def is_ours(begin: int, stop: int) -> bool:
        return stop > begin and is_record(line[begin:stop], session_id)

    while is_ours(start, stop := _balanced(line, start, end)):
        front.append((start, stop))
        start = stop
    reverse = line[::-1]
    while is_ours(begin := end - _balanced_backwards(reverse, len(line) - end, len(line) - start), end):
        back.append((begin, end))
        end = begin
    misses = 0
    while misses < _MISSES and (head := _written(line, start, end)) is not None:
        start = head.start()
        if is_ours(start, stop := _balanced(line, start, end)):
            front.append((start, stop))
            start = stop
        else:
            start = head.end()
            misses += 1
    return front + back[::-1]


def _balanced(line: bytes, start: int, end: int) -> int:
    """Where the JSON object ends that begins at ``start``; ``start`` if none begins there, or it does not end."""
    return _balance(_forwards(line, start, end), b"{[", start) if line.startswith(b"{", start) else start


def _balanced_backwards(reverse: bytes, start: int, end: int) -> int:
    """How long the JSON object is that begins, as it stands in a reversed line, at ``start``; 0 if none does."""
    return _balance(_backwards(reverse, start, end), b"}]", start) - start if reverse.startswith(b"}", start) else 0


def _balance(tokens: Iterator[re.Match[bytes]], opening: bytes, otherwise: int) -> int:
    """Where the brackets are closed that the first token opens; ``otherwise`` if they are not."""
    level = 0
    for token in tokens:
        mark = token[0]
        if mark in opening:
            level += 1
            if level > _DEPTH:
                break
        elif mark == b'"':  # a string without its other end
            break
        elif len(mark) == 1:
            level -= 1
            if level == 0:
                return token.end()
    return otherwise


def describe(line: bytes, session_id: str) -> str:
    """Say what is wrong with a line that is no record, in a few words that hold nothing of its content."""
    if not line.strip(_BLANK):
        return "an empty line"
    if not line.strip(b"\0"):
        return f"{len(line):,} NUL bytes"
    if line.startswith(_BYTE_ORDER_MARK):
        return "a byte order mark"
    try:
        line.decode()
    except UnicodeDecodeError as fault:
        return f"invalid UTF-8 at byte {fault.start + 1:,}"
    if b"\0" in line:
        return f"a NUL byte at byte {line.index(0) + 1:,}"
    try:
        value = msgspec.json.decode(line)
    except RecursionError:
        return f"nested more than {_DEPTH} deep"
    except msgspec.DecodeError as fault:
        return _no_json(line, str(fault))
    return _no_record(line, value, session_id)


def _no_json(line: bytes, why: str) -> str:
    """What makes a line no JSON; the standard library takes two things that a record may not hold."""

    def constant(_name: str) -> float:
        raise ArithmeticError

    try:
        json.loads(line, parse_constant=constant)
    except ArithmeticError:
        return "NaN or Infinity"
    except (ValueError, RecursionError):
        words = why.partition(": ")[2].partition(" (byte")[0]  # those numbers count from 0 here and from 1 there
        return f"no JSON: {words or 'it ends too early'}"
    return "a lone surrogate, or a number out of range"


def _no_record(line: bytes, value: Any, session_id: str) -> str:
    if not isinstance(value, dict):
        return "JSON, but no object"
    for name in (*_TEXTS, "payload"):
        if name not in value:
            return f"no {name}"
    for name in (*_TEXTS, *_TEXTS_OR_NULL, "cwd"):
        if not isinstance(value.get(name, ""), str) and not (name in _TEXTS_OR_NULL and value[name] is None):
            return f"{name} is of the wrong type"
    if instants.parse(value["timestamp"]) is None:
        return "timestamp is no RFC 3339 time"
    if depth(value) > _DEPTH:
        return f"nested more than {_DEPTH} deep"
    if value["session_id"] != session_id and is_record(line, value["session_id"]):
        return "a record of another session"
    return "a field occurs twice"
