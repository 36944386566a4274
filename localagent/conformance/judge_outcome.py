"""What the judge says of one expectation, before it is a result. Pure."""

from localagent.conformance.frames import Frame
from localagent.conformance.judge_trace import failing
from localagent.conformance.model import Blame, CheckResult, Expectation, Reason, Verdict

Outcome = tuple[Verdict, str, Blame, int | None, Reason]
"""Verdict, in words, whose fault, the record that shows it, why it was not exercised."""


def held(record: int | None = None, what: str = "") -> Outcome:
    """The expectation is met."""
    return Verdict.HELD, what, Blame.NONE, record or None, ""


def failed(what: str, blame: Blame, record: int | None = None) -> Outcome:
    """The expectation is not met."""
    return Verdict.VIOLATED, what[:300], blame, record or None, ""


def unreached(what: str, reason: Reason = "not-reached") -> Outcome:
    """It never came to that."""
    return Verdict.NOT_EXERCISED, what, Blame.NONE, None, reason


def result(expectation: Expectation, outcome: Outcome) -> CheckResult:
    """The result of a check; what is merely recorded, or a SHOULD, is never a violation."""
    verdict, what, blame, record, reason = outcome
    if expectation.level == "record" and verdict in (Verdict.HELD, Verdict.VIOLATED):
        verdict, blame = Verdict.RECORDED, Blame.NONE
    elif verdict is Verdict.VIOLATED:
        verdict = Verdict.DEVIATION if expectation.level == "should" else failing(expectation.clauses)
    return CheckResult(expectation.check, expectation.clauses, verdict, what, blame, record, reason)


def brief(frame: Frame) -> str:
    """A frame in a word or two."""
    error = frame.get("error")
    if error is not None:
        return f"error {error.get('code') if isinstance(error, dict) else error!r}"
    if frame.event is not None:
        return f"event {frame.event}"
    return "a result" if isinstance(frame.value, dict) and "result" in frame.value else f"{frame.data[:80]!r}"
