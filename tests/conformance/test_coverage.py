"""Every clause has a check or a reason, and nothing is cited that does not exist."""

from dataclasses import replace

import pytest

from localagent.conformance import cases, coverage
from localagent.conformance.judge import PROCESS_CHECKS, TRACE_CLAUSES
from localagent.conformance.model import Case, Expectation, Step
from localagent.conformance.register import Clause, find


def _case(*clauses: str) -> Case:
    step = Step("answer", {"answer": "a", "any": True}, 1, Expectation("made.up/e1", clauses))
    return Case("made.up", "Made up", "made", 0, clauses, (step,))


def test_nothing_is_wrong_with_the_coverage() -> None:
    assert coverage.lint(cases.load()) == []


def test_every_clause_has_a_check_or_one_reason() -> None:
    for name, each in coverage.coverage(cases.load()).items():
        assert bool(each.checks) != (each.reason is not None), name


def test_the_counts_add_up() -> None:
    counts = coverage.summary(cases.load())
    assert counts["checked"] + sum(counts[each] for each in coverage.WHYS) == counts["clauses"] == 1793


def test_trace_checks_are_about_what_frames_show() -> None:
    for name in TRACE_CLAUSES:
        clause = find(name)
        if isinstance(clause, Clause):
            assert clause.keyword != "MAY", name
            assert clause.bound != "client", name
            assert clause.observability in ("", "wire"), name


def test_process_checks_cite_clauses_that_exist() -> None:
    for check, clauses in PROCESS_CHECKS.items():
        assert check.startswith("process/")
        for clause in clauses:
            find(clause)


def test_a_check_of_an_unknown_clause_is_found() -> None:
    assert "FRAME-99: cited by made.up/e1, but there is no such clause" in coverage.lint([_case("FRAME-99")])


def test_a_reason_for_what_is_checked_is_found() -> None:
    stale = [each for each in coverage.lint([_case("NEG-39")]) if each.startswith("NEG-39")]
    assert stale == ["NEG-39: has the reason unbounded-negative, but made.up/e1 checks it"]


def test_a_clause_without_check_or_reason_is_found() -> None:
    bare = [each for each in coverage.lint([]) if "no check and no reason" in each]
    assert any(each.startswith("FRAME-13:") for each in bare)
    assert not any(each.startswith("FRAME-13:") for each in coverage.lint([_case("FRAME-13")]))


def test_a_vanished_id_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = {**coverage.known_ids(), "FRAME-98": "FRAME-98", "FRAME-97": "FRAME-01"}
    monkeypatch.setattr(coverage, "known_ids", lambda: {each: new for each, new in ids.items() if each != "ENV-01"})
    found = coverage.lint([])
    assert "FRAME-98: the clause has vanished, and nothing stands for it" in found
    assert "ENV-01: is not in clauses/ids.txt" in found
    assert not any(each.startswith("FRAME-97") for each in found)


@pytest.mark.parametrize(
    ("clause", "who"),
    [
        ("FRAME-01", "backend"),
        ("CLIENT-13", "client"),
        ("CLIENT-07", "client"),
        ("ENV-01", "both"),
        ("ENV-14", "both"),
        ("TC-05", "both"),
        ("EVT-09", "backend"),
    ],
)
def test_who_is_bound(clause: str, who: str) -> None:
    assert coverage.bound(clause) == who


@pytest.mark.parametrize(
    ("clause", "why"),
    [
        ("CLIENT-13", "client-side"),
        ("START-17", "not-observable"),
        ("FLOW-12", "not-observable"),
        ("NEG-33", "not-built-yet"),
        ("START-08", "platform"),
        ("START-16", None),
        ("FRAME-10", None),
    ],
)
def test_reasons_by_rule(clause: str, why: str | None) -> None:
    assert coverage.reason(clause) == why


def test_a_model_or_a_fixture_is_no_reason_by_itself() -> None:
    assert any(each.startswith("ENV-39: no check and no reason") for each in coverage.lint([]))


def test_what_is_merely_recorded_checks_nothing() -> None:
    case = _case("START-16")
    noted = replace(case, steps=tuple(replace(each, expects=_recorded(each)) for each in case.steps))
    assert "START-16" in coverage.checks([case])
    assert "START-16" not in coverage.checks([noted])


def _recorded(step: Step) -> Expectation | None:
    return step.expects and replace(step.expects, level="record")


def test_a_pattern_whose_clauses_are_all_checked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = coverage.Given("timing", "", (), ("START-16*", "START-17*"))
    monkeypatch.setattr(coverage, "given", lambda: (entry,))
    found = coverage.lint([_case("START-16")])
    assert "START-16*: has the reason timing, but all such clauses are checked" in found
    assert not any(each.startswith("START-17*") for each in found)


def test_what_is_said_of_a_clause_without_a_check() -> None:
    said = coverage.reasons([_case("FRAME-13")])
    assert said["CLIENT-13"] == "client-side"
    assert "FRAME-13" not in said


def test_a_reason_that_is_none_of_the_eight_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "_file", lambda: {"reason": [{"reason": "lazy", "why": "", "clauses": []}]})
    with pytest.raises(ValueError, match="none of the eight"):
        coverage.given.__wrapped__()


def test_level_and_case_do_not_matter() -> None:
    case = _case("FRAME-13")
    assert coverage.checks([replace(case, tier=2)])["FRAME-13"] == ["made.up/e1"]
