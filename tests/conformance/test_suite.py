"""Running cases: probe, settled without a run, again for time, faults of ours, interrupts."""

import threading
from typing import Any

import pytest

from localagent.conformance import choose, suite
from localagent.conformance.calibrate import Watch, measure
from localagent.conformance.choose import NothingSelectedError
from localagent.conformance.model import Blame, Case, CaseResult, Target, Transcript, Verdict
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


def run(bench: Bench, cases: Any = CASES, target: Target | None = None, **more: Any) -> tuple[Report, list[Any]]:
    told: list[Any] = []
    prompts = {"plain": "Hello"}
    one = Suite(
        target or Target(("x",), prompts=prompts), cases, play=bench.play, judge=bench.judge, listen=told.append, **more
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


def test_a_failure_that_is_not_about_time_alone_is_not_tried_again() -> None:
    mixed = [*verdicts(CASES[0], Verdict.VIOLATED, blame=Blame.LATE)]
    mixed[1] = verdicts(CASES[0], Verdict.VIOLATED, blame=Blame.WRONG)[1]
    bench = Bench({"frame.one": [tuple(mixed)]})
    run(bench)
    assert bench.played.count("frame.one") == 1


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
