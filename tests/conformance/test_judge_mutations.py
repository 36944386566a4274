"""A thousand seeded mutations of good transcripts: the judge crashes on none, and sees what can be seen.

A mutation drops, doubles or swaps frames of the backend, or alters one field of one. ``seq`` is counted anew after the
first three: otherwise the counter alone would give them away. Why a mutation stays unseen is decided here, from where
it struck: each reason is tied to a sentence of the contract.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from localagent.conformance import cases, transcript
from localagent.conformance.judge import conclusion, judge
from localagent.conformance.model import Record, Transcript

DATA: Final = Path(__file__).parents[1] / "data"
SOURCES: Final = ("captures/plain", "captures/tools", "captures/discovery", "transcripts/own")
KINDS: Final = ("drop", "duplicate", "swap", "alter")
FEW: Final = 160
MANY: Final = 1000
LEAST: Final = 0.72
"""The share that is reported at least: what is left is what frames cannot show."""


@cache
def source(name: str) -> Transcript:
    return transcript.read(DATA / f"{name}.ndjson")


@dataclass(frozen=True)
class Mutated:
    """What was done, where, and what became of it."""

    name: str
    kind: str
    label: str
    path: tuple[str, ...]
    after: Transcript
    old: Any = None
    new: Any = None
    beside: str = ""
    """The frame that it was swapped with."""


def _frame(record: Record) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record.data)
    return found


def _label(frame: dict[str, Any], asked: dict[str, str]) -> str:
    if "event" in frame:
        return str(frame["event"])
    return f"{asked.get(frame['id'] or '', 'nothing')} {'error' if 'error' in frame else 'result'}"


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from _leaves(each, (*path, key))
    if not isinstance(value, dict | list):
        yield path


_OTHERS: Final[tuple[Any, ...]] = (None, "x", 7, True, [], {})


def _other(value: Any, rng: random.Random) -> Any:
    """Another value; mostly of the same type."""
    if rng.random() < 0.2:
        return rng.choice([other for other in _OTHERS if type(other) is not type(value)])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + rng.choice((-1, 1, 1000))
    if isinstance(value, str) and value:
        at = rng.randrange(len(value))
        return value[:at] + ("x" if value[at] != "x" else "y") + value[at + 1 :]
    return "x"


def _renumbered(records: list[Record]) -> Transcript:
    seq, found = 0, []
    for number, record in enumerate(records, 1):
        data = record.data
        if record.kind == "backend":
            seq += 1
            data = json.dumps({**_frame(record), "seq": seq}).encode() + b"\n"
        found.append(replace(record, number=number, data=data))
    return Transcript(tuple(found))


def mutate(name: str, kind: str, rng: random.Random) -> Mutated:
    records = list(source(name).records)
    asked = {each["id"]: each["method"] for each in map(_request, records) if each}
    places = [i for i, each in enumerate(records) if each.kind == "backend"]
    at = rng.choice(places[:-1] if kind == "swap" else places)
    frame = _frame(records[at])
    label = _label(frame, asked)
    if kind == "alter":
        path = rng.choice([*_leaves(frame)])
        inner: Any = frame
        for key in path[:-1]:
            inner = inner[key]
        old, new = inner[path[-1]], _other(inner[path[-1]], rng)
        inner[path[-1]] = new
        records[at] = replace(records[at], data=json.dumps(frame).encode() + b"\n")
        words = tuple(key for key in path if isinstance(key, str))
        return Mutated(name, kind, label, words, Transcript(tuple(records)), old, new)
    beside = ""
    if kind == "drop":
        del records[at]
    elif kind == "duplicate":
        records.insert(at, records[at])
    else:
        other = places[places.index(at) + 1]
        beside = _label(_frame(records[other]), asked)
        records[at], records[other] = records[other], records[at]
    return Mutated(name, kind, label, (), _renumbered(records), beside=beside)


def _request(record: Record) -> dict[str, Any] | None:
    try:
        frame = json.loads(record.data) if record.kind == "client" else None
    except ValueError:
        return None
    return frame if isinstance(frame, dict) and "method" in frame else None


@cache
def judged(count: int) -> list[tuple[Mutated, str]]:
    rng = random.Random(6)
    found: list[tuple[Mutated, str]] = []
    for i in range(count):
        each = mutate(SOURCES[i % len(SOURCES)], KINDS[i // len(SOURCES) % len(KINDS)], rng)
        found.append((each, conclusion(judge(each.after, None, None), each.after)))
    return found


_FREE_TEXT: Final = {"text", "summary", "title", "updated_at", "name", "provider", "model", "context_id"}
_OPAQUE: Final = {"id", "instance_id", "session_id", "run_id", "message_id", "activity_id", "revision", "next_cursor",
                  "approval_id", "request_id", "selection_id"}  # fmt: skip


@cache
def _pending(name: str) -> list[str]:
    """The answers behind whose request only ``shutdown`` was sent, where no time tells that there was time enough."""
    sent = [each["method"] for each in map(_request, source(name).records) if each]
    timed = "transcript" in source(name).header
    return [] if timed or sent[-1] != "shutdown" else [f"{sent[-2]} result"]


_EPHEMERAL: Final = {"message.delta", "message.reconcile", "activity", "diagnostic"}

_RACES: Final = {"turn.cancel result", "approval.answer result", "status result"}


def excuse(m: Mutated) -> str:
    """Why a mutation may stay unseen; empty when it must not."""
    key = m.path[-1] if m.path else ""
    match m.kind:
        case "drop" if m.label in _EPHEMERAL:
            return "a delta, a repeated reconciliation, an end of activity may be missing (EVT-19, BASE-OP-167, -172)"
        case "drop" if m.label in _pending(m.name):
            return "an operation pending at shutdown may stay unanswered (BASE-OP-61)"
        case "duplicate" if m.label == "message.reconcile":
            return "a whole reconciliation may come again (BASE-OP-167)"
        case "duplicate" if m.label == "activity":
            return "every sequence of the three states is allowed (BASE-OP-172)"
        case "swap" if {m.label, m.beside} <= {*_EPHEMERAL, "approval.requested"}:
            return "what a run tells of its segments, activities and approvals has no order (EVT-49, BASE-OP-169)"
        case "swap" if {m.label, m.beside} & _EPHEMERAL and {m.label, m.beside} & _RACES:
            return "the run goes on while a request is answered"
        case "alter" if m.path == ("type",):
            return "the type of an event frame is an open point (BASE-OP-163)"
        case "alter" if key in _FREE_TEXT and (isinstance(m.new, str) or m.new is None):
            return "no other frame tells which text is true"
        case "alter" if key in _OPAQUE and isinstance(m.new, str):
            return "an opaque id that nothing else names (CLIENT-22)"
        case "alter" if key == "seq" and m.new > m.old:
            return "seq may skip (BASE-OP-43)"
        case "alter" if key in ("partial", "complete", "part", "last_part", "durable"):
            return "a flag that another frame may still confirm (BASE-OP-117, -167)"
        case "alter" if "limits" in m.path and type(m.new) is int:
            return "a limit that the contract does not name (D72)"
        case "alter" if key in ("expires_in_ms", "progress", "kind", "requested_effort", "effective_effort", "limits"):
            return "a value that no other frame tells (CLIENT-20)"
        case "alter" if "limits" in m.path:
            return "keys of limits are free, but for those named (D72)"
    return ""


def test_the_sources_are_good() -> None:
    for name in SOURCES:
        results = judge(source(name), None, None)
        assert conclusion(results, source(name)) == "conformant", name


def share(count: int) -> float:
    """The share of mutations that are reported."""
    return sum(outcome != "conformant" for _, outcome in judged(count)) / count


def unexplained(count: int) -> list[tuple[Any, ...]]:
    """The mutations that stay unseen without a reason."""
    unseen = [each for each, outcome in judged(count) if outcome == "conformant"]
    return [(each.kind, each.label, each.path, each.old, each.new) for each in unseen if not excuse(each)]


def test_the_judge_crashes_on_no_mutation_and_sees_what_can_be_seen() -> None:
    assert share(FEW) >= LEAST
    assert unexplained(FEW) == []


@pytest.mark.deep
def test_a_thousand_mutations() -> None:
    assert share(MANY) >= LEAST
    assert unexplained(MANY) == []


def test_a_transcript_that_is_cut_off_is_never_all_green() -> None:
    for name in SOURCES:
        records = source(name).records
        for count in range(0, len(records), 11):
            cut = Transcript(records[:count])
            assert conclusion(judge(cut, None, None), cut) != "conformant", (name, count)


def test_damaged_files_are_judged() -> None:
    """Bytes of a file are damaged anywhere; whatever can be read of it is judged, and nothing raises."""
    rng = random.Random(7)
    data = (DATA / "transcripts/own.ndjson").read_bytes()
    for _ in range(20):
        damaged = bytearray(data)
        for _ in range(rng.randrange(1, 6)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        found = transcript.read(bytes(damaged))
        conclusion(judge(found, None, None), found)


STEPS: Final = """
[[case]]
id = "a.case"
title = "Every kind of step"
tier = 1
clauses = ["STATUS-03"]
prompts = ["plain"]
steps = [
  { start = true, as = "init", check = "start" },
  { send = "session.create", as = "new" },
  { answer = "new", result = { durable = false } },
  { turn = "plain", session = "$new.result.session_id", as = "t1", check = "turn" },
  { event = "run.finished", run = "t1", as = "f1", data = { outcome = "completed" } },
  { texts = "t1", as = "live" },
  { absent = "message.delta", since = "f1" },
  { pages = "session.list", as = "h" },
  { same = ["$live.joined", "$live.joined"] },
  { match = "$h.items", pattern = "*array" },
  { raw = "{\\n", as = "r" },
  { answer = "", error = ["invalid_request", "invalid_frame"] },
  { nothing = true },
  { close = true },
  { exit = [0], within_ms = 3000, since = "close" },
]
"""
JUNK: Final = (
    b"{}", b"[]", b'"x"', b"null", b"\xff", b"", b'{"id":{},"error":[]}', b'{"event":[],"data":1}',
    b'{"type":"response","id":"init","result":null}', b'{"type":"response","id":null,"error":"x"}',
    b'{"type":"response","id":"new","error":{"code":[]}}', b'{"type":"response","id":"t1","result":{"run_id":[]}}',
    b'{"type":"event","event":"run.finished","data":{"run_id":{},"outcome":{}}}',
    b'{"type":"response","id":"h.1","result":{"next_cursor":null}}',
    b'{"type":"response","id":"init","result":{"capabilities":{}}}',
)  # fmt: skip


def test_whatever_a_backend_says_does_not_stop_the_judge() -> None:
    rng = random.Random(8)
    (case,) = cases.parse(STEPS)
    good = source("transcripts/own").records
    for _ in range(150):
        records = [each for each in good if rng.random() < 0.9]
        for _ in range(rng.randrange(1, 12)):
            at = rng.randrange(len(records))
            records.insert(at, Record(0, "backend", rng.choice((None, 5.0)), rng.choice(JUNK) + b"\n"))
        found = Transcript(tuple(replace(each, number=number) for number, each in enumerate(records, 1)))
        results = judge(found, case, frozenset())
        assert len(results) >= len(case.checks)
        conclusion(results, found)
