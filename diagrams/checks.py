"""The clause pages of the suite: every clause that is to be checked, by what, or why by nothing."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from diagrams.markdown import NOTICE, code, codes, table
from localagent.conformance import cases, coverage

_TITLES = {
    "base": "The base contract",
    "extensions": "Extensions",
    "client_tools": "Client tools",
    "tool_cards": "Tool cards",
}
_WHY = {
    "not-observable": "nothing on the pipe, in the process or in the store shows it",
    "client-side": "it binds the client",
    "not-built-yet": "no case yet",
    "needs-model": "a model would have to do something that no stimulus asks for",
    "needs-fixture": "it needs files or a surrounding that no case has",
    "timing": "only the time would show it, and not surely",
    "platform": "it shows on some platforms only",
    "unbounded-negative": "that something never happens cannot be exhausted",
}
_NAMED = 6
"""Cases that are named; of more the number is given."""


def pages() -> dict[str, str]:
    """Path below ``docs/`` -> text."""
    found = coverage.coverage(cases.load())
    made = {}
    for name, title in _TITLES.items():
        mine = [each for each in found.values() if each.clause.page == name]
        made[f"reference/checks/{name.replace('_', '-')}.md"] = "\n".join(_page(title, mine)).rstrip() + "\n"
    return made


def _page(title: str, found: list[coverage.Coverage]) -> Iterator[str]:
    checked = sum(bool(each.checks) for each in found)
    yield from (NOTICE, "", f"# {title}: what is checked", "")
    yield (
        f"{checked} of {len(found)} clauses have checks. *trace*: the rows, shapes and rules of the machines judge "
        "every conversation by it; *process*: what the process does; the others are cases, which "
        "`localagent conform explain` shows step by step."
    )
    yield ""
    for family, group in groupby(found, key=lambda each: each.clause.id.rsplit("-", 1)[0]):
        yield from (f"## {family}", "")
        yield from table(("Clause", "Sentence", "Checked by"), map(_row, group))


def _row(each: coverage.Coverage) -> tuple[str, str, str]:
    assert each.checks or each.reason is not None, f"{each.clause.id}: the linter is to have seen this"
    by = _by(each.checks) if each.checks else f"*{each.reason}*: {_WHY[str(each.reason)]}"
    return code(each.clause.id), each.clause.sentence, by


def _by(checks: Iterable[str]) -> str:
    """The kinds of checks and the cases, the first few by name."""
    names = list(dict.fromkeys(each.partition("/")[0] for each in checks))
    own = [f"*{name}*" for name in ("trace", "process") if name in names]
    others = [name for name in names if name not in ("trace", "process")]
    more = [f"{len(others) - _NAMED} more cases"] if len(others) > _NAMED else []
    return ", ".join([*own, *([codes(others[:_NAMED])] if others else []), *more])
