"""Checks that no mutant turns red: counted, listed in ``blind.txt``, and held against every whole matrix: no check of
a case may join them. Those that the judge makes in every case may, unless every pair was played.

That a check is listed says that nobody has yet seen it fail for a fault; not that it cannot.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from localagent.conformance.judge import PROCESS_CHECKS, TRACE_CLAUSES
from localagent.conformance.model import ALWAYS_MADE, Case

from .campaign import Outcome

_HEAD: Final = """\
# The checks that no mutant has turned red, by `localagent conform selftest --full --record FILE`. None may join them;
# a run that was cut off (--minutes) lists more than there are.
"""


@cache
def listed() -> frozenset[str]:
    """The checks that no mutant turned red when the list was written."""
    lines = files(__package__).joinpath("blind.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def text(unseen: Iterable[str]) -> str:
    """What :func:`listed` reads."""
    return _HEAD + "".join(f"{check}\n" for check in sorted(unseen))


def every(some: Iterable[Case]) -> tuple[str, ...]:
    """All checks: the cases' own that can fail, and those that the judge makes in every case."""
    own = [each.check for case in some for each in case.checks if each.level != "record"]
    return (*own, *(f"trace/{clause}" for clause in sorted(TRACE_CLAUSES)), *PROCESS_CHECKS)


def seen(outcomes: Iterable[Outcome]) -> frozenset[str]:
    """The checks that some mutant turned red."""
    return frozenset(check for outcome in outcomes for checks in outcome.red.values() for check in checks)


def beside(check: str) -> bool:
    """Made in every case, and so seen by the way: which pairs are played decides whether a mutant turns it red."""
    return check.startswith(ALWAYS_MADE)


def family(check: str) -> str:
    """The family of a check: that of its case, or ``trace`` or ``process``."""
    return check.partition("/")[0].partition(".")[0]


def table(some: Iterable[Case], unseen: Iterable[str]) -> Mapping[str, tuple[int, int]]:
    """Family -> its checks, and those of them that no mutant turns red."""
    checks, left = Counter(map(family, every(some))), Counter(map(family, unseen))
    return {name: (checks[name], left[name]) for name in sorted(checks)}
