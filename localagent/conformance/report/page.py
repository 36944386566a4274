"""One self-contained HTML page: every clause with its verdict, every failure with evidence and the machine's picture.

No script and nothing from elsewhere: the page can be sent around, and reads in any browser.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from shlex import join
from typing import Final

from localagent.conformance.model import CaseResult, Record, Verdict
from localagent.conformance.report import diagram
from localagent.conformance.report.people import COLUMNS, visible
from localagent.conformance.report.tally import (
    SANITY,
    ClauseVerdict,
    Evidence,
    Report,
    Status,
    around,
    clauses,
    families,
    family,
    grouped,
    headline,
    repeat,
    sentence,
    status,
)
from statemachines.registry import MACHINES

REASONS: Final[Mapping[str, str]] = {
    "needs-model": "needs a model, or a prompt that was not given",
    "needs-fixture": "needs a fixture, or one that was not given",
    "needs-serve": "the command does not end in serve --stdio",
    "not-reached": "no case got that far",
    "no-times": "the transcript has no times",
    "foreign-times": "the times are not ours: who knows what they count",
    "platform": "not on this platform",
    "capability": "not advertised",
    "not-seen": "no conversation came to it",
    "not-observable": "no check: nothing outside of the backend shows it",
    "client-side": "no check: it binds the client",
    "not-built-yet": "no check yet",
    "timing": "no check: it cannot be timed from outside",
    "unbounded-negative": "no check: no end of waiting would show it",
}
_MOST_CHECKS: Final = 6
_CODE: Final = re.compile("`([^`]+)`")

STYLE: Final = """
:root { color-scheme: light; --bad: #c4161c; --good: #00704f; --note: #9a5b00; --quiet: #5c6670; --line: #d9dee3; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: #1f2933; background: #fff;
  margin: 0 auto; max-width: 76rem; padding: 1.5rem; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem;
  border-bottom: 1px solid var(--line); } h3 { font-size: 1rem; margin: 0; }
code, pre { font: 12.5px/1.45 ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace; }
pre { margin: .5rem 0; padding: .5rem; background: #f4f6f8; border-radius: 6px; white-space: pre-wrap;
  overflow-wrap: anywhere; }
pre .here { display: block; background: #fde3e3; margin: 0 -.5rem; padding: 0 .5rem;
  border-left: 3px solid var(--bad); }
table { border-collapse: collapse; margin: .4rem 0; } th, td { padding: .2rem .6rem; text-align: left;
  vertical-align: top; border-bottom: 1px solid var(--line); } th { font-weight: 600; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } td.id { white-space: nowrap; }
tfoot td { font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .6rem 0; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
.v { border-radius: 4px; padding: 0 .4rem; white-space: nowrap; font-size: .85rem; background: #eceff2;
  color: #3d4852; }
.violated, .fault { background: var(--bad); color: #fff; } .deviation { background: #ffe2b3; color: #5a3500; }
.held { background: #d5f0e3; color: #004d36; }
.card { border: 1px solid var(--line); border-left: 5px solid var(--bad); border-radius: 6px; padding: .8rem 1rem;
  margin: 1rem 0; } .card.deviation-card { border-left-color: #e69f00; } .card p { margin: .4rem 0; }
blockquote { margin: .3rem 0; padding-left: .8rem; border-left: 3px solid var(--line); }
.quiet { color: var(--quiet); } .banner { font-size: 1.15rem; font-weight: 600; }
.banner.good { color: var(--good); } .banner.bad { color: var(--bad); } .banner.note { color: var(--note); }
figure { margin: .8rem 0 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; max-height: 46rem; }
figcaption { color: var(--quiet); font-size: .85rem; }
summary { cursor: pointer; padding: .25rem 0; } details { border-bottom: 1px solid var(--line); }
details table { width: 100%; }
@media print { details::details-content { display: block; } .card { break-inside: avoid; } }
"""


def render(report: Report) -> str:
    """The whole page."""
    return "\n".join(_Page(report).lines()) + "\n"


def _text(words: object) -> str:
    return escape(visible(str(words)))


def _prose(words: str) -> str:
    """A text of the register: what stands in backticks there is code."""
    return _CODE.sub(r"<code>\1</code>", _text(words))


def _verdict(verdict: Verdict) -> str:
    kind = {Verdict.HARNESS_FAULT: "fault"}.get(verdict, verdict.value.split()[0])
    return f'<span class="v {kind}">{verdict}</span>'


def _cells(tag: str, cells: Iterable[object]) -> str:
    first, *others = cells
    return f"<tr><{tag}>{first}</{tag}>" + "".join(f'<{tag} class="n">{each}</{tag}>' for each in others) + "</tr>"


class _Page:
    """Writes the page; remembers which pictures it has shown."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._verdicts = clauses(report)
        self._shown: dict[tuple[str, str], int] = {}

    def lines(self) -> Iterator[str]:
        """The page, line by line."""
        report = self._report
        title = headline(report)
        yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield f"<title>Conformance: {_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>"
        kind = {Status.CONFORMANT: "good", Status.INCONCLUSIVE: "note"}.get(status(report), "bad")
        yield f'<header><h1>magi-code.local-agent v1: conformance</h1><p class="banner {kind}">{_text(title)}</p>'
        yield from self._facts()
        yield "</header>\n<main>"
        yield from self._families()
        yield from self._failures(Verdict.VIOLATED, "Violations")
        yield from self._failures(Verdict.DEVIATION, "Deviations")
        yield from self._failures(Verdict.HARNESS_FAULT, "Faults of the suite")
        yield from self._clauses()
        yield from self._cases()
        yield "</main>\n</body>\n</html>"

    def _facts(self) -> Iterator[str]:
        header = self._report.header
        facts: list[tuple[str, object]] = []
        if header.get("argv"):
            facts.append(("target", join(header["argv"])))
        facts += [(key, header[key]) for key in ("started", "platform", "profile") if header.get(key)]
        if header.get("select"):
            facts.append(("select", " ".join(header["select"])))
        if header.get("calibration"):
            measured = header["calibration"].items()
            facts.append(
                ("measured", ", ".join(f"{name.replace('_', ' ')} {value:.1f} ms" for name, value in measured))
            )
        if header.get("capabilities"):
            facts.append(("advertises", ", ".join(header["capabilities"])))
        ran = sum(bool(each.transcript.records) for each in self._report.cases)
        facts.append(("cases", f"{len(self._report.cases)}, {ran} of them run"))
        yield "<dl>" + "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in facts) + "</dl>"

    def _families(self) -> Iterator[str]:
        counts = families(self._verdicts)
        shown = [each for each in COLUMNS if any(count[each] for count in counts.values())]
        yield "<h2>Clauses by family</h2>\n<table><thead>" + _cells("th", ("family", *shown)) + "</thead><tbody>"
        for name, count in counts.items():
            link = f'<a href="#family-{_text(name)}">{_text(name)}</a>'
            yield _cells("td", (link, *(count[each] or "" for each in shown)))
        total = sum(counts.values(), Counter[Verdict]())
        yield "</tbody><tfoot>" + _cells("td", ("total", *(total[each] for each in shown))) + "</tfoot></table>"

    def _failures(self, verdict: Verdict, title: str) -> Iterator[str]:
        groups = grouped(self._report, (verdict,))
        if groups:
            yield f"<h2>{title}: {len(groups)}</h2>"
        for group in groups:
            yield from self._failure(group)

    def _failure(self, group: tuple[Evidence, ...]) -> Iterator[str]:
        first = group[0]
        check, case = first.check, first.case.case
        kind = " deviation-card" if check.verdict is Verdict.DEVIATION else ""
        names = " ".join(f'<a href="#{_text(each)}">{_text(each)}</a>' for each in check.clauses) or _text(check.check)
        blame = f' <span class="v">{check.blame}</span>' if check.blame else ""
        yield f'<section class="card{kind}"><h3>{names} {_verdict(check.verdict)}{blame}</h3>'
        for clause in check.clauses:
            yield f"<blockquote>{_prose(sentence(clause))}</blockquote>"
        yield f"<p>{_text(check.what)}</p>"
        link = f'<a href="#case-{_text(case.id)}">{_text(case.id)}</a>'
        yield f'<p class="quiet">Check <code>{_text(check.check)}</code> of case {link}: {_text(case.title)}.</p>'
        yield self._frames(first)
        if len(group) > 1:
            yield f'<p class="quiet">Also in: {_text(", ".join(each.case.case.id for each in group[1:]))}.</p>'
        if self._report.header.get("argv"):
            yield f"<p>Again: <code>{_text(repeat(self._report, case.id))}</code></p>"
        yield from self._picture(first)
        yield "</section>"

    def _frames(self, evidence: Evidence) -> str:
        lines = []
        for number, text, marked in around(evidence):
            line = f"{number:4} {_text(text)}"
            lines.append(f'<span class="here">{line}</span>' if marked else f"{line}\n")
        return f"<pre>{''.join(lines)}</pre>" if lines else ""

    def _picture(self, evidence: Evidence) -> Iterator[str]:
        """The machine's picture; the second time the same is to be seen, a word of where it is."""
        told = evidence.check.machine
        frame = diagram.label(_record(evidence))
        machine, state = diagram.parts(told)
        if machine not in MACHINES or not state:
            return
        key = (f"{machine} {state}", frame)
        words = f"<b>{_text(frame)}</b> in state <b>{_text(state)}</b> of the machine <b>{_text(machine)}</b>"
        if key in self._shown:
            yield f'<p class="quiet">{words}: see <a href="#picture-{self._shown[key]}">the picture above</a>.</p>'
            return
        svg = diagram.marked(told, frame)
        if not svg:
            yield f'<p class="quiet">{words}.</p>'
            return
        number = self._shown[key] = len(self._shown) + 1
        yield f'<figure id="picture-{number}">{svg}<figcaption>Red: {words}, which no row of the table explains.'
        also = "Orange: the edges that do emit such a frame." if diagram.RIGHT in svg else ""
        yield f"{also}</figcaption></figure>"

    def _clauses(self) -> Iterator[str]:
        yield "<h2>Every clause</h2>"
        groups: dict[str, list[ClauseVerdict]] = {}
        for each in self._verdicts.values():
            groups.setdefault(family(each.clause), []).append(each)
        for name, members in groups.items():
            counts = Counter(each.verdict for each in members)
            told = " ".join(f"{_verdict(each)} {counts[each]}" for each in COLUMNS if counts[each])
            bad = any(counts[each] for each in (Verdict.VIOLATED, Verdict.DEVIATION, Verdict.HARNESS_FAULT))
            yield f'<details id="family-{_text(name)}"{" open" if bad else ""}>'
            yield f"<summary><b>{_text(name)}</b> {told}</summary>"
            yield "<table><thead><tr><th>clause</th><th>verdict</th><th>sentence and evidence</th></tr></thead><tbody>"
            for each in members:
                yield self._clause(each)
            yield "</tbody></table></details>"

    def _clause(self, each: ClauseVerdict) -> str:
        if each.reason:
            evidence = _text(REASONS.get(each.reason, each.reason))
        else:
            checks = [one.check.check for one in each.decisive]
            own = list(dict.fromkeys(name for name in checks if not name.startswith("trace/")))
            traces = len(checks) - sum(not name.startswith("trace/") for name in checks)
            told = own[:_MOST_CHECKS] + ([f"{len(own) - _MOST_CHECKS} more"] if len(own) > _MOST_CHECKS else [])
            told += [f"the trace of {traces} cases" if traces > 1 else "the trace of a case"] if traces else []
            evidence = _text(", ".join(told))
        return (
            f'<tr id="{_text(each.clause)}"><td class="id">{_text(each.clause)}</td><td>{_verdict(each.verdict)}</td>'
            f'<td>{_prose(sentence(each.clause))}<br><span class="quiet">{evidence}</span></td></tr>'
        )

    def _cases(self) -> Iterator[str]:
        yield "<h2>Every case</h2>\n<table><thead><tr><th>case</th><th>verdict</th><th>what it does</th>"
        yield '<th class="n">checks</th><th class="n">seconds</th></tr></thead><tbody>'
        for each in sorted(self._report.cases, key=lambda one: (one.case.family != SANITY, one.case.id)):
            yield _case(each)
        yield "</tbody></table>"


def _case(result: CaseResult) -> str:
    again = f" ({result.attempts} attempts)" if result.attempts > 1 else ""
    return (
        f'<tr id="case-{_text(result.case.id)}"><td class="id">{_text(result.case.id)}</td>'
        f"<td>{_verdict(result.verdict)}</td><td>{_text(result.case.title)}{again}</td>"
        f'<td class="n">{len(result.results)}</td><td class="n">{result.seconds:.2f}</td></tr>'
    )


def _record(evidence: Evidence) -> Record | None:
    number = evidence.check.record
    return next((each for each in evidence.case.transcript.records if each.number == number), None)
