"""The zoo: every mutant names checks that exist and can be put in; the command tells killed from survived."""

import io
import subprocess
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from localagent.cli import main
from localagent.conformance import cases, coverage, judge, play
from localagent.conformance.model import Blame, Case, CaseResult, CheckResult, Transcript, Verdict
from localagent.conformance.suite import probe
from localagent.selftest import blind, campaign, command, mutant, tools
from localagent.selftest.campaign import Learning, Outcome, case_of, expected
from localagent.selftest.matrix import Matrix
from localagent.selftest.mutant import zoo

_INSTALLS = """
import os, sys
from localagent.selftest import tools
from localagent.selftest.mutant import zoo
import localagent.core.connection, localagent.runner.turn, localagent.sessions.store, localagent.shell.loop
import localagent.sessions.discovery, localagent.sessions.listing
for mutant in zoo().values():
    child = os.fork()
    if not child:
        try:
            mutant.install()
        except BaseException as fault:
            print(mutant.name, repr(fault), flush=True)
            os._exit(1)
        if not tools.REPLACED:
            print(mutant.name, "replaces nothing", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def test_there_are_enough_mutants_and_each_says_what_is_wrong() -> None:
    assert len(zoo()) >= 60
    assert [each.name for each in zoo().values() if len(each.about) < 10 or each.about.endswith(".")] == []
    assert {each.place for each in zoo().values()} == set(mutant.PLACES)


def test_every_mutant_names_checks_that_exist_and_nothing_else_does() -> None:
    assert list(expected()) == list(zoo())
    known = {case.id: case for case in cases.load()}
    for name, checks in expected().items():
        assert checks, name
        for check in checks:
            case = known[case_of(check)]
            judged = check.removeprefix(f"{case.id}: ")
            if judged == check:
                assert check in {each.check for each in case.checks}, name
            else:
                kind, _, clause = judged.partition("/")
                assert kind == "process" or (kind == "trace" and clause in coverage.registered()), name


def test_every_family_of_cases_is_named_by_a_mutant() -> None:
    named = {case_of(check).partition(".")[0] for checks in expected().values() for check in checks}
    assert {case.family for case in cases.load()} - named == set()


def test_every_mutant_finds_its_place() -> None:
    done = subprocess.run([sys.executable, "-c", _INSTALLS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == ""


def test_a_place_that_is_gone_is_told() -> None:
    with pytest.raises(AttributeError, match="no_such_place"):
        tools.put(tools, "no_such_place", None)
    with pytest.raises(KeyError):
        tools.put_item({}, "no such entry", None)
    with pytest.raises(ValueError, match="has not all of"):
        tools.unchecked("status", "NO_RUN")


def test_a_name_stands_for_one_mutant() -> None:
    assert "wrong-id" in zoo()  # all are there

    def wrong_id() -> None:
        """Another one."""

    with pytest.raises(ValueError, match="two mutants named wrong-id"):
        mutant.fault(wrong_id)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["nobody", "serve", "--stdio"], "no mutant is named 'nobody'"), (["wrong-id"], "usage"), ([], "usage")],
)
def test_a_mutant_is_a_program_that_knows_how_it_is_called(arguments: list[str], told: str) -> None:
    program = [sys.executable, "-m", "localagent.selftest", *arguments]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr


# the campaign, with made-up backends


def _play_nothing(case: Case, target: Any, calibration: Any, start: Any) -> Any:
    return case, target


class Fake:
    """Judges as it is told: mutant -> the checks that are red on it, all others hold."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, red: Mapping[str, tuple[str, ...]]) -> None:
        self.red = red
        monkeypatch.setattr(play, "play", _play_nothing)
        monkeypatch.setattr(judge, "judge", self.judge)
        monkeypatch.setattr(command, "unmutated", lambda some, jobs, known: ())
        monkeypatch.setattr(command, "own", campaign.run)
        monkeypatch.setattr(campaign, "settled", lambda case, target: None)

    def judge(self, played: Any, case: Case, capabilities: Any) -> list[Any]:
        _, target = played
        seen = self.red.get(target.argv[3], ())
        return [
            CheckResult(each.check, each.clauses, Verdict.VIOLATED if each.check in seen else Verdict.HELD)
            for each in case.checks
        ]


def _selftest(*names: str, jobs: int = 2) -> tuple[int, str]:
    out = io.StringIO()
    options = Namespace(select=list(names), full=False, record=None, jobs=jobs)
    return command.selftest(options, out, io.StringIO()), out.getvalue()


def test_a_mutant_that_its_check_sees_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, {"shutdown-exits-1": expected()["shutdown-exits-1"]})
    status, told = _selftest("shutdown-exits-1")
    assert status == 0
    assert "killed       shutdown-exits-1" in told
    assert "by shut.idle/exit" in told


def test_a_mutant_that_another_check_sees_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, {"shutdown-exits-1": ("shut.idle/accepted", "shut.idle/stopping")})
    status, told = _selftest("shutdown-exits-1")
    assert status == 1
    assert "SURVIVED     shutdown-exits-1" in told
    assert "not seen by shut.idle/exit" in told


def test_a_mutant_that_does_not_even_start_is_a_wreck_and_not_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, {"bom-accepted": (*expected()["bom-accepted"], "sanity.first/start")})
    status, told = _selftest("bom-accepted")
    assert status == 1
    assert "WRECK        bom-accepted" in told


def test_what_our_backend_does_not_claim_yet_is_no_survivor(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, {})
    unclaimed = probe("first")
    gone = [CheckResult("x", (), Verdict.NOT_CLAIMED)]
    monkeypatch.setattr(
        campaign,
        "settled",
        lambda case, target: CaseResult(unclaimed, Transcript(()), tuple(gone)),
    )
    outcome = campaign.run([(zoo()["bom-accepted"], campaign.named([zoo()["bom-accepted"]]))], Learning(), 1, _ignore)
    assert outcome[0].unclaimed
    assert command._word(outcome[0]) == "not claimed"


def _ignore(done: int, of: int) -> None:
    pass


_FEW: Final = tuple(case for case in cases.load() if case.id in ("shut.idle", "shut.params"))
_EXIT: Final = "shut.idle/exit"


def _matrix(*red: str, noise: Mapping[str, frozenset[str]] | None = None) -> Matrix:
    outcome = Outcome(zoo()["shutdown-exits-1"], expected()["shutdown-exits-1"], {"shut.idle": red}, frozenset(), True)
    return Matrix((outcome,), noise or {}, spared=41, idle=0)


def _told(
    matrix: Matrix, record: str | None = None, select: list[str] | None = None, every_pair: bool = False
) -> tuple[bool, list[str]]:
    out = io.StringIO()
    options = Namespace(record=record, select=select, every_pair=every_pair)
    gone = command._matrix(matrix, _FEW, options, out)
    return gone, out.getvalue().splitlines()


def test_the_whole_matrix_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = blind.every(_FEW)
    monkeypatch.setattr(blind, "listed", lambda: frozenset(everything) - {_EXIT})
    gone, told = _told(_matrix(_EXIT, "trace/SHUT-04"))
    assert not gone
    own = sum(len(case.checks) for case in _FEW)
    assert f"{'shut':<14} {own:>7} {own - 1:>10} {1:>10}" in told
    total = len(everything)
    assert f"{'total':<14} {total:>7} {total - 1 - ('trace/SHUT-04' in everything):>10} {2:>10}" in told
    assert "1 runs; 41 more could not have been red" in told


def test_a_check_that_has_gone_blind_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind, "listed", lambda: frozenset(blind.every(_FEW)) - {_EXIT})
    gone, told = _told(_matrix())
    assert gone
    assert told[-1] == f"sees no mutant any more: {_EXIT}"
    assert _told(_matrix(), select=["shutdown-exits-1"])[0] is False  # who asks for a part knows that it is one


def test_what_the_judge_looks_at_in_every_case_is_held_against_a_matrix_of_every_pair_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = "process/exit"
    monkeypatch.setattr(blind, "listed", lambda: frozenset(blind.every(_FEW)) - {check})
    assert _told(_matrix(_EXIT))[0] is False
    gone, told = _told(_matrix(_EXIT), every_pair=True)
    assert gone
    assert f"sees no mutant any more: {check}" in told


@pytest.mark.parametrize(
    ("blame", "dies", "killed"),
    [
        (Blame.WRONG, (), True),
        (Blame.LATE, (), True),
        (Blame.CRASHED, (), False),
        (Blame.NEVER_STARTED, (), False),
        (Blame.CRASHED, ("shutdown-exits-1",), True),
    ],
)
def test_a_mutant_that_dies_on_the_way_is_not_killed_by_that(
    monkeypatch: pytest.MonkeyPatch, blame: Blame, dies: tuple[str, ...], killed: bool
) -> None:
    red = [CheckResult(_EXIT, (), Verdict.VIOLATED, blame=blame)]
    Fake(monkeypatch, {})
    held = judge.judge
    monkeypatch.setattr(
        judge, "judge", lambda played, case, caps: red if case.id == "shut.idle" else held(played, case, caps)
    )
    monkeypatch.setattr(campaign, "_table", lambda: {"shutdown-exits-1": (_EXIT,), "dies": dies})
    outcome = campaign.run([(zoo()["shutdown-exits-1"], _FEW[:1])], Learning(), 1, _ignore)[0]
    assert outcome.killed is killed


def test_a_check_that_sees_again_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind, "listed", lambda: frozenset(blind.every(_FEW)))
    gone, told = _told(_matrix(_EXIT))
    assert not gone
    assert told[-1] == f"1 checks are listed as blind that see a mutant: {_EXIT}"


def test_a_matrix_that_was_cut_off_says_so_and_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blind, "listed", lambda: frozenset(blind.every(_FEW)) - {_EXIT})
    gone, told = _told(replace(_matrix(), left=7))
    assert not gone
    assert told[-1] == "7 were not played: the time was over"


def test_noise_is_told() -> None:
    _, told = _told(_matrix(_EXIT, noise={"shut.idle": frozenset({"shut.idle/stopping"})}))
    assert told[0] == "not counted, red without a fault: shut.idle (shut.idle/stopping)"


def test_the_list_of_blind_checks_can_be_written_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "blind.txt"
    _told(_matrix(_EXIT), record=str(file))
    monkeypatch.setattr(blind, "files", lambda _: tmp_path)
    blind.listed.cache_clear()
    assert blind.listed() == set(blind.every(_FEW)) - {_EXIT}
    blind.listed.cache_clear()


def test_blind_checks_are_checks_and_no_mutant_names_them() -> None:
    everything = set(blind.every(cases.load()))
    named = {check.rpartition(": ")[2] for checks in expected().values() for check in checks}
    assert blind.listed() <= everything
    assert blind.listed() & named == set()


def test_a_family_without_a_mutant_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = Outcome(zoo()["bom-accepted"], (), {"frame.bom": ("frame.bom/refused",)}, frozenset(), True)
    some = [case for case in cases.load() if case.id in ("frame.bom", "shut.idle")]
    assert command._barren([outcome], some) == ["shut"]
    beside = replace(outcome, red={"frame.bom": ("trace/FRAME-03",)})
    assert command._barren([beside], some) == ["frame", "shut"]
    assert command._barren([replace(outcome, sane=False)], some) == ["frame", "shut"]


def test_wrong_usage() -> None:
    assert _selftest("no-such-mutant")[0] == 3
    assert _selftest(jobs=0)[0] == 3
    with pytest.raises(SystemExit) as end:
        main(["conform", "selftest", "--", "x"])
    assert end.value.code == 3


def test_a_failure_of_the_backend_without_a_fault_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake(monkeypatch, {"shutdown-exits-1": expected()["shutdown-exits-1"]})
    case = campaign.named([zoo()["shutdown-exits-1"]])[0]
    bad = CheckResult("shut.idle/exit", (), Verdict.VIOLATED)
    failed = CaseResult(case, Transcript(()), (bad,))
    monkeypatch.setattr(command, "unmutated", lambda some, jobs, known: (failed,))
    status, told = _selftest("shutdown-exits-1")
    assert status == 1
    assert "FAILS" in told


@pytest.mark.deep
def test_the_real_thing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    chosen = ["bom-accepted", "shutdown-exits-1", "listing-not-sorted", "finished-twice"]
    status = main(["conform", "selftest", *(part for name in chosen for part in ("--select", name))])
    assert "4 killed" in capsys.readouterr().out
    assert status == 0


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_runs_are_counted() -> None:
    plain, terminal = io.StringIO(), _Terminal()
    for err in (plain, terminal):
        count = command._Counter(err)
        for done in range(1, 41):
            count(done, 40)
    assert plain.getvalue().splitlines() == [f"{done} of 40 runs" for done in range(4, 41, 4)]
    assert terminal.getvalue().endswith("\r\033[K40 of 40 runs\n")
