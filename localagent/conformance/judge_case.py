"""Expectations of a case, judged from the transcript alone. Pure.

Which frame a step means says :mod:`.seen`, to the player and to the judge alike. Here is judged whether that frame is
what the step expects, whether it came in time, and whose fault it is if it did not come. The player notes ``step N``
where it begins a step, ``gave up N`` where it waited in vain, ``skipped N`` where a step could not be played; in a
transcript without such marks everything counts as played.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from localagent.conformance.frames import Frame
from localagent.conformance.judge_lines import words
from localagent.conformance.judge_outcome import Outcome, brief, failed, held, result, unreached
from localagent.conformance.judge_process import Course, margin
from localagent.conformance.lines import ids, page_id
from localagent.conformance.model import Blame, Case, CheckResult, Expectation, Reason, Record, Step, Verdict
from localagent.conformance.seen import ASKED, Found, Seen
from localagent.conformance.steps import FAILURE
from localagent.conformance.values import DanglingError, equal, lookup, mismatch, resolve


class Walk:
    """Goes through the steps of a case beside its transcript."""

    def __init__(self, case: Case, courses: list[Course]) -> None:
        self.case = case
        self.courses = courses
        self.seen = Seen()
        self.stuck = ""
        """Why nothing further can be judged in this child."""
        self.extra: list[CheckResult] = []
        """What steps without an expectation came to."""
        self._at = 0
        self._fed = 0
        """Records of this child that ``seen`` knows."""

    @property
    def course(self) -> Course:
        """The child at hand."""
        return self.courses[self._at]

    def results(self) -> Iterator[CheckResult]:
        """The verdict of every check of the case."""
        for step in self.case.steps:
            outcome = self._step(step)
            if step.expects is not None:
                yield result(step.expects, outcome)
        yield from self.extra

    def _step(self, step: Step) -> Outcome:
        if step.kind == "restart":
            self.seen.restart()
            self._at, self._fed, self.stuck = self._at + 1, 0, ""
        if self._at >= len(self.courses):
            return unreached("the child was not started again")
        if self.stuck:
            return unreached(self.stuck)
        if self._unplayed(step):
            return unreached("the step was not played", self._why)
        judge = _JUDGES.get(step.kind)
        if judge is None:
            return unreached(f"a transcript does not show {step.kind}")
        self._feed(step)
        try:
            return judge(self, _complete(step))
        except DanglingError as error:
            return unreached(f"{error} was not seen")

    def _unplayed(self, step: Step) -> bool:
        child, number = self.course.child, step.number
        left_out = number in child.skipped or any(0 < each < number for each in child.given_up)
        return left_out or (bool(child.begun) and step.kind in _PLAYED and number not in child.begun)

    @property
    def _why(self) -> Reason:
        """Some steps are skipped where the system cannot do what they ask."""
        skipped = {step.kind for step in self.case.steps if step.number in self.course.child.skipped}
        return "platform" if "pipe_bytes" in skipped else "not-reached"

    def gave_up(self, step: Step) -> Record | None:
        """The player's note that it waited for the step in vain."""
        return self.course.child.given_up.get(step.number)

    def _feed(self, step: Step) -> None:
        """Show what came before the player gave the step up, or began the next; without its notes, all there is."""
        child = self.course.child
        end = self.gave_up(step)
        known = child.over.get(step.number, len(child.records)) if end is None else child.records.index(end)
        if known > self._fed:
            self.seen.feed(child.records[self._fed : known])
            self._fed = known

    # what did not come, or not in time

    def missing(self, step: Step, what: str) -> Outcome:
        """Something did not come: whose fault is it?"""
        course, given_up = self.course, self.gave_up(step)
        if step.args.get("optional"):
            return unreached(f"{what}, which is allowed")
        late = self._late(step) if given_up is not None else None
        if late is not None:
            blame = Blame.SLOW_START if step.kind == "start" else Blame.LATE
            return failed(f"{what} in time", blame, late)
        if course.status is None and given_up is None and not course.killed:
            return unreached(f"{what}; the transcript ends before it could")
        if course.child.marked("never started"):
            return failed(what, Blame.NEVER_STARTED, given_up.number if given_up else None)
        nothing = not course.child.backend
        unasked = not (course.stopped or course.asked) or course.status not in (0, 1)
        if course.status is not None and not course.killed and not course.asked and unasked:
            blame = Blame.NEVER_STARTED if nothing else Blame.CRASHED
            return failed(f"{what}; it ended with status {course.status}", blame, course.record)
        blame = Blame.SLOW_START if nothing and step.kind == "start" else Blame.SILENT
        return failed(what, blame, given_up.number if given_up else course.record)

    def _late(self, step: Step) -> int | None:
        """The record of what came after it had been given up. Only what has a name of its own is known again."""
        if step.args.get("id") is None:
            return None
        everything = Seen()
        everything.feed(self.course.child.records)
        found = everything.answer(step.args["id"], step.args["nth"])
        return found.record if found else None

    def timely(self, step: Step, found: Found, base: float | None) -> Outcome | None:
        """What is wrong with the time of something, None if nothing is. ``base``: without ``since``."""
        args = step.args
        least, most = args.get("not_before_ms"), args.get("within_ms")
        if least is None and most is None:
            return None
        if "since" in args:
            moment = self.seen.moment(args["since"])
            base = 0.0 if args["since"] == "spawn" else moment.t if moment else None
        times = [each.t for each in found.frames if each.t is not None]
        times += [found.record.t] if found.record and found.record.t is not None else []
        if base is None or not times:
            return unreached("no times", "no-times")
        after = max(times) - base
        if most is not None and after > most + margin(self.course.child):
            return failed(f"it came after {after:.0f} ms, not within {most}", Blame.LATE, found.number)
        if least is not None and after < least:
            return failed(f"it came after {after:.0f} ms, not before {least}", Blame.WRONG, found.number)
        return None

    def sent(self, wire: str | None) -> float | None:
        """When the request of that id was sent."""
        asked = self.course.child.sent.get(wire) if wire else None
        return asked.t if asked else None

    # answers

    def start(self, step: Step) -> Outcome:
        """``initialize`` is answered with a result; nothing further is judged where it is not."""
        outcome = self.answer(step)
        if outcome[0] is Verdict.HELD and "result" in self.seen.named[ids(step)[0][0]].value:
            return outcome
        self.stuck = "the start failed"
        if step.expects is None and outcome[0] is Verdict.VIOLATED and outcome[2] is not Blame.WRONG:
            self.extra.append(result(Expectation(f"{self.case.id}/start", ("FLOW-05",)), outcome))
        return outcome

    def answer(self, step: Step) -> Outcome:
        """An answer of this id comes, and is what the step says."""
        found = self.seen.find(step)
        if found is None:
            return self.missing(step, f"no answer to {step.args['id'] or 'a line without an id'}")
        for frame in found.frames:
            wrong = self.wrong(step, frame)
            if wrong:
                return failed(wrong, Blame.WRONG, frame.record)
        return self.timely(step, found, self.sent(step.args["id"])) or held(found.number)

    def wrong(self, step: Step, frame: Frame) -> str:
        """What is wrong with an answer, empty if nothing is."""
        args, value = step.args, frame.value
        codes = args.get("error", [])
        codes = codes if isinstance(codes, list) else [codes]
        if args.get("any"):
            return ""
        if codes and any(equal(value.get("error"), {"code": code}) for code in codes):
            return ""
        if (codes and "result" not in args) or "result" not in value:
            wanted = [*codes, *(["a result"] if "result" in args or not codes else [])]
            return f"expected {' or '.join(wanted)}, got {brief(frame)}"
        return mismatch(value["result"], args.get("result", {}), self.seen.lookup, "result")

    def answers(self, step: Step) -> Outcome:
        """Answers of all these ids come, in any order or in the one given."""
        found = self.seen.find(step)
        if found is None:
            status = self.course.status
            if status is not None and status in step.args.get("or_exit", ()):
                self.stuck = f"it ended with status {status}, which is allowed"
                return held(self.course.record, self.stuck)
            wanted = zip(step.args["answers"], step.args["ids"], step.args["nths"], strict=True)
            lost = [name for name, wire, nth in wanted if self.seen.answer(wire, nth) is None]
            return self.missing(step, f"no answer to {' '.join(lost[:5])}{' ...' if len(lost) > 5 else ''}")
        order = [frame.record for frame in found.frames]
        if step.args.get("order") == "given" and order != sorted(order):
            return failed("the answers came in another order", Blame.WRONG, max(order))
        first = min((time for wire in step.args["ids"] if (time := self.sent(wire)) is not None), default=None)
        return self.timely(step, found, first) or held(found.number)

    def pages(self, step: Step) -> Outcome:
        """Every page of a snapshot comes, up to the last, and is what the step says."""
        found = self.seen.find(step)
        frames = found.frames if found else tuple(self._pages_so_far(step))
        for frame in frames:
            error = frame.get("error")
            if error is not None and (
                not isinstance(error, dict) or error.get("code") not in step.args.get("retry", ())
            ):
                return failed(f"expected a page, got {brief(frame)}", Blame.WRONG, frame.record)
            wrong = mismatch(frame.get("result"), step.args.get("result", {}), self.seen.lookup, "result")
            if error is None and wrong:
                return failed(wrong, Blame.WRONG, frame.record)
        return held(found.number) if found else self.missing(step, f"no answer to page {len(frames) + 1}")

    def _pages_so_far(self, step: Step) -> Iterator[Frame]:
        number = 1
        while (frame := self.seen.answer(page_id(step, number))) is not None:
            yield frame
            number += 1

    # events, and what must not come

    def event(self, step: Step) -> Outcome:
        """The next event of this name comes, and its data is what the step says."""
        if "run" in step.args:
            lookup(f"${step.args['run']}.result.run_id", self.seen.lookup)  # a run that was not admitted has no events
        found = self.seen.find(step)
        if found is None:
            if self._unanswered(step):
                return unreached("the run asks for an approval more than the case answers")
            return self.missing(step, f"{step.args['event']} did not come")
        wrong = mismatch(found.frames[0].get("data"), step.args.get("data", {}), self.seen.lookup, "data")
        if wrong:
            return failed(wrong, Blame.WRONG, found.number)
        late = self.timely(step, found, None) if "since" in step.args else None  # else it is but how long to wait
        return late or held(found.number)

    def _unanswered(self, step: Step) -> bool:
        """True if the run waits for an answer that neither this step nor one behind it leads to."""
        later = any(each.args.get("event") == ASKED for each in self.case.steps if each.number >= step.number)
        return not later and self.seen.unanswered(step)

    def absent(self, step: Step) -> Outcome:
        """No such event or answer, or nothing at all, came before the barrier's answer or the end."""
        since = step.args.get("since", "spawn")
        if since != "spawn" and self.seen.moment(since) is None:
            raise DanglingError(since)
        passed = self.seen.passed(step)
        found = self.seen.find(step)
        if passed:
            return failed(f"{brief(passed[0])} came", Blame.WRONG, passed[0].record)
        if found is None:
            return self.missing(step, "the status behind it was not answered")
        return held(found.number)

    # values and the end

    def texts(self, step: Step) -> Outcome:
        """Gives what a run has told so far a name."""
        return held() if self.seen.find(step) else unreached("no text of that run")

    def same(self, step: Step) -> Outcome:
        """All values are equal."""
        values = [resolve(each, self.seen.lookup) for each in step.args["same"]]
        good = all(equal(values[0], each) for each in values[1:])
        return held(self.seen.last) if good else failed(f"not the same: {values!r}", Blame.WRONG, self.seen.last)

    def differ(self, step: Step) -> Outcome:
        """All values differ from each other."""
        values = [resolve(each, self.seen.lookup) for each in step.args["differ"]]
        pairs = ((one, other) for i, one in enumerate(values) for other in values[i + 1 :])
        good = not any(equal(one, other) for one, other in pairs)
        return held(self.seen.last) if good else failed(f"not different: {values!r}", Blame.WRONG, self.seen.last)

    def match(self, step: Step) -> Outcome:
        """A value matches a pattern."""
        reference = step.args["match"]
        value = lookup(reference, self.seen.lookup)
        wrong = mismatch(value, step.args["pattern"], self.seen.lookup, reference)
        named = self.seen.named.get(reference[1:].partition(".")[0])
        record = named.record if named else None
        return failed(wrong, Blame.WRONG, record) if wrong else held(record)

    def given(self, step: Step) -> Outcome:
        """What follows is only judged where a value matches."""
        self.stuck = self.seen.unmet(step)
        return unreached(self.stuck) if self.stuck else held()

    def looked(self, step: Step) -> Outcome:
        """The player has looked into the home, or at what a server heard, and noted what it found."""
        about = f"{'heard' if step.kind == 'heard' else 'home'} {step.number} "
        for each in self.course.child.marks:
            said = words(each.value)
            if said.startswith(about):
                good = said == f"{about}holds"
                return held(each.number) if good else failed(said.removeprefix(about), Blame.WRONG, each.number)
        return unreached("nobody looked")

    def exit(self, step: Step) -> Outcome:
        """The process ends, in time, with one of these statuses."""
        course, given_up = self.course, self.gave_up(step)
        if course.killed or given_up is not None:
            return failed("it did not end", Blame.LATE, given_up.number if given_up else course.record)
        found = self.seen.find(step)
        if course.status is None or found is None:
            return unreached("the transcript ends before it did")
        wanted = step.args["exit"]
        if course.status < 1 if wanted == FAILURE else course.status not in wanted:
            wanted = wanted if wanted == FAILURE else " or ".join(map(str, wanted))
            blame = Blame.WRONG if course.status in (0, 1, 2) else Blame.CRASHED
            return failed(f"exit status {course.status}, not {wanted}", blame, course.record)
        return self.timely(step, found, self._last_end()) or self._stderr(step) or held(course.record)

    def _last_end(self) -> float | None:
        """The last thing that could make it end."""
        moments = [self.seen.moment(name) for name in ("close", "signal", "stop")]
        return max((each.t for each in moments if each is not None and each.t is not None), default=None)

    def _stderr(self, step: Step) -> Outcome | None:
        """What it has said behind the last thing that it was sent, or that was done to it."""
        said = self.course.child.last_words()
        if step.args.get("stderr") == "" and said is not None:
            return failed(f"on stderr: {words(said.value)[:120]!r}", Blame.WRONG, said.number)
        return None


_JUDGES: Final[Mapping[str, Callable[[Walk, Step], Outcome]]] = {
    "start": Walk.start,
    "turn": Walk.answer,
    "answer": Walk.answer,
    "answers": Walk.answers,
    "event": Walk.event,
    "pages": Walk.pages,
    "texts": Walk.texts,
    "absent": Walk.absent,
    "absent_answer": Walk.absent,
    "nothing": Walk.absent,
    "same": Walk.same,
    "differ": Walk.differ,
    "match": Walk.match,
    "given": Walk.given,
    "exit": Walk.exit,
    **dict.fromkeys(("home", "home_has", "home_lacks", "home_same", "heard"), Walk.looked),
}


_PLAYED: Final = frozenset(
    {"start", "turn", "answer", "answers", "event", "absent", "absent_answer", "nothing", "exit"}
)
"""Kinds that wait for something: nothing can be said of one that was not begun."""


def _complete(step: Step) -> Step:
    """The step with what the loader adds, where it was made by hand."""
    args: dict[str, Any] = {"id": None, "nth": 0, **step.args}
    if step.kind in ("start", "turn"):
        args["id"] = args["id"] or ids(step)[0][1]
    elif step.kind in ("answer", "absent_answer"):
        args["id"] = args["id"] or args[step.kind] or None
    elif step.kind == "answers":
        args.setdefault("ids", args["answers"])
        args.setdefault("nths", [0] * len(args["ids"]))
    return replace(step, args=args)
