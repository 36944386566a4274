"""The judge on the expectations of cases: each kind of step, met and not met, and whose fault it is."""

from dataclasses import replace
from typing import Any

import pytest

from localagent.conformance.judge import judge
from localagent.conformance.model import Blame, Transcript, Verdict
from tests.conformance.talks import Talk, case, judged
from tests.observe import traces as t

ASKED = '{ send = "status", as = "a" }, '
ANSWERED = ASKED + '{ answer = "a", check = "x", '


@pytest.mark.parametrize(
    ("steps", "talk", "outcome"),
    [
        (ANSWERED + "any = true }", Talk().ask("status").error("busy"), (Verdict.HELD, Blame.NONE)),
        (ANSWERED + 'error = "busy" }', Talk().ask("status").error("busy"), (Verdict.HELD, Blame.NONE)),
        (ANSWERED + 'error = ["a", "busy"] }'.replace('"a"', '"stale_run"'), Talk().ask("status").error("busy"),
         (Verdict.HELD, Blame.NONE)),
        (ANSWERED + 'error = "stale_run" }', Talk().ask("status").error("busy"), (Verdict.VIOLATED, Blame.WRONG)),
        (ANSWERED + 'error = "busy" }', Talk().ask("status").result({}), (Verdict.VIOLATED, Blame.WRONG)),
        (ANSWERED + "result = {} }", Talk().ask("status").error("busy"), (Verdict.VIOLATED, Blame.WRONG)),
        (ANSWERED + 'result = { state = "idle" } }', Talk().ask("status").result({"state": "idle", "more": 1}),
         (Verdict.HELD, Blame.NONE)),
        (ANSWERED + 'result = { state = "idle" } }', Talk().ask("status").result({"state": "running"}),
         (Verdict.VIOLATED, Blame.WRONG)),
        (ANSWERED + "any = true }", Talk().ask("status").mark("step 2", "gave up 2").close().end(),
         (Verdict.VIOLATED, Blame.SILENT)),
        (ANSWERED + "any = true }", Talk().ask("status").mark("step 2", "gave up 2").error("busy").close().end(),
         (Verdict.VIOLATED, Blame.LATE)),
        (ANSWERED + "any = true }", Talk().ask("status").end(2), (Verdict.VIOLATED, Blame.NEVER_STARTED)),
        (ANSWERED + "any = true }", Talk().ready().ask("status").end(-6), (Verdict.VIOLATED, Blame.CRASHED)),
        (ANSWERED + "any = true }", Talk().ask("status"), (Verdict.NOT_EXERCISED, Blame.NONE)),
        (ANSWERED + "any = true, within_ms = 100 }", Talk().ask("status").error("busy", after=50),
         (Verdict.HELD, Blame.NONE)),
        (ANSWERED + "any = true, within_ms = 100 }", Talk().ask("status").error("busy", after=5000),
         (Verdict.VIOLATED, Blame.LATE)),
        (ANSWERED + 'any = true, level = "should", within_ms = 1 }', Talk().ask("status").error("busy", after=5000),
         (Verdict.DEVIATION, Blame.LATE)),
        (ANSWERED + 'error = "busy", level = "record" }', Talk().ask("status").result({}),
         (Verdict.RECORDED, Blame.NONE)),
        ('{ raw = "x\\n" }, { answer = "", error = "invalid_request", check = "x" }',
         Talk().add(dir="client", line="x\n").error("invalid_request", None), (Verdict.HELD, Blame.NONE)),
        ('{ send = "status", as = "a", times = 2 }, { answers = "a", times = 2, order = "given", check = "x" }',
         Talk().ask("status", "a1").ask("status", "a2").error("busy", "a1").error("busy", "a2"),
         (Verdict.HELD, Blame.NONE)),
        ('{ send = "status", as = "a", times = 2 }, { answers = "a", times = 2, order = "given", check = "x" }',
         Talk().ask("status", "a1").ask("status", "a2").error("busy", "a2").error("busy", "a1"),
         (Verdict.VIOLATED, Blame.WRONG)),
        ('{ event = "diagnostic", data = { code = "c" }, check = "x" }', Talk().running().event("diagnostic", code="c"),
         (Verdict.HELD, Blame.NONE)),
        ('{ event = "diagnostic", data = { code = "c" }, check = "x" }', Talk().running().event("diagnostic", code="d"),
         (Verdict.VIOLATED, Blame.WRONG)),
        ('{ event = "diagnostic", check = "x" }', Talk().running().mark("step 1", "gave up 1").close().end(),
         (Verdict.VIOLATED, Blame.SILENT)),
        ('{ absent = "diagnostic", check = "x" }', Talk().ask("status", "barrier.1").error("busy", "barrier.1"),
         (Verdict.HELD, Blame.NONE)),
        ('{ absent = "diagnostic", check = "x" }',
         Talk().running().event("diagnostic", code="c").ask("status", "barrier.1").error("busy", "barrier.1"),
         (Verdict.VIOLATED, Blame.WRONG)),
        (ASKED + '{ absent_answer = "a", check = "x" }',
         Talk().ask("status").error("busy").ask("status", "barrier.2").error("busy", "barrier.2"),
         (Verdict.VIOLATED, Blame.WRONG)),
        ('{ nothing = true, check = "x" }', Talk().ask("status", "barrier.1").error("busy", "barrier.1"),
         (Verdict.HELD, Blame.NONE)),
        ('{ nothing = true, check = "x" }',
         Talk().ask("status", "z").error("busy", "z").ask("status", "barrier.1").error("busy", "barrier.1"),
         (Verdict.VIOLATED, Blame.WRONG)),
        (ANSWERED + 'any = true }, { match = "$a.error.code", pattern = "busy", check = "y" }',
         Talk().ask("status").error("busy"), (Verdict.HELD, Blame.NONE)),
        (ASKED + '{ answer = "a", any = true }, { match = "$a.error.code", pattern = "*integer", check = "x" }',
         Talk().ask("status").error("busy"), (Verdict.VIOLATED, Blame.WRONG)),
        (ASKED + '{ answer = "a", any = true }, { match = "$a.result.state", pattern = "*", check = "x" }',
         Talk().ask("status").error("busy"), (Verdict.NOT_EXERCISED, Blame.NONE)),
        (ASKED + '{ answer = "a", any = true }, { same = ["$a.seq", 1], check = "x" }',
         Talk().ask("status").error("busy"), (Verdict.HELD, Blame.NONE)),
        (ASKED + '{ answer = "a", any = true }, { same = ["$a.seq", 2], check = "x" }',
         Talk().ask("status").error("busy"), (Verdict.VIOLATED, Blame.WRONG)),
        (ASKED + '{ answer = "a", any = true }, { differ = ["$a.seq", 1, 2], check = "x" }',
         Talk().ask("status").error("busy"), (Verdict.VIOLATED, Blame.WRONG)),
        ('{ close = true }, { exit = [0], check = "x" }', Talk().close().end(0), (Verdict.HELD, Blame.NONE)),
        ('{ close = true }, { exit = [1], check = "x" }', Talk().close().end(0), (Verdict.VIOLATED, Blame.WRONG)),
        ('{ close = true }, { exit = [0], check = "x" }', Talk().close().end(-11), (Verdict.VIOLATED, Blame.CRASHED)),
        ('{ close = true }, { exit = [0], check = "x" }',
         Talk().close().mark("step 2", "gave up 2").add(signal="SIGKILL").end(-9), (Verdict.VIOLATED, Blame.LATE)),
        ('{ close = true }, { exit = [0], within_ms = 10, check = "x" }', Talk().close().end(0, after=5000),
         (Verdict.VIOLATED, Blame.LATE)),
        ('{ close = true }, { exit = [0], not_before_ms = 900, since = "close", check = "x" }', Talk().close().end(0),
         (Verdict.VIOLATED, Blame.WRONG)),
        ('{ start = true, check = "x" }', Talk().ready(), (Verdict.HELD, Blame.NONE)),
        ('{ start = true, as = "init", check = "x" }',
         Talk().ask("initialize", "init", required_capabilities=[]).mark("step 1", "gave up 1").close().end(),
         (Verdict.VIOLATED, Blame.SLOW_START)),
    ],
)  # fmt: skip
def test_an_expectation(steps: str, talk: Talk, outcome: tuple[Verdict, Blame]) -> None:
    found = judged(talk, case(steps))["a.case/x"]
    assert (found.verdict, found.blame) == outcome, found
    assert found.verdict is not Verdict.VIOLATED or found.what


ENDS = '{ event = "run.finished", check = "x" }'
APPROVED = '{ event = "approval.requested", as = "one", check = "w" }, ' + ENDS
LATER = ENDS + ', { event = "approval.requested", as = "one", check = "w" }'


@pytest.mark.parametrize(
    ("steps", "approvals", "verdict"),
    [
        (APPROVED, ["p1"], Verdict.VIOLATED),
        (APPROVED, ["p1", "p1"], Verdict.VIOLATED),
        (APPROVED, ["p1", "p2"], Verdict.NOT_EXERCISED),
        (ENDS, ["p1"], Verdict.NOT_EXERCISED),
        (ENDS, [], Verdict.VIOLATED),
        (LATER, ["p1"], Verdict.VIOLATED),
    ],
)
def test_a_run_that_asks_for_more_approvals_than_its_case_answers(
    steps: str, approvals: list[str], verdict: Verdict
) -> None:
    talk = Talk().running().mark("step 1")
    for approval in approvals:
        talk.event("approval.requested", approval_id=approval)
    marks = ("step 2", "gave up 2") if steps is APPROVED else ("gave up 1",)
    found = judged(talk.mark(*marks).close().end(), case(steps))["a.case/x"]
    assert found.verdict is verdict, found


PAGES = '{ pages = "session.list", as = "h", result = { notices = [] }, check = "x" }'


def _page(talk: Talk, number: int, **changed: Any) -> Talk:
    return talk.ask("session.list", f"h.{number}").result(t.listing(t.listed(f"s{number}"), **changed), f"h.{number}")


@pytest.mark.parametrize(
    ("talk", "outcome"),
    [
        (_page(_page(Talk(), 1, next_cursor="k"), 2), (Verdict.HELD, Blame.NONE)),
        (_page(_page(Talk(), 1, next_cursor="k"), 2, notices=["x"]), (Verdict.VIOLATED, Blame.WRONG)),
        (_page(Talk(), 1, next_cursor="k").ask("session.list", "h.2").error("busy", "h.2"),
         (Verdict.VIOLATED, Blame.WRONG)),
        (_page(Talk(), 1, next_cursor="k").mark("step 1", "gave up 1").close().end(),
         (Verdict.VIOLATED, Blame.SILENT)),
    ],
)  # fmt: skip
def test_pages(talk: Talk, outcome: tuple[Verdict, Blame]) -> None:
    found = judged(talk, case(PAGES))["a.case/x"]
    assert (found.verdict, found.blame) == outcome, found


def test_the_items_of_all_pages_have_a_name() -> None:
    talk = _page(_page(Talk(), 1, next_cursor="k"), 2)
    found = judged(talk, case(PAGES + ', { match = "$h.items.1.session_id", pattern = "s2", check = "y" }'))
    assert found["a.case/y"].verdict is Verdict.HELD


def test_what_may_stay_away() -> None:
    optional = case(ANSWERED + "any = true, optional = true }")
    talk = Talk().ask("status").mark("step 1", "step 2").close().end()
    assert judged(talk, optional)["a.case/x"].verdict is Verdict.NOT_EXERCISED
    asked = '{ send = "status", as = "a", times = 2 }, { answers = "a", times = 2, or_exit = [1], check = "x" }'
    both = case(asked + ', { send = "status", as = "b" }, { answer = "b", any = true, check = "y" }')
    found = judged(Talk().ask("status", "a1").ask("status", "a2").end(1), both)
    assert found["a.case/x"].verdict is Verdict.HELD
    assert found["a.case/y"].reason == "not-reached"
    assert judged(Talk().ask("status", "a1").ask("status", "a2").end(0), both)["a.case/x"].verdict is Verdict.VIOLATED


def test_an_answer_with_its_id_or_with_none() -> None:
    given = case(ANSWERED + 'error = "invalid_request", or_null = true }')
    for name in ("a", None):
        talk = Talk().ask("status").error("invalid_request", name)
        assert judged(talk, given)["a.case/x"].verdict is Verdict.HELD


def test_a_request_that_was_repeated_stands_for_the_last() -> None:
    given = case('{ send = "status", as = "a", retry = ["busy"] }, { answer = "a", result = {}, check = "x" }')
    talk = Talk().ask("status").error("busy").ask("status", "a.2").result({}, "a.2")
    assert judged(talk, given)["a.case/x"].verdict is Verdict.HELD


def test_what_the_system_cannot_do() -> None:
    given = case('{ pipe_bytes = 4096 }, { send = "status", as = "a" }, { answer = "a", any = true, check = "x" }')
    found = judged(Talk().mark("step 1", "skipped 1").close().end(), given)["a.case/x"]
    assert (found.verdict, found.reason) == (Verdict.NOT_EXERCISED, "platform")


def test_what_follows_a_failed_start_is_not_reached() -> None:
    both = case('{ start = true }, { send = "status", as = "a" }, { answer = "a", any = true, check = "x" }')
    talk = Talk().ask("initialize", "init", required_capabilities=[]).error("startup_failed", "init").close().end()
    found = judged(talk, both)
    assert (found["a.case/x"].verdict, found["a.case/x"].reason) == (Verdict.NOT_EXERCISED, "not-reached")
    assert "a.case/start" not in found
    talk = Talk().ask("initialize", "init", required_capabilities=[]).mark("step 1", "gave up 1").close().end(1)
    assert judged(talk, both)["a.case/start"].verdict is Verdict.VIOLATED


def test_steps_behind_the_one_given_up_are_not_reached() -> None:
    steps = ANSWERED + 'any = true }, { send = "status", as = "b" }, { answer = "b", any = true, check = "y" }'
    found = judged(Talk().ask("status").mark("step 1", "step 2", "gave up 2").close().end(), case(steps))
    assert found["a.case/y"].reason == "not-reached"


def test_a_home_is_judged_by_the_players_note() -> None:
    given = case(ANSWERED + "any = true }")
    step = replace(given.steps[1], kind="home", args={"home": "unchanged"})
    given = replace(given, steps=(given.steps[0], step))
    assert judged(Talk().ask("status").mark("step 2", "home 2 holds"), given)["a.case/x"].verdict is Verdict.HELD
    found = judged(Talk().ask("status").mark("step 2", "home 2 fails: x was made"), given)["a.case/x"]
    assert (found.verdict, found.what) == (Verdict.VIOLATED, "fails: x was made")


@pytest.mark.parametrize(
    ("talk", "verdict"),
    [
        (Talk().ask("status").error("busy").ask("status", "b").error("busy", "b"), Verdict.HELD),
        (Talk().ask("status").error("stale_run").ask("status", "b").error("busy", "b"), Verdict.NOT_EXERCISED),
        (Talk().ask("status").result({}).ask("status", "b").error("busy", "b"), Verdict.NOT_EXERCISED),
    ],
)
def test_what_is_behind_a_condition_is_reached_where_it_holds(talk: Talk, verdict: Verdict) -> None:
    some = case(
        ASKED + '{ answer = "a", any = true, clauses = [] }, { given = "$a.error.code", pattern = "busy" }, '
        '{ send = "status", as = "b" }, { answer = "b", error = "busy", check = "x" }'
    )
    assert judged(talk, some)["a.case/x"].verdict is verdict


@pytest.mark.parametrize(
    ("status", "verdict"), [(1, Verdict.HELD), (25, Verdict.HELD), (0, Verdict.VIOLATED), (-6, Verdict.VIOLATED)]
)
def test_any_failure_may_be_expected(status: int, verdict: Verdict) -> None:
    assert judged(Talk().end(status), case('{ exit = "failure", check = "x" }'))["a.case/x"].verdict is verdict


def test_what_was_said_on_stderr_before_the_last_thing_sent_is_no_complaint() -> None:
    some = case(ASKED + '{ exit = [1], stderr = "", check = "x" }')
    early = Talk().ready().add(stderr="3 skills loaded\n").ask("status").end(1)
    starting = Talk().ask("status").add(stderr="3 skills loaded\n").end(1)
    late = Talk().ready().ask("status").add(stderr="broken pipe\n").mark("step 2").add(exit=1).close()
    late.add(end="complete", left=0)
    assert judged(starting, some)["a.case/x"].verdict is Verdict.HELD
    assert judged(early, some)["a.case/x"].verdict is Verdict.HELD
    assert judged(late, some)["a.case/x"].verdict is Verdict.VIOLATED


def test_why_a_case_says_nothing() -> None:
    asked = case(ANSWERED + "any = true }")
    found = judged(Talk().ask("status").error("busy"), replace(asked, needs=("model.catalog",)), frozenset())
    assert {(each.verdict, each.reason) for each in found.values()} == {(Verdict.NOT_CLAIMED, "capability")}
    ways: tuple[tuple[dict[str, Any], str], ...] = (
        ({"fixtures": ("store",)}, "needs-fixture"),
        ({"prompts": ("plain",)}, "needs-model"),
        ({}, "not-reached"),
    )
    for keys, reason in ways:
        results = judge(Transcript(()), replace(asked, **keys), None)
        assert [(each.check, each.verdict, each.reason) for each in results] == [
            ("a.case/x", Verdict.NOT_EXERCISED, reason)
        ]
