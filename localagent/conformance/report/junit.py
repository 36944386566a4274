"""JUnit XML, by the standard library: a suite per family of cases, a test per case. A run that comes to nothing is red.

The libraries that write this format were measured to break on control characters, which a backend under test may
well send; here whatever XML cannot hold is written as ``\\xNN`` or ``\\uNNNN``.
"""

import re
from collections.abc import Iterable
from typing import Final
from xml.etree import ElementTree as Xml

from localagent.conformance.model import CaseResult, CheckResult, Verdict
from localagent.conformance.report.tally import Evidence, Report, Status, around, headline, status

_RUN: Final = "run"
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def scrub(text: str) -> str:
    """The text with everything escaped that XML 1.0 cannot hold."""
    return _FORBIDDEN.sub(lambda found: _escape(ord(found[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def render(report: Report) -> str:
    """The report as a JUnit document."""
    root = Xml.Element("testsuites", {"name": scrub(headline(report))})
    groups: dict[str, list[CaseResult]] = {}
    all_kinds: list[str] = []
    for result in report.cases:
        groups.setdefault(result.case.family, []).append(result)
    for family, results in groups.items():
        suite = Xml.SubElement(root, "testsuite", {"name": scrub(family)})
        kinds = [_test(suite, report, each) for each in results]
        suite.attrib.update(_counts(results, kinds))
        all_kinds += kinds
    root.attrib.update(_counts(report.cases, all_kinds))
    if status(report) in (Status.INCONCLUSIVE, Status.FAULT) and not {"failure", "error"} & set(all_kinds):
        _unsettled(root, report)
    Xml.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(root, encoding="unicode") + "\n"


def _unsettled(root: Xml.Element, report: Report) -> None:
    """Add a test that fails for the run as a whole: readers of this format know no third outcome."""
    told = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0", "time": "0.000"}
    suite = Xml.SubElement(root, "testsuite", {"name": _RUN, **told})
    test = Xml.SubElement(suite, "testcase", {"classname": _RUN, "name": "conclusion", "time": "0.000"})
    Xml.SubElement(test, "error", {"message": scrub(headline(report)), "type": status(report).name.lower()})
    for key in ("tests", "errors"):
        root.set(key, str(int(root.attrib[key]) + 1))


def _counts(results: Iterable[CaseResult], kinds: list[str]) -> dict[str, str]:
    cases = list(results)
    return {
        "tests": str(len(cases)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": str(kinds.count("skipped")),
        "time": f"{sum(each.seconds for each in cases):.3f}",
    }


def _test(suite: Xml.Element, report: Report, result: CaseResult) -> str:
    """Add a case to its suite; which kind of child says how it ended, empty if it passed."""
    name = {"classname": scrub(result.case.family), "name": scrub(result.case.id)}
    test = Xml.SubElement(suite, "testcase", {**name, "time": f"{result.seconds:.3f}"})
    failed = [each for each in result.results if each.verdict in report.failing]
    faults = [each for each in result.results if each.verdict is Verdict.HARNESS_FAULT]
    if failed or faults:
        kind = "failure" if failed else "error"
        told = failed or faults
        message = f"{len(told)} of {len(result.results)} checks: {_line(told[0])}"
        child = Xml.SubElement(test, kind, {"message": scrub(message), "type": str(told[0].verdict)})
        child.text = scrub("\n\n".join(_block(result, each) for each in told))
        return kind
    if result.verdict in (Verdict.NOT_EXERCISED, Verdict.NOT_CLAIMED):
        reasons = sorted({each.reason for each in result.results if each.reason})
        message = f"{result.verdict}: {' '.join(reasons)}".rstrip(": ")
        Xml.SubElement(test, "skipped", {"message": scrub(message)})
        return "skipped"
    deviations = [each for each in result.results if each.verdict is Verdict.DEVIATION]
    if deviations:
        Xml.SubElement(test, "system-out").text = scrub("\n\n".join(_block(result, each) for each in deviations))
    return ""


def _line(check: CheckResult) -> str:
    return f"{check.check} ({' '.join(check.clauses)}) {check.verdict}: {check.what}"


def _block(result: CaseResult, check: CheckResult) -> str:
    shown = around(Evidence(result, check))
    frames = "\n".join(f"{'>>' if marked else '  '} {number:4} {text}" for number, text, marked in shown)
    return f"{_line(check)}\n{frames}"
