"""What a busy host may have caused: which failures are in doubt, and what becomes of them. Pure."""

from collections.abc import Container
from dataclasses import replace
from typing import Final

from localagent.conformance.model import TIMED, Blame, CaseResult, CheckResult, Reason, Verdict

FAILED: Final = frozenset({Verdict.VIOLATED, Verdict.DEVIATION})


def _late(result: CaseResult) -> frozenset[CheckResult]:
    """The checks that failed by missing a time limit."""
    timed = {each.check for each in result.case.checks if each.timed}
    return frozenset(each for each in result.results if each.verdict in FAILED and _about(each, timed))


def _about(check: CheckResult, timed: Container[str]) -> bool:
    return check.blame in TIMED or check.check in timed


def suspicious(result: CaseResult) -> bool:
    """True when a time limit was missed: that counts only once the case has been run again, alone."""
    return bool(_late(result))


def excused(result: CaseResult, verdict: Verdict, what: str, spared: Container[str] = ()) -> CaseResult:
    """The result with another verdict on the missed time limits, which cannot be held against the target.

    ``spared``: checks that keep the verdict they have.
    """
    starved = verdict is Verdict.HARNESS_FAULT
    blame = Blame.HOST_STARVED if starved else Blame.NONE
    reason: Reason = "" if starved else "not-reached"
    late = _late(result)
    checks = tuple(
        replace(each, verdict=verdict, blame=blame, reason=reason, what=f"{each.what} ({what})".lstrip())
        if each in late and each.check not in spared
        else each
        for each in result.results
    )
    return replace(result, results=checks)


def joined(first: CaseResult, again: CaseResult) -> CaseResult:
    """What counts of two runs of a case: the second, unless the first alone has seen a failure that no host causes.

    That one stands then, and beside it only the time limits that were missed again.
    """
    failed = {each.check for each in again.results if each.verdict in FAILED}
    seen = {each.check for each in first.results if each.verdict in FAILED} - {each.check for each in _late(first)}
    if seen <= failed:
        return again
    return excused(first, Verdict.NOT_EXERCISED, "it did not fail when the case was run again, alone", failed)
