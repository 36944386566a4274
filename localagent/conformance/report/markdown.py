"""The run as a Markdown summary, for a pull request or the log of a build."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from localagent.conformance.model import Verdict
from localagent.conformance.report.people import COLUMNS, visible
from localagent.conformance.report.tally import (
    Evidence,
    Report,
    around,
    clauses,
    families,
    grouped,
    headline,
    repeat,
    sentence,
)

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def escape(text: str) -> str:
    """The text as Markdown shows it, on one line."""
    return _SPECIAL.sub(r"\\\1", visible(" ".join(text.split())))


def render(report: Report) -> str:
    """The summary."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# Conformance: {headline(report)}"
    yield ""
    yield from facts(report.header)
    verdicts = clauses(report)
    counts = families(verdicts)
    shown = [each for each in COLUMNS if any(count[each] for count in counts.values())]
    yield ""
    yield from _table(
        ("family", *shown), ((name, *(count[each] or "" for each in shown)) for name, count in counts.items())
    )
    for verdict, title in (
        (Verdict.VIOLATED, "Violations"),
        (Verdict.DEVIATION, "Deviations"),
        (Verdict.HARNESS_FAULT, "Faults of the suite"),
    ):
        groups = grouped(report, (verdict,))
        if groups:
            yield f"\n## {title}"
        for group in groups:
            yield from _failure(report, group)
    reasons = Counter(each.reason for each in verdicts.values() if each.reason)
    if reasons:
        yield "\n## Not exercised, not claimed\n"
        yield from _table(("reason", "clauses"), reasons.most_common())


def facts(header: Any) -> Iterator[str]:
    """What was run, where, when, as a list."""
    from shlex import join

    if header.get("argv"):
        yield f"- target: {_code(join(header['argv']))}"
    for key in ("started", "platform", "profile"):
        if header.get(key):
            yield f"- {key}: {escape(str(header[key]))}"
    calibration = header.get("calibration")
    if calibration:
        yield "- measured: " + ", ".join(
            f"{name.replace('_', ' ')} {value:.1f} ms" for name, value in calibration.items()
        )


def _code(text: str) -> str:
    """Inline code, whatever backticks it has."""
    text = visible(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence} {text} {fence}" if "`" in text else f"`{text}`"


def _table(head: Iterable[object], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    titles = [escape(str(each)) for each in head]
    yield f"| {' | '.join(titles)} |"
    yield "|" + " --- |" * len(titles)
    for row in rows:
        yield f"| {' | '.join(escape(str(cell)) for cell in row)} |"


def _failure(report: Report, group: tuple[Evidence, ...]) -> Iterator[str]:
    first = group[0]
    check, case = first.check, first.case.case
    yield f"\n### {escape(' '.join(check.clauses) or check.check)}\n"
    for clause in check.clauses[:2]:
        yield f"> {clause}: {escape(sentence(clause))}"
    yield ""
    blame = f" ({check.blame})" if check.blame else ""
    yield f"{escape(check.check)} in {escape(case.id)}{blame}: {escape(check.what)}"
    if len(group) > 1:
        yield f"Also in {len(group) - 1} other cases."
    yield ""
    for number, text, marked in around(first):
        yield f"    {'>>' if marked else '  '} {number:4} {visible(text)}"
    if report.header.get("argv"):
        yield f"\nAgain: {_code(repeat(report, case.id))}"
