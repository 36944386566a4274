"""Runs mutants: their own cases each, or all cases, with a sanity probe that tells a fault from a wreck.

A mutant is *killed* when the probe holds on it and every check that it names is red, and not because it died on the
way: whose fault that is, is listed. Time limits are shorter than those for a stranger: the host and the backend are
known, and a mutant that is silent is to be found out, not waited for. The backend without a fault goes through the same
cases by the suite's own rules, and has to pass.
"""

import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Final

from localagent.conformance import cases, judge, play, processes, stimuli
from localagent.conformance.doubts import FAILED
from localagent.conformance.model import (
    Blame,
    Calibration,
    Case,
    CaseResult,
    CheckResult,
    Target,
    Verdict,
)
from localagent.conformance.suite import Event, Probed, Suite, probe, settled

from .mutant import PROGRAM, Mutant, zoo

DEAD: Final = frozenset({Blame.CRASHED, Blame.NEVER_STARTED})
"""What a mutant is blamed for that dies on the way: its checks have seen that, and not its fault."""
_UNRUN: Final = frozenset({Verdict.NOT_CLAIMED, Verdict.NOT_EXERCISED})
FIXTURES: Final = frozenset({"store", "settings"})
"""What the cases may prepare in the home: our backend reads both."""
SANITY: Final = probe("first")
_PROGRAM: Final = (sys.executable, "-m", "localagent", "serve", "--stdio")


class Brisk(Calibration):
    """Limits for a backend that is known to answer in milliseconds."""

    @property
    def answer_ms(self) -> float:
        """Half of what a stranger gets."""
        return super().answer_ms / 2

    @property
    def start_ms(self) -> float:
        """A third of what a stranger gets: many a mutant never says the first thing that is waited for."""
        return super().start_ms / 3


Plan = Sequence[tuple[Mutant, Sequence[Case]]]
"""Mutants, each with the cases that it is put through."""
Progress = Callable[[int, int], None]
"""Told how many pairs are done, of how many."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of a mutant in one case: which checks are red, whether any was judged, whether all its own held.

    ``dead``: those of the red ones that are blamed on its death.
    """

    mutant: str
    case: str
    red: tuple[str, ...]
    ran: bool
    held: bool
    dead: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one mutant. ``red``: case -> the checks that saw it there; ``ran``: the cases that were run;
    ``dead``: case -> the checks that saw it die.
    """

    mutant: Mutant
    expected: tuple[str, ...]
    red: Mapping[str, tuple[str, ...]]
    ran: frozenset[str]
    sane: bool
    dead: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def unclaimed(self) -> bool:
        """True when a case that it names needs a capability that our backend does not advertise yet."""
        return any(case_of(each) not in self.ran for each in self.expected)

    @property
    def missed(self) -> tuple[str, ...]:
        """Checks that it names and that are not red, or only because it died, which is not its fault."""
        excused = {} if self.mutant.name in dying() else self.dead

        def seen(case: str, check: str) -> bool:
            return check in self.red.get(case, ()) and check not in excused.get(case, ())

        return tuple(each for each in self.expected if not seen(case_of(each), _check(each)))

    @property
    def killed(self) -> bool:
        """True when it starts and ends as a backend does, and all the checks that it names see its fault."""
        return self.sane and bool(self.expected) and not self.missed


@cache
def _table() -> Mapping[str, tuple[str, ...]]:
    text = files(__package__).joinpath("expected.toml").read_text(encoding="utf-8")
    return {name: tuple(checks) for name, checks in tomllib.loads(text).items()}


def dying() -> frozenset[str]:
    """Mutants whose fault is to die: ``dies`` of the same file."""
    return frozenset(_table()["dies"])


@cache
def expected() -> Mapping[str, tuple[str, ...]]:
    """Mutant -> the checks that must turn red: ``case/name``, or ``case: trace/CLAUSE`` for a check of the judge's."""
    return {name: checks for name, checks in _table().items() if name != "dies"}


def case_of(check: str) -> str:
    """The case that a check of ``expected`` is seen in."""
    return check.partition(": ")[0].partition("/")[0]


def cases_of(mutant: str) -> frozenset[str]:
    """The cases that a mutant names."""
    return frozenset(map(case_of, expected().get(mutant, ())))


def _check(check: str) -> str:
    return check.rpartition(": ")[2]


def chosen(patterns: Sequence[str] = ()) -> tuple[Mutant, ...]:
    """The mutants that any of the patterns covers by name or place; all without one."""
    return tuple(
        each
        for each in zoo().values()
        if not patterns
        or any(fnmatchcase(each.name, pattern) or fnmatchcase(each.place, pattern) for pattern in patterns)
    )


def named(mutants: Iterable[Mutant]) -> tuple[Case, ...]:
    """The cases that these mutants name, in the order of the files. Raises KeyError for a case that is not there."""
    wanted = {case for mutant in mutants for case in cases_of(mutant.name)}
    known = {case.id: case for case in cases.load()}
    if gone := wanted - set(known):
        raise KeyError(", ".join(sorted(gone)))
    return tuple(case for name, case in known.items() if name in wanted)


def target_of(mutant: Mutant, capabilities: frozenset[str]) -> Target:
    """The program that a mutant is."""
    argv = (sys.executable, *PROGRAM, mutant.name, "serve", "--stdio")
    return Target(argv, capabilities=capabilities, prompts=stimuli.SCRIPTED, fixtures=FIXTURES)


def unmutated(some: Sequence[Case], jobs: int, listen: Callable[[Event], None]) -> tuple[CaseResult, ...]:
    """Our backend as it is, through the suite: probes, cases, what was late once more alone. The results."""
    target = Target(_PROGRAM, prompts=stimuli.SCRIPTED, fixtures=FIXTURES)
    suite = Suite(target, some, play=play.play, judge=judge.judge, listen=listen, jobs=jobs)
    results, end = suite.run()
    if end == "insane":
        raise RuntimeError("the backend without a fault does not even start and stop")
    return results


class Learning:
    """Listens to the unmutated run: what is advertised, and how fast it is."""

    def __init__(self, more: Callable[[Event], None] = lambda _: None) -> None:
        self.capabilities: frozenset[str] = frozenset()
        self.calibration = Calibration()
        self._more = more

    def __call__(self, event: Event) -> None:
        """Take an event of the suite."""
        if isinstance(event, Probed):
            measured = event.calibration
            self.capabilities = event.capabilities
            self.calibration = Brisk(measured.round_trip, measured.start, measured.lag)
        self._more(event)


def run(plan: Plan, known: Learning, jobs: int, done: Progress) -> tuple[Outcome, ...]:
    """Run each mutant through its cases and the probe; what waits on purpose begins first."""
    pairs = [(mutant, case) for mutant, some in plan for case in (SANITY, *some)]
    pairs.sort(key=lambda pair: waits(pair[1]), reverse=True)
    with ThreadPoolExecutor(jobs) as pool:
        attempts = pool.map(lambda pair: attempt(pair[0], pair[1], known.capabilities, known.calibration), pairs)
        return gathered(plan, counted(attempts, len(pairs), done))


def counted(attempts: Iterable[Attempt], of: int, done: Progress) -> Iterator[Attempt]:
    """The attempts, told as they come."""
    for count, each in enumerate(attempts, 1):
        done(count, of)
        yield each


def gathered(plan: Plan, attempts: Iterable[Attempt]) -> tuple[Outcome, ...]:
    """What became of each mutant, out of what became of the pairs that were tried."""
    by_name = {mutant.name: mutant for mutant, _ in plan}
    red: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in by_name}
    ran: dict[str, set[str]] = {name: set() for name in by_name}
    dead: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in by_name}
    sane: dict[str, bool] = {}
    for each in attempts:
        if each.case == SANITY.id:
            sane[each.mutant] = each.held
        red[each.mutant][each.case], dead[each.mutant][each.case] = each.red, each.dead
        if each.ran:
            ran[each.mutant].add(each.case)
    return tuple(
        Outcome(mutant, expected().get(name, ()), red[name], frozenset(ran[name]), sane[name], dead[name])
        for name, mutant in by_name.items()
    )


def waits(case: Case) -> int:
    """Milliseconds that a case surely takes: pauses, and the least time until an end that it waits for."""
    return sum(step.args.get("pause_ms", 0) + step.args.get("not_before_ms", 0) for step in case.steps)


def attempt(
    mutant: Mutant,
    case: Case,
    capabilities: frozenset[str],
    calibration: Calibration,
    start: processes.Start = processes.start,
) -> Attempt:
    """Put a mutant through a case."""
    target = target_of(mutant, capabilities)
    told = settled(case, target)
    if told is not None:
        results: Sequence[CheckResult] = told.results
    else:
        results = tuple(judge.judge(play.play(case, target, calibration, start=start), case, capabilities))
    own = {each.check for each in case.checks}
    return Attempt(
        mutant.name,
        case.id,
        red=tuple(each.check for each in results if each.verdict in FAILED),
        ran=any(each.verdict not in _UNRUN for each in results),
        held=all(each.verdict is Verdict.HELD for each in results if each.check in own),
        dead=tuple(each.check for each in results if each.verdict in FAILED and each.blame in DEAD),
    )


def runnable(case: Case, known: Learning) -> bool:
    """True when our backend can be put through the case: it advertises what that needs."""
    return settled(case, target_of(next(iter(zoo().values())), known.capabilities)) is None
