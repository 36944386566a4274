"""The kill matrix: every mutant through every case, and the backend without a fault beside them.

Cases that wait for a minute on purpose are played by threads, on programs; the others by processes whose children are
forks (:mod:`.forks`). Two kinds of pairs need no play: those in which the fault cannot show itself (:mod:`.reach`)
and, unless every pair is wanted, those of a case of which each check has been seen red. What is red on the control is
the noise of a busy host: it is told and not counted. Cases that a busy host may have spoiled are played once more at
the end, a few at a time, and count as they are then.
"""

import gc
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from math import inf
from random import Random
from typing import Any, Final

from localagent.conformance import cases
from localagent.conformance.model import Calibration, Case

from . import forks, reach
from .campaign import (
    SANITY,
    Attempt,
    Learning,
    Outcome,
    Plan,
    Progress,
    attempt,
    case_of,
    cases_of,
    expected,
    gathered,
    waits,
)
from .mutant import Mutant, zoo

CONTROLS: Final = 2
"""How often the backend without a fault goes through all cases."""
_LONG_MS: Final = 10_000
_LONG_AT_ONCE: Final = 64
"""Threads for what only waits."""
_FEW_AT_ONCE: Final = 2
"""Batches of what is played once more."""
_BATCH: Final = 12
"""Cases that a process plays before it reports."""

_CASES: Final[dict[str, Case]] = {}
"""The cases by id, in a process that plays them."""


class Hasty(Calibration):
    """Limits for forked children, which have nothing to import."""

    @property
    def answer_ms(self) -> float:
        """A fifth of what a stranger gets: some histories take half a second to open."""
        return super().answer_ms / 5

    @property
    def start_ms(self) -> float:
        """Twice that, so that a busy host makes no wreck of a mutant."""
        return 2 * self.answer_ms


@dataclass(frozen=True, slots=True)
class Matrix:
    """What became of the mutants; case -> what is red there without a fault.

    ``spared``: pairs in which the fault cannot show itself; ``idle``: pairs that could have told nothing new;
    ``left``: pairs for which there was no time.
    """

    outcomes: tuple[Outcome, ...]
    noise: Mapping[str, frozenset[str]]
    spared: int
    idle: int
    left: int = 0


def whole(
    mutants: Sequence[Mutant],
    some: Sequence[Case],
    known: Learning,
    jobs: int,
    done: Progress,
    *,
    due: Collection[str] = (),
    every: bool = False,
    seconds: float = inf,
) -> Matrix:
    """Put each mutant through all these cases in which its fault can show itself, as long as there is time.

    A case of which some mutant has turned every check red is left out of what is still to be played, but for the
    mutants that name it, unless ``every`` pair is wanted. ``due``: the checks that some mutant should be seen by.
    """
    brief = [case for case in some if waits(case) <= _LONG_MS]
    controls = [replace(forks.CONTROL, name=f"{forks.CONTROL.name}-{number}") for number in range(CONTROLS)]
    with _pools(jobs) as (threads, processes):
        worth = _worth(mutants, some, known, processes)
        plan = [(each, worth.get(each.name, brief)) for each in (*controls, *mutants)]
        playing = _Playing(plan, known, every=every, until=time.monotonic() + seconds)
        outcomes = gathered(plan, playing.attempts(threads, processes, 2 * jobs, done))
        doubts = frozenset[str]() if playing.left else doubtful(outcomes, controls, due)
        if doubts:
            few = [(mutant, [case for case in cases if case.id in doubts]) for mutant, cases in plan]
            again = _Playing(few, known, every=True, until=inf)
            found = gathered(few, again.attempts(threads, processes, _FEW_AT_ONCE, done))
            outcomes = tuple(map(_corrected, outcomes, found))
    noise: dict[str, frozenset[str]] = {case.id: frozenset() for case in (SANITY, *some)}
    for outcome in outcomes:
        if outcome.mutant in controls:
            for case, red in outcome.red.items():
                noise[case] |= frozenset(red)
    return Matrix(
        tuple(_without(each, noise) for each in outcomes if each.mutant not in controls),
        {case: red for case, red in noise.items() if red},
        sum(len(some) - len(worth[each.name]) for each in mutants),
        playing.idle,
        playing.left,
    )


def own(plan: Plan, known: Learning, jobs: int, done: Progress) -> tuple[Outcome, ...]:
    """Put each mutant through the cases of the plan, and the probe, as :func:`whole` does: most of them as forks."""
    with _pools(jobs) as (threads, processes):
        playing = _Playing(plan, known, every=True, until=inf)
        return gathered(plan, playing.attempts(threads, processes, 2 * jobs, done))


@contextmanager
def _pools(jobs: int) -> Iterator[tuple[Executor, Executor]]:
    """Threads for what waits, processes for what computes; whatever ends this ends them."""
    with (
        ThreadPoolExecutor(_LONG_AT_ONCE) as threads,
        ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _prepare) as processes,
    ):
        try:
            yield threads, processes
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            processes.shutdown(wait=False, cancel_futures=True)


def doubtful(outcomes: Iterable[Outcome], controls: Sequence[Mutant], due: Collection[str]) -> frozenset[str]:
    """Cases that a busy host may have spoiled: red without a fault, or not red where that is expected or ``due``."""
    unseen, found = set(due), set[str]()
    for each in outcomes:
        unseen -= {check for red in each.red.values() for check in red}
        if each.mutant in controls:
            found |= {case for case, red in each.red.items() if red}
        elif each.expected:
            found |= {case_of(check) for check in each.missed} | (set() if each.sane else {SANITY.id})
    return frozenset(found | set(map(case_of, unseen)))


def _corrected(first: Outcome, again: Outcome) -> Outcome:
    """What became of a mutant, with what it has come to in the cases that were played once more."""
    red, dead = {**first.red, **again.red}, {**first.dead, **again.dead}
    return replace(first, red=red, ran=first.ran | again.ran, sane=again.sane, dead=dead)


def _without(outcome: Outcome, noise: Mapping[str, frozenset[str]]) -> Outcome:
    return replace(
        outcome, red={case: tuple(each for each in red if each not in noise[case]) for case, red in outcome.red.items()}
    )


def _worth(
    mutants: Sequence[Mutant], some: Sequence[Case], known: Learning, processes: Executor
) -> Mapping[str, Sequence[Case]]:
    """Mutant -> the cases that it must be put through: all, or those it names and those that run what it replaces."""
    short = [case.id for case in some if waits(case) <= _LONG_MS]
    tracing = [processes.submit(_reached, batch, known.capabilities, known.calibration) for batch in _batches(short)]
    places = processes.submit(_replaced, [each.name for each in mutants]).result()
    reached = {case: found for each in tracing for case, found in each.result().items()}

    def worth(name: str, case: Case) -> bool:
        own = places[name]
        return own is None or case.id not in reached or case.id in cases_of(name) or bool(own & reached[case.id])

    return {each.name: [case for case in some if worth(each.name, case)] for each in mutants}


class _Playing:
    """The pairs on their way: the controls first, then what each mutant names, then the rest in any order."""

    def __init__(self, plan: Plan, known: Learning, *, every: bool, until: float) -> None:
        self._known, self._until = known, until
        measured = known.calibration
        self._hasty = Hasty(measured.round_trip, measured.start, measured.lag)
        self._blind = {case.id: {each.check for each in case.checks} for _, some in plan for case in some}
        """By case, the checks that no mutant has turned red yet."""
        self._every = every
        self.idle = self.left = 0
        self._long = [(mutant, case) for mutant, some in plan for case in some if waits(case) > _LONG_MS]
        self._first: deque[tuple[str, str]] = deque()
        rest: list[tuple[str, str]] = []
        for mutant, some in plan:
            self._first.append((mutant.name, SANITY.id))
            for case in some:
                if waits(case) <= _LONG_MS:
                    first = case.id in cases_of(mutant.name) or mutant.name not in expected()
                    (self._first if first else rest).append((mutant.name, case.id))
        Random(0).shuffle(rest)  # what is silent in every case is not to keep all the processes waiting at once
        self._rest = deque(rest)

    def attempts(self, threads: Executor, processes: Executor, most: int, done: Progress) -> Iterator[Attempt]:
        """Play them all, so many batches at a time."""
        count = 0
        slow = {
            threads.submit(_wait, mutant, case, self._known.capabilities, self._known.calibration)
            for mutant, case in self._long
        }
        quick: set[Future[list[Attempt]]] = set()
        while True:
            while len(quick) < most and (batch := self._batch()):
                quick.add(processes.submit(_play, batch, self._known.capabilities, self._hasty))
            if not slow | quick:
                return
            over, _ = wait(slow | quick, return_when=FIRST_COMPLETED)
            slow, quick = slow - over, quick - over
            for each in chain.from_iterable(future.result() for future in over):
                count += 1
                if each.mutant in expected():
                    self._blind.get(each.case, set()).difference_update(each.red)
                done(count, count + len(self._first) + len(self._rest) + len(slow) + _BATCH * len(quick))
                yield each

    def _batch(self) -> list[tuple[str, str]]:
        """The next pairs that are worth it."""
        batch: list[tuple[str, str]] = []
        while len(batch) < _BATCH and (self._first or self._rest):
            if self._first:
                batch.append(self._first.popleft())
                continue
            if time.monotonic() > self._until:
                self.left, self._rest = len(self._rest), deque()
                break
            pair = self._rest.popleft()
            if self._every or self._blind[pair[1]]:
                batch.append(pair)
            else:
                self.idle += 1
        return batch


def _wait(mutant: Mutant, case: Case, capabilities: frozenset[str], limits: Calibration) -> list[Attempt]:
    return [attempt(mutant, case, capabilities, limits)]


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), _BATCH):
        yield ids[start : start + _BATCH]


# in the processes


def _prepare() -> None:
    """Begin the life of a process that plays cases."""
    forks.preload()
    _CASES.update({case.id: case for case in (SANITY, *cases.load())})
    gc.collect()
    gc.freeze()  # or every child would copy all of it, for its collector writes on what it looks at


def _replaced(names: Iterable[str]) -> Mapping[str, reach.Places | None]:
    return reach.replaced(zoo()[name] for name in names)


def _reached(ids: Sequence[str], capabilities: frozenset[str], limits: Calibration) -> Mapping[str, reach.Places]:
    """The functions that run in each of these cases, without a fault."""

    def run(case: Case) -> Callable[[Mutant], Any]:
        return lambda traced: attempt(traced, case, capabilities, limits, forks.forking(traced))

    return {each: reach.reached(run(_CASES[each])) for each in ids}


def _play(pairs: Sequence[tuple[str, str]], capabilities: frozenset[str], limits: Calibration) -> list[Attempt]:
    """Put mutants, or the control, through cases."""
    played = []
    for name, case in pairs:
        mutant = zoo().get(name) or replace(forks.CONTROL, name=name)
        played.append(attempt(mutant, _CASES[case], capabilities, limits, forks.forking(mutant)))
    return played
