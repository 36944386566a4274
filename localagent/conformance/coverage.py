"""Which clauses are checked, and why the others are not: every clause has a check or one of eight reasons.

Checks are those that the judge makes on any trace and process, and those of the cases. Reasons stand in
``reasons.toml``, by id or by pattern; what a clause's own entry tells (who is bound, where it shows) gives the rest by
rule. The linter finds what is neither checked nor explained, what is explained although it is checked, what cites a
clause that does not exist, and ids that have vanished: ``clauses/ids.txt`` lists every id there ever was, ``ids =
alias`` where one was replaced.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, Literal, get_args

from localagent.conformance.judge import PROCESS_CHECKS, TRACE_CLAUSES
from localagent.conformance.model import Case
from localagent.conformance.register import (
    PAGES,
    Clause,
    Page,
    UnknownClauseError,
    clauses,
    decisions,
    find,
    open_points,
)

Why = Literal[
    "not-observable",
    "client-side",
    "not-built-yet",
    "needs-model",
    "needs-fixture",
    "timing",
    "platform",
    "unbounded-negative",
]
"""Why a clause has no check."""
WHYS: Final[tuple[Why, ...]] = get_args(Why)

COVERED: Final[tuple[Page, ...]] = ("base", "extensions", "client_tools", "tool_cards")
"""The pages whose clauses must be covered; that of the store is for those who share its files."""

Bound = Literal["backend", "client", "both"]

_REQUEST: Final = re.compile(
    r"(A|An|Each|Every|The) (\w+ )?request\b|`?(params|method|id|protocol|version|required_capabilities|client_tools)\b"
    r"|`[a-z.]+`,? params\b|`[a-z.]+\.params`"
)
"""How a sentence begins that is about what a client sends: it binds both sides."""


@dataclass(frozen=True, slots=True)
class Given:
    """An entry of ``reasons.toml``: clauses, by id or by pattern, and the reason why they have no check."""

    reason: Why
    why: str
    ids: tuple[str, ...]
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is known of one clause: who is bound, its checks, or else the reason."""

    clause: Clause
    bound: Bound
    checks: tuple[str, ...]
    reason: Why | None


@cache
def _file() -> Mapping[str, list[Mapping[str, object]]]:
    text = (files(__package__) / "reasons.toml").read_text(encoding="utf-8")
    return MappingProxyType(tomllib.loads(text))


@cache
def given() -> tuple[Given, ...]:
    """The entries of ``reasons.toml``, in order; the first that names a clause counts."""
    found = []
    for entry in _file()["reason"]:
        named = [str(each) for each in _listed(entry)]
        ids = tuple(each for each in named if "*" not in each)
        patterns = tuple(each for each in named if "*" in each)
        found.append(Given(_why(entry), str(entry["why"]), ids, patterns))
    return tuple(found)


def _listed(entry: Mapping[str, object]) -> list[object]:
    found = entry["clauses"]
    return found if isinstance(found, list) else []


def _why(entry: Mapping[str, object]) -> Why:
    for each in WHYS:
        if entry["reason"] == each:
            return each
    raise ValueError(f"{entry['reason']!r} is none of the eight reasons")


@cache
def registered() -> Mapping[str, Clause]:
    """Every clause that must be covered, in the order of the pages."""
    return MappingProxyType({name: clause for page in COVERED for name, clause in clauses(page).items()})


@cache
def bound(name: str) -> Bound:
    """Who a clause binds. Where its page does not say, the list does; else its sentence, by what it begins with."""
    clause = registered()[name]
    if clause.bound:
        return clause.bound
    for entry in _file()["bound"]:
        if any(fnmatchcase(name, str(each)) for each in _listed(entry)):
            return "client" if entry["who"] == "client" else "both"
    return "both" if _REQUEST.match(clause.sentence) else "backend"


def checks(cases: Iterable[Case]) -> dict[str, list[str]]:
    """Every check by the clauses that it cites."""
    found: dict[str, list[str]] = {}
    for clause in sorted(TRACE_CLAUSES):
        found.setdefault(clause, []).append(f"trace/{clause}")
    for check, cited in PROCESS_CHECKS.items():
        for clause in cited:
            found.setdefault(clause, []).append(check)
    for case in cases:
        for each in case.checks:
            for clause in each.clauses if each.level != "record" else ():  # what is noted down cannot fail
                found.setdefault(clause, []).append(each.check)
    return found


def coverage(cases: Iterable[Case]) -> dict[str, Coverage]:
    """What is known of every clause that must be covered."""
    by_clause = checks(cases)
    found = {}
    for name, clause in registered().items():
        mine = tuple(by_clause.get(name, ()))
        found[name] = Coverage(clause, bound(name), mine, None if mine else reason(name))
    return found


def reason(name: str) -> Why | None:
    """Why a clause has no check: by list, by what its entry says, by pattern. None when nothing says so."""
    clause = registered()[name]
    if bound(name) == "client":
        return "client-side"
    for entry in given():
        if name in entry.ids:
            return entry.reason
    if clause.observability == "none" or clause.keyword == "MAY":  # a permission cannot be violated
        return "not-observable"
    for entry in given():
        if any(fnmatchcase(name, pattern) for pattern in entry.patterns):
            return entry.reason
    return None


def reasons(cases: Iterable[Case]) -> dict[str, str]:
    """The reason of every clause without a check: what to say of it if no check came to it by chance."""
    return {name: each.reason for name, each in coverage(cases).items() if each.reason is not None}


def lint(cases: Iterable[Case]) -> list[str]:
    """Everything that is wrong with the coverage, one line each; empty when all is well."""
    listed = tuple(cases)
    return [*_bare(listed), *_cited(listed), *_stale(listed), *_vanished()]


def _bare(cases: tuple[Case, ...]) -> Iterator[str]:
    for name, each in coverage(cases).items():
        if not each.checks and each.reason is None:
            yield f"{name}: no check and no reason: {each.clause.sentence}"


def _cited(cases: tuple[Case, ...]) -> Iterator[str]:
    for name, by in checks(cases).items():
        try:
            find(name)
        except UnknownClauseError:
            yield f"{name}: cited by {by[0]}, but there is no such clause"


def _stale(cases: tuple[Case, ...]) -> Iterator[str]:
    by_clause = checks(cases)
    twice = Counter(name for entry in given() for name in entry.ids)
    yield from (f"{name}: has several reasons" for name, count in twice.items() if count > 1)
    for entry in given():
        for name in entry.ids:
            if name not in registered():
                yield f"{name}: has a reason, but there is no such clause"
            elif name in by_clause:
                yield f"{name}: has the reason {entry.reason}, but {by_clause[name][0]} checks it"
        for pattern in entry.patterns:
            named = [name for name in registered() if fnmatchcase(name, pattern)]
            if not named:
                yield f"{pattern}: no clause has such an id"
            elif all(name in by_clause for name in named):
                yield f"{pattern}: has the reason {entry.reason}, but all such clauses are checked"


@cache
def known_ids() -> Mapping[str, str]:
    """Every id there ever was, with what stands for it now: itself, or another."""
    text = (files(__package__) / "clauses" / "ids.txt").read_text(encoding="utf-8")
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line)
    return MappingProxyType({old.strip(): (new.strip() or old.strip()) for old, _, new in pairs})


def _vanished() -> Iterator[str]:
    for old, new in known_ids().items():
        try:
            find(new)
        except UnknownClauseError:
            yield f"{old}: the clause has vanished, and nothing stands for it"
    every = (*(name for page in PAGES for name in clauses(page)), *open_points(), *decisions())
    yield from (f"{name}: is not in clauses/ids.txt" for name in every if name not in known_ids())


def summary(cases: Iterable[Case]) -> dict[str, int]:
    """Counts for reports: clauses, those with checks of each kind, and those with each reason."""
    found = coverage(cases)
    counts = {"clauses": len(found), "checked": sum(bool(each.checks) for each in found.values())}
    kinds = {"trace": "trace/", "process": "process/"}
    for kind, prefix in kinds.items():
        counts[kind] = sum(any(check.startswith(prefix) for check in each.checks) for each in found.values())
    own = tuple(kinds.values())
    counts["cases"] = sum(any(not check.startswith(own) for check in each.checks) for each in found.values())
    by_reason = Counter(each.reason for each in found.values() if each.reason is not None)
    return {**counts, **{each: by_reason[each] for each in WHYS}}
