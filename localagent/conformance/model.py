"""The words of the suite: verdicts, checks, steps, cases, and what a case came to. Pure.

A *case* is a list of steps that one child is put through. Steps that expect something are *checks*; so is every clause
that the observer can look at in a transcript, and what can be said of the process. A check has one verdict per case, a
clause the worst verdict of its checks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal


class Verdict(StrEnum):
    """What a check, or a clause, came to."""

    HARNESS_FAULT = "harness fault"
    VIOLATED = "violated"
    DEVIATION = "deviation"
    """A SHOULD that does not hold."""
    HELD = "held"
    RECORDED = "recorded"
    """The implementation's choice, noted down."""
    NOT_CLAIMED = "not claimed"
    """It belongs to a capability that the backend does not advertise."""
    NOT_EXERCISED = "not exercised"


_WORST_FIRST: Final = {verdict: rank for rank, verdict in enumerate(Verdict)}

FAILED: Final = frozenset({Verdict.HARNESS_FAULT, Verdict.VIOLATED})
"""Verdicts that exclude conformance."""


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of some verdicts, which is that of the clause; NOT_EXERCISED of none."""
    return min(verdicts, key=_WORST_FIRST.__getitem__, default=Verdict.NOT_EXERCISED)


class Blame(StrEnum):
    """Whose fault it is, and what kind, where a check has not passed."""

    NONE = ""
    NEVER_STARTED = "never started"
    SLOW_START = "slow start"
    SILENT = "silent"
    LATE = "late"
    WRONG = "wrong"
    CRASHED = "crashed"
    HARNESS = "harness"
    HOST_STARVED = "host starved"


TIMED: Final = frozenset({Blame.SLOW_START, Blame.SILENT, Blame.LATE, Blame.HOST_STARVED})
"""Blames that a busy host can cause: the case is run again, alone, before they count."""

Reason = Literal[
    "",
    "needs-model",
    "needs-fixture",
    "needs-serve",
    "not-reached",
    "no-times",
    "foreign-times",
    "platform",
    "capability",
]
"""Why a check was not exercised or not claimed."""


ALWAYS_MADE: Final = ("trace/", "process/")
"""How checks begin that the judge makes in every case; those that a case declares begin with its id."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdict of one check in one case.

    ``record`` is the number of the transcript's line, from 1, that is the evidence; ``clauses`` are ids of the
    register; ``what`` says for people what was expected and seen.
    """

    check: str
    clauses: tuple[str, ...]
    verdict: Verdict
    what: str = ""
    blame: Blame = Blame.NONE
    record: int | None = None
    reason: Reason = ""
    machine: str = ""
    """Machine and state, where no row explains a frame: ``run finishing(...)``."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What makes a step a check: its id (``case/name``), its clauses, whether it is a SHOULD, whether about time."""

    check: str
    clauses: tuple[str, ...]
    level: Literal["must", "should", "record"] = "must"
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a case: its kind, its arguments as they stand in the file, its check if it expects something."""

    kind: str
    args: Mapping[str, Any]
    number: int
    expects: Expectation | None = None
    steps: tuple["Step", ...] = ()
    """Those of a ``repeat``, written out already."""


@dataclass(frozen=True, slots=True)
class Case:
    """A named list of steps for one child, in a home of its own. ``tier``: 0 no model, 1 prompts, 2 a fixture."""

    id: str
    title: str
    family: str
    tier: int
    clauses: tuple[str, ...]
    steps: tuple[Step, ...]
    needs: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    fixtures: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[Expectation, ...]:
        """What the case declares, in order; each has a verdict whatever happens."""
        return tuple(step.expects for step in self.steps if step.expects is not None)


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a transcript. ``number`` counts from 1; ``t`` is in ms from the child's start, None if not recorded.

    ``kind``: header client backend closed eof signal mark stderr exit footer damaged. ``data`` is the line's bytes,
    LF included, of a client or backend record; ``value`` whatever else the record tells (status, name, text, header).
    """

    number: int
    kind: str
    t: float | None = None
    data: bytes = b""
    value: Any = None


@dataclass(frozen=True, slots=True)
class Transcript:
    """Everything that was seen of one child, or of one case's children."""

    records: tuple[Record, ...]

    @property
    def header(self) -> Mapping[str, Any]:
        """The first header, empty if there is none."""
        return next((each.value for each in self.records if each.kind == "header"), {})

    @property
    def complete(self) -> bool:
        """True when the recording says that it was not cut off."""
        return any(each.kind == "footer" and each.value.get("end") == "complete" for each in self.records)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What one case came to. ``attempts``: how often it was run before its timing counted."""

    case: Case
    transcript: Transcript
    results: tuple[CheckResult, ...]
    seconds: float = 0.0
    attempts: int = 1

    @property
    def own(self) -> tuple[CheckResult, ...]:
        """The checks that the case declares; where it declares none, as a replay, those that the judge always makes."""
        return tuple(each for each in self.results if not each.check.startswith(ALWAYS_MADE)) or self.results

    @property
    def verdict(self) -> Verdict:
        """The worst of all its checks. It is not held by what held beside its own: those have to be put to the test."""
        found = worst(each.verdict for each in self.results)
        return worst(each.verdict for each in self.own) if found is Verdict.HELD else found


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the host and the child can do, measured first: milliseconds. Time limits are derived from these."""

    round_trip: float = 1.0
    start: float = 200.0
    lag: float = 1.0

    @property
    def answer_ms(self) -> float:
        """How long an answer may take before it counts as missing."""
        return max(5_000.0, 100 * self.round_trip + 20 * self.lag)

    @property
    def start_ms(self) -> float:
        """How long the first answer and initialize may take."""
        return max(15_000.0, 20 * self.start)

    @property
    def margin_ms(self) -> float:
        """How far a measured time may lie beyond a deadline of the contract."""
        return 300.0 + 20 * self.lag


EVENT_MS: Final = 20_000.0


@dataclass(frozen=True, slots=True)
class Target:
    """The backend under test. ``home`` is copied fresh for every child and given as ``MC_HOME``."""

    argv: tuple[str, ...]
    cwd: str | None = None
    home: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    capabilities: frozenset[str] = frozenset()
    """What ``initialize`` advertised in the sanity probe."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    event_ms: float = EVENT_MS
    """How long an event may take at least while a run is on: the time of a provider, which nobody measures."""
    fixtures: frozenset[str] = frozenset()
