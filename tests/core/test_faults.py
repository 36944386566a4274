"""A fault at every step of a life, then the rest of it: the end comes, with the right status, and nobody is authorized.

What each step must and must not say is the checker's to judge; here is only that each fault meets each step.
"""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.core_driver import Driver, pieces, request

from .turn import LIFE, live

STEPS = range(len(LIFE))


def breaks(d: Driver) -> int:
    d.breaks()
    return 1


def stalls(d: Driver) -> int:
    """The pipe refuses until the oldest frame has waited too long."""
    d.take(0)
    d.ask("no.such.method")
    d.wait(2_000)
    return 1


def overflows(d: Driver) -> int:
    d.take(0)
    d.send(b"".join(request(f"o{number}", "no.such.method", {}) for number in range(33)))
    return 1


def ends(d: Driver) -> int:
    d.eof()
    return 0


def ends_inside_a_frame(d: Driver) -> int:
    d.send(b'{"protocol":')
    d.eof()
    return 0


def shuts_down(d: Driver) -> int:
    d.ask("shutdown")
    return 0


def speaks_another_version(d: Driver) -> int:
    d.send(request("v", "status", {}, version=2))
    return 0


def writes_too_much(d: Driver) -> int:
    d.send(b"x" * 70_000)
    return 0


FAULTS = [
    breaks,
    stalls,
    overflows,
    ends,
    ends_inside_a_frame,
    shuts_down,
    speaks_another_version,
    writes_too_much,
]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", STEPS, ids=LIFE)
def test_a_fault_before_each_step(step: int, fault: Callable[[Driver], int]) -> None:
    d = live(Driver(), 0, step)
    stopped = d.connection.facts.startup.job and not d.connection.listening
    status = fault(d)
    allowed = _allowed(d)
    for number in range(step, len(LIFE) - 1):
        if number > step or list(LIFE)[number] not in ("initialize", "create", "turn.start", "page"):
            live(d, number, number + 1)
    assert _allowed(d) == allowed, "nobody is authorized behind the end"
    assert d.finish() == (0 if stopped else status)
    assert d.connection.closed


def _allowed(d: Driver) -> int:
    resolved = [command for step in d.steps for command in step.commands if command.name == "ResolveApproval"]
    return sum(command.fields["allow"] for command in resolved)


@pytest.mark.parametrize("step", STEPS, ids=LIFE)
def test_a_worker_dies_before_each_step(step: int) -> None:
    """Whoever is on leaves without a word; the rest of the life is late, or answered by a code."""
    d = live(Driver(), 0, step)
    for job in [number for number, job in d.checker.jobs.items() if job.on]:
        d.gone(job)
    live(d, step)
    assert d.connection.closed or d.finish() == 0


LINES = b"".join(
    (
        *(request(f"q{number}", method, {}) for number, method in enumerate(("status", "session.create", "no.such"))),
        *(b"garbage\n", b"\r\n", b"[" * 40 + b"\n", request("q0", "status", {})),
        *(request("q9", "shutdown", []), request("q10", "session.list", {}), request("q11", "status", {})),
        request("q12", "shutdown", {}),
        *(request("q13", "status", {}), b"the rest of a line"),
    )
)


@given(st.lists(st.integers(0, len(LINES)), max_size=30))
def test_how_the_bytes_are_cut_changes_nothing(cuts: list[int]) -> None:
    """Up to the end of input, which comes inside a line that nobody reads any more (D46)."""
    ways = []
    for places in ([], cuts):
        d = Driver().ready()
        for piece in pieces(LINES, places):
            d.send(piece)
        d.eof()
        ways.append((d.frames, [command for step in d.steps for command in step.commands]))
    assert ways[0] == ways[1]
    assert len(ways[0][0]) == 11


@pytest.mark.parametrize("step", range(len(LIFE) - 6), ids=list(LIFE)[:-6])
@pytest.mark.parametrize("room", [0, 1, 700])
def test_a_slow_pipe_changes_nothing(step: int, room: int) -> None:
    """The pipe refuses from some step on and takes everything a second later: the same bytes, in order."""
    d = live(Driver(), 0, step)
    d.take(room)
    live(d, step, step + 4)
    d.wait(1_000)
    d.take(None)
    live(d, step + 4)
    assert d.checker.status == 0
    assert d.frames == live(Driver()).frames
