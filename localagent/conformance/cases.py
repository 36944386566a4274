"""Cases from ``cases/*.toml``, checked so strictly that a case which loads can be played and judged.

A file is a list of ``[[case]]`` tables. What a step may say stands in :mod:`.steps`, how values are written in
:mod:`.values`. Beyond what one step tells by itself, the loader follows the names through a case: who refers to an
answer or event must have waited for it before, who waits for an answer must have sent its request.

``repeat`` is written out, ``{n}`` in any text of its steps being the number from 1 (of the innermost one); a ``check``
without ``{n}`` gets the number behind it. The checks of a case are ``case/name``; those without a name are numbered
over all checks of the case, ``e1``, ``e2``... An expecting step with ``clauses = []`` merely waits and is no check.

The loader adds to the arguments of ``start``, ``turn`` and ``answer`` the ``id`` on the wire and ``nth``, and of
``answers`` the ``ids`` and ``nths``: which answer with that id is meant, from 0. The k-th step that asks for an id
means the k-th answer, but never more than were asked for, so that further steps may look at the same answer again.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from re import compile as pattern
from typing import Any, Final, Literal, cast

from localagent.protocol.names import SUPPORTED

from .lines import ids, sent_by
from .model import Case, Expectation, Step
from .register import UnknownClauseError, find
from .steps import FIXTURES, KINDS, SINCE, STIMULI, StepError, check, kind_of
from .values import inside, references, unknown_words

_KEYS: Final[Mapping[str, tuple[type, ...]]] = {
    "id": (str,),
    "title": (str,),
    "tier": (int,),
    "clauses": (list,),
    "needs": (list,),
    "prompts": (list,),
    "fixture": (str, list),
    "tags": (list,),
    "steps": (list,),
}
_NEEDED: Final = ("id", "title", "tier", "steps")
_ID: Final = pattern(r"[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+\Z")
_SENDING: Final = frozenset({"start", "turn", "send", "raw", "hex", "fill"})


class CaseError(ValueError):
    """A case is not written as it must be: file, case, number and kind of the step, what is wrong."""

    def __init__(self, file: str, case: str, step: str, what: str) -> None:
        self.file, self.case, self.step, self.what = file, case, step, what
        super().__init__(": ".join(filter(None, (file, case, step, what))))


def load(directory: Path | str | None = None) -> tuple[Case, ...]:
    """Every case of a directory, by default our own, in the order of file and place.

    Raises :class:`CaseError` with the first thing that is wrong.
    """
    cases, problems = _read(directory)
    if problems:
        raise problems[0]
    return cases


def lint(directory: Path | str | None = None) -> list[str]:
    """Everything that is wrong with the cases, and what is merely unwise, one line each."""
    cases, problems = _read(directory)
    titles = Counter(case.title for case in cases)
    unwise = [f"{case.id}: another case has the same title" for case in cases if titles[case.title] > 1]
    unwise += [f"{case.id}: checks nothing" for case in cases if not case.checks]
    return [*map(str, problems), *unwise]


def parse(text: str, file: str = "cases") -> tuple[Case, ...]:
    """The cases of one file. Raises :class:`CaseError`."""
    cases, problems = _parse(text, file)
    if problems:
        raise problems[0]
    return cases


def _read(directory: Path | str | None) -> tuple[tuple[Case, ...], list[CaseError]]:
    place: Traversable = files(__package__) / "cases" if directory is None else Path(directory)
    cases: dict[str, Case] = {}
    problems: list[CaseError] = []
    found = [each for each in place.iterdir() if each.name.endswith(".toml")] if place.is_dir() else []
    for file in sorted(found, key=lambda each: each.name):
        mine, wrong = _parse(file.read_text(encoding="utf-8"), file.name)
        problems += wrong
        problems += [CaseError(file.name, case.id, "", "the id is taken already") for case in mine if case.id in cases]
        cases |= {case.id: case for case in mine}
    return tuple(cases.values()), problems


def _parse(text: str, file: str) -> tuple[tuple[Case, ...], list[CaseError]]:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return (), [CaseError(file, "", "", str(error))]
    problems = [CaseError(file, "", "", f"unknown key {key!r}") for key in tables if key != "case"]
    listed = tables.get("case", [])
    if not isinstance(listed, list):
        return (), [CaseError(file, "", "", "cases are [[case]]")]
    cases: dict[str, Case] = {}
    for number, table in enumerate(listed, 1):
        name = str(table.get("id", f"case {number}"))
        try:
            case, wrong = _case(table)
        except StepError as error:
            problems.append(CaseError(file, name, "", str(error)))
            continue
        problems += [CaseError(file, name, step, what) for step, what in wrong]
        if case.id in cases:
            problems.append(CaseError(file, name, "", "the id is taken already"))
        cases[case.id] = case
    return tuple(cases.values()), problems


def _case(table: Mapping[str, Any]) -> tuple[Case, list[tuple[str, str]]]:
    """A case, and what is wrong with its steps: (step, what). Raises :class:`StepError` for its own keys."""
    _check_keys(table)
    case = Case(
        id=table["id"],
        title=table["title"],
        family=table["id"].partition(".")[0],
        tier=table["tier"],
        clauses=_clauses(table.get("clauses", [])),
        steps=(),
        needs=tuple(table.get("needs", ())),
        prompts=tuple(table.get("prompts", ())),
        fixtures=_listed(table.get("fixture", [])),
        tags=tuple(table.get("tags", ())),
    )
    walk, problems = _Walk(case), list[tuple[str, str]]()
    for number, written in enumerate(_written_out(table["steps"]), 1):
        where = f"step {number}"
        try:
            kind = kind_of(written)
            where += f" ({kind})"
            check(kind, written)
            walk.step(kind, written, number)
        except StepError as error:
            problems.append((where, str(error)))
    return replace(case, steps=tuple(walk.steps)), problems


def _check_keys(table: Mapping[str, Any]) -> None:
    for key, value in table.items():
        if key not in _KEYS:
            raise StepError(f"unknown key {key!r}")
        if type(value) not in _KEYS[key]:
            wanted = " or a ".join(each.__name__ for each in _KEYS[key])
            raise StepError(f"{key} must be a {wanted}, not {value!r}")
    if missing := [key for key in _NEEDED if key not in table]:
        raise StepError(f"no {', '.join(missing)}")
    if not _ID.match(table["id"]):
        raise StepError("an id is a family and a name in small letters, digits, dots and dashes: frame.not-json")
    if table["tier"] not in (0, 1, 2):
        raise StepError(f"tier must be 0, 1 or 2, not {table['tier']}")
    for key, known in (("needs", SUPPORTED), ("prompts", STIMULI), ("fixture", FIXTURES)):
        if unknown := [each for each in _listed(table.get(key, ())) if each not in known]:
            raise StepError(f"{key}: {unknown[0]!r} is unknown")
    if any(not isinstance(step, dict) for step in table["steps"]):
        raise StepError("each step is a table")
    if table.get("prompts") and table["tier"] == 0:
        raise StepError("a case with prompts is of tier 1 or 2")


def _listed(told: Any) -> tuple[Any, ...]:
    """What a case names: one, or a list of some."""
    return (told,) if isinstance(told, str) else tuple(told)


def _clauses(listed: Sequence[Any]) -> tuple[str, ...]:
    for each in listed:
        try:
            find(str(each))
        except UnknownClauseError:
            raise StepError(f"no clause is named {each!r}") from None
    return tuple(listed)


def _written_out(steps: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Steps with every ``repeat`` written out; one that is written wrongly stays, so that it is found."""
    for step in steps:
        try:
            repeats = kind_of(step) == "repeat"
            if repeats:
                check("repeat", step)
        except StepError:
            repeats = False
        if not repeats:
            yield step
            continue
        inner = list(_written_out(step["steps"]))
        for n in range(1, step["repeat"] + 1):
            for each in inner:
                name = each.get("check")
                named = {"check": f"{name}.{n}"} if isinstance(name, str) and "{n}" not in name else {}
                yield {**_numbered(each, n), **named}


def _numbered(value: Any, n: int) -> Any:
    if isinstance(value, str):
        return value.replace("{n}", str(n))
    if isinstance(value, dict):
        return {key: _numbered(each, n) for key, each in value.items()}
    if isinstance(value, list):
        return [_numbered(each, n) for each in value]
    return value


def _sound(name: str) -> None:
    if name in SINCE | {"null"}:
        raise StepError(f"{name!r} is no name: it means something of its own")


class _Walk:
    """Follows names through a case, and makes its steps. Raises :class:`StepError` at the first that is dangling."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.steps: list[Step] = []
        self._checks: set[str] = set()
        self._expecting = 0
        self._waited: set[str] = set()
        self._wire: dict[str, str] = {}
        self._sent = Counter[str]()
        self._asked = Counter[str]()

    def step(self, kind: str, written: Mapping[str, Any], number: int) -> None:
        if kind == "repeat":
            raise StepError("a repeat must not stand here")
        if kind == "launch" and any(step.kind not in ("write", "delete") for step in self.steps):
            raise StepError("the child runs already")
        args = dict(written)
        if kind == "answers" and "times" in args:
            args["answers"] = [f"{args['answers']}{i}" for i in range(1, args.pop("times") + 1)]
        self._known(kind, args)
        step = Step(kind, args, number, self._expectation(kind, args))
        if kind in _SENDING:
            self._send(step)
        self._wait(kind, args)
        if kind == "restart":  # another child: its ids are its own, what was learned of the first stays
            self._wire.clear()
            self._sent.clear()
            self._asked.clear()
        if kind in ("turn", "write", "delete", "home_same"):
            self._needs(kind, args)
        self.steps.append(step)

    def _known(self, kind: str, args: Mapping[str, Any]) -> None:
        """Whatever is referred to has been waited for, and patterns are made of known words."""
        named = [*references({key: each for key, each in args.items() if key not in ("raw", "text", "fill", "then")})]
        named += [name for key in ("raw", "text", "write", "delete") for name in inside(str(args.get(key, "")))]
        named += [args[key] for key in ("run", "after", "texts") if key in args]
        named += [args["since"]] if args.get("since", "spawn") not in SINCE else []
        for name in named:
            if name not in self._waited:
                raise StepError(f"nothing was awaited before that is named {name!r}")
        for key in ("result", "data", "where", "pattern", "until"):
            for word in unknown_words(args.get(key)):
                raise StepError(f"{word!r} is no pattern")

    def _send(self, step: Step) -> None:
        sent = ids(step)
        for name, wire in sent:
            _sound(name)
            self._wire[name] = wire
            self._sent[wire] += 1
        if step.kind == "send" and "pad" in step.args and not [*references(step.args)]:
            sent_by(step, dict[str, Any]().__getitem__, {})  # raises where the line is too long

    def _wait(self, kind: str, args: dict[str, Any]) -> None:
        if kind in ("start", "turn"):
            args["id"], args["nth"] = self._ask(args.get("as", "init"))
        elif kind == "answer":
            args["id"], args["nth"] = self._ask(args["answer"]) if args["answer"] else (None, 0)
            if "as" in args:
                _sound(args["as"])
                self._waited.add(args["as"])
        elif kind == "answers":
            asked = [self._ask(name) for name in args["answers"]]
            args["ids"], args["nths"] = [id_ for id_, _ in asked], [nth for _, nth in asked]
        elif kind == "absent_answer":
            if args["absent_answer"] not in self._wire:
                raise StepError(f"no request is named {args['absent_answer']!r}")
            args["id"] = self._wire[args["absent_answer"]]
        elif kind in ("event", "pages", "texts") and "as" in args:
            _sound(args["as"])
            self._waited.add(args["as"])

    def _ask(self, name: str) -> tuple[str, int]:
        """Id on the wire of the request of that name, and which of the answers with it is meant."""
        if name not in self._wire:
            raise StepError(f"no request is named {name!r}")
        wire = self._wire[name]
        nth = min(self._asked[wire], self._sent[wire] - 1)
        self._asked[wire] += 1
        self._waited.add(name)
        return wire, nth

    def _needs(self, kind: str, args: Mapping[str, Any]) -> None:
        if kind == "turn" and args["turn"] not in self.case.prompts:
            raise StepError(f"{args['turn']!r} is not among the case's prompts")
        if kind == "home_same" and not any(
            each.args.get("write") == args[kind] and each.args.get("in") != "cwd" for each in self.steps
        ):
            raise StepError("the case has not written that file")
        if kind in ("write", "delete") and not self.case.fixtures:
            raise StepError("only a case with a fixture changes the home")

    def _expectation(self, kind: str, args: Mapping[str, Any]) -> Expectation | None:
        """The check that a step is, if it is one."""
        expects = KINDS[kind].expects
        if not expects or (expects == "named" and not {"check", "clauses"} & set(args)) or args.get("clauses") == []:
            return None
        self._expecting += 1
        clauses = _clauses(args["clauses"]) if "clauses" in args else self.case.clauses
        if not clauses:
            raise StepError("a check without a clause")
        name = f"{self.case.id}/{args.get('check', f'e{self._expecting}')}"
        if name in self._checks:
            raise StepError(f"the case has another check named {name!r}")
        self._checks.add(name)
        level = cast(Literal["must", "should", "record"], args.get("level", "must"))
        return Expectation(name, clauses, level, args.get("timed", False))
