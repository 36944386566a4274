"""The judge: a transcript, a case, and what the peer advertises, in; a verdict per check, out. Pure.

Three families of checks: ``trace/CLAUSE`` for every clause that the observer can look at, ``process/...`` for how the
process ended, and ``case/name`` for what the case expects. The judge reads the transcript alone, so that a recorded
file gives the same verdicts as the live run, and a foreign one is judged as far as it goes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, Literal

from localagent.conformance.judge_case import Walk
from localagent.conformance.judge_lines import FAULT, Child, children, groups, words
from localagent.conformance.judge_process import CHECKS, course, process_checks
from localagent.conformance.judge_trace import TRACE_CLAUSES, observe, trace_checks, unlooked
from localagent.conformance.model import Blame, Case, CheckResult, Reason, Transcript, Verdict, worst

__all__ = ["PROCESS_CHECKS", "TRACE_CLAUSES", "advertised", "conclusion", "judge"]

PROCESS_CHECKS: Final = CHECKS
"""Process check -> the clauses that it can show."""

Conclusion = Literal["conformant", "violations", "inconclusive"]


def judge(transcript: Transcript, case: Case | None, capabilities: frozenset[str] | None) -> tuple[CheckResult, ...]:
    """The verdict of every check.

    With a case: its own checks, all of them, then the trace and process checks that came to something. Without one,
    as for a foreign transcript, also the trace checks that did not. ``capabilities`` are those advertised, None where
    they are to be read from the transcript. Never raises, whatever the transcript holds.
    """
    found = children(transcript)
    known = _advertised(transcript, found) if capabilities is None else capabilities
    unrun = _unrun(transcript, case, known)
    if case is not None and unrun is not None:
        verdict, what, reason = unrun
        return tuple(CheckResult(each.check, each.clauses, verdict, what, reason=reason) for each in case.checks)
    traces = [observe(child, known) for child in found]
    courses = [course(child, trace) for child, trace in zip(found, traces, strict=True)]
    own = own_exits(case, len(courses))
    results = list(Walk(case, courses).results()) if case is not None else []
    results += trace_checks(traces, known)
    results += _merged(
        each for one, judged in zip(courses, own, strict=True) for each in process_checks(one, own_exit=judged)
    )
    results += _damaged(transcript)
    results += unlooked(results, known) if case is None else ()
    return tuple(results)


def own_exits(case: Case | None, children: int) -> list[bool]:
    """Of each child, whether the case judges its end itself, or brings it about: a ``restart`` begins the next one."""
    found, number = [False] * children, 0
    for step in case.steps if case is not None else ():
        number += step.kind == "restart"
        if number < children and step.kind in ("exit", "kill", "launch"):
            found[number] = True
    return found


def _unrun(
    transcript: Transcript, case: Case | None, known: frozenset[str] | None
) -> tuple[Verdict, str, Reason] | None:
    """Why a case says nothing at all, if so."""
    if case is None:
        return None
    missing = [name for name in case.needs if known is not None and name not in known]
    if missing:
        return Verdict.NOT_CLAIMED, f"not advertised: {', '.join(missing)}", "capability"
    if any(each.kind not in ("header", "footer") for each in transcript.records):
        return None
    reason: Reason = "needs-fixture" if case.fixtures else "needs-model" if case.prompts else "not-reached"
    return Verdict.NOT_EXERCISED, "the case was not run", reason


def advertised(transcript: Transcript) -> frozenset[str] | None:
    """The capabilities that our header names, or the first result of ``initialize``; None when there are none."""
    return _advertised(transcript, children(transcript))


def _advertised(transcript: Transcript, found: Iterable[Child]) -> frozenset[str] | None:
    told = transcript.header.get("capabilities")
    if "transcript" in transcript.header and isinstance(told, list) and told:
        return frozenset(name for name in told if isinstance(name, str))
    return next((names for names in map(_capabilities, found) if names is not None), None)


def _capabilities(child: Child) -> frozenset[str] | None:
    asked = {each.name for each in child.client if each.frame.get("method") == "initialize"}
    for each in child.backend:
        found = each.frame.get("result")
        names = found.get("capabilities") if isinstance(found, dict) and each.name in asked else None
        if isinstance(names, list):
            return frozenset(name for name in names if isinstance(name, str))
    return None


def _merged(results: Iterable[CheckResult]) -> Iterator[CheckResult]:
    """One result for each process check: of several children the worst counts."""
    by_check: dict[str, list[CheckResult]] = {}
    for each in results:
        by_check.setdefault(each.check, []).append(each)
    for found in by_check.values():
        bad = worst(each.verdict for each in found)
        first = next(each for each in found if each.verdict is bad)
        shown = dict.fromkeys(clause for each in found if each.verdict is bad for clause in each.clauses)
        yield replace(first, clauses=tuple(shown))


def _damaged(transcript: Transcript) -> Iterator[CheckResult]:
    damaged = [each.number for each in transcript.records if each.kind == "damaged"]
    if damaged:
        what = f"{len(damaged)} lines of the transcript cannot be read"
        yield CheckResult("process/transcript", (), Verdict.HARNESS_FAULT, what, Blame.HARNESS, damaged[0])
    faults = [each for each in transcript.records if each.kind == "mark" and words(each.value).startswith(FAULT)]
    if faults:
        yield CheckResult(
            "process/driver", (), Verdict.HARNESS_FAULT, words(faults[0].value), Blame.HARNESS, faults[0].number
        )


def conclusion(results: Iterable[CheckResult], transcript: Transcript) -> Conclusion:
    """What it comes to: violations if there is one; conformant only if the transcript is whole and something held."""
    verdicts = {each.verdict for each in results}
    if Verdict.VIOLATED in verdicts:
        return "violations"
    if Verdict.HARNESS_FAULT in verdicts or Verdict.HELD not in verdicts or not whole(transcript):
        return "inconclusive"
    return "conformant"


def whole(transcript: Transcript) -> bool:
    """Whether the recording reaches the end of every child; ours says so itself."""
    ends = all(any(each.kind == "exit" for each in group) for group in groups(transcript))
    return ends and (transcript.complete or "transcript" not in transcript.header)
