"""Puts a child through the steps of a case, and returns the transcript. It does not judge.

Marks tell the course: ``step N`` where a step begins; ``missing NAME`` and ``gave up N`` where something did not come
in time, or nothing could come any more; ``refused NAME`` where a ``start`` or ``turn`` was answered by an error;
``skipped N`` where a step could not be played, because a reference leads nowhere, a prompt is missing or the system
cannot do it. Behind the last three the rest of the steps is left out; the child's input is closed and its end awaited
like after the last step. ``killed``, ``gave up 0`` and a SIGKILL follow where it does not end. ``home N holds`` or
``home N fails: what`` is what was found of the files.

Each child has a header and a footer; the last footer's ``end`` is ``complete``, those of children before a
``restart`` say ``restart``.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final

from . import gather, processes
from .driver import Child
from .lines import again, barrier, page, page_id, sent_by
from .model import Calibration, Case, Step, Target, Transcript
from .place import Place
from .pump import KEEP_BYTES
from .stage import Stage
from .steps import StepError
from .values import DanglingError, mismatch, resolve
from .waiting import StopError

EVENTS_LAST: Final = 4
"""How many times longer than an answer an event may take, while a run is on; more if the target says so."""
AGAIN_TIMES: Final = 50
"""How often a request is sent at most because of ``retry`` or ``until``."""
AGAIN_SECONDS: Final = 0.04
SETTINGS: Final = "settings"
"""The fixture of the cases that write settings."""
CHOOSING: Final = frozenset({"MC_PROVIDER", "MC_MODEL"})
"""Variables that go before what settings say (SET-05)."""


def play(
    case: Case,
    target: Target,
    calibration: Calibration | None = None,
    keep: int = KEEP_BYTES,
    start: processes.Start = processes.start,
) -> Transcript:
    """Play a case on a child of its own in a home of its own.

    ``keep`` bounds the bytes of output that are kept of a child, ``start`` is how it is started. Raises ``OSError``
    when there is no room for a home or for one more process; whatever the child does, or whether it can be started at
    all, is in the transcript. A case that writes in the working directory, or settings into the home, gets a working
    directory of its own, whatever the target names: settings may stand there too. Nor do variables choose what such
    settings do.
    """
    own = SETTINGS in case.fixtures
    if own:
        target = replace(target, environ={key: each for key, each in target.environ.items() if key not in CHOOSING})
    writes = any(step.args.get("in") == "cwd" for step in case.steps if step.kind == "write")
    place = Place(target.home, None if own or writes else target.cwd)
    try:
        return _Play(case, target, calibration or Calibration(), place, keep, start).run()
    finally:
        place.remove()


class _Play(Stage):
    """One case on its way."""

    @cached_property
    def _handlers(self) -> Mapping[str, Callable[[Step, Child], None]]:
        return {
            "start": self._begin,
            "turn": self._begin,
            "send": self._send,
            "raw": self._send,
            "hex": self._send,
            "fill": self._send,
            "answer": self._await,
            "answers": self._await,
            "event": self._await,
            "absent": self._barrier,
            "absent_answer": self._barrier,
            "nothing": self._barrier,
            "pages": self._pages,
            "texts": lambda step, child: self._texts(step),
            "given": lambda step, child: self._given(step),
            "close": self._close,
            "signal": lambda step, child: child.signal(step.args["signal"]),
            "kill": lambda step, child: child.signal("KILL"),
            "hangup": lambda step, child: child.hang_up(),
            "pipe_bytes": self._pipe,
            "home": self.home,
            "home_has": self.home,
            "home_lacks": self.home,
            "home_same": self.home,
            "serve": lambda step, child: self.serve(step),
            "heard": self.heard,
            "reading": lambda step, child: child.read(step.args["reading"]),
            "read_bytes": lambda step, child: child.read_slowly(step.args["read_bytes"], step.args["every_ms"]),
            "exit": self._exit,
            "pause_ms": self._pause,
            "restart": self.restart,
        }

    def run(self) -> Transcript:
        """All steps, and the end."""
        try:
            for step in self.case.steps:
                try:
                    self._step(step)
                except StopError as why:
                    self.mark(*(str(mark).replace("{}", str(step.number)) for mark in why.args))
                    break
            self.finish("complete")
        finally:
            if self.child is not None:
                self.child.end()
            self.servers.close()
        return Transcript(tuple(self.records))

    def _step(self, step: Step) -> None:
        if step.kind in ("write", "delete"):
            self.file(step)
            return
        if step.kind == "listen":
            self.servers.listen(step.args["listen"])
            return
        if step.kind == "launch":
            self.launch(step)
        child = self.open()
        child.mark(f"step {step.number}")
        if step.kind in self._handlers:  # the others only compare what came
            self._handlers[step.kind](step, child)

    def _send(self, step: Step, child: Child) -> None:
        args = step.args
        child.send(self._bytes(step), args.get("pieces"), args.get("every_ms", 0), args.get("cut", ()))
        if "retry" in args or "until" in args:
            self._again(step, child)

    def _bytes(self, step: Step, time_: int = 1) -> bytes:
        try:
            return sent_by(step, self.seen.lookup, self.target.prompts, time_)
        except DanglingError as error:
            raise StopError(f"missing {error}", "skipped {}") from None
        except KeyError as error:
            raise StopError(f"missing prompt {error.args[0]}", "skipped {}") from None
        except StepError as error:
            raise StopError(f"cannot send: {error}", "skipped {}") from None

    def _again(self, step: Step, child: Child) -> None:
        """Send a request again while its answer is not what is waited for; steps then mean the last answer."""
        name: str = step.args["as"]
        for time_ in range(2, AGAIN_TIMES + 1):
            come = partial(self._unlike, step, again(name, time_ - 1))
            self.wait(partial(self._told, come), self.answer_ms(step))
            if not come():
                return
            time.sleep(AGAIN_SECONDS)
            self.seen.repeated[name] = again(name, time_)
            child.send(self._bytes(step, time_))

    def _answered(self, id_: str) -> bool:
        return self.over or self.seen.answer(id_) is not None

    @staticmethod
    def _told(come: Callable[[], bool | None]) -> bool:
        return come() is not None

    def _unlike(self, step: Step, id_: str) -> bool | None:
        """Whether the answer with that id is one to ask again behind; None while it has not come."""
        answer = self.seen.answer(id_)
        if answer is None:
            return False if self.over else None
        error = answer.get("error")
        if isinstance(error, dict) and error.get("code") in step.args.get("retry", ()):
            return True
        try:
            wanted = "until" in step.args and "result" in (answer.value or ())
            return wanted and bool(mismatch(answer.get("result"), step.args["until"], self.seen.lookup))
        except DanglingError:
            return False

    def _begin(self, step: Step, child: Child) -> None:
        """Initialize, or start a turn: whatever comes next needs its result."""
        self._send(step, child)
        patience = self.calibration.start_ms if step.kind == "start" else self.answer_ms(step)
        answer = self.find(step, patience).frames[0]
        if not isinstance(answer.get("result"), dict):
            raise StopError(f"refused {step.args.get('as', 'init')}")

    def _pipe(self, step: Step, child: Child) -> None:
        if not child.pipe_bytes(step.args["pipe_bytes"]):
            raise StopError("skipped {}")

    def _await(self, step: Step, child: Child) -> None:
        patience = self.answer_ms(step)
        if step.kind == "event" and self.seen.running:
            patience = max(patience, self.target.event_ms, EVENTS_LAST * self.calibration.answer_ms)
        if "optional" in step.args or "or_exit" in step.args:
            patience = max(patience, self.end_ms)
        self.find(step, patience)

    def _pages(self, step: Step, child: Child) -> None:
        """Ask for one page after the other."""
        name, method = step.args["as"], step.args["pages"]
        try:
            params: Any = resolve(step.args.get("params", {}), self.seen.lookup)
        except DanglingError as error:
            raise StopError(f"missing {error}", "skipped {}") from None
        for number in range(1, gather.MOST + 1):
            child.send(page(step, number, params))
            id_ = page_id(step, number)
            self.wait(partial(self._answered, id_), self.answer_ms(step))
            answer = self.seen.answer(id_)
            if answer is None:
                raise StopError(f"missing {id_}", "gave up {}")
            refusal = answer.get("error")
            if isinstance(refusal, dict) and refusal.get("code") in step.args.get("retry", ()):
                time.sleep(AGAIN_SECONDS)
                continue
            if refusal is not None:
                raise StopError(f"refused {name}")
            following = gather.following(method, params, answer.get("result"))
            if following is None:
                break
            params = following
        self.seen.find(step)

    def _texts(self, step: Step) -> None:
        self.look()
        if self.seen.find(step) is None:
            raise StopError(f"missing run of {step.args['texts']}", "skipped {}")

    def _given(self, step: Step) -> None:
        """End the case here unless a value is as it must be for the rest; the judge says so without a mark."""
        if self.seen.unmet(step):
            raise StopError

    def _barrier(self, step: Step, child: Child) -> None:
        """Ask something and wait for its answer; once the input is closed, wait for the end of output."""
        self.look()
        if not self.closed and self.seen.end is None:
            child.send(barrier(step))
        self.find(step, self.end_ms if self.closed else self.answer_ms(step))

    def _close(self, step: Step, child: Child) -> None:
        self.closed = True
        child.close_input()

    @staticmethod
    def _pause(step: Step, child: Child) -> None:
        """Let time pass, while there is a child that may use it."""
        child.wait_exit(step.args["pause_ms"] / 1000)

    def _exit(self, step: Step, child: Child) -> None:
        within: int = step.args.get("within_ms", 0)
        self.find(step, max(self.end_ms, within + self.calibration.answer_ms))
