"""The event stream of a run: one JSON object a line, written as things happen, so that any prefix of it is a report.

``report.ndjson`` in the report's directory::

    {"event": "header", "report": "localagent conform/1", "argv": [...], ...}
    {"event": "target", "capabilities": [...], "calibration": {...}}
    {"event": "case", "id": ..., "checks": [...], "transcript": "transcripts/ID.ndjson"}    one a case
    {"event": "footer", "end": "complete" | "cut" | "insane", "status": 0 | 1 | 2 | 3}

A stream without a footer is that of a run that was killed; it counts as cut. The transcripts lie beside it.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, get_args

from localagent.conformance import transcript
from localagent.conformance.model import Blame, Case, CaseResult, CheckResult, Transcript, Verdict
from localagent.conformance.report.tally import End, Report, status

FILE: Final = "report.ndjson"
TRANSCRIPTS: Final = "transcripts"
DERIVED: Final = ("junit.xml", "report.md", "index.html")
"""What is made of the stream when it has ended."""
KIND: Final = "localagent conform/1"


class UnreadableError(ValueError):
    """A directory that holds no report."""


class Stream:
    """Writes the report of a run, event by event; every line is flushed, so that a crash loses at most the last."""

    def __init__(self, directory: Path, header: Mapping[str, Any]) -> None:
        """Begin a report in a directory, which is made if it is not there. Raises OSError."""
        (directory / TRANSCRIPTS).mkdir(parents=True, exist_ok=True)
        if (directory / FILE).exists():  # an earlier report of ours: none of it shall look like part of this one
            for each in (*(directory / TRANSCRIPTS).glob("*.ndjson"), *(directory / name for name in DERIVED)):
                each.unlink(missing_ok=True)
        self._directory = directory
        self._file = (directory / FILE).open("w", encoding="utf-8")
        self._line({"event": "header", "report": KIND, **header})

    def target(self, capabilities: frozenset[str], calibration: Mapping[str, float]) -> None:
        """Note down what the first probe told."""
        self._line({"event": "target", "capabilities": sorted(capabilities), "calibration": dict(calibration)})

    def case(self, result: CaseResult) -> None:
        """Add a case; its transcript goes into a file of its own. Raises OSError."""
        name = f"{TRANSCRIPTS}/{result.case.id}.ndjson" if result.transcript.records else None
        if name is not None:
            transcript.write(result.transcript, self._directory / name)
        self._line({"event": "case", **_case(result), "transcript": name})

    def close(self, report: Report) -> None:
        """End the report."""
        self._line({"event": "footer", "end": report.end, "cases": len(report.cases), "status": int(status(report))})
        self._file.close()

    def _line(self, value: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(value, ensure_ascii=True) + "\n")
        self._file.flush()


def _case(result: CaseResult) -> dict[str, Any]:
    case = result.case
    return {
        "id": case.id,
        "title": case.title,
        "family": case.family,
        "tier": case.tier,
        "clauses": list(case.clauses),
        "needs": list(case.needs),
        "tags": list(case.tags),
        "verdict": str(result.verdict),
        "seconds": round(result.seconds, 4),
        "attempts": result.attempts,
        "checks": [check_data(each) for each in result.results],
    }


def check_data(check: CheckResult) -> dict[str, Any]:
    """A check for programs; what it does not have is left out."""
    found = {**asdict(check), "clauses": list(check.clauses), "verdict": str(check.verdict), "blame": str(check.blame)}
    return {key: value for key, value in found.items() if value not in ("", None)}


def load(directory: Path) -> Report:
    """Read a report back, as far as it was written. Raises UnreadableError, OSError."""
    lines = list(_lines(directory / FILE))
    if not lines or lines[0].get("report") != KIND:
        raise UnreadableError(f"{directory / FILE} is no report of this suite")
    header = {key: value for key, value in lines[0].items() if key not in ("event", "report")}
    cases: list[CaseResult] = []
    end: End = "cut"
    try:
        for each in lines[1:]:
            if each["event"] == "target":
                header |= {"capabilities": each["capabilities"], "calibration": each["calibration"]}
            elif each["event"] == "case":
                cases.append(_result(each, directory))
            elif each["event"] == "footer" and each["end"] in get_args(End):
                end = each["end"]
    except (KeyError, TypeError, ValueError) as fault:
        raise UnreadableError(f"{directory / FILE}: {type(fault).__name__} {fault}") from None
    return Report(header, tuple(cases), end, tuple(header.get("universe", ())), header.get("reasons", {}))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines of the stream; one that was cut off while it was written is not told."""
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        try:
            value = json.loads(line)
        except ValueError:
            raise UnreadableError(f"{path} holds a line that is no JSON") from None
        if isinstance(value, dict):
            yield value


def _result(each: Mapping[str, Any], directory: Path) -> CaseResult:
    case = Case(
        id=each["id"],
        title=each["title"],
        family=each["family"],
        tier=each["tier"],
        clauses=tuple(each["clauses"]),
        steps=(),
        needs=tuple(each["needs"]),
        tags=tuple(each["tags"]),
    )
    name = each["transcript"]
    inside = name is not None and os.path.normpath(name) == name and name.startswith(f"{TRANSCRIPTS}/")
    seen = transcript.read(directory / name) if inside else Transcript(())
    checks = tuple(_check(one) for one in each["checks"])
    return CaseResult(case, seen, checks, each["seconds"], each["attempts"])


def _check(one: Mapping[str, Any]) -> CheckResult:
    known = {"clauses": tuple(one["clauses"]), "verdict": Verdict(one["verdict"]), "blame": Blame(one.get("blame", ""))}
    return CheckResult(**{**one, **known})
