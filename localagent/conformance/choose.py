"""Which cases are run: by glob on the id, clause, tag or family, and by profile. Pure."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Final, Literal, get_args

from localagent.conformance import coverage, register
from localagent.conformance.model import Case

Profile = Literal["base", "extensions", "all"]
PROFILES: Final[tuple[Profile, ...]] = get_args(Profile)

_EXTENSIONS: Final = frozenset({"extensions", "client_tools", "tool_cards"})
SMOKE: Final = "smoke"
"""The tag of the cases that ``conform smoke`` runs."""
_DOZEN: Final = 12


class NothingSelectedError(ValueError):
    """A pattern that selects no case."""


def cited(case: Case) -> frozenset[str]:
    """Every clause that the case, or a check of it, names."""
    return frozenset(case.clauses).union(*(each.clauses for each in case.checks))


def belongs(case: Case, profile: Profile) -> bool:
    """True when the case is of this profile: an extension's when it cites a clause of an extension's page."""
    extends = any(register.page_of(clause) in _EXTENSIONS for clause in cited(case))
    return profile == "all" or extends is (profile == "extensions")


def matches(case: Case, pattern: str) -> bool:
    """True when the pattern is, or as a glob covers, its id, a clause, a tag, the family, or ``tier0`` to ``tier2``."""
    names = (case.id, case.family, f"tier{case.tier}", *case.tags, *cited(case))
    return any(name == pattern or fnmatchcase(name, pattern) for name in names)


def select(cases: Iterable[Case], patterns: Sequence[str] = (), profile: Profile = "all") -> tuple[Case, ...]:
    """The cases of the profile that any of the patterns covers, all without one; in the order given.

    Raises NothingSelectedError for a pattern without a case: a typing error must not make a run look good.
    """
    offered = [case for case in cases if belongs(case, profile)]
    for pattern in patterns:
        if not any(matches(case, pattern) for case in offered):
            raise NothingSelectedError(
                f"no case of the profile {profile!r} has the id, clause, tag or family {pattern!r}"
            )
    chosen = tuple(case for case in offered if not patterns or any(matches(case, each) for each in patterns))
    if not chosen:
        raise NothingSelectedError(f"the profile {profile!r} has no case")
    return chosen


def smoke(cases: Iterable[Case]) -> tuple[Case, ...]:
    """A dozen cases that need no model: those tagged so, filled up with the first of each family."""
    offered = [case for case in cases if case.tier == 0 and not case.fixtures and not case.prompts]
    tagged = [case for case in offered if SMOKE in case.tags]
    first = {case.family: case for case in reversed(offered)}
    more = [case for case in offered if first[case.family] is case and case not in tagged]
    return tuple((tagged + more)[: max(_DOZEN, len(tagged))])


def universe(profile: Profile) -> tuple[str, ...]:
    """The clauses of the profile that bind a backend, in the order of the register."""
    return tuple(
        name
        for name, clause in coverage.registered().items()
        if profile == "all" or (clause.page in _EXTENSIONS) is (profile == "extensions")
        if coverage.bound(name) != "client"
    )
