"""The register of clauses: complete, well formed, and behind everything that the tables cite."""

import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from localagent.conformance import register
from statemachines.admission import ASSUMED, CLASSIFIED, JOBS, LINE, METHODS
from statemachines.joint import JOINT
from statemachines.registry import MACHINES

COUNTS = {"base": 877, "extensions": 318, "client_tools": 160, "tool_cards": 438, "store": 115}
OPEN = {"BASE-OP": 190, "EXT-OP": 41, "CT-OP": 38, "TC-OP": 48}
DECIDED = [*range(1, 19), *range(20, 32), *range(40, 51), *range(60, 82), *range(82, 174)]


def _cited() -> Iterator[tuple[str, str]]:
    for name, spec in MACHINES.items():
        for row in spec.rows:
            yield from ((clause, f"{name}: {row.source.value} {row.input.name}") for clause in row.clauses)
    for joint in JOINT:
        yield from ((clause, f"coupling: {joint.machine} {joint.input.name}") for clause in joint.clauses)
    for each in METHODS.values():
        yield from ((clause, each.method) for clause in each.clauses)
    checks = [check for check, _ in LINE] + [check for each in METHODS.values() for check in each.checks]
    checks += [check for cases in CLASSIFIED.values() for each, _ in cases for check in each]
    checks += [check for assumed in ASSUMED for check in assumed.checks] + list(JOBS.values())
    for check in checks:
        yield from ((clause, f"check: {check.name}") for clause in check.clauses)


def test_everything_cited_exists() -> None:
    missing = set()
    for clause, where in _cited():
        try:
            register.find(clause)
        except register.UnknownClauseError:
            missing.add((clause, where))
    assert not missing


@pytest.mark.parametrize("page", register.PAGES)
def test_every_clause_of_a_page(page: register.Page) -> None:
    clauses = register.clauses(page)
    assert len(clauses) == COUNTS[page]
    for id_, clause in clauses.items():
        assert id_ == clause.id
        assert register.page_of(id_) == clause.page == page
        assert register.find(id_) is clause
        assert clause.sentence.strip() == clause.sentence != ""
        assert clause.keyword == "" or clause.keyword in clause.sentence
        assert clause.bound in ("", "backend", "client", "both")
        assert clause.section
        assert clause.title


def test_only_the_base_page_says_where_a_clause_shows() -> None:
    for page in register.PAGES:
        for clause in register.clauses(page).values():
            assert (clause.observability != "") == (page == "base") == (clause.tier is not None)
            assert clause.tier in (None, 0, 1, 2)


def test_sentences_word_for_word() -> None:
    clause = register.clauses("base")["TURN-21"]
    assert (clause.bound, clause.keyword, clause.section, clause.tier) == ("", "MUST", "15", 1)
    text = "Server MUST recognize an oversize frame at its byte 65537, without waiting for an LF."
    assert register.text("FRAME-19") == text
    assert register.clauses("base")["FRAME-19"].observability == "wire"
    assert register.clauses("base")["FRAME-21"].observability == "process"
    assert register.clauses("store")["LEASE-05"].detail.startswith("| Finding | Verdict |")


def test_open_points_are_counted_through() -> None:
    found = list(register.open_points())
    assert len(found) == len(set(found)) == sum(OPEN.values())
    for family, count in OPEN.items():
        numbers = sorted(int(each.rpartition("-")[2]) for each in found if each.startswith(family))
        assert numbers == list(range(1, count + 1))


def test_decisions() -> None:
    assert [int(id_[1:]) for id_ in register.decisions()] == DECIDED
    for each in register.decisions().values():
        assert each.question
        assert each.accepted
        assert each.ours
        assert each.section
    ours = [each for each in register.decisions().values() if int(each.id[1:]) >= 82]
    assert all(each.seen == "not tried" for each in ours)


def test_references_inside_texts_lead_somewhere() -> None:
    texts = [clause.sentence for page in register.PAGES for clause in register.clauses(page).values()]
    texts += [point.text for point in register.open_points().values()]
    found = {each for text in texts for each in re.findall(r"\b(?:BASE|EXT|CT|TC)-OP-\d+\b|\bD\d{2,3}\b", text)}
    assert found
    for each in found:
        register.find(each)


@pytest.mark.parametrize("id_", ["TURN-999", "BASE-OP-999", "D39", "NOPE-01", "SEL", "turn-10"])
def test_unknown_ids_are_refused(id_: str) -> None:
    with pytest.raises(register.UnknownClauseError, match=re.escape(id_)):
        register.find(id_)


def test_every_kind_of_entry_has_a_text() -> None:
    assert register.text("D50").startswith("SIGTERM, SIGINT: treated as EOF")
    assert register.text("BASE-OP-08").startswith("Code of an empty line.")


def test_nothing_is_read_before_it_is_asked_for() -> None:
    program = (
        "import localagent.conformance.register as r; "
        "print(r.clauses.cache_info().currsize, r.open_points.cache_info().currsize, r.decisions.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "0 0 0\n"
