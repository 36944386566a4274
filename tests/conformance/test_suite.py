"""Running cases: probe, settled without a run, again for time, faults of ours, interrupts."""

import threading
from dataclasses import replace
from typing import Any

import pytest

from localagent.conformance import cases, choose, suite
from localagent.conformance.calibrate import Watch, measure
from localagent.conformance.choose import NothingSelectedError
from localagent.conformance.model import Blame, Case, CaseResult, CheckResult, Target, Transcript, Verdict
from localagent.conformance.report.tally import Report, Status, status
from localagent.conformance.suite import Begun, Done, Probed, Suite, Suspected
from localagent.protocol.names import CAPABILITIES

from .fakes import Bench, case, talk, verdicts

CASES = (
    case("frame.one", "FRAME-03", "FRAME-04"),
    case("env.two", "ENV-01"),
    case("turn.three", "TURN-01", tier=1, prompts=("plain",)),
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "SETTLE_SECONDS", 0.02)
    monkeypatch.setattr(suite, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(suite, "STARVED_MS", 1e9)


def run(bench: Bench, some: Any = CASES, target: Target | None = None, **more: Any) -> tuple[Report, list[Any]]:
    told: list[Any] = []
    prompts = {"plain": "Hello"}
    one = Suite(
        target or Target(("x",), prompts=prompts), some, play=bench.play, judge=bench.judge, listen=told.append, **more
    )
    results, end = one.run()
    return Report({}, results, end), told


def by_id(report: Report) -> dict[str, CaseResult]:
    return {each.case.id: each for each in report.cases}


def test_a_run_probes_first_and_last_and_keeps_the_order_of_the_cases() -> None:
    bench = Bench()
    report, told = run(bench)
    assert [each.case.id for each in report.cases] == [
        "sanity.first",
        "frame.one",
        "env.two",
        "turn.three",
        "sanity.last",
    ]
    assert report.end == "complete"
    assert status(report) is Status.CONFORMANT
    probed = next(each for each in told if isinstance(each, Probed))
    assert probed.capabilities == frozenset(CAPABILITIES) | {"tool.cards"}  # one extension is served, one is not
    assert probed.provider == "scripted"
    assert probed.calibration.round_trip == 2.0
    assert probed.calibration.start == 101.0
    assert Begun(3, 3) in told
    assert bench.played[0] == "sanity.first"
    assert bench.played[-1] == "sanity.last"


def test_a_probe_is_judged_by_what_it_learns_itself() -> None:
    bench = Bench()
    run(bench)
    assert bench.known["sanity.first"] is None
    assert bench.known["frame.one"] == frozenset(CAPABILITIES) | {"tool.cards"}


@pytest.mark.parametrize(
    ("comes_to", "outcome", "attempts"),
    [
        ([Verdict.VIOLATED], Status.VIOLATION, 1),
        ([Blame.SILENT], Status.VIOLATION, 2),
        ([ZeroDivisionError("by zero")], Status.FAULT, 1),
    ],
)
def test_an_extension_that_is_neither_served_nor_refused_is_told(
    comes_to: list[Any], outcome: Status, attempts: int
) -> None:
    report, told = run(Bench({"sanity.client-tools": comes_to}))
    assert [each.case.id for each in report.cases][:3] == ["sanity.first", "sanity.client-tools", "frame.one"]
    assert report.cases[1].attempts == attempts
    assert status(report) is outcome
    order = [each.result.case.id if isinstance(each, Done) else type(each) for each in told]
    assert order[:4] == [Probed, "sanity.first", "sanity.client-tools", Begun]


def test_an_extension_that_is_refused_late_is_asked_for_again() -> None:
    bench = Bench({"sanity.client-tools": [Blame.LATE, Verdict.HELD]})
    report, _ = run(bench)
    assert bench.played.count("sanity.client-tools") == 2
    assert "sanity.client-tools" not in by_id(report)
    assert status(report) is Status.CONFORMANT


def test_cases_run_side_by_side_and_never_more_than_jobs() -> None:
    gate = threading.Barrier(2, timeout=5)
    bench = Bench()

    def before(each: Case) -> None:
        if each.family == "pair":
            gate.wait()

    bench.before = before
    many = tuple(case(f"pair.n{i}", "FRAME-03") for i in range(6))
    report, _ = run(bench, many, jobs=2)
    assert bench.most == 2
    assert status(report) is Status.CONFORMANT


def test_what_the_target_does_not_claim_is_not_run() -> None:
    bench = Bench(capabilities=["initialize", "status"])
    needing = case("list.one", "LIST-01", needs=("session.list",))
    report, _ = run(bench, (needing, CASES[0]))
    found = by_id(report)["list.one"]
    assert [(each.verdict, each.reason) for each in found.results] == [(Verdict.NOT_CLAIMED, "capability")]
    assert "list.one" not in bench.played


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (case("turn.x", "TURN-01", prompts=("stall",)), "needs-model"),
        (case("store.x", "REC-01", fixtures=("store",)), "needs-fixture"),
    ],
)
def test_what_the_target_cannot_be_made_to_do_is_not_run(one: Any, reason: str) -> None:
    bench = Bench()
    report, _ = run(bench, (one,))
    assert [each.reason for each in by_id(report)[one.id].results] == [reason]
    assert one.id not in bench.played
    assert status(report) is Status.INCONCLUSIVE  # sanity alone is no conformance


@pytest.mark.parametrize(
    ("how", "runs"), [('args = ["--x"]', False), ('add = ["--x"]', False), ('stdin = "tty"', True)]
)
def test_a_command_that_cannot_be_changed_is_not_launched_otherwise(how: str, runs: bool) -> None:
    text = '[[case]]\nid = "start.x"\ntitle = "x"\ntier = 0\nclauses = ["START-04"]\n'
    (launched,) = cases.parse(f"{text}steps = [{{ launch = {{ {how} }} }}, {{ exit = [2] }}]\n")
    bench = Bench()
    report, _ = run(bench, (launched,))
    assert ("start.x" in bench.played) is runs
    assert by_id(report)["start.x"].results[0].reason == ("" if runs else "needs-serve")
    bench = Bench()
    run(bench, (launched,), Target(("python", "x", "serve", "--stdio")))
    assert "start.x" in bench.played


def test_prompts_may_come_from_what_the_probe_learned() -> None:
    bench = Bench()
    target = Target(("x",))
    equip = lambda given, probed: Target(given.argv, prompts={"plain": probed.provider})  # noqa: E731
    report, _ = run(bench, CASES, target, equip=equip)
    assert by_id(report)["turn.three"].verdict is Verdict.HELD


def test_a_violation_is_one_at_once() -> None:
    bench = Bench({"env.two": [Verdict.VIOLATED]})
    report, _ = run(bench)
    assert bench.played.count("env.two") == 1
    assert status(report) is Status.VIOLATION


def test_a_missed_time_limit_is_tried_again_alone() -> None:
    bench = Bench({"frame.one": [Blame.LATE, Verdict.HELD]})
    alone: list[int] = []
    bench.before = lambda each: alone.append(bench.running) if each.id == "frame.one" else None
    report, told = run(bench)
    found = by_id(report)["frame.one"]
    assert found.verdict is Verdict.HELD
    assert found.attempts == 2
    assert alone[-1] == 1
    assert any(isinstance(each, Suspected) for each in told)
    assert sum(isinstance(each, Done) and each.result.case.id == "frame.one" for each in told) == 1


def test_a_time_limit_missed_again_counts() -> None:
    bench = Bench({"frame.one": [Blame.SILENT]})
    report, _ = run(bench)
    found = by_id(report)["frame.one"]
    assert found.attempts == 2
    assert found.verdict is Verdict.VIOLATED
    assert status(report) is Status.VIOLATION


def test_a_host_that_sleeps_itself_is_no_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "STARVED_MS", 0.0)
    bench = Bench({"frame.one": [Blame.SILENT]})
    report, _ = run(bench)
    found = by_id(report)["frame.one"]
    assert found.attempts == suite.ATTEMPTS
    assert {each.verdict for each in found.results} == {Verdict.HARNESS_FAULT}
    assert {each.blame for each in found.results} == {Blame.HOST_STARVED}
    assert status(report) is Status.FAULT


def mixed(late: Verdict = Verdict.VIOLATED, other: Verdict = Verdict.VIOLATED) -> tuple[CheckResult, ...]:
    """Of the two checks of a case, the first is about time and the other is not."""
    return (
        verdicts(CASES[0], late, blame=Blame.NONE if late is Verdict.HELD else Blame.LATE)[0],
        verdicts(CASES[0], other, blame=Blame.NONE if other is Verdict.HELD else Blame.WRONG)[1],
    )


def test_a_missed_time_limit_beside_a_deviation_is_tried_again() -> None:
    deviates = Verdict.DEVIATION
    bench = Bench({"frame.one": [mixed(other=deviates), mixed(Verdict.HELD, deviates)]})
    report, _ = run(bench)
    assert [each.verdict for each in by_id(report)["frame.one"].results] == [Verdict.HELD, deviates]
    assert status(report) is Status.CONFORMANT


def test_what_fails_twice_costs_one_more_run() -> None:
    bench = Bench({"frame.one": [mixed()]})
    report, _ = run(bench)
    assert bench.played.count("frame.one") == 2
    assert by_id(report)["frame.one"].results == mixed()


def test_a_failure_that_no_host_causes_stands_when_it_is_not_seen_again() -> None:
    bench = Bench({"frame.one": [mixed(), mixed(Verdict.HELD, Verdict.HELD)]})
    report, _ = run(bench)
    found = by_id(report)["frame.one"]
    assert [each.verdict for each in found.results] == [Verdict.NOT_EXERCISED, Verdict.VIOLATED]
    assert found.attempts == 2


def test_a_host_that_sleeps_excuses_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "STARVED_MS", 0.0)
    bench = Bench({"frame.one": [mixed()]})
    report, _ = run(bench)
    assert bench.played.count("frame.one") == suite.ATTEMPTS
    assert [each.verdict for each in by_id(report)["frame.one"].results] == [Verdict.HARNESS_FAULT, Verdict.VIOLATED]


def test_a_fault_of_ours_costs_one_case() -> None:
    bench = Bench({"env.two": [ZeroDivisionError("by zero")]})
    report, _ = run(bench)
    found = by_id(report)["env.two"]
    assert {(each.verdict, each.blame) for each in found.results} == {(Verdict.HARNESS_FAULT, Blame.HARNESS)}
    assert "by zero" in found.results[0].what
    assert by_id(report)["frame.one"].verdict is Verdict.HELD
    assert status(report) is Status.FAULT


def test_a_check_that_the_judge_forgets_is_not_exercised() -> None:
    bench = Bench({"frame.one": [verdicts(CASES[0])[:1]]})
    report, _ = run(bench)
    checks = {each.check: each for each in by_id(report)["frame.one"].results}
    assert checks["frame.one/e2"].reason == "not-reached"


@pytest.mark.parametrize("probe", ["sanity.first", "sanity.last"])
def test_a_target_that_is_not_sane_gives_no_verdict(probe: str) -> None:
    bench = Bench({probe: [Verdict.VIOLATED], "frame.one": [Verdict.VIOLATED]})
    report, _ = run(bench)
    assert report.end == "insane"
    assert status(report) is Status.INCONCLUSIVE
    assert ("frame.one" in bench.played) is (probe == "sanity.last")


@pytest.mark.parametrize("probe", ["sanity.first", "sanity.last"])
@pytest.mark.parametrize("comes_to", [ZeroDivisionError("by zero"), Blame.SILENT])
def test_a_probe_that_fails_in_our_hands_accuses_nobody(
    probe: str, comes_to: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "STARVED_MS", 0.0)
    report, _ = run(Bench({probe: [comes_to]}))
    assert report.end == "insane"
    assert status(report) is Status.FAULT


def test_an_interrupt_keeps_what_there_is() -> None:
    bench = Bench()
    told: list[Any] = []
    many = tuple(case(f"frame.n{i}", "FRAME-03") for i in range(20))
    one = Suite(Target(("x",)), many, play=bench.play, judge=bench.judge, listen=told.append, jobs=1)
    bench.before = lambda each: one.cut() if each.id == "frame.n3" else None
    results, end = one.run()
    report = Report({}, results, end)
    assert end == "cut"
    ran = {each.case.id for each in results}
    assert {"frame.n0", "frame.n1", "frame.n2", "frame.n3"} <= ran
    assert "sanity.last" not in ran
    assert len(ran) < 12
    assert status(report) is Status.INCONCLUSIVE


def test_an_interrupt_does_not_wait_for_a_hanging_case() -> None:
    held = threading.Event()
    bench = Bench()
    one = Suite(Target(("x",)), CASES[:2], play=bench.play, judge=bench.judge, jobs=1)

    def before(each: Any) -> None:
        if each.id == "frame.one":
            one.cut()
            held.wait(10)

    bench.before = before
    results, end = one.run()
    held.set()
    assert end == "cut"
    assert [each.case.id for each in results] == ["sanity.first"]


def test_a_violation_stands_in_a_run_that_was_cut() -> None:
    bench = Bench({"frame.one": [Verdict.VIOLATED]})
    one = Suite(Target(("x",)), CASES[:2], play=bench.play, judge=bench.judge, jobs=1)
    bench.before = lambda each: one.cut() if each.id == "env.two" else None
    results, end = one.run()
    assert status(Report({}, results, end)) is Status.VIOLATION


def test_a_time_limit_that_could_not_be_tried_again_does_not_count() -> None:
    bench = Bench({"frame.one": [Blame.LATE]})
    one = Suite(Target(("x",)), CASES[:2], play=bench.play, judge=bench.judge, jobs=1)
    bench.before = lambda each: one.cut() if each.id == "env.two" else None
    results, end = one.run()
    found = {each.case.id: each for each in results}
    assert {each.reason for each in found["frame.one"].results} == {"not-reached"}
    assert status(Report({}, results, end)) is Status.INCONCLUSIVE


def test_strict_counts_deviations() -> None:
    bench = Bench({"frame.one": [Verdict.DEVIATION]})
    report, _ = run(bench)
    assert status(report) is Status.CONFORMANT
    assert status(Report({"strict": True}, report.cases, report.end)) is Status.VIOLATION


def test_nothing_exercised_is_never_green() -> None:
    assert status(Report({}, (), "complete")) is Status.INCONCLUSIVE
    report, _ = run(Bench({each.id: [Verdict.RECORDED] for each in CASES}))
    assert status(report) is Status.INCONCLUSIVE


def test_what_held_beside_the_checks_of_a_case_exercises_nothing() -> None:
    beside = CheckResult("process/exit", ("FLOW-20",), Verdict.HELD)
    unreached = (*verdicts(CASES[0], Verdict.NOT_EXERCISED, reason="not-reached"), beside)
    report, _ = run(Bench({"frame.one": [unreached]}), CASES[:1])
    assert by_id(report)["frame.one"].verdict is Verdict.NOT_EXERCISED
    assert status(report) is Status.INCONCLUSIVE
    report, _ = run(Bench({"frame.one": [(*unreached, replace(beside, verdict=Verdict.VIOLATED))]}), CASES[:1])
    assert by_id(report)["frame.one"].verdict is Verdict.VIOLATED
    assert status(report) is Status.VIOLATION
    report, _ = run(Bench({"bare.one": [(beside,)]}), (case("bare.one"),))  # as a replay, which declares none
    assert by_id(report)["bare.one"].verdict is Verdict.HELD
    assert status(report) is Status.CONFORMANT


def test_selection() -> None:
    tagged = case("ext.four", "EXT-DISC-01", tags=("slow",))
    every = (*CASES, tagged)

    def ids(*patterns: str, profile: Any = "all") -> list[str]:
        return [each.id for each in choose.select(every, patterns, profile)]

    assert ids() == [each.id for each in every]
    assert ids("frame.*") == ["frame.one"]
    assert ids("FRAME-04") == ["frame.one"]
    assert ids("slow") == ["ext.four"]
    assert ids("turn", "env.two") == ["env.two", "turn.three"]
    assert ids(profile="base") == ["frame.one", "env.two", "turn.three"]
    assert ids(profile="extensions") == ["ext.four"]
    for patterns in (("nonsense",), ("frame.*", "nonsense")):
        with pytest.raises(NothingSelectedError, match="nonsense"):
            ids(*patterns)
    with pytest.raises(NothingSelectedError):
        choose.select((), (), "all")


def test_smoke_takes_a_dozen_that_need_nothing() -> None:
    tagged = case("zzz.last", "FRAME-03", tags=("smoke",))
    many = tuple(case(f"f{i}.{name}", "FRAME-03") for i in range(30) for name in "ab")
    needy = case("needy.x", "FRAME-03", prompts=("plain",))
    found = choose.smoke((needy, *many, tagged))
    assert len(found) == 12
    assert found[0] is tagged
    assert len({each.family for each in found}) == 12
    assert needy not in found


def test_a_universe_leaves_out_what_binds_the_client() -> None:
    base, every = choose.universe("base"), choose.universe("all")
    assert "FRAME-03" in base
    assert "CLIENT-01" not in every
    assert set(every) == set(base) | set(choose.universe("extensions"))


def test_calibration_without_times_is_the_default() -> None:
    assert measure(Transcript(()), 3.0).lag == 3.0
    assert measure(talk(gap=7.5), 1.0).round_trip == 7.5


def test_the_watch_sees_the_host() -> None:
    with Watch() as watch:
        threading.Event().wait(0.06)
    assert watch.usual() >= 0
    assert watch.worst(0, 1e18) >= watch.usual()
    assert watch.worst(0, 1) == 0
