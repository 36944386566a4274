"""Runs cases against a target: probe, cases in parallel, what missed a time limit once more alone, probe.

The suite knows a target by its argv only. It never crashes on one: whatever goes wrong while a case is played or
judged is that case's verdict. What it does is told as events, in the order in which it happens; reporters listen.
"""

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from json import dumps
from typing import Any, Final

from localagent.conformance import cases, processes
from localagent.conformance.calibrate import SETTLE_SECONDS, STARVED_MS, Watch, frame_of, measure
from localagent.conformance.doubts import FAILED, excused, joined, suspicious
from localagent.conformance.model import (
    Blame,
    Calibration,
    Case,
    CaseResult,
    CheckResult,
    Expectation,
    Reason,
    Step,
    Target,
    Transcript,
    Verdict,
)
from localagent.conformance.report.tally import SANITY, End
from localagent.conformance.stage import SERVE
from localagent.protocol.names import CLIENT_TOOLS, EXTENSIONS

Play = Callable[[Case, Target, Calibration], Transcript]
Judge = Callable[[Transcript, Case | None, frozenset[str] | None], Iterable[CheckResult]]

ATTEMPTS: Final = 3
"""How often a case is run at most, when its time limits are missed while the host itself was late."""
GRACE_SECONDS: Final = 3.0
"""How long running cases are waited for after an interrupt."""
KILL_EVERY_SECONDS: Final = 0.1
TRIPS: Final = 8
"""Round trips of the first probe."""


@dataclass(frozen=True, slots=True)
class Probed:
    """The target is sane: what it advertises, how fast it and the host are, which provider it names."""

    capabilities: frozenset[str]
    calibration: Calibration
    provider: str | None


@dataclass(frozen=True, slots=True)
class Begun:
    """The cases begin; so many of them are run, the others are settled by what the target claims and offers."""

    cases: int
    to_run: int


@dataclass(frozen=True, slots=True)
class Suspected:
    """A case missed a time limit: it is run again, alone, at the end."""

    result: CaseResult


@dataclass(frozen=True, slots=True)
class Done:
    """A case has its verdict; ``ran`` is False when it was settled without a run."""

    result: CaseResult
    ran: bool = True


Event = Probed | Begun | Suspected | Done
Listen = Callable[[Event], None]
Equip = Callable[[Target, Probed], Target]
"""Completes the target once it is known, with prompts that its provider understands."""


_PROBE: Final = """
[[case]]
id = "sanity.%(which)s"
title = "The backend starts, answers status and stops"
tier = 0
steps = [
%(start)s
  { repeat = %(trips)d, steps = [
    { send = "status", as = "s{n}" },
    { answer = "s{n}", result = {}, check = "status.{n}", clauses = ["STATUS-03"] },
  ] },
  { send = "shutdown", as = "bye" },
  { answer = "bye", result = { state = "stopping" }, check = "shutdown", clauses = ["SHUT-04"] },
]
"""


_START: Final = '  { start = true, require = ["status"], as = "init", check = "start", clauses = ["NEG-02"] },'
_ASK: Final = """\
  { send = "initialize", as = "init", params = { required_capabilities = [%(name)s]%(more)s } },
  { answer = "init", result = {}, error = ["unsupported_capability"], check = "start", clauses = ["NEG-14"] },
  { given = "$init.result", pattern = "*" },"""


def probe(which: str, trips: int = 1, start: str = _START) -> Case:
    """A case that every backend passes: initialize, status, shutdown, the end."""
    return cases.parse(_PROBE % {"which": which, "trips": trips, "start": start}, "probe")[0]


def asking(extension: str) -> Case:
    """The probe of an extension: it may be served or refused."""
    more = ", client_tools = []" if extension == CLIENT_TOOLS else ""  # CT-10; the base knows the key too (NEG-11)
    return probe(extension.replace(".", "-"), start=_ASK % {"name": dumps(extension), "more": more})


def probes() -> Mapping[str, Case]:
    """Every probe that a run may hold, by its id."""
    every = (probe("first", TRIPS), *map(asking, EXTENSIONS), probe("last"))
    return {each.id: each for each in every}


def unrun(case: Case, verdict: Verdict, reason: Reason, what: str, blame: Blame = Blame.NONE) -> CaseResult:
    """The result of a case that was not run: every check has the same verdict."""
    checks = case.checks or (Expectation(f"{case.id}/case", case.clauses),)
    results = tuple(CheckResult(each.check, each.clauses, verdict, what, blame, reason=reason) for each in checks)
    return CaseResult(case, Transcript(()), results)


def settled(case: Case, target: Target) -> CaseResult | None:
    """The result of a case that needs no run, because of what the target claims or was not given; else None."""
    missing = [name for name in case.needs if name not in target.capabilities]
    if missing:
        return unrun(case, Verdict.NOT_CLAIMED, "capability", f"not advertised: {', '.join(missing)}")
    if list(target.argv[-len(SERVE) :]) != SERVE and any(map(_relaunches, case.steps)):
        return unrun(case, Verdict.NOT_EXERCISED, "needs-serve", f"the command does not end in {' '.join(SERVE)}")
    missing = [name for name in case.prompts if name not in target.prompts]
    if missing:
        return unrun(case, Verdict.NOT_EXERCISED, "needs-model", f"no prompt for: {', '.join(missing)}")
    missing = [name for name in case.fixtures if name not in target.fixtures]
    if missing:
        return unrun(case, Verdict.NOT_EXERCISED, "needs-fixture", f"no fixture: {', '.join(missing)}")
    return None


def _relaunches(step: Step) -> bool:
    """Whether a step makes another command line of the target's."""
    return step.kind == "launch" and not {"args", "add"}.isdisjoint(step.args["launch"])


def answer_of(transcript: Transcript, request: str) -> Mapping[str, Any]:
    """The result of the answer to a request of this id; empty if there is none."""
    for record in transcript.records:
        frame = frame_of(record) if record.kind == "backend" else None
        if isinstance(frame, dict) and frame.get("id") == request and isinstance(frame.get("result"), dict):
            return dict(frame["result"])
    return {}


def advertised(transcript: Transcript, request: str = "init") -> frozenset[str]:
    """The capabilities that the answer to ``initialize`` names."""
    names = answer_of(transcript, request).get("capabilities")
    return frozenset(each for each in names if isinstance(each, str)) if isinstance(names, list) else frozenset()


class Suite:
    """One run. ``cut`` may be called from a signal handler or another thread, once or again."""

    def __init__(
        self,
        target: Target,
        chosen: Sequence[Case],
        *,
        play: Play,
        judge: Judge,
        listen: Listen = lambda _: None,
        equip: Equip = lambda target, _: target,
        jobs: int = 2,
    ) -> None:
        self._target, self._cases, self._jobs = target, tuple(chosen), jobs
        self._play, self._judge, self._listen, self._equip = play, judge, listen, equip
        self._calibration = Calibration()
        self._watch = Watch()
        self._stopped = threading.Event()
        self._done: queue.SimpleQueue[CaseResult | None] = queue.SimpleQueue()
        self._results: list[CaseResult] = []
        self._threads: list[threading.Thread] = []

    def cut(self) -> None:
        """End the run early; what is running has a few seconds to end by itself."""
        self._stopped.set()
        self._done.put(None)

    def run(self) -> tuple[tuple[CaseResult, ...], End]:
        """Run everything; the results, probes first and last, the others in the order of the cases."""
        with self._watch:
            time.sleep(SETTLE_SECONDS)
            try:
                end = self._run()
            except BaseException:  # of who listens, or a second interrupt
                self.cut()
                self._abandon()
                raise
        place = {case.id: i for i, case in enumerate(self._cases)} | {f"{SANITY}.last": len(self._cases)}
        return tuple(sorted(self._results, key=lambda each: place.get(each.case.id, -1))), end

    def _run(self) -> End:
        if not self._sane(probe("first", TRIPS), measuring=True):
            return self._ended("insane")
        waiting = []
        for case in self._cases:
            result = settled(case, self._target)
            if result is None:
                waiting.append(case)
            else:
                self._add(result, ran=False)
        waiting.sort(key=_pauses, reverse=True)  # what waits for a minute shall not begin last
        self._listen(Begun(len(self._cases), len(waiting)))
        suspects = []
        for result in self._each(waiting, self._jobs):
            if suspicious(result):
                suspects.append(result)
                self._listen(Suspected(result))
            else:
                self._add(result)
        for result in suspects:
            self._add(self._again(result))
        if self._stopped.is_set():
            return "cut"
        return self._ended("complete" if self._sane(probe("last")) else "insane")

    def _ended(self, end: End) -> End:
        return "cut" if self._stopped.is_set() else end

    def _add(self, result: CaseResult, *, ran: bool = True) -> None:
        self._results.append(result)
        self._listen(Done(result, ran))

    def _sane(self, case: Case, *, measuring: bool = False) -> bool:
        """Probe the target; the first probe tells what it is and how fast."""
        result = next(self._each([case], 1), None)
        if result is not None and suspicious(result):
            result = self._again(result)
        if result is None:
            return False
        checks = {each.check for each in case.checks}
        sane = all(each.verdict is Verdict.HELD for each in result.results if each.check in checks)
        failed = self._know(result.transcript) if sane and measuring else []
        for each in (result, *failed):
            self._add(each)
        return sane

    def _know(self, transcript: Transcript) -> list[CaseResult]:
        """Learn what the target claims. What must be required to be advertised is asked for in children of its own;
        of these, those that came to neither yes nor no.
        """
        self._calibration = measure(transcript, self._watch.usual())
        self._target = replace(self._target, capabilities=advertised(transcript))
        known, failed = advertised(transcript), list[CaseResult]()
        for extension in EXTENSIONS:
            result = self._asked(extension)
            if result is None:  # the run was cut off
                continue
            if extension in advertised(result.transcript):
                known |= {extension}
            elif any(each.verdict in FAILED | {Verdict.HARNESS_FAULT} for each in result.results):
                failed.append(result)
        provider = _provider(transcript)
        probed = Probed(known, self._calibration, provider)
        self._target = self._equip(replace(self._target, capabilities=known), probed)
        self._listen(probed)
        return failed

    def _asked(self, extension: str) -> CaseResult | None:
        """The probe of an extension. A missed time limit of one that is served is left to its cases."""
        result = next(self._each([asking(extension)], 1), None)
        doubtful = result is not None and suspicious(result) and extension not in advertised(result.transcript)
        return self._again(result) if result is not None and doubtful else result

    def _again(self, first: CaseResult) -> CaseResult:
        """Run a case alone until its time limits hold, or the host cannot be the reason that they do not.

        What it has shown besides stands: to fail by time as well excuses nothing.
        """
        result = first
        for attempt in range(2, ATTEMPTS + 1):
            begin = time.monotonic()
            again = None if self._stopped.is_set() else next(self._each([first.case], 1), None)
            if again is None:
                return excused(result, Verdict.NOT_EXERCISED, "not run again: the run was cut off")
            result = replace(joined(result, again), attempts=attempt)
            late = self._watch.worst(begin, time.monotonic())
            if not suspicious(result) or late < STARVED_MS:
                return result
        return excused(result, Verdict.HARNESS_FAULT, f"the host was late itself, by {late:.0f} ms")

    def _each(self, some: Sequence[Case], jobs: int) -> Iterator[CaseResult]:
        """Attempt the cases in threads; the results as they come, those of running cases only after :meth:`cut`."""
        todo, missing = deque(some), len(some)

        def work() -> None:
            while not self._stopped.is_set():
                try:
                    case = todo.popleft()
                except IndexError:
                    return
                self._done.put(self._attempt(case))

        self._threads = [
            threading.Thread(target=work, name=f"conformance-{number}", daemon=True)
            for number in range(min(jobs, missing))
        ]
        for thread in self._threads:
            thread.start()
        while missing and not self._stopped.is_set():
            result = self._done.get()
            if result is not None:
                missing -= 1
                yield result
        deadline = time.monotonic() + GRACE_SECONDS
        while missing > len(todo) and (rest := deadline - time.monotonic()) > 0:
            try:
                result = self._done.get(timeout=rest)
            except queue.Empty:
                break
            if result is not None:
                missing -= 1
                yield result
        if missing > len(todo):
            self._abandon()

    def _abandon(self) -> None:
        """Kill the children of cases that do not end, so that they are not left behind and their homes are removed.

        A case that is about to start a child, its first or another one, does so a moment later: hence again.
        """
        deadline = time.monotonic() + GRACE_SECONDS
        while any(thread.is_alive() for thread in self._threads):
            for each in processes.living() or ():
                if each.parent == os.getpid() and each.session == each.pid:  # as the driver starts them
                    processes.kill_group(each.pid)
            if time.monotonic() > deadline:
                return
            for thread in self._threads:
                thread.join(KILL_EVERY_SECONDS)

    def _attempt(self, case: Case) -> CaseResult:
        """Play and judge a case once; any exception on the way is its verdict."""
        begin, transcript = time.monotonic(), Transcript(())
        try:
            transcript = self._play(case, self._target, self._calibration)
            seconds = time.monotonic() - begin
            # a probe is judged by what it has learned itself, as it is from its file
            known = None if case.family == SANITY else self._target.capabilities
            results = tuple(self._judge(transcript, case, known))
        except Exception as fault:  # a fault of ours must not look like one of the target's, nor end the run
            told = f"{type(fault).__name__}: {fault}"
            failed = unrun(case, Verdict.HARNESS_FAULT, "", told, Blame.HARNESS)
            return replace(failed, transcript=transcript, seconds=time.monotonic() - begin)
        return CaseResult(case, transcript, results + _forgotten(case, results), seconds)


def _pauses(case: Case) -> int:
    """How long a case waits on purpose, in ms."""
    return sum(step.args["pause_ms"] for step in case.steps if step.kind == "pause_ms")


def _forgotten(case: Case, results: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """Declared checks without a result: they were not reached."""
    judged = {each.check for each in results}
    return tuple(
        CheckResult(each.check, each.clauses, Verdict.NOT_EXERCISED, reason="not-reached")
        for each in case.checks
        if each.check not in judged
    )


def _provider(transcript: Transcript) -> str | None:
    for request in ("s1", "init"):
        result = answer_of(transcript, request)
        for status in (result, result.get("status")):
            if isinstance(status, dict) and isinstance(status.get("provider"), str):
                return str(status["provider"])
    return None
