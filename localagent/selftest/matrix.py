"""The whole kill matrix: every mutant through every case, and the backend without a fault again and again beside them.

Cases that wait for a minute on purpose are played by threads, on programs; the others by processes whose children are
forks (:mod:`.forks`), where the fault can show itself at all (:mod:`.reach`). What is red on the control is the noise
of a busy host: it is told and not counted.
"""

import gc
import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
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
    expected,
    gathered,
    waits,
)
from .mutant import Mutant, zoo

CONTROLS: Final = 4
"""How often the backend without a fault goes through all cases."""
_LONG_MS: Final = 10_000
_LONG_AT_ONCE: Final = 64
"""Threads for what only waits."""
_BATCH: Final = 24
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
        """Half of that: there is little left of starting."""
        return self.answer_ms / 2


@dataclass(frozen=True, slots=True)
class Matrix:
    """What became of the mutants; case -> what is red there without a fault; how many pairs needed no play."""

    outcomes: tuple[Outcome, ...]
    noise: Mapping[str, frozenset[str]]
    spared: int


def whole(mutants: Sequence[Mutant], some: Sequence[Case], known: Learning, jobs: int, done: Progress) -> Matrix:
    """Put each mutant through all these cases in which its fault can show itself."""
    brief = [case for case in some if waits(case) <= _LONG_MS]
    controls = [replace(forks.CONTROL, name=f"{forks.CONTROL.name}-{number}") for number in range(CONTROLS)]
    with (
        ThreadPoolExecutor(_LONG_AT_ONCE) as threads,
        ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _prepare) as processes,
    ):
        try:
            worth = _worth(mutants, some, known, processes)
            plan = [(each, worth.get(each.name, brief)) for each in _spread(mutants, controls)]
            outcomes = gathered(plan, _attempts(plan, known, threads, processes), done)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            processes.shutdown(wait=False, cancel_futures=True)
    noise: dict[str, frozenset[str]] = {case.id: frozenset() for case in some}
    for outcome in outcomes:
        if outcome.mutant in controls:
            for case, red in outcome.red.items():
                noise[case] = noise.get(case, frozenset()) | frozenset(red)
    return Matrix(
        tuple(_without(each, noise) for each in outcomes if each.mutant not in controls),
        {case: red for case, red in noise.items() if red},
        sum(len(some) - len(worth[each.name]) for each in mutants),
    )


def _without(outcome: Outcome, noise: Mapping[str, frozenset[str]]) -> Outcome:
    return replace(
        outcome, red={case: tuple(each for each in red if each not in noise[case]) for case, red in outcome.red.items()}
    )


def _spread(mutants: Sequence[Mutant], controls: Sequence[Mutant]) -> Iterator[Mutant]:
    """The mutants, and the controls at even distances between them."""
    step = max(1, len(mutants) // len(controls))
    rest = list(controls)
    for number, mutant in enumerate(mutants):
        if rest and number % step == 0:
            yield rest.pop()
        yield mutant
    yield from rest


def _worth(
    mutants: Sequence[Mutant], some: Sequence[Case], known: Learning, processes: Executor
) -> Mapping[str, Sequence[Case]]:
    """Mutant -> the cases that it must be put through: all, or those it names and those that run what it replaces."""
    short = [case.id for case in some if waits(case) <= _LONG_MS]
    tracing = [processes.submit(_reached, batch, known.capabilities, known.calibration) for batch in _batches(short)]
    places = processes.submit(_replaced, [each.name for each in mutants]).result()
    reached = {case: found for each in tracing for case, found in each.result().items()}
    named = {each.name: {case_of(check) for check in expected().get(each.name, ())} for each in mutants}

    def worth(name: str, case: Case) -> bool:
        own = places[name]
        return own is None or case.id not in reached or case.id in named[name] or bool(own & reached[case.id])

    return {each.name: [case for case in some if worth(each.name, case)] for each in mutants}


def _attempts(plan: Plan, known: Learning, threads: Executor, processes: Executor) -> Iterator[Attempt]:
    measured = known.calibration
    hasty = Hasty(measured.round_trip, measured.start, measured.lag)
    playing: list[Future[list[Attempt]]] = []
    batches: list[tuple[str, Sequence[str]]] = []
    for mutant, some in plan:
        for case in some:
            if waits(case) > _LONG_MS:
                playing.append(threads.submit(_wait, mutant, case, known.capabilities, measured))
        short = [SANITY.id, *(case.id for case in some if waits(case) <= _LONG_MS)]
        batches += [(mutant.name, each) for each in _batches(short)]
    Random(0).shuffle(batches)  # what is silent in every case is not to keep all the processes waiting at once
    playing += [processes.submit(_play, name, each, known.capabilities, hasty) for name, each in batches]
    for played in as_completed(playing):
        yield from played.result()


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


def _play(name: str, ids: Sequence[str], capabilities: frozenset[str], limits: Calibration) -> list[Attempt]:
    """Put a mutant, or the control, through a batch of cases."""
    mutant = zoo().get(name) or replace(forks.CONTROL, name=name)
    start = forks.forking(mutant)
    return [attempt(mutant, _CASES[each], capabilities, limits, start) for each in ids]
