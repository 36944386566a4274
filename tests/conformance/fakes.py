"""Backends that are none: plays that make up a transcript, judges that say what they are told."""

import threading
from collections.abc import Callable, Iterable, Mapping
from json import dumps
from typing import Any

from localagent.conformance.model import (
    Blame,
    Calibration,
    Case,
    CaseResult,
    CheckResult,
    Expectation,
    Record,
    Step,
    Target,
    Transcript,
    Verdict,
)
from localagent.protocol.names import CAPABILITIES

Answer = CheckResult | Exception


def case(name: str, *clauses: str, **more: Any) -> Case:
    """A case with one check per clause."""
    steps = tuple(
        Step("answer", {"answer": f"a{i}", "any": True}, i, Expectation(f"{name}/e{i}", (clause,), timed=False))
        for i, clause in enumerate(clauses, 1)
    )
    family = name.partition(".")[0]
    return Case(name, more.pop("title", f"About {name}"), family, more.pop("tier", 0), clauses, steps, **more)


def line(number: int, kind: str, frame: Mapping[str, Any], t: float) -> Record:
    return Record(number, kind, t, dumps(frame).encode() + b"\n")


def talk(*, provider: str = "scripted", capabilities: Iterable[str] = CAPABILITIES, gap: float = 2.0) -> Transcript:
    """What the probe sees of a sane backend that takes ``gap`` ms for an answer and 100 to start."""
    init = {"capabilities": list(capabilities), "status": {"provider": provider}}
    return Transcript(
        (
            Record(1, "header", value={"transcript": "magi-code.local-agent/1", "case": "x"}),
            line(2, "client", {"id": "init", "method": "initialize"}, 1.0),
            line(3, "backend", {"id": "init", "type": "response", "result": init}, 101.0),
            line(4, "client", {"id": "s1", "method": "status"}, 110.0),
            line(5, "backend", {"id": "s1", "type": "response", "result": {"provider": provider}}, 110.0 + gap),
            Record(6, "exit", 130.0, value=0),
            Record(7, "footer", 131.0, value={"end": "complete", "left": 0}),
        )
    )


def verdicts(case: Case, verdict: Verdict = Verdict.HELD, **more: Any) -> tuple[CheckResult, ...]:
    """One verdict for all checks of a case."""
    return tuple(CheckResult(each.check, each.clauses, verdict, **more) for each in case.checks)


class Bench:
    """A play and a judge. ``script`` says by case what its attempts come to, the last again and again; held without."""

    def __init__(self, script: Mapping[str, list[Any]] | None = None, **talk_like: Any) -> None:
        self._script = {name: list(each) for name, each in (script or {}).items()}
        self._talk_like = talk_like
        self._lock = threading.Lock()
        self.played: list[str] = []
        self.targets: list[Target] = []
        self.known: dict[str, frozenset[str] | None] = {}
        """By case, the capabilities that it was judged by."""
        self.running = self.most = 0
        self.before: Callable[[Case], None] = lambda _: None

    def play(self, case: Case, target: Target, calibration: Calibration) -> Transcript:
        with self._lock:
            self.played.append(case.id)
            self.targets.append(target)
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            self.before(case)
            asked = [name for name in ("tool.cards", "client.tools") if name.replace(".", "-") in case.id]
            if asked:
                return talk(capabilities=[*CAPABILITIES, *asked] if asked == ["tool.cards"] else [])
            return talk(**self._talk_like)
        finally:
            with self._lock:
                self.running -= 1

    def judge(self, transcript: Transcript, case: Case | None, capabilities: Any) -> Iterable[CheckResult]:
        assert case is not None
        with self._lock:
            self.known[case.id] = capabilities
            left = self._script.get(case.id)
            now = left.pop(0) if left and len(left) > 1 else left[0] if left else Verdict.HELD
        if isinstance(now, Exception):
            raise now
        if isinstance(now, Verdict):
            blame = Blame.WRONG if now is Verdict.VIOLATED else Blame.NONE
            return verdicts(case, now, blame=blame, record=5, what="seen otherwise")
        if isinstance(now, Blame):
            return verdicts(case, Verdict.VIOLATED, blame=now, record=5, what="too late")
        return now  # type: ignore[no-any-return]


def result(case: Case, verdict: Verdict = Verdict.HELD, **more: Any) -> CaseResult:
    """A case with a transcript whose checks all have one verdict."""
    return CaseResult(case, talk(), verdicts(case, verdict, **more), 0.25)
