"""Recorded conversations: read from a file, explained by the machines, shown to people or programs.

A capture is NDJSON, one thing seen per line: a line of either side as it crossed (``{"dir": "client", "line": "..."}``)
or already decoded (``{"direction": "backend", "frame": {...}}``), the end of the client's output
(``{"dir": "client", "closed": true}``), the end of the process (``{"exit": 0}``). Any other object is a header. A line
of the client that was recorded without its LF is where its input ended. What cannot be read is a finding of its own,
never an exception.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from json import dumps, loads
from pathlib import Path
from re import compile as pattern
from typing import Any, Final, TextIO

from statemachines.observe import PLAIN, Explanation, Finding, Line, Observer, Source, Step


class Seen(StrEnum):
    """What a line of a capture holds."""

    CLIENT = "client"
    BACKEND = "backend"
    CLOSED = "closed"
    EXIT = "exit"
    HEADER = "header"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a capture: its number in the file, what it holds, and the decoded frame or the status."""

    number: int
    seen: Seen
    value: Any = None
    line: Line = PLAIN


def decode(text: str) -> tuple[Any, Line]:
    """Decode one line of the protocol, and say what its value does not: size, repeated keys, no JSON at all."""
    text = text.removesuffix("\n")
    size = len(text.encode("utf-8", "surrogatepass"))
    repeats: list[bool] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        repeats.append(len(found) != len(pairs))
        return found

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        value = loads(text, object_pairs_hook=members, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None, Line(size, broken=True)
    inside = "params" if any(repeats[:-1]) else ""  # the outermost object ends last
    return value, Line(size, repeated="top" if repeats and repeats[-1] else inside)


def read_capture(path: Path | str) -> list[Entry]:
    """Read a capture; no line of it is left out."""
    texts = Path(path).read_bytes().decode(errors="replace").split("\n")  # only LF ends a line
    records = [(number, _record(text)) for number, text in enumerate(texts, 1) if text.strip()]
    whole = any(str(record.get("line", "")).endswith("\n") for _, record in records if record is not None)
    return [_entry(number, record, whole) for number, record in records]


def _record(text: str) -> dict[str, Any] | None:
    try:
        record = loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _entry(number: int, record: dict[str, Any] | None, whole: bool) -> Entry:
    """``whole``: lines were recorded with their LF."""
    if record is None:
        return Entry(number, Seen.DAMAGED)
    if type(record.get("exit")) is int:
        return Entry(number, Seen.EXIT, record["exit"])
    side = record.get("dir", record.get("direction"))
    if side is None:
        return Entry(number, Seen.HEADER, record)
    if side == "client" and record.get("closed") is True:
        return Entry(number, Seen.CLOSED, False)
    if side not in ("client", "backend") or not ("frame" in record or isinstance(record.get("line"), str)):
        return Entry(number, Seen.DAMAGED)
    if "frame" in record:
        return Entry(number, Seen(side), record["frame"])
    value, line = decode(record["line"])
    if whole and not record["line"].endswith("\n"):
        return Entry(number, Seen.CLOSED, True) if side == "client" else Entry(number, Seen.BACKEND, None, line)
    return Entry(number, Seen(side), value, line)


def explain(entries: Iterable[Entry]) -> Iterator[Explanation]:
    """Explain a capture, entry by entry, and its end."""
    observer, closed = Observer(), False
    for entry in entries:
        observer.number = entry.number - 1
        match entry.seen:
            case Seen.CLIENT:
                yield observer.client(entry.value, entry.line)
            case Seen.BACKEND:
                yield observer.backend(entry.value, entry.line)
            case Seen.CLOSED if not closed:
                closed = True
                yield observer.client_closed(inside_frame=entry.value)
            case Seen.EXIT:
                yield observer.exited(entry.value)
            case Seen.DAMAGED:
                finding = Finding(entry.number, "the line of the capture cannot be read", "capture", "", ("FRAME-03",))
                yield Explanation(entry.number, Source.PROCESS, "damaged", findings=(finding,))
    yield observer.finish()


_UUID: Final = pattern("([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_ARROWS: Final = {Source.CLIENT: ">", Source.BACKEND: "<", Source.PROCESS: "."}


def _short(text: str) -> str:
    return _UUID.sub(r"\1", text)


def _move(step: Step) -> str:
    moved = step.source is not step.dest
    return f"{step.source.value} -> {step.dest.value}" if moved else str(step.source.value)


def _rows(explanation: Explanation) -> Iterator[tuple[str, ...]]:
    """A line for the frame and its first step, one for each further step. ``~`` marks what was inferred."""
    head = (str(explanation.frame), _ARROWS[explanation.source], _short(explanation.label))
    for step in explanation.steps:
        mark = "~" if step.inferred else " "
        yield (*head, f"{mark}{_short(step.instance)}:", _move(step), step.input.value, " ".join(step.clauses))
        head = ("", "", "")
    if not explanation.steps:
        yield (*head, "", "", "", "")


def render(explanations: Iterable[Explanation]) -> str:
    """The explanations for people: frame, machine, move, input, clauses, in columns; findings below their frame."""
    told = list(explanations)
    table = [list(_rows(each)) for each in told]
    widths = [max((len(row[i]) for rows in table for row in rows), default=0) for i in range(6)]
    lines = []
    for explanation, rows in zip(told, table, strict=True):
        for row in rows:
            cells = [cell.rjust(width) if i == 0 else cell.ljust(width)
                     for i, (cell, width) in enumerate(zip(row[:6], widths, strict=True))]  # fmt: skip
            lines.append("  ".join([*cells, row[6]]).rstrip())
        indent = " " * (widths[0] + 5)
        lines += [f"{indent}note: {_short(note)}" for note in explanation.notes]
        lines += [f"{indent}{_finding(finding)}" for finding in explanation.findings]
    count = sum(len(each.findings) for each in told)
    lines.append(f"{len(told) - 1} frames, " + ("all explained" if count == 0 else f"{count} findings"))
    return "\n".join(lines) + "\n"


def _finding(finding: Finding) -> str:
    kind = "reading" if finding.reading else "FINDING"
    where = f"{_short(finding.machine)} {finding.state}".rstrip()
    return f"{kind}: {_short(finding.what)} ({where}; {' '.join(finding.clauses)})"


def to_data(explanation: Explanation) -> dict[str, Any]:
    """An explanation for programs."""
    return {
        "frame": explanation.frame,
        "source": explanation.source.value,
        "label": explanation.label,
        "steps": [
            {
                "instance": step.instance,
                "source": step.source.value,
                "input": step.input.name,
                "dest": step.dest.value,
                "clauses": list(step.clauses),
                "inferred": step.inferred,
            }
            for step in explanation.steps
        ],
        "notes": list(explanation.notes),
        "findings": [
            {
                "what": finding.what,
                "machine": finding.machine,
                "state": finding.state,
                "clauses": list(finding.clauses),
                "reading": finding.reading,
            }
            for finding in explanation.findings
        ],
    }


def observe_file(path: Path | str, json: bool, out: TextIO) -> int:
    """Explain a capture on ``out``; 0 when everything is explained, 1 when there is a finding."""
    explanations = list(explain(read_capture(path)))
    if json:
        out.write(dumps([to_data(each) for each in explanations], ensure_ascii=False, indent=1) + "\n")
    else:
        out.write(render(explanations))
    return int(any(each.findings for each in explanations))
