"""From cases to clauses: one verdict per clause, counts per family, one status for the run. Pure.

A clause has the worst verdict of all checks that cite it, in whatever case they stand. The probes of the target's
sanity are cases like others for its clauses, but they do not count as having exercised anything.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from json import dumps
from typing import Any, Final, Literal

from localagent.conformance import register
from localagent.conformance.model import CaseResult, CheckResult, Record, Verdict, worst

End = Literal["complete", "cut", "insane"]
"""How a run ended: with its last case, by an interrupt, or because the target was not sane before or after it."""

SANITY: Final = "sanity"
"""The family of the probes: before the first case and after the last, and of an extension that fails when asked for."""

EXERCISED: Final = frozenset({Verdict.HELD, Verdict.VIOLATED, Verdict.DEVIATION})
"""Verdicts that say that a clause was put to the test."""


class Status(IntEnum):
    """The exit status of the command."""

    CONFORMANT = 0
    VIOLATION = 1
    INCONCLUSIVE = 2
    FAULT = 3
    """Wrong usage, or the suite itself failed."""


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run.

    ``header`` says what was run, where and when; ``universe`` are the clauses that the run was asked about, whether a
    check came to them or not; ``reasons`` says of some of them why there is none.
    """

    header: Mapping[str, Any]
    cases: tuple[CaseResult, ...]
    end: End = "cut"
    universe: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def strict(self) -> bool:
        """True when deviations count as violations."""
        return bool(self.header.get("strict"))

    @property
    def failing(self) -> frozenset[Verdict]:
        """The verdicts that say that the target does not conform."""
        return frozenset({Verdict.VIOLATED, Verdict.DEVIATION} if self.strict else {Verdict.VIOLATED})


@dataclass(frozen=True, slots=True)
class Evidence:
    """One check on a clause, and the case in which it was made."""

    case: CaseResult
    check: CheckResult


@dataclass(frozen=True, slots=True)
class ClauseVerdict:
    """What a clause came to. ``reason``: why it was not put to the test, empty if it was."""

    clause: str
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    reason: str = ""

    @property
    def decisive(self) -> tuple[Evidence, ...]:
        """The checks that made the verdict."""
        return tuple(each for each in self.evidence if each.check.verdict is self.verdict)


def family(clause: str) -> str:
    """The family of a clause: ``TURN`` of ``TURN-14``; decisions and open points have one each."""
    if clause[:1] == "D" and clause[1:].isdigit():
        return "D"
    return clause.partition("-")[0]


@cache
def _order() -> Mapping[str, int]:
    ids = [clause for page in register.PAGES for clause in register.clauses(page)]
    return {clause: place for place, clause in enumerate(ids)}


def in_order(ids: Iterable[str]) -> list[str]:
    """The ids in the order of the register; what it does not number comes last, by name."""
    order = _order()
    return sorted(set(ids), key=lambda each: (order.get(each, len(order)), each))


def clauses(report: Report) -> dict[str, ClauseVerdict]:
    """Every clause of the universe, and every other that a check cites, in the order of the register."""
    found: dict[str, list[Evidence]] = {clause: [] for clause in report.universe}
    for case in report.cases:
        for check in case.results:
            for clause in check.clauses:
                found.setdefault(clause, []).append(Evidence(case, check))
    return {clause: _clause(clause, found[clause], report.reasons) for clause in in_order(found)}


def _clause(clause: str, evidence: Sequence[Evidence], reasons: Mapping[str, str]) -> ClauseVerdict:
    verdict = worst(each.check.verdict for each in evidence)
    reason = ""
    if verdict in (Verdict.NOT_CLAIMED, Verdict.NOT_EXERCISED):
        said = [each.check.reason for each in evidence if each.check.verdict is verdict and each.check.reason]
        reason = reasons.get(clause, "") if not said else Counter(said).most_common(1)[0][0]
        reason = reason or ("not-reached" if evidence else "not-seen")
    return ClauseVerdict(clause, verdict, tuple(evidence), reason)


def families(verdicts: Mapping[str, ClauseVerdict]) -> dict[str, Counter[Verdict]]:
    """How many clauses of each family came to which verdict, in the order of the register."""
    counts: dict[str, Counter[Verdict]] = {}
    for clause, each in verdicts.items():
        counts.setdefault(family(clause), Counter())[each.verdict] += 1
    return counts


def grouped(report: Report, verdicts: Iterable[Verdict]) -> list[tuple[Evidence, ...]]:
    """The checks with one of these verdicts; the same check of several cases is one group."""
    wanted, groups = frozenset(verdicts), dict[tuple[str, tuple[str, ...]], list[Evidence]]()
    for case in report.cases:
        for check in case.results:
            if check.verdict in wanted:
                groups.setdefault((check.check, check.clauses), []).append(Evidence(case, check))
    return [tuple(sorted(group, key=_telling)) for group in groups.values()]


def _telling(evidence: Evidence) -> tuple[bool, int]:
    """The shorter a conversation, the sooner one sees its fault; a probe cannot be selected."""
    return evidence.case.case.family == SANITY, len(evidence.case.transcript.records)


def sentence(clause: str) -> str:
    """What a clause says; empty for an id that the register does not know."""
    try:
        return register.text(clause)
    except register.UnknownClauseError:
        return ""


def status(report: Report) -> Status:
    """The status of the run; nothing exercised is never conformant, whatever held beside the cases' own checks.

    A target that is not sane gives no verdict at all: what its cases came to may be no fault of theirs. Where a probe
    failed in the suite's own hands, nobody knows whether it is. A violation stands even if the run was cut off or
    another case failed in those hands.
    """
    if report.end == "insane":
        probes = [each for each in report.cases if each.case.family == SANITY]
        return Status.FAULT if Verdict.HARNESS_FAULT in _verdicts(probes) else Status.INCONCLUSIVE
    seen = _verdicts(report.cases)
    if seen & report.failing:
        return Status.VIOLATION
    if Verdict.HARNESS_FAULT in seen:
        return Status.FAULT
    exercised = {check.verdict for each in report.cases if each.case.family != SANITY for check in each.own} & EXERCISED
    return Status.CONFORMANT if report.end == "complete" and exercised else Status.INCONCLUSIVE


def _verdicts(cases: Iterable[CaseResult]) -> set[Verdict]:
    return {check.verdict for each in cases for check in each.results}


WORDS: Final[Mapping[Status, str]] = {
    Status.CONFORMANT: "conformant",
    Status.VIOLATION: "not conformant",
    Status.INCONCLUSIVE: "inconclusive",
    Status.FAULT: "the suite failed",
}
"""A status in words."""


def headline(report: Report) -> str:
    """The run in one line: the status, and why it is inconclusive if it is."""
    outcome = status(report)
    words = WORDS[outcome]
    if outcome is Status.INCONCLUSIVE:
        return f"{words}: {_why(report)}"
    if report.end == "cut":
        return f"{words}, as far as it got: the run was cut off"
    return words


def _why(report: Report) -> str:
    if report.end == "insane":
        return "the target did not answer initialize, status and shutdown as it should; --home gives it settings"
    if report.end == "cut":
        return "the run was cut off"
    return "nothing was exercised"


def repeat(report: Report, case: str) -> str:
    """The command that runs one case again."""
    from shlex import join

    options: list[str] = [str(each) for each in report.header.get("options", ())]
    what = ["smoke"] if case.startswith(f"{SANITY}.") else ["--select", case]
    return join(["localagent", "conform", *what, *options, "--", *report.header.get("argv", ())])


def _aside(record: Record) -> bool:
    """True for what tells of our own doings."""
    return record.kind == "header" or (record.kind == "mark" and str(record.value).startswith("step "))


def around(evidence: Evidence, before: int = 4, after: int = 2, most: int = 400) -> list[tuple[int, str, bool]]:
    """The records around the evidence, each as (number, text, whether it is the evidence itself).

    Without a place in the transcript these are its last records. ``most``: about so many characters of each,
    and three times as many of the evidence.
    """
    records = [each for each in evidence.case.transcript.records if not _aside(each)]
    place = next((i for i, each in enumerate(records) if each.number == evidence.check.record), None)
    low, high = (len(records) - before, len(records)) if place is None else (place - before, place + after + 1)
    here = evidence.check.record
    shown = records[max(0, low) : high]
    return [(each.number, told(each, 3 * most if each.number == here else most), each.number == here) for each in shown]


_ARROWS: Final = {"client": ">", "backend": "<"}


def told(record: Record, most: int = 400) -> str:
    """A record in one line: the time, an arrow, the text; cut off in its middle when it is long."""
    at = "" if record.t is None else f"{record.t:9.1f} ms  "
    if record.kind in _ARROWS:
        text = record.data.decode(errors="backslashreplace").removesuffix("\n")
        if record.data and not record.data.endswith(b"\n"):
            text += "  (without LF)"
        text = shortened(text, most)
        return f"{at}{_ARROWS[record.kind]} {text}"
    value = "" if record.value is None else f" {record.value}"
    if isinstance(record.value, Mapping):
        value = f" {dumps(record.value, ensure_ascii=False)}"
    return f"{at}. {record.kind}{shortened(value.rstrip(), most)}"


def shortened(text: str, most: int) -> str:
    """A text of at most about ``most`` characters, what is left out counted in its middle."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]} [... {len(text) - 2 * half} characters ...] {text[-half:]}"
