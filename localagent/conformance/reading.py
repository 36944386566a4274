"""The commands that start nothing: ``conform list``, ``conform explain``, ``judge``."""

import os
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from json import dumps
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, TextIO

from localagent.conformance import cases, choose, coverage, judge, register, transcript
from localagent.conformance.judge_lines import children
from localagent.conformance.model import Case, CaseResult, CheckResult, Expectation, Transcript
from localagent.conformance.replay import toml
from localagent.conformance.report import Report, people, status
from localagent.conformance.report.ndjson import check_data
from localagent.conformance.report.page import REASONS
from localagent.conformance.report.tally import clauses, headline, in_order
from localagent.conformance.suite import probes

_WIDE: Final = 100
_INNER: Final = frozenset({"check", "clauses", "level", "timed", "id", "ids", "nth", "nths"})
"""Keys of a step that are told otherwise, or that the loader added."""
_FOREIGN: Final = Case("transcript", "A recorded conversation", "transcript", 0, (), ())


class UnusableError(Exception):
    """Wrong usage, or a file that cannot be read: exit status 3."""


def loaded() -> tuple[Case, ...]:
    """Every case. Raises UnusableError when a file of ours is not what it must be."""
    try:
        return cases.load()
    except cases.CaseError as fault:
        raise UnusableError(str(fault)) from None


def chosen(options: Namespace) -> tuple[Case, ...]:
    """The cases that the options select. Raises UnusableError when there is none."""
    try:
        return choose.select(loaded(), options.select or (), options.profile)
    except choose.NothingSelectedError as fault:
        raise UnusableError(str(fault)) from None


def transcript_of(file: str) -> Transcript:
    """The transcript in a file. Raises UnusableError."""
    try:
        seen = transcript.read(Path(file))
    except OSError as fault:
        raise UnusableError(f"{file}: {fault.strerror}") from None
    if not any(record.kind in ("client", "backend", "exit") for record in seen.records):
        raise UnusableError(f"{file}: no recorded conversation")
    return seen


def paint(out: TextIO) -> people.Paint:
    """Colours for a terminal, unless NO_COLOR is set; none for anything else."""
    return people.coloured if out.isatty() and not os.environ.get("NO_COLOR") else people.plain


def reasons() -> Mapping[str, str]:
    """Why a clause has no check, by clause. Raises UnusableError."""
    return coverage.reasons(loaded())


def listed(options: Namespace, out: TextIO, _: TextIO) -> int:
    """List the selected cases, one a line: id, tier, what they need, title."""
    found = chosen(options)
    rows = [(case.id, f"tier {case.tier}", _wants(case), case.title) for case in found]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:
        out.write("  ".join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=False)) + f"  {row[3]}\n")
    out.write(f"{len(found)} cases, {sum(len(case.checks) for case in found)} checks of their own\n")
    return 0


def _wants(case: Case) -> str:
    """What a case needs of the target."""
    needs = [*case.needs, *(f"prompt {each}" for each in case.prompts)]
    return ", ".join([*needs, *(f"fixture {each}" for each in case.fixtures)])


def explained(options: Namespace, out: TextIO, _: TextIO) -> int:
    """Say what an id stands for. Raises UnusableError when it stands for nothing."""
    lines = list(_explain(options.id))
    if not lines:
        raise UnusableError(f"no clause, check or case is named {options.id!r}; see: localagent conform list")
    out.write("".join(f"{line}\n" for line in lines))
    return 0


def _explain(name: str) -> Iterator[str]:
    every = loaded()
    case = next((each for each in every if name in (each.id, *(check.check for check in each.checks))), None)
    if case is not None:
        yield from _case(case, name)
        return
    kind, _, rest = name.partition("/")
    if kind == "trace":
        yield "Made by the judge on every transcript: what the observer of the machines looked at there."
        yield ""
        name = rest
    elif kind == "process":
        yield "Made by the judge on every transcript that has the end of the process."
        return
    try:
        entry = register.find(name)
    except register.UnknownClauseError:
        return
    yield from _entry(entry)
    yield ""
    yield from _checks(name, every)


def _entry(entry: register.Entry) -> Iterator[str]:
    if isinstance(entry, register.Clause):
        yield f"{entry.id}  {entry.keyword}  {entry.page}, section {entry.section}: {entry.title}"
        yield from _wrapped(entry.sentence)
        yield from (f"  {line}" for line in entry.detail.splitlines())
        facts = (
            ("binds", entry.bound or "not said"),
            ("shows", {"": "not said", "none": "nowhere"}.get(entry.observability, f"on the {entry.observability}")),
            ("a test needs", {0: "no model", 1: "scripted replies", 2: "a fixture"}.get(entry.tier or 0, "")),
        )
        yield "; ".join(f"{name}: {value}" for name, value in facts)
    elif isinstance(entry, register.OpenPoint):
        yield f"{entry.id}  an open point of {entry.page}: {entry.title}"
        yield from _wrapped(entry.text)
    else:
        yield f"{entry.id}  a decision, section {entry.section}"
        for title, text in (("question", entry.question), ("accepted", entry.accepted), ("ours", entry.ours)):
            yield from _wrapped(f"{title}: {text}")


def _wrapped(text: str) -> list[str]:
    return wrap(text, _WIDE, initial_indent="  ", subsequent_indent="  ")


def _checks(clause: str, every: Sequence[Case]) -> Iterator[str]:
    found = coverage.checks(every).get(clause, [])
    if not found:
        reason = coverage.reason(clause) if clause in coverage.registered() else None
        yield "no check cites it" + (f" ({reason}: {REASONS.get(reason, reason)})" if reason else "")
        return
    titles = {check.check: case.title for case in every for check in case.checks}
    yield "checked by"
    for check in found:
        yield f"  {check}  {titles.get(check, 'on every transcript where it shows')}"


def _case(case: Case, name: str) -> Iterator[str]:
    yield f"{case.id}  {case.title}"
    yield f"  tier {case.tier}" + (f", needs {_wants(case)}" if _wants(case) else "")
    for clause in in_order(choose.cited(case)) if name == case.id else ():
        yield from _wrapped(f"{clause}: {register.text(clause)}")
    yield "steps"
    for step in case.steps:
        marked = step.expects is not None and step.expects.check == name
        shown = {key: value for key, value in step.args.items() if key not in _INNER}
        yield f"{'>>' if marked else '  '} {step.number:3}  {people.visible(toml(shown))[:300]}{_expects(step.expects)}"
    check = next((each for each in case.checks if each.check == name), None)
    for clause in check.clauses if check is not None else ():
        yield from _wrapped(f"{clause}: {register.text(clause)}")


def _expects(check: Expectation | None) -> str:
    if check is None:
        return ""
    level = "" if check.level == "must" else f", {check.level}"
    return f"   # {check.check.rpartition('/')[2]}: {' '.join(check.clauses)}{level}{', timed' if check.timed else ''}"


def judged(options: Namespace, out: TextIO, _: TextIO) -> int:
    """Judge a recorded conversation; the exit status. Raises UnusableError."""
    seen = transcript_of(options.file)
    case = _case_of(seen)
    results = tuple(judge.judge(seen, case, None))
    # a probe is a case like any other here
    shown = _FOREIGN if case is None else replace(case, family="transcript")
    report = Report({}, (CaseResult(shown, seen, results),), "complete" if judge.whole(seen) else "cut")
    missing = list(_missing(seen, results))
    if options.json:
        out.write(dumps(_data(report, missing), ensure_ascii=False, indent=1) + "\n")
        return status(report)
    out.write(people.render(report, paint(out)))
    for line in missing:
        out.write(f"not judged: {line}\n")
    return status(report)


def _case_of(seen: Transcript) -> Case | None:
    """The case that a transcript of ours was made by; None for a foreign one."""
    name = seen.header.get("case")
    if not isinstance(name, str):
        return None
    return probes().get(name) or next((case for case in loaded() if case.id == name), None)


def _missing(seen: Transcript, results: Sequence[CheckResult]) -> Iterator[str]:
    """What a transcript does not show, and so cannot be judged."""
    if not judge.whole(seen):
        yield "whatever would have come after the end of the recording, which does not go on to the end of the process"
    if any(child.middle for child in children(seen)):
        yield "all but the frames themselves: the recording begins in the middle, and what came before is not known"
    if not any(each.kind == "exit" for each in seen.records):
        yield "the exit status, which is not recorded"
    if all(each.t is None for each in seen.records):
        yield "deadlines and order between the two sides: no times are recorded"
    if any(each.value == transcript.DECODED for each in seen.records if each.kind in ("client", "backend")):
        yield "bytes, sizes and repeated keys: frames are recorded decoded"
    damaged = sum(each.kind == "damaged" for each in seen.records)
    if damaged:
        yield f"{damaged} lines of the recording that cannot be read"
    by_reason: dict[str, list[str]] = {}
    for each in results:
        if each.reason and not each.check.startswith("trace/"):
            by_reason.setdefault(each.reason, []).append(each.check)
    for reason, checks in by_reason.items():
        more = f" and {len(checks) - 5} more" if len(checks) > 5 else ""
        yield f"{REASONS.get(reason, reason)}: {', '.join(checks[:5])}{more}"


def _data(report: Report, missing: list[str]) -> dict[str, Any]:
    (result,) = report.cases
    return {
        "case": result.case.id,
        "status": int(status(report)),
        "conclusion": headline(report),
        "clauses": {name: str(each.verdict) for name, each in clauses(report).items()},
        "checks": [check_data(each) for each in result.results],
        "not_judged": missing,
    }
