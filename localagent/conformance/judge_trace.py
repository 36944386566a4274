"""Trace checks: every clause that the observer looks at, judged in one transcript. Pure.

Each child of the transcript is replayed by an observer of its own. A finding violates the clauses that demand what is
not so; a clause that was looked at, and that no finding names, held.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from localagent.conformance.judge_lines import STOPS, Child, Item, words
from localagent.conformance.model import Blame, CheckResult, Verdict
from localagent.conformance.register import Clause, find
from statemachines.observe import Explanation, Finding, Observer
from statemachines.witness.shapes import SIXTEEN
from statemachines.witness.sight import CLAUSES

NEEDS: Final = {
    "TC": "tool.cards",
    "CT": "client.tools",
    "EXT-DISC": "session.discover",
    "EXT-STATUS": "model.catalog.status",
    "EXT-REFRESH": "model.refresh",
    "EXT-CANCEL": "operation.cancel",
    "LIST": "session.list",
    "CAT": "model.catalog",
    "SEL": "selection.set",
}
"""Family of clauses -> the capability they are about."""

DEADLINE_MS: Final = 2_000.0
"""Of the output queue, of draining, and again of cleanup (BOUND-27, BOUND-29, BOUND-30)."""
ALWAYS: Final = SIXTEEN - {*NEEDS.values(), "model.catalog.status", "operation.cancel"}
"""The capabilities that no client must require (CLIENT-29, CLIENT-30): a backend is held to these in any case."""

_BYTES: Final = ("FRAME-02", "FRAME-03", "FRAME-04", "FRAME-05", "FRAME-06", "FRAME-10", "FRAME-11")
"""What every line of output shows."""
_SIZE: Final = "BOUND-02"
"""What it shows where it was recorded byte by byte."""
_ENVELOPE: Final = frozenset({"protocol", "version", "instance_id", "seq", "result", "error"})
"""Of these a frame has some, however wrong it is."""
_ALONE: Final = frozenset({*_BYTES, "ENV-18", "ENV-29", "ENV-30", "ENV-33"})
"""What frames show without those that came before the first of them."""
_STORED: Final = frozenset({"event_id", "event_type", "payload"})
"""Keys of every stored record."""
_TOLD: Final = frozenset({"type", "event", "event_type", "kind"})
"""By one of these an event says which it is."""


_UNSHOWN: Final = frozenset({"BOUND-35", "EVT-15", "EVT-28", "EVT-41", "SESS-05", "TURN-10"})
"""Clauses of rows that no frame can contradict: where such a row is missing, the fault is another clause's."""


def _checked(clause: str) -> bool:
    """Whether frames show it: not what only a store or nothing shows, what is allowed, or what binds the client."""
    entry = find(clause)
    if clause in _UNSHOWN:
        return False
    if not isinstance(entry, Clause):
        return True
    return entry.observability in ("", "wire") and entry.keyword != "MAY" and entry.bound != "client"


TRACE_CLAUSES: Final = frozenset(clause for clause in (*CLAUSES, *_BYTES, _SIZE) if _checked(clause))
"""Every clause with a trace check."""


def broken(finding: Finding) -> tuple[str, ...]:
    """The clauses that a finding violates: of a rule about frames each, for each demands it by itself; of what no row
    explains the first with a trace check.
    """
    checked = tuple(each for each in finding.clauses if each in TRACE_CLAUSES)
    return checked[: None if finding.machine == "frame" else 1] or (finding.clause,)


def needed(clause: str) -> str | None:
    """The capability that a clause is about, None for the base."""
    return NEEDS.get(clause.rpartition("-")[0])


@cache
def failing(clauses: tuple[str, ...]) -> Verdict:
    """What becomes of clauses that do not hold: a deviation when all of them are SHOULD."""
    entries = [find(each) for each in clauses]
    should = [isinstance(each, Clause) and each.keyword.startswith("SHOULD") for each in entries]
    return Verdict.DEVIATION if should and all(should) else Verdict.VIOLATED


@dataclass(slots=True)
class Trace:
    """What an observer saw of one child."""

    findings: list[Finding] = field(default_factory=list)
    looked: set[str] = field(default_factory=set)
    exit_fault: Finding | None = None
    """The exit status that frames exclude."""
    left: tuple[str, ...] = ()
    """What was open when the process ended."""


def observe(child: Child, capabilities: frozenset[str] | None = None) -> Trace:
    """Replay a child. Once it was asked by a signal to end, only the frames themselves are judged (D50); so they are
    where the recording begins in the middle.
    """
    claimed = SIXTEEN if capabilities is None else SIXTEEN & (capabilities | ALWAYS)
    observer, trace, free = Observer(claimed), Trace(), False
    for each in child.seen:
        observer.number = each.record - 1
        if each.kind == "signal":
            free = free or each.value in STOPS or each.value == "SIGKILL"
            continue
        explanations = list(_feed(observer, each, trace, child))
        for explanation in explanations:
            alone = free or child.middle
            trace.looked |= explanation.looked & _ALONE if child.middle else explanation.looked
            trace.findings += [f for f in explanation.findings if not alone or f.machine == "frame"]
    if child.middle:
        trace.findings = [f for f in trace.findings if "ENV-28" not in f.clauses]
    return trace


def _feed(observer: Observer, seen: Item, trace: Trace, child: Child) -> Iterator[Explanation]:
    match seen.kind:
        case "client":
            yield observer.client(seen.value, seen.line)
        case "backend":
            yield from _read(observer, seen, trace)
        case "closed":
            yield observer.client_closed(inside_frame=seen.cut)
        case "exit" if isinstance(seen.value, int):
            trace.left = observer.left
            trace.exit_fault = next(iter(observer.exited(seen.value).findings), None)
            observer.number = seen.record - 1
            if not child.unread:  # what was not read may have been sent
                yield observer.finish(in_time=_in_time(child, seen))


def _in_time(child: Child, end: Item) -> bool:
    """Whether the process ended before the closing deadline, as far as times tell."""
    begun = [each.t for each in child.seen if each.kind == "closed" or each.frame.get("method") == "shutdown"]
    times = [each for each in begun if each is not None]
    known = child.ours and bool(times) and end.t is not None  # who knows what the times of others count
    return known and end.t is not None and end.t - min(times) < DEADLINE_MS


def _read(observer: Observer, seen: Item, trace: Trace) -> Iterator[Explanation]:
    """A line of output: its bytes are judged here, a frame by the observer."""
    trace.looked |= {*_BYTES, *([_SIZE] if seen.line.size else [])}
    if isinstance(seen.value, dict):
        if not _ENVELOPE & set(seen.value):
            what, clauses = _stranger(seen.value)
            trace.findings.append(Finding(seen.record, f"{what} stands where a frame must", "frame", "", clauses))
        yield observer.backend(seen.value, seen.line)
        return
    try:
        seen.data.decode()
        fault, clauses = "a line of output is no JSON object", ("FRAME-03", "FRAME-06")
    except UnicodeDecodeError:
        fault, clauses = "a line of output is not UTF-8", ("FRAME-02", "FRAME-06")
    trace.findings.append(Finding(seen.record, fault, "frame", "", clauses))


def _stranger(value: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """What an object without any member of an envelope is, and which clauses it violates."""
    if set(value) >= _STORED:
        return "a stored record", ("FRAME-10", "FRAME-06")
    if _TOLD & set(value):
        return "an event of another form", ("FRAME-11", "FRAME-06")
    return "an object of another kind", ("FRAME-06",)


def trace_checks(traces: Iterable[Trace], capabilities: frozenset[str] | None) -> Iterator[CheckResult]:
    """One result for each clause that was looked at or violated.

    Whether all sixteen names are there (NEG-02) is not claimed where some of those that clients must require are not.
    """
    traces = list(traces)
    found = [each for trace in traces for each in trace.findings if not each.reading]
    by_clause: dict[str, list[Finding]] = {}
    for finding in found:
        for clause in broken(finding):
            by_clause.setdefault(clause, []).append(finding)
    for clause, findings in by_clause.items():
        yield _violated(clause, findings)
    named = {clause for finding in found for clause in finding.clauses}
    looked = set().union(*(trace.looked for trace in traces)) & TRACE_CLAUSES - named
    absent = SIXTEEN - capabilities if capabilities is not None else frozenset()
    if absent and "NEG-02" in looked:
        what = f"not advertised: {', '.join(sorted(absent))}"
        yield CheckResult("trace/NEG-02", ("NEG-02",), Verdict.NOT_CLAIMED, what, reason="capability")
        looked -= {"NEG-02"}
    for clause in sorted(looked):
        yield CheckResult(f"trace/{clause}", (clause,), Verdict.HELD)


def _violated(clause: str, findings: list[Finding]) -> CheckResult:
    first = min(findings, key=lambda each: each.frame)
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    also = f" [{' '.join(each for each in first.clauses if each != clause)}]" if len(first.clauses) > 1 else ""
    where = f"{first.machine} {first.state}".strip()
    what = words(first.what) + also + more
    verdict = failing((clause,))
    return CheckResult(f"trace/{clause}", (clause,), verdict, what, Blame.WRONG, first.frame, machine=where)


def unlooked(results: Iterable[CheckResult], capabilities: frozenset[str] | None) -> Iterator[CheckResult]:
    """The trace checks that came to nothing: not claimed where the capability is not advertised, else not exercised."""
    done = {each.check for each in results}
    for clause in sorted(TRACE_CLAUSES):
        check, need = f"trace/{clause}", needed(clause)
        if check in done:
            continue
        if capabilities is not None and need is not None and need not in capabilities:
            yield CheckResult(check, (clause,), Verdict.NOT_CLAIMED, reason="capability")
        else:
            yield CheckResult(check, (clause,), Verdict.NOT_EXERCISED, reason="not-reached")
