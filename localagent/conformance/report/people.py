"""The end of a run as text for a terminal: counts per family, then what failed, with evidence and how to repeat it."""

from collections.abc import Callable, Iterator, Sequence
from textwrap import wrap
from typing import Final

from localagent.conformance.model import Verdict
from localagent.conformance.report.tally import (
    Evidence,
    Report,
    Status,
    around,
    clauses,
    families,
    grouped,
    headline,
    repeat,
    sentence,
    status,
)

WIDE: Final = 116
MOST: Final = 25
"""Failures that are told one by one; the report holds all of them."""

FRAME: Final = 220
"""Characters of a frame that are shown; its transcript holds all of them."""

Paint = Callable[[str, str], str]
"""(text, what it is) -> the text, coloured where the terminal shows colours."""

COLUMNS: Final = (
    Verdict.HELD,
    Verdict.VIOLATED,
    Verdict.DEVIATION,
    Verdict.HARNESS_FAULT,
    Verdict.RECORDED,
    Verdict.NOT_CLAIMED,
    Verdict.NOT_EXERCISED,
)
_CODES: Final = {"bad": "31", "good": "32", "note": "33", "quiet": "2", "head": "1"}


def plain(text: str, _: str) -> str:
    """No colours."""
    return text


def coloured(text: str, kind: str) -> str:
    """ANSI colours."""
    return f"\033[{_CODES[kind]}m{text}\033[0m"


def visible(text: str) -> str:
    """The text without anything a terminal would obey."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def render(report: Report, paint: Paint = plain) -> str:
    """The summary of a run, lines ending with LF."""
    return "".join(f"{line}\n" for line in _lines(report, paint))


def _lines(report: Report, paint: Paint) -> Iterator[str]:
    yield from _table(report, paint)
    titles = (
        (Verdict.VIOLATED, "Violations"),
        (Verdict.DEVIATION, "Deviations"),
        (Verdict.HARNESS_FAULT, "Faults of the suite"),
    )
    for verdict, title in titles:
        groups = grouped(report, (verdict,))
        if groups:
            yield ""
            yield paint(f"{title}: {len(groups)}", "head")
        for number, group in enumerate(groups[:MOST], 1):
            yield from failure(report, group, number, paint)
        if len(groups) > MOST:
            yield f"\n... and {len(groups) - MOST} more; --report DIR writes all of them down"
    yield ""
    yield from _end(report, paint)


def _table(report: Report, paint: Paint) -> Iterator[str]:
    counts = families(clauses(report))
    shown = [each for each in COLUMNS if any(count[each] for count in counts.values())]
    widths = [max(len(each), 6) for each in shown]
    yield ""
    yield paint(
        "clauses  " + "  ".join(str(each).rjust(wide) for each, wide in zip(shown, widths, strict=True)), "head"
    )
    total = [sum(count[each] for count in counts.values()) for each in shown]
    for family, count in counts.items():
        yield _row(family, [count[each] for each in shown], widths)
    yield paint(_row("total", total, widths), "head")


def _row(name: str, counts: Sequence[int], widths: Sequence[int]) -> str:
    cells = [(str(count) if count else "-").rjust(wide) for count, wide in zip(counts, widths, strict=True)]
    return f"{name:<9}" + "  ".join(cells)


def failure(report: Report, group: Sequence[Evidence], number: int, paint: Paint = plain) -> Iterator[str]:
    """One failed check: its clauses, what was seen, the records around it, the command that repeats the case."""
    first = group[0]
    case, check = first.case.case, first.check
    blame = f"  [{check.blame}]" if check.blame else ""
    yield ""
    yield paint(f"{number:3}. {' '.join(check.clauses) or check.check}", "bad") + blame
    for clause in check.clauses[:2]:
        yield from wrap(f"{clause}: {sentence(clause)}", WIDE, initial_indent=" " * 5, subsequent_indent=" " * 7)
    yield f"     case {case.id}: {case.title}"
    yield from wrap(visible(f"{check.check}: {check.what}"), WIDE, initial_indent=" " * 5, subsequent_indent=" " * 7)
    if " " in check.machine:  # and its state
        yield f"     machine {check.machine}"
    for place, text, marked in around(first, most=FRAME):
        line = f"{'>>' if marked else '  ':>7} {place:4} {visible(text)}"
        yield line if marked else paint(line, "quiet")
    others = [each.case.case.id for each in group[1:]]
    if others:
        more = f" and {len(others) - 4} more" if len(others) > 4 else ""
        yield f"     also in {', '.join(others[:4])}{more}"
    if report.header.get("argv"):
        yield f"     again: {repeat(report, case.id)}"


def _end(report: Report, paint: Paint) -> Iterator[str]:
    ran = [each for each in report.cases if each.transcript.records]
    checks = sum(len(each.results) for each in report.cases)
    seconds = report.header.get("seconds")
    took = f" in {seconds:.1f} s" if isinstance(seconds, int | float) else ""
    again = sum(each.attempts > 1 for each in report.cases)
    note = f", {again} of them again for their timing" if again else ""
    yield f"{len(report.cases)} cases, {len(ran)} run{note}, {checks} checks{took}"
    outcome = status(report)
    kind = {Status.CONFORMANT: "good", Status.INCONCLUSIVE: "note"}.get(outcome, "bad")
    yield paint(headline(report), kind)
