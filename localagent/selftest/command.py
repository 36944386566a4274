"""``localagent conform selftest``: the zoo against the suite, as a table; 0 when every mutant is killed."""

import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from localagent.conformance import cases
from localagent.conformance.model import FAILED, Case, CaseResult
from localagent.conformance.suite import Done, Event

from .campaign import (
    Learning,
    Outcome,
    case_of,
    chosen,
    expected,
    named,
    run,
    runnable,
    unmutated,
    unseen,
)
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
    mine = {mutant.name: {case_of(check) for check in expected().get(mutant.name, ())} for mutant in mutants}
    plan = [
        (mutant, some if options.full else [case for case in wanted if case.id in mine[mutant.name]])
        for mutant in mutants
    ]
    err.write(f"{len(mutants)} mutants: {sum(len(each) + 1 for _, each in plan)} runs\n")
    outcomes = run(plan, known, options.jobs, _Counter(err, len(mutants)))
    _tell(outcomes, failed, out)
    everything = [case for case in cases.load() if runnable(case, known)]
    barren = [] if options.select else _barren(outcomes, everything)
    for family in barren:
        out.write(f"no mutant is seen by any check of {family}\n")
    if options.full:
        _matrix(outcomes, everything, out)
    out.write(f"{time.monotonic() - begin:.0f} s\n")
    lost = [each for each in outcomes if not each.killed and not each.unclaimed]
    return 1 if lost or failed or barren else 0


class _Teller:
    """Tells what fails on the backend without a fault, while it runs."""

    def __init__(self, err: TextIO) -> None:
        self._err = err

    def __call__(self, event: Event) -> None:
        if isinstance(event, Done) and event.result.verdict in FAILED:
            self._err.write(f"  {event.result.verdict}: {event.result.case.id}\n")


class _Counter:
    """Counts the mutants that are done."""

    def __init__(self, err: TextIO, of: int) -> None:
        self._err, self._of, self._done = err, of, 0

    def __call__(self, mutant: Mutant) -> None:
        self._done += 1
        if self._err.isatty():
            self._err.write(f"\r\033[K{self._done} of {self._of} mutants" + ("\n" if self._done == self._of else ""))
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
    """Families of cases of which none has seen a mutant."""
    seen = {case.partition(".")[0] for each in outcomes for case, red in each.red.items() if red}
    return sorted({case.family for case in some} - seen)


def _matrix(outcomes: Sequence[Outcome], some: Sequence[Case], out: TextIO) -> None:
    """What the whole matrix says of the checks: how often cases were red, and which checks no mutant turns red."""
    red = Counter(case.partition(".")[0] for each in outcomes for case, checks in each.red.items() if checks)
    left = Counter(check.partition(".")[0] for check in unseen(outcomes, some))
    checks = Counter(case.family for case in some for _ in case.checks)
    out.write(f"{'family':<14} {'checks':>7} {'no mutant':>10} {'red cases':>10}\n")
    for family in sorted(checks):
        out.write(f"{family:<14} {checks[family]:>7} {left[family]:>10} {red[family]:>10}\n")
    out.write(f"{'total':<14} {checks.total():>7} {left.total():>10} {red.total():>10}\n")
