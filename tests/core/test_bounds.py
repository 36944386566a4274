"""Each bound of the core one below, at, and one above: ids, frames, pending output, deadlines, approvals."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.core import worker
from localagent.core.commands import StartCleanup
from tests.kit import profiles
from tests.kit.core_driver import EMPTY, Driver, listed, request

from .asking import APPROVAL, CALL, approval, call, good, retain

NEAR_2000 = [1_999, 2_000, 2_001]


def statuses(count: int, start: int = 0) -> bytes:
    return b"".join(request(f"s{number}", "status", {}) for number in range(start, start + count))


# ids (BOUND-05, D11)


@pytest.mark.parametrize(
    ("retained", "answer"), [(4_094, "not_initialized"), (4_095, "not_initialized"), (4_096, "request_limit")]
)
def test_ids(retained: int, answer: str) -> None:
    """The 4,095th and 4,096th new id are served, the 4,097th closes; its id is echoed."""
    d = Driver()
    for start in range(0, retained, 100):
        d.send(statuses(min(100, retained - start), start))
    closes = answer == "request_limit"
    assert d.ask("status", id_="new").short() == [f"< new {answer}"] + ["! StartCleanup"] * closes
    assert d.connection.listening is not closes
    assert d.ask("status", id_="newer").frames == [] or not closes
    assert d.finish() == 0


def test_shutdown_is_not_exempt() -> None:
    d = Driver()
    retain(d, 4_096)
    assert d.ask("shutdown", id_="last").short() == ["< last request_limit", "! StartCleanup"]


@settings(max_examples=profiles.examples(30, 1_000))
@given(st.lists(st.sampled_from(["old", "new", "garbage", "unknown", "depth", "bad"]), max_size=12))
def test_what_uses_up_an_id(kinds: list[str]) -> None:
    """Old ids, broken lines and the like use none; the checker knows which answer is due, at the quota as well."""
    d = Driver()
    retain(d, 4_094)
    lines = {
        "old": request("s7", "status", {}),
        "garbage": b'{"id":"g"}\n',
        "depth": b"[" * 40 + b"\n",
    }
    for number, kind in enumerate(kinds):
        method, params = "no.such" if kind == "unknown" else "status", 7 if kind == "bad" else EMPTY
        retained, out = len(d.checker.asked), d.send(lines.get(kind) or request(f"n{number}", method, params))
        expected = {"old": "duplicate_id", "garbage": "invalid_request", "depth": "invalid_frame"}.get(kind)
        if d.checker.phase != "stopping":
            assert out.answers[0][1] == (expected or ("unsupported_method" if kind == "unknown" else "not_initialized"))
            assert len(d.checker.asked) == retained + (kind not in lines)
        elif retained == 4_096 and out.answers:
            assert (expected, out.answers) == (None, [(f"n{number}", "request_limit")])
    assert len(d.connection.facts.ids) == len(d.checker.asked) <= 4_096


# frames (BOUND-01, BOUND-02)


@pytest.mark.parametrize(("size", "answer"), [(65_535, "ok"), (65_536, "ok"), (65_537, "frame_too_large")])
@pytest.mark.parametrize("cut", [0, 1, 40_000, 65_535, 65_536])
def test_the_largest_line(size: int, answer: str, cut: int) -> None:
    d = Driver().ready()
    line = request("big", "status", {})[:-1].rjust(size) + b"\n"
    first, second = d.send(line[:cut]), d.send(line[cut:])
    null = {"ok": "big"}.get(answer, "null")
    assert [*first.short(), *second.short()][:1] == [f"< {null} {answer}"]


def test_byte_65537_is_enough() -> None:
    """FRAME-19: without waiting for the end of the line, and whatever follows is discarded (D48)."""
    d = Driver().ready()
    assert d.send(b" " * 65_536).short() == []
    assert d.send(b" ").short() == ["< null frame_too_large", "! StartCleanup"]
    assert d.send(b"\n" + request("late", "status", {})).short() == []
    assert d.finish() == 0


@pytest.mark.parametrize("text", ["x" * 65_600, "\ud800"])
def test_what_no_frame_can_carry_loses_the_output(text: str) -> None:
    """BASE-OP-69: neither cut nor dropped."""
    d = Driver().ready().attach().executing()
    assert d.event(worker.Note("big", text)).short() == ["! CancelWorker 3", "! StartCleanup"]
    assert d.finish() == 1


# pending output (BOUND-22, D49)


@pytest.mark.parametrize("count", [31, 32])
def test_so_many_frames_may_wait(count: int) -> None:
    d = Driver().ready()
    d.take(0)
    d.send(statuses(count))
    assert len(d.connection.output) == count
    d.take(None)
    assert len(d.frames) == 1 + count
    assert d.ask("status").answers
    assert d.finish() == 0


def _answer(d: Driver) -> None:
    d.ask("status", id_="one-more")


def _worker(d: Driver) -> None:
    d.done(listed())


def _shutdown(d: Driver) -> None:
    d.ask("shutdown", id_="one-more")


def _cut(d: Driver) -> None:
    d.send(b"x")
    d.eof()


@pytest.mark.parametrize("one_more", [_answer, _worker, _shutdown, _cut])
@pytest.mark.parametrize("room", [0, 100])
def test_frame_33_loses_the_output(one_more: Callable[[Driver], object], room: int) -> None:
    """Whoever says it, and though the oldest frame is partly written."""
    d = Driver().ready()
    d.ask("session.list")
    d.take(room)
    d.send(statuses(31))
    assert d.ask("turn.start", {}).answers == [("auto3", "invalid_params")]
    assert (len(d.connection.output), d.checker.ended) == (32, None)
    said = len(d.frames)
    one_more(d)
    assert (d.checker.ended, len(d.frames)) == ("lost", said)
    assert d.finish() == 1


def test_sixty_requests_in_one_write() -> None:
    """All are answered if the pipe takes what is written between the lines, and only the first 32 if it does not."""
    d = Driver()
    assert len(d.send(statuses(60)).answers) == 60
    d = Driver()
    d.take(0)
    assert len(d.send(statuses(60)).answers) == 32
    assert d.finish() == 1


def test_a_pipe_that_has_not_refused_is_not_full() -> None:
    """D49: what the pipe has not been offered yet does not count; once it refuses, the next frame is one too many."""
    connection = Driver(check=False).connection
    assert list(connection.receive(statuses(60), 0)) == [[]] * 60
    assert len(connection.output) == 60
    assert connection.refused(0) == []
    assert list(connection.receive(statuses(1, 60), 0)) == [[StartCleanup()]]


def test_an_event_is_taken_only_while_nothing_is_pending() -> None:
    """The 32 places are for answers, and an event's 2,000 ms begin when it can go."""
    d = Driver()
    taken = [d.connection.takes_events]
    for room in (0, 50, None):
        d.take(room)
        if room == 0:
            d.ask("status")
        taken.append(d.connection.takes_events)
    assert taken == [True, False, False, True]


# the output deadline (BOUND-27, BOUND-28)


@pytest.mark.parametrize("ms", NEAR_2000)
@pytest.mark.parametrize("progress", [False, True])
def test_the_oldest_frame_is_written_in_time_or_the_output_is_lost(ms: int, progress: bool) -> None:
    d = Driver()
    d.take(0)
    d.ask("status")
    d.wait(1_000)
    if progress:
        d.take(30)
    assert d.connection.deadline() == 2_000
    d.wait(ms - 1_000)
    assert d.checker.ended == (None if ms < 2_000 else "lost")
    assert d.finish() == (0 if ms < 2_000 else 1)


def test_each_frame_has_its_own_deadline() -> None:
    d = Driver()
    d.take(0)
    d.ask("status")
    d.wait(1_500)
    d.ask("status")
    size = len(d.steps[-2].frames[0])
    d.take(size)
    assert d.connection.deadline() == 3_500
    d.wait(1_999)
    assert d.checker.ended is None
    d.wait(1)
    assert d.checker.ended == "lost"


# the closing deadline (BOUND-29, BASE-OP-59)


def _mismatch(d: Driver) -> None:
    d.send(request("m", "status", {}, version=2))


def _request_limit(d: Driver) -> None:
    retain(d, 4_096)
    d.ask("status")


def _oversize(d: Driver) -> None:
    d.send(b"x" * 65_537)


STOPS = [Driver.eof, _cut, _shutdown, _mismatch, _request_limit, _oversize]


@pytest.mark.parametrize("ms", NEAR_2000)
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize(("left", "status"), [("run", 1), ("session", 0), ("output", 1)])
def test_the_closing_deadline(stop: Callable[[Driver], object], ms: int, left: str, status: int) -> None:
    """It ends the drain; only a run or output that is left makes it a failure (FLOW-18, FLOW-19, FLOW-21)."""
    d = Driver().ready().attach()
    if left == "run":
        d.executing()
    else:
        d.ask("session.list")
    stop(d)
    d.wait(500)
    if left == "output":  # queued late: its own deadline would come later
        d.take(0)
        d.done(listed())
    d.wait(ms - 500)
    assert d.checker.ended == (None if ms < 2_000 else "lost" if status else "drained")
    if ms >= 2_000:
        assert d.finish() == status


@pytest.mark.parametrize("stop", STOPS)
def test_nothing_left_ends_at_once(stop: Callable[[Driver], object]) -> None:
    d = Driver().ready().attach()
    stop(d)
    assert d.checker.ended == "drained"
    assert d.finish() == 0


# the cleanup wait (BOUND-30, FLOW-30)


@pytest.mark.parametrize("ms", NEAR_2000)
def test_the_cleanup_wait_begins_when_the_output_has_ended(ms: int) -> None:
    d = Driver().ready().attach().executing()
    d.eof()
    d.wait(1_900)
    d.gone()
    assert d.checker.ended == "drained"
    assert d.connection.deadline() == 3_900
    assert d.wait(ms).short() == ([] if ms < 2_000 else ["! Exit 0"])
    assert d.connection.closed is (ms >= 2_000)


def test_a_stalled_drain_uses_up_its_time_before_the_cleanup_wait_begins() -> None:
    """FLOW-31."""
    d = Driver().ready()
    d.take(0)
    d.ask("shutdown")
    assert d.wait(1_999).short() == []
    assert d.wait(1).short() == ["! StartCleanup"]
    assert d.wait(1_999).short() == []
    assert d.wait(1).short() == ["! Exit 1"]


# approvals and calls (BOUND-26, CT-118)


@pytest.mark.parametrize("ms", [59_999, 60_000, 60_001])
@pytest.mark.parametrize("ticks", [True, False], ids=["the clock is looked at first", "the answer comes first"])
@pytest.mark.parametrize("waited", [0, 1_000])
def test_an_approval_expires(ms: int, ticks: bool, waited: int) -> None:
    """Counted from the moment the worker asked, not from the one it was told (BASE-OP-176)."""
    d = Driver().ready().attach().executing()
    asked = approval(d)
    d.now += waited
    d.event(asked)
    assert d.connection.deadline() == 60_000
    d.now = ms
    early = d.wait(0).short() if ticks else []
    answer = d.ask("approval.answer", good("approval.answer", d), id_="a").short()
    if ms < 60_000:
        assert (early, answer) == ([], ["< a ok", f"! ResolveApproval 3 {APPROVAL} True"])
    else:
        assert sorted(early + answer) == [f"! ResolveApproval 3 {APPROVAL} False", "< a stale_approval"]
    assert d.wait(10_000).short() == []


@pytest.mark.parametrize("ms", [29_999, 30_000, 30_001])
@pytest.mark.parametrize("ticks", [True, False], ids=["the clock is looked at first", "the result comes first"])
def test_a_call_times_out(ms: int, ticks: bool) -> None:
    d = Driver().ready("client.tools").attach().executing()
    d.event(call(d))
    d.now = ms
    early = d.wait(0).short() if ticks else []
    answer = d.ask("client.tool.result", good("client.tool.result", d), id_="a").short()
    if ms < 30_000:
        assert (early, answer) == ([], ["< a ok", f"! ResolveCall 3 {CALL} ClientToolResultParams"])
    else:
        assert early + answer == [
            "* client.tool.cancel timeout",
            *(["< a stale_client_tool_call"] if not ticks else []),
            f"! ResolveCall 3 {CALL} timeout",
            *(["< a stale_client_tool_call"] if ticks else []),
        ]


def test_the_next_deadline_is_the_earliest() -> None:
    d = Driver().ready("client.tools").attach().executing()
    assert d.connection.deadline() is None
    d.event(approval(d))
    assert d.connection.deadline() == 60_000
    d.event(call(d))
    assert d.connection.deadline() == 30_000
    d.take(0)
    d.ask("status")
    assert d.connection.deadline() == 2_000
    d.wait(100)
    d.take(None)
    assert d.connection.deadline() == 30_000
    d.eof()
    assert d.connection.deadline() == 2_100
    d.gone()
    assert d.connection.deadline() == 2_100
