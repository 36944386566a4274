"""``localagent conform selftest``: the zoo against the suite, as a table; 0 when every mutant is killed."""

import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TextIO

from localagent.conformance import cases
from localagent.conformance.model import FAILED, Case, CaseResult
from localagent.conformance.suite import Done, Event

from . import blind
from .campaign import Learning, Outcome, Progress, case_of, cases_of, chosen, named, run, runnable, unmutated
from .matrix import Matrix, own, whole
from .mutant import Mutant

_USAGE: Final = 3


def selftest(options: Namespace, out: TextIO, err: TextIO) -> int:
    """Run the mutants; 0 all killed and the backend without a fault passes, 1 otherwise, 3 for wrong usage."""
    mutants = chosen(options.select or ())
    if not mutants or options.jobs < 1:
        err.write("localagent: no mutant is named so\n" if not mutants else "localagent: --jobs must be 1 or more\n")
        return _USAGE
    begin = time.monotonic()
    wanted = named(mutants)
    some = tuple(cases.load()) if options.full else wanted
    known = Learning(_Teller(err))
    err.write(f"our backend without a fault: {len(some)} cases\n")
    failed = [each for each in unmutated(some, options.jobs, known) if each.verdict in FAILED]
    done = _Counter(err)
    everything = [case for case in cases.load() if runnable(case, known)]
    if options.full:
        err.write(f"{len(mutants)} mutants through {len(everything)} cases\n")
        due = frozenset() if options.select else frozenset(blind.every(everything)) - blind.listed()
        limits = {"every": options.every_pair, "seconds": 60 * options.minutes}
        matrix = whole(mutants, everything, known, options.jobs, done, due=due, **limits)
        outcomes = matrix.outcomes
    else:
        outcomes = _corrected(own(_own(mutants, wanted), known, options.jobs, done), wanted, known, done)
    _tell(outcomes, failed, out)
    barren = [] if options.select else _barren(outcomes, everything)
    for family in barren:
        out.write(f"no mutant is seen by any check of {family}\n")
    gone = _matrix(matrix, everything, options, out) if options.full else False
    out.write(f"{time.monotonic() - begin:.0f} s\n")
    lost = [each for each in outcomes if not each.killed and not each.unclaimed]
    return 1 if lost or failed or barren or gone else 0


def _own(mutants: Iterable[Mutant], wanted: Sequence[Case]) -> list[tuple[Mutant, Sequence[Case]]]:
    """Each mutant with the cases that it names."""
    return [(mutant, [case for case in wanted if case.id in cases_of(mutant.name)]) for mutant in mutants]


def _corrected(
    outcomes: Sequence[Outcome], wanted: Sequence[Case], known: Learning, done: Progress
) -> tuple[Outcome, ...]:
    """The outcomes, with those of a second run, one at a time and as programs, of what a busy host or the short limits
    for forks may have let survive.
    """
    doubtful = [each.mutant for each in outcomes if not each.killed and not each.unclaimed]
    again = {each.mutant.name: each for each in run(_own(doubtful, wanted), known, 1, done)} if doubtful else {}
    return tuple(again.get(each.mutant.name, each) for each in outcomes)


class _Teller:
    """Tells what fails on the backend without a fault, while it runs."""

    def __init__(self, err: TextIO) -> None:
        self._err = err

    def __call__(self, event: Event) -> None:
        if isinstance(event, Done) and event.result.verdict in FAILED:
            self._err.write(f"  {event.result.verdict}: {event.result.case.id}\n")


class _Counter:
    """Counts the runs that are done: at each of them for somebody who looks on, else at every tenth part."""

    def __init__(self, err: TextIO) -> None:
        self._err = err
        self._tenths = 0

    def __call__(self, done: int, of: int) -> None:
        tenths = 10 * done // of
        if self._err.isatty():
            self._err.write(f"\r\033[K{done} of {of} runs" + ("\n" if done == of else ""))
        elif tenths > self._tenths:
            self._err.write(f"{done} of {of} runs\n")
        self._tenths = tenths
        self._err.flush()


def _tell(outcomes: Sequence[Outcome], failed: Sequence[CaseResult], out: TextIO) -> None:
    """The table: each mutant, what was to see it, and what did not."""
    wide = max(len(each.mutant.name) for each in outcomes)
    for each in outcomes:
        out.write(f"{_word(each):<12} {each.mutant.name:<{wide}}  {each.mutant.about}\n")
        if each.killed:
            out.write(f"{'':<12} {'':<{wide}}  by {', '.join(each.expected)}\n")
        for check in each.missed if not each.killed else ():
            also = ", ".join(each.red.get(case_of(check), ())) or "nothing"
            out.write(f"{'':<12} {'':<{wide}}  not seen by {check}; red in that case: {also}\n")
    for case in failed:
        told = ", ".join(check.check for check in case.results if check.verdict in FAILED)
        out.write(f"{'FAILS':<12} the backend without a fault: {case.case.id} ({told})\n")
    counted = Counter(_word(each) for each in outcomes)
    out.write(", ".join(f"{number} {word}" for word, number in sorted(counted.items())) + "\n")


def _word(outcome: Outcome) -> str:
    if outcome.unclaimed:
        return "not claimed"
    if not outcome.sane:
        return "WRECK"
    return "killed" if outcome.killed else "SURVIVED"


def _barren(outcomes: Iterable[Outcome], some: Iterable[Case]) -> list[str]:
    """Families of cases of which no check of their own has seen a mutant that starts and ends as a backend does."""
    reds = [(case, check) for each in outcomes if each.sane for case, red in each.red.items() for check in red]
    seen = {case.partition(".")[0] for case, check in reds if check.startswith(f"{case}/")}
    return sorted({case.family for case in some} - seen)


def _matrix(matrix: Matrix, some: Sequence[Case], options: Namespace, out: TextIO) -> bool:
    """What the whole matrix says of the checks. True when checks see no mutant that did when the list was written."""
    for case, red in matrix.noise.items():
        out.write(f"not counted, red without a fault: {case} ({', '.join(sorted(red))})\n")
    seen = blind.seen(matrix.outcomes)
    unseen = [each for each in blind.every(some) if each not in seen]
    times = Counter(blind.family(check) for each in matrix.outcomes for red in each.red.values() for check in red)
    table = blind.table(some, unseen)
    out.write(f"{'family':<14} {'checks':>7} {'no mutant':>10} {'times red':>10}\n")
    for family, (checks, left) in table.items():
        out.write(f"{family:<14} {checks:>7} {left:>10} {times[family]:>10}\n")
    out.write(f"{'total':<14} {len(blind.every(some)):>7} {len(unseen):>10} {times.total():>10}\n")
    played = sum(len(each.red) for each in matrix.outcomes)
    out.write(f"{played} runs; {matrix.spared} more could not have been red")
    out.write(f", {matrix.idle} could have told nothing new\n" if matrix.idle else "\n")
    if matrix.left:
        out.write(f"{matrix.left} were not played: the time was over\n")
    if options.record:
        Path(options.record).write_text(blind.text(unseen), encoding="utf-8")
    if options.select or matrix.left:  # who asks for a part knows that it is one
        return False
    gone = sorted(each for each in set(unseen) - blind.listed() if options.every_pair or not blind.beside(each))
    for check in gone:
        out.write(f"sees no mutant any more: {check}\n")
    if gained := blind.listed() - set(unseen):
        out.write(f"{len(gained)} checks are listed as blind that see a mutant: {', '.join(sorted(gained))}\n")
    return bool(gone)
