"""What is going on during a run, for people: one line that changes on a terminal, plain lines elsewhere."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Final, TextIO

from localagent.conformance.model import Blame, CaseResult, Verdict
from localagent.conformance.report.people import Paint, visible
from localagent.conformance.report.tally import SANITY
from localagent.conformance.suite import Begun, Done, Event, Probed, Suspected

_BAD: Final = frozenset({Verdict.VIOLATED, Verdict.HARNESS_FAULT})
_KINDS: Final = {Verdict.HELD: "good", Verdict.DEVIATION: "note", **dict.fromkeys(_BAD, "bad")}
_WIDE: Final = 100


class Progress:
    """Listens to a run and tells of it on a stream."""

    def __init__(self, out: TextIO, paint: Paint, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._paint, self._clock = out, paint, clock
        self._live = out.isatty()
        self._begin = clock()
        self._to_run = self._ran = self._again = self._bad = 0
        self._unrun = Counter[str]()
        self._began = False
        if self._live:
            self._write("probing the backend")

    def __call__(self, event: Event) -> None:
        """Tell of one event."""
        match event:
            case Probed(capabilities, calibration, provider):
                measured = f"start {calibration.start:.0f} ms, round trip {calibration.round_trip:.2f} ms"
                late = f"host late by {calibration.lag:.1f} ms"
                self._line(f"{len(capabilities)} capabilities, provider {visible(str(provider))}; {measured}; {late}")
            case Begun(cases, to_run):
                self._began, self._to_run, self._begin = True, to_run, self._clock()
                self._line(
                    f"{cases} cases" + (f", {cases - to_run} of them cannot be run here:" if cases > to_run else "")
                )
                for why, count in self._unrun.most_common():
                    self._line(f"  {count:4}  {visible(why)}")
            case Suspected(result):
                self._again += 1
                self._line(f"{'again':<13} {result.case.id}  {_why(result)}", "note")
            case Done(result, ran):
                self._done(result, ran)
        self._status()

    def close(self) -> None:
        """Take the changing line away."""
        if self._live:
            self._write("\r\033[K")

    def _done(self, result: CaseResult, ran: bool) -> None:
        bad = result.verdict in _BAD
        self._bad += bad
        if not ran:  # told together, before the first run
            self._unrun[result.results[0].what] += 1
            return
        counted = result.case.family != SANITY
        self._ran += counted
        if self._live and not bad:
            return
        place = f"[{self._ran:>{len(str(self._to_run))}}/{self._to_run}] " if counted else ""
        why = f"  {_why(result)}" if bad else ""
        told = f"{place}{result.verdict!s:<13} {result.case.id}  ({result.seconds:.2f} s){why}"
        self._line(told, _KINDS.get(result.verdict, "quiet"))

    def _status(self) -> None:
        if not self._live or not self._began:
            return
        left = self._to_run - self._ran
        passed = self._clock() - self._begin
        eta = f"  {_minutes(passed / self._ran * left)} to go" if self._ran and left else ""
        bad = f", {self._bad} failed" if self._bad else ""
        again = f", {self._again} to be run again" if self._again else ""
        self._write(f"\r\033[K{self._ran} of {self._to_run} cases{bad}{again}{eta}")

    def _line(self, text: str, kind: str = "quiet") -> None:
        clear = "\r\033[K" if self._live else ""
        self._write(f"{clear}{self._paint(text, kind)}\n")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _why(result: CaseResult) -> str:
    """One check that failed, in a few words."""
    failed = [each for each in result.results if each.verdict in _BAD | {Verdict.DEVIATION}]
    if not failed:
        return ""
    first = min(failed, key=lambda each: each.check.startswith("trace/"))  # the case's own first
    blame = f"{first.blame}: " if first.blame is not Blame.NONE else ""
    text = visible(f"{' '.join(first.clauses)} {blame}{first.what}")
    return text if len(text) <= _WIDE else f"{text[:_WIDE]}..."


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
