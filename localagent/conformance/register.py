"""The register: every clause of the contract, what it leaves open, and the decisions taken there.

The texts stand in ``clauses/*.toml`` and are read when first asked for, a page at a time. Everything else cites by
id: ``find("TURN-14")`` gives the sentence behind a row, a check or a report.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, Literal, cast

Bound = Literal["", "backend", "client", "both"]
"""Who a clause binds, where its sentence says so."""
Observability = Literal["", "wire", "process", "store", "none"]
"""Where a clause shows, where its page says so."""

Page = Literal["base", "extensions", "client_tools", "tool_cards", "store"]
PAGES: Final[tuple[Page, ...]] = ("base", "extensions", "client_tools", "tool_cards", "store")
"""The pages of the contract, in reading order."""

_PAGE_OF: Final[Mapping[str, Page]] = {
    "EXT": "extensions",
    "CT": "client_tools",
    "TC": "tool_cards",
    **dict.fromkeys(("ROOT", "REC", "HISTP", "LEASE", "SET", "CRED", "CACHE", "MCPC", "PROF"), "store"),
}
"""First word of an id -> its page; every other word is the base page's."""
_DECISION: Final = re.compile(r"D\d{2,3}\Z")


@dataclass(frozen=True, slots=True)
class Clause:
    """One normative sentence. ``tier`` says what a test of it needs: 0 no model, 1 a scripted one, 2 a fixture."""

    id: str
    sentence: str
    keyword: str
    page: Page
    section: str
    title: str
    bound: Bound
    observability: Observability
    tier: int | None
    detail: str
    """The table or list that stands below the sentence and belongs to it."""


@dataclass(frozen=True, slots=True)
class OpenPoint:
    """What the contract leaves open: the outcomes it allows and the reading chosen."""

    id: str
    text: str
    page: Page
    title: str


@dataclass(frozen=True, slots=True)
class Decision:
    """An entry of the ambiguity register.

    A conformance check may accept ``accepted`` and nothing else; our backend does ``ours``; ``seen`` is what the
    published backend was observed to do.
    """

    id: str
    question: str
    accepted: str
    ours: str
    seen: str
    section: str


Entry = Clause | OpenPoint | Decision


class UnknownClauseError(KeyError):
    """An id that no page, open point or decision bears."""


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "clauses" / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def clauses(page: Page) -> Mapping[str, Clause]:
    """The clauses of one page by id, in its order."""
    found: dict[str, Clause] = {}
    for section in _load(page)["section"]:
        details = section.get("details", {})
        for each in section["clauses"]:
            found[each["id"]] = Clause(
                id=each["id"],
                sentence=each["sentence"],
                keyword=each.get("keyword", ""),
                page=page,
                section=section["number"],
                title=section["title"],
                bound=cast(Bound, each.get("bound", "")),
                observability=cast(Observability, each.get("observability", "")),
                tier=each.get("tier"),
                detail=details.get(each["id"], ""),
            )
    return MappingProxyType(found)


@cache
def open_points() -> Mapping[str, OpenPoint]:
    """What all pages leave open, by id."""
    return MappingProxyType(
        {
            each["id"]: OpenPoint(each["id"], each["text"], section["page"], section["title"])
            for section in _load("open_points")["section"]
            for each in section["points"]
        }
    )


@cache
def decisions() -> Mapping[str, Decision]:
    """The ambiguity register, by id."""
    return MappingProxyType(
        {
            each["id"]: Decision(
                each["id"],
                each["question"],
                each["accepted"],
                each["ours"],
                each.get("seen", ""),
                each["section"],
            )
            for each in _load("ambiguities")["entry"]
        }
    )


def page_of(clause_id: str) -> Page:
    """The page on which a clause id stands, by its prefix."""
    family = clause_id.partition("-")[0]
    return _PAGE_OF.get(family, "base")


def find(clause_id: str) -> Entry:
    """Whatever bears this id. Raises :class:`UnknownClauseError` when nothing does."""
    table: Mapping[str, Entry]
    if _DECISION.match(clause_id):
        table = decisions()
    elif "-OP-" in clause_id:
        table = open_points()
    else:
        table = clauses(page_of(clause_id))
    try:
        return table[clause_id]
    except KeyError:
        raise UnknownClauseError(clause_id) from None


def text(clause_id: str) -> str:
    """What an id says, as one text: the sentence, the open point, or the question with our answer."""
    entry = find(clause_id)
    if isinstance(entry, Clause):
        return entry.sentence
    if isinstance(entry, OpenPoint):
        return entry.text
    return f"{entry.question}: {entry.ours}"
