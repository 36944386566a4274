"""The judge on the end of processes: status, time, what is left, what is said."""

import pytest

from localagent.conformance.model import TIMED, Blame, Verdict
from tests.conformance.talks import HEADER, Talk, case, judged, verdict


@pytest.mark.parametrize(
    ("talk", "outcome"),
    [
        (Talk().ready().close().end(), (Verdict.HELD, Blame.NONE)),
        (Talk().ready().shut().end(), (Verdict.HELD, Blame.NONE)),
        (Talk().ready().shut().end(1), (Verdict.VIOLATED, Blame.WRONG)),
        (Talk().ready().shut().end(3), (Verdict.VIOLATED, Blame.CRASHED)),
        (Talk().ready().end(0), (Verdict.VIOLATED, Blame.CRASHED)),
        (Talk().ready().end(-11), (Verdict.VIOLATED, Blame.CRASHED)),
        (Talk().ask("status").end(2), (Verdict.VIOLATED, Blame.NEVER_STARTED)),
        (Talk().running().shut().end(1, after=2100), (Verdict.HELD, Blame.NONE)),
        (Talk().running().shut().end(1, after=100), (Verdict.VIOLATED, Blame.WRONG)),
        (Talk().running().shut().end(0), (Verdict.VIOLATED, Blame.WRONG)),
        (Talk().ready().mark("stop reading").ask("status", "s").end(1), (Verdict.HELD, Blame.NONE)),
        (Talk().ready().add(signal="SIGTERM").end(-15), (Verdict.RECORDED, Blame.NONE)),
        (Talk().ready().add(signal="SIGKILL").end(-9), (Verdict.NOT_EXERCISED, Blame.NONE)),
        (
            Talk().ready().close().mark("killed", "gave up 0").add(9000, signal="SIGKILL").end(-9),
            (Verdict.VIOLATED, Blame.LATE),
        ),
        (Talk().ready(), (Verdict.NOT_EXERCISED, Blame.NONE)),
        (Talk(header=False).ready().end(), (Verdict.HELD, Blame.NONE)),
    ],
)
def test_the_exit_status(talk: Talk, outcome: tuple[Verdict, Blame]) -> None:
    assert verdict(talk, "process/exit") == outcome


@pytest.mark.parametrize(
    ("steps", "first", "second", "outcome"),
    [
        ("{ exit = [0] }, { restart = true }", 0, -11, (Verdict.VIOLATED, Blame.CRASHED)),
        ("{ restart = true }, { exit = [0] }", -11, 0, (Verdict.VIOLATED, Blame.CRASHED)),
        ("{ exit = [0] }, { restart = true }", -11, 0, (Verdict.HELD, Blame.NONE)),
        ("{ restart = true }, { exit = [0] }", 0, -11, (Verdict.HELD, Blame.NONE)),
        ("{ launch = { args = [] } }, { restart = true }", 2, 0, (Verdict.HELD, Blame.NONE)),
        ("{ kill = true }, { restart = true }, { restart = true }", 0, 0, (Verdict.HELD, Blame.NONE)),
    ],
)
def test_a_case_judges_the_end_of_those_children_that_it_ends(
    steps: str, first: int, second: int, outcome: tuple[Verdict, Blame]
) -> None:
    talk = Talk().ready().close().end(first)
    talk.records.append(HEADER)
    talk.seq = 0
    found = judged(talk.ready().close().end(second), case(steps))["process/exit"]
    assert (found.verdict, found.blame) == outcome


def test_closing_behind_a_fatal_error_shows_only_while_the_input_is_open() -> None:
    talk = Talk().add(dir="client", line="x" * 70000).error("frame_too_large", None)
    assert "FRAME-21" in judged(talk.end())["process/exit"].clauses
    talk = Talk().add(dir="client", line="x" * 70000).error("frame_too_large", None).close().end()
    assert "FRAME-21" not in judged(talk)["process/exit"].clauses


def test_more_requests_than_may_wait_excuse_an_overflow() -> None:
    talk = Talk()
    for i in range(33):
        talk.ask("status", f"s{i}")
    assert verdict(talk.end(1), "process/exit") == (Verdict.HELD, Blame.NONE)


def test_an_input_that_breaks_is_not_closed_by_us() -> None:
    talk = Talk().ready().mark("input is not read any more").close().end(0)
    assert verdict(talk, "process/exit") == (Verdict.VIOLATED, Blame.CRASHED)


def test_the_end_is_bounded() -> None:
    assert verdict(Talk().ready().close().end(after=4500), "process/prompt-exit")[0] is Verdict.HELD
    assert verdict(Talk().ready().close().end(after=6500), "process/prompt-exit") == (Verdict.VIOLATED, Blame.LATE)
    assert judged(Talk().ready())["process/prompt-exit"].verdict is Verdict.NOT_EXERCISED


def test_why_the_time_of_an_end_is_not_judged_is_said_truly() -> None:
    def reasons(talk: Talk) -> set[str]:
        return {judged(talk)[f"process/{name}"].reason for name in ("prompt-exit", "no-output-after-exit")}

    foreign = Talk(header=False).ready().close().add(exit=0)
    assert reasons(foreign) == {"foreign-times"}
    for each in foreign.records:
        each.pop("t", None)
    assert reasons(foreign) == {"no-times"}
    assert judged(Talk().ready().end(-11))["process/prompt-exit"].what == "it had no reason to end"


def test_a_failure_of_the_transport_is_quiet() -> None:
    talk = Talk().ready().mark("stop reading")
    assert verdict(talk.add(stderr="broken pipe\n").end(1), "process/quiet") == (Verdict.VIOLATED, Blame.WRONG)
    talk = Talk().ready().add(stderr="a log line\n").mark("stop reading").end(1)
    assert verdict(talk, "process/quiet")[0] is Verdict.HELD


def test_words_where_no_output_need_be_lost_are_noted_down_and_no_more() -> None:
    talk = Talk().running().shut().add(stderr="a hook is slow\n").end(1, after=2100)
    assert verdict(talk, "process/quiet")[0] is Verdict.RECORDED


def test_output_is_whole_frames() -> None:
    talk = Talk().ready().add(dir="backend", line='{"half').close().end()
    assert verdict(talk, "process/whole-frames") == (Verdict.VIOLATED, Blame.WRONG)
    talk = Talk().ready().add(dir="backend", line='{"half').add(signal="SIGKILL").end(-9)
    assert verdict(talk, "process/whole-frames")[0] is Verdict.NOT_EXERCISED


def test_nothing_comes_before_input_and_after_the_exit() -> None:
    talk = Talk().error("busy", None).ready().shut().end()
    assert verdict(talk, "process/no-output-before-input") == (Verdict.VIOLATED, Blame.WRONG)
    talk = Talk().ready().shut().add(exit=0).say(5000, type="event", event="x", data={}).add(end="complete", left=0)
    assert verdict(talk, "process/no-output-after-exit") == (Verdict.VIOLATED, Blame.LATE)
    assert Blame.LATE in TIMED  # how long the end of a group takes is up to the host too


def test_processes_that_are_left_over() -> None:
    assert verdict(Talk().ready().shut().end(left=2), "process/left-over") == (Verdict.VIOLATED, Blame.LATE)
    assert verdict(Talk().ready().shut().end(), "process/left-over")[0] is Verdict.HELD
    detached = Talk().ready().shut().end(left=1, after=2000)  # slow teardown is left to the exit of the process
    assert verdict(detached, "process/left-over")[0] is Verdict.RECORDED
