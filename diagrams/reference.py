"""The reference pages: admission, the cited clauses, the ambiguity register."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from diagrams.markdown import NOTICE, cite, code, links, table
from localagent.conformance import register
from localagent.machines.matrix import COLUMNS, matrix
from statemachines.admission import ASSUMED, CLASSIFIED, JOBS, LINE, METHODS, Admission, Check, Fires
from statemachines.joint import JOINT
from statemachines.registry import MACHINES


def pages() -> dict[str, str]:
    """Path below ``docs/`` -> text."""
    made = {"admission": _admission(), "clauses": _clauses(), "ambiguities": _ambiguities()}
    return {f"reference/{name}.md": _finished(lines) for name, lines in made.items()}


def _finished(lines: Iterator[str]) -> str:
    text = "\n".join(lines).rstrip() + "\n"
    targets = links(text, "../")
    return text + ("\n" + "\n".join(targets) + "\n" if targets else "")


def _admission() -> Iterator[str]:
    yield from (NOTICE, "", "# Admission", "")
    yield (
        "Which requests are accepted in which state, and with which code the others are refused. The first check that "
        "fails decides; a refused request leaves every machine where it was, save the three codes that close the "
        "connection."
    )
    yield from ("", "## Method and state", "")
    yield (
        "What a well-formed request gets that names the right session, run and revisions and calls what was "
        "negotiated; nothing is negotiated before `initialize`. *None* is no answer at all, *startup code* the code of "
        "the failed startup, `/continuation` a page of a snapshot that exists already. A run is taken to have an "
        "approval and a client tool call pending; where it has none, the answer is that of the columns beside it."
    )
    yield ""
    yield from table(
        ("Method", *COLUMNS), ((code(method), *map(_cell, codes.values())) for method, codes in matrix().items())
    )
    yield from ("## Every line", "", "What is checked of each line before its method is known, in this order.", "")
    yield from table(
        ("", "Check", "Kind", "Code", "Fires", "Clauses"),
        ((str(i), *_check(check), _fires([fires] if fires else []), cite(check.clauses))
         for i, (check, fires) in enumerate(LINE, 1)),
    )  # fmt: skip
    yield from ("## Each method", "")
    yield (
        "Then the checks of the method, in this order. A structural check is looked up in the states it names, a "
        "factual one is answered from the request and the data."
    )
    yield ""
    for _, group in groupby(METHODS.values(), key=lambda each: (each.checks, each.choices, each.brings, each.clauses)):
        yield from _methods(list(group))
    yield from _reports()


def _methods(same: list[Admission]) -> Iterator[str]:
    first = same[0]
    yield from (f"### {', '.join(each.method for each in same)}", "")
    yield from table(
        ("", "Check", "Kind", "Code", "Clauses"),
        ((str(i), *_check(check), cite(check.clauses)) for i, check in enumerate(first.checks, 1)),
    )
    brings = f", which brings along {_fires([first.brings])}" if first.brings else ""
    yield from (f"Then it fires {_fires(first.choices)}{brings}. Order: {cite(first.clauses)}", "")


def _check(check: Check) -> tuple[str, str, str]:
    return check.name, _kind(check), code(check.code) if check.code else "no answer"


def _kind(check: Check) -> str:
    if not check.structural:
        return "factual"
    parts = []
    for name, states in check.allowed:
        order = [state.value for state in MACHINES[name].states]
        allowed = [state.value for state in MACHINES[name].states if state in states]
        others = [value for value in order if value not in allowed]
        short = f"{name}: {', '.join(allowed)}" if len(allowed) <= 4 else f"{name}: any but {', '.join(others)}"
        parts.append(short)
    return "; ".join(parts)


def _fires(choices: Iterable[Fires]) -> str:
    return " or ".join(f"[{each.machine}](../machines/{each.machine}.md) {code(each.input.name)}" for each in choices)


def _cell(answer: str) -> str:
    """An answer; a code may be broken at its underscores, because the matrix has many columns."""
    plain = {"accepted": "**accepted**", "none": "none", "startup code": "*startup code*"}
    return plain.get(answer) or f'<code class="literal">{answer.replace("_", "_<wbr>")}</code>'


def _reports() -> Iterator[str]:
    yield from ("## Reports that become one of several inputs", "")
    yield from table(
        ("Report", "when all of", "becomes"),
        (
            (report, "; ".join(f"{check.name} ({_kind(check)})" for check in checks) or "otherwise", _fires([fires]))
            for report, cases in CLASSIFIED.items()
            for checks, fires in cases
        ),
    )
    yield from ("A worker's message counts while its job is on; what comes later is `WORKER_LATE`.", "")
    yield from table(("Worker", "its job is on while"), ((kind, _kind(check)) for kind, check in JOBS.items()))
    yield from ("## Assumed of the shell", "", "What the tables rely on, because only the shell can see to it.", "")
    yield from table(
        ("Input", "in", "comes only while", "because"),
        (
            (
                _fires([Fires(each.machine, each.input)]),
                ", ".join(s.value for s in MACHINES[each.machine].states if s in each.sources),
                "; ".join(_kind(check) for check in each.checks),
                each.why,
            )
            for each in ASSUMED
        ),
    )


def cited() -> dict[str, dict[str, None]]:
    """Clause id -> the places that cite it, as links, in reading order."""
    found: dict[str, dict[str, None]] = {}

    def add(clauses: Iterable[str], name: str, path: str) -> None:
        for clause in clauses:
            found.setdefault(clause, {})[f"[{name}]({path})"] = None

    for name, spec in MACHINES.items():
        for row in spec.rows:
            add(row.clauses, name, f"../machines/{name}.md")
    for joint in JOINT:
        add(joint.clauses, "couplings", "../machines/index.md")
    checks = [check for check, _ in LINE] + [check for each in METHODS.values() for check in each.checks]
    checks += [check for cases in CLASSIFIED.values() for each, _ in cases for check in each]
    checks += [check for each in ASSUMED for check in each.checks] + list(JOBS.values())
    for clauses in (*(check.clauses for check in checks), *(each.clauses for each in METHODS.values())):
        add(clauses, "admission", "admission.md")
    return found


def _clauses() -> Iterator[str]:
    places = cited()
    yield from (NOTICE, "", "# Cited clauses", "")
    total = sum(len(register.clauses(page)) for page in register.PAGES)
    used = [clause for page in register.PAGES for clause in register.clauses(page).values() if clause.id in places]
    yield (
        f"The sentences of the contract that the tables cite: {len(used)} of {total}. The others are about data, "
        "files or the client; all of them are in `localagent/conformance/clauses/`."
    )
    yield ""
    for family, group in groupby(used, key=lambda clause: clause.id.rsplit("-", 1)[0]):
        yield from (f"## {family}", "")
        for clause in group:
            where = [f"Section {clause.section}, {clause.title}"]
            where += [f"binds the {clause.bound}"] if clause.bound else []
            where += [f"shows on the {clause.observability}"] if clause.observability in ("wire", "process") else []
            where += [f"shows in the {clause.observability}"] if clause.observability == "store" else []
            yield from (f"### {clause.id}", "", clause.sentence, "")
            yield from (f"*{'; '.join(where)}.* Cited by {', '.join(places[clause.id])}.", "")
    yield from ("## Open points", "", "What the contract leaves open, and the reading chosen.", "")
    for point in register.open_points().values():
        if point.id in places:
            yield from (f"### {point.id}", "", point.text, "", f"Cited by {', '.join(places[point.id])}.", "")


def _ambiguities() -> Iterator[str]:
    places = cited()
    yield from (NOTICE, "", "# Ambiguities", "")
    yield (
        "Where the contract is silent, or reads two ways. A conformance check may accept what stands under "
        "*accepted* and nothing else; *ours* is what this backend does; *seen* is what the published backend "
        "(0.103.0) was observed to do. Ids are permanent."
    )
    yield ""
    for section, group in groupby(register.decisions().values(), key=lambda each: each.section):
        yield from (f"## {section}", "")
        for each in group:
            yield from (f"### {each.id}", "", f"**{each.question}**", "")
            yield from (f"- accepted: {each.accepted}", f"- ours: {each.ours}")
            yield from (f"- seen: {each.seen}",) if each.seen else ()
            yield from (f"- cited by {', '.join(places[each.id])}",) if each.id in places else ()
            yield ""
