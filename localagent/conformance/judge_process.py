"""Process checks: how a child ended, and what it left behind. Pure.

The status is judged by what led there (D40 to D50): 0 when a client that closed, shut down or broke the protocol was
served to the end, 1 when output was lost or the closing deadline passed with work left, 2 for a launch that was
invalid. What we killed is not judged, nor what was asked by a signal to end.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from localagent.conformance.judge_lines import FATAL, STOPS, Child, Item, rest_of_output, words
from localagent.conformance.judge_trace import DEADLINE_MS, Trace
from localagent.conformance.model import Blame, CheckResult, Reason, Verdict

MARGIN_MS: Final = 1_000.0
"""How far a measured time may lie beyond a deadline, where the transcript does not say."""
PENDING: Final = 32
"""Frames of output that may wait (BOUND-22); more requests than that under way may overflow it (D49)."""

EXIT: Final = ("FLOW-20",)
CLOSES: Final = {"protocol_mismatch": "ENV-09", "request_limit": "ENV-55", "frame_too_large": "FRAME-21"}
"""Code -> the clause that has the backend close behind it."""
CHECKS: Final = {
    "process/exit": ("FLOW-20", "FLOW-17", "FLOW-18", "FLOW-19", "SHUT-11", "ERR-05", *CLOSES.values()),
    "process/prompt-exit": ("BOUND-29", "BOUND-30", "SHUT-13"),
    "process/quiet": ("FLOW-09",),
    "process/whole-frames": ("FRAME-04",),
    "process/no-output-before-input": ("FRAME-07", "FRAME-08"),
    "process/no-output-after-exit": ("FRAME-06",),
    "process/left-over": ("SHUT-12",),
}
"""Every process check, with all clauses that it can show."""


@dataclass(frozen=True, slots=True)
class Course:
    """How a child's life went: what ended the connection and when, and what became of the process."""

    child: Child
    trace: Trace
    shut: Item | None
    """The result of ``shutdown``."""
    fatal: Item | None
    closed: Item | None
    status: int | None
    gone: float | None
    """When it exited."""
    record: int | None
    killed: bool
    """By us, with SIGKILL."""
    asked: bool
    """By another signal to end."""
    since: float | None
    """When the first reason to stop was sent, or seen."""

    @property
    def stopped(self) -> bool:
        """There was a reason to end."""
        return bool(self.shut or self.fatal or self.closed)

    @property
    def waited(self) -> float | None:
        """Milliseconds from the first reason to stop to the exit."""
        known = self.child.ours and self.since is not None and self.gone is not None
        return self.gone - self.since if known and self.gone is not None and self.since is not None else None

    @property
    def by_itself(self) -> bool:
        """It ended while its input was still open."""
        return self.closed is None or (self.record is not None and self.closed.record > self.record)


def course(child: Child, trace: Trace) -> Course:
    """Read the course of a child from its transcript."""
    asked = {each.name: each for each in child.client if each.frame.get("method") == "shutdown"}
    answers = [each for each in child.backend if each.answers]
    shut = next((each for each in answers if each.name in asked and "result" in each.frame), None)
    fatal = next((each for each in answers if each.code in FATAL), None)
    closed = next((each for each in child.seen if each.kind == "closed"), None)
    if closed and child.broken and child.broken.number < closed.record:
        closed = None  # the child closed it, or had gone
    end = child.first("exit")
    signals = [words(each.value) for each in child.signals if end is None or each.number < end.number]
    begun = [each.t for each in (asked[shut.name] if shut else None, fatal, closed) if each and each.t is not None]
    return Course(
        child,
        trace,
        shut,
        fatal,
        closed,
        status=end.value if end else None,
        gone=end.t if end else None,
        record=end.number if end else None,
        killed="SIGKILL" in signals,
        asked=bool(STOPS & set(signals)),
        since=min(begun, default=None),
    )


def margin(child: Child) -> float:
    """How far a time may lie beyond a deadline here."""
    header = child.first("header")
    limits = header.value.get("limits_ms") if header else None
    told = limits.get("margin") if isinstance(limits, dict) else None
    return max(MARGIN_MS, float(told)) if isinstance(told, int | float) else MARGIN_MS


def process_checks(course: Course, *, own_exit: bool) -> Iterator[CheckResult]:
    """All process checks of one child; ``own_exit``: the case judges the status itself."""
    yield _exit(course, own_exit=own_exit)
    yield _prompt(course)
    yield _quiet(course)
    yield from _output(course)
    yield _left_over(course)


def _result(check: str, clauses: tuple[str, ...], verdict: Verdict, what: str = "", **more: object) -> CheckResult:
    return CheckResult(f"process/{check}", clauses, verdict, what, **more)  # type: ignore[arg-type]


def _unexercised(check: str, what: str, reason: Reason = "not-reached", record: int | None = None) -> CheckResult:
    clauses = CHECKS[f"process/{check}"]
    return CheckResult(f"process/{check}", clauses, Verdict.NOT_EXERCISED, what, record=record, reason=reason)


def _untimed(c: Course, check: str) -> CheckResult:
    """Times of a recording that is not ours are not used: whether they are milliseconds, and whose, nobody says."""
    if c.status is None:
        return _unexercised(check, "how it ended was not recorded")
    if c.child.ours or not c.child.timed or c.gone is None:
        return _unexercised(check, "no times", "no-times")
    return _unexercised(check, "times of a recording that is not ours", "foreign-times")


def _exit(c: Course, *, own_exit: bool) -> CheckResult:
    if c.killed:
        return _killed(c)
    if c.status is None:
        return _unexercised("exit", "how it ended was not recorded")
    if c.asked:
        what = f"asked by a signal to end, it exited with status {c.status}"
        return _result("exit", ("D50",), Verdict.RECORDED, what, record=c.record)
    found = _status_fault(c)
    if found is None:
        return _result("exit", _shown(c), Verdict.HELD, f"exit status {c.status}", record=c.record)
    if own_exit:
        return _result("exit", EXIT, Verdict.RECORDED, f"exit status {c.status}: the case judges it", record=c.record)
    clauses, what, blame = found
    return _result("exit", clauses, Verdict.VIOLATED, what, blame=blame, record=c.record)


def _killed(c: Course) -> CheckResult:
    """We killed it: because it had not ended in time, or because the case wanted it so."""
    kill = next(each for each in c.child.signals if each.value == "SIGKILL")
    stopped = [words(each.value) for each in c.child.signals][-1:] == ["SIGSTOP"]
    waited = kill.t - c.since if kill.t is not None and c.since is not None else 0.0
    if stopped or 0 not in c.child.given_up or waited < 2 * DEADLINE_MS + margin(c.child):
        return _unexercised("exit", "it was killed by the driver", record=kill.number)
    what = f"still running {waited:.0f} ms after it was to end"
    return _result("exit", ("FLOW-17", "FLOW-20"), Verdict.VIOLATED, what, blame=Blame.LATE, record=kill.number)


def _shown(c: Course) -> tuple[str, ...]:
    """The clauses that a right status shows."""
    if c.status == 1:
        ran = any("run.finished" in each for each in c.trace.left)
        return ("D41",) if _lossy(c) else ("FLOW-19",) if ran else ("FLOW-18",)
    if c.status != 0:
        return ("START-09",)
    shown = [*EXIT]
    shown += ["SHUT-11"] if c.shut else []
    shown += ["FLOW-17"] if c.closed and not c.by_itself else []
    shown += [CLOSES[c.fatal.code], "ERR-05"] if c.fatal and c.by_itself else []
    return tuple(shown)


def _status_fault(c: Course) -> tuple[tuple[str, ...], str, Blame] | None:
    """What is wrong with the status: clauses, in words, whose fault. None if it is right."""
    status, child = c.status, c.child
    if status is None:
        return None
    silent = not child.backend and not rest_of_output(child)
    if status < 0:
        return EXIT, f"it died of signal {-status}", Blame.CRASHED
    if status not in (0, 1):
        blame = Blame.NEVER_STARTED if silent else Blame.CRASHED
        return EXIT, f"exit status {status} is none of a served connection", blame
    if not c.stopped and child.ours and not _lossy(c):
        blame = Blame.NEVER_STARTED if silent else Blame.CRASHED
        return EXIT, f"it ended by itself, with status {status}", blame
    if status == 0:
        fault = c.trace.exit_fault
        return (("FLOW-19", "FLOW-18"), fault.what, Blame.WRONG) if fault and not child.unread else None
    if _lossy(c) or not child.ours:
        return None
    waited = c.waited
    late = waited is None or waited >= DEADLINE_MS - 50  # our clock may have started a little later
    if c.trace.left and late:
        return None
    left = "nothing was left to do" if not c.trace.left else f"only {waited:.0f} ms had passed"
    return EXIT, f"exit status 1, although no output was lost and {left}", Blame.WRONG


def _lossy(c: Course) -> bool:
    """Output may have been lost: it was not read, or more answers were due at once than may wait."""
    return c.child.unread or _most_pending(c.child) > PENDING


def _most_pending(child: Child) -> int:
    """The most requests that were under way at once."""
    pending, most = 0, 0
    for each in child.seen:
        if each.kind == "client":
            pending += 1
        elif each.answers:
            pending -= 1
        most = max(most, pending)
    return most


def _prompt(c: Course) -> CheckResult:
    """Two waits bound the end: draining, and cleanup."""
    if c.status is None or c.killed or c.asked or c.child.signals:
        return _unexercised("prompt-exit", "it did not end by itself")
    if c.waited is None:
        return _unexercised("prompt-exit", "it had no reason to end") if not c.stopped else _untimed(c, "prompt-exit")
    clauses, most = CHECKS["process/prompt-exit"], 2 * DEADLINE_MS + margin(c.child)
    if c.waited > most:
        what = f"it took {c.waited:.0f} ms to end"
        return _result("prompt-exit", clauses, Verdict.VIOLATED, what, blame=Blame.LATE, record=c.record)
    return _result("prompt-exit", clauses, Verdict.HELD, f"{c.waited:.0f} ms", record=c.record)


def _quiet(c: Course) -> CheckResult:
    """After a failure of the transport nothing is said about it on stderr. What a program says else, nobody can tell
    from that; where output need not have been lost, words are noted down and no more.
    """
    if c.status != 1 or c.asked or c.killed or not c.child.ours:
        return _unexercised("quiet", "the transport did not fail")
    if said := c.child.last_words():
        what = f"on stderr: {words(said.value)[:120]!r}"
        if not _lossy(c):
            return _result("quiet", ("FLOW-09",), Verdict.RECORDED, what, record=said.number)
        return _result("quiet", ("FLOW-09",), Verdict.VIOLATED, what, blame=Blame.WRONG, record=said.number)
    return _result("quiet", ("FLOW-09",), Verdict.HELD, record=c.record)


def _output(c: Course) -> Iterator[CheckResult]:
    """Output is whole frames, from the first input to the exit."""
    output = [each for each in c.child.records if each.kind == "backend"]
    cut = rest_of_output(c.child)
    if not output:
        yield _unexercised("whole-frames", "no output")
        yield _unexercised("no-output-before-input", "no output")
    else:
        last = output[-1].number
        if not cut:
            yield _result("whole-frames", ("FRAME-04",), Verdict.HELD)
        elif c.killed or c.asked or c.child.unread or c.status is None or c.status < 0:
            yield _unexercised("whole-frames", "the last frame was cut by the end", record=last)
        else:
            what = f"the last {len(cut)} bytes of output have no LF"
            yield _result("whole-frames", ("FRAME-04",), Verdict.VIOLATED, what, blame=Blame.WRONG, record=last)
        yield _no_banner(c.child, output[0].number)
    yield _after_exit(c, [each.t for each in output if each.t is not None])


def _no_banner(child: Child, first: int) -> CheckResult:
    clauses = CHECKS["process/no-output-before-input"]
    begun = next((each.kind for each in child.seen), "backend")
    if child.middle:
        return _unexercised("no-output-before-input", "the recording begins in the middle")
    if begun != "backend":
        return _result("no-output-before-input", clauses, Verdict.HELD)
    what = "output before anything was sent"
    return _result("no-output-before-input", clauses, Verdict.VIOLATED, what, blame=Blame.WRONG, record=first)


def _after_exit(c: Course, times: list[float]) -> CheckResult:
    """What a process that was left behind still writes. The pumps may read a little behind the exit, on a busy host a
    little more.
    """
    if c.gone is None or not c.child.ours:
        return _untimed(c, "no-output-after-exit")
    late = next((each for each in c.child.backend if each.t is not None and each.t > c.gone + MARGIN_MS), None)
    if late is None or c.child.unread:
        return _result("no-output-after-exit", ("FRAME-06",), Verdict.HELD, record=c.record)
    what = f"output {max(times) - c.gone:.0f} ms after the exit"
    return _result("no-output-after-exit", ("FRAME-06",), Verdict.VIOLATED, what, blame=Blame.LATE, record=late.record)


def _left_over(c: Course) -> CheckResult:
    """What of its group was still there a while after it: a busy host may need that while to end it."""
    footer = next((each for each in reversed(c.child.records) if each.kind == "footer"), None)
    left = footer.value.get("left") if footer else None
    if not isinstance(left, int) or c.killed or c.status is None:
        return _unexercised("left-over", "what was left is not known")
    assert footer is not None
    detached = c.waited is not None and c.waited >= DEADLINE_MS - 50  # slow teardown may be left to the exit (BOUND-31)
    if left and c.status in (0, 1) and not c.asked and not detached:
        what = f"{left} processes of its group outlived it"
        return _result("left-over", ("SHUT-12",), Verdict.VIOLATED, what, blame=Blame.LATE, record=footer.number)
    verdict = Verdict.RECORDED if left else Verdict.HELD
    return _result("left-over", ("SHUT-12",), verdict, f"{left} left", record=footer.number)
