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

import sys
import time
from collections.abc import Callable
from functools import partial
from os.path import abspath
from typing import Any, Final

from . import gather, processes
from .driver import Child
from .lines import again, barrier, page, page_id, repeated, sent_by
from .model import Calibration, Case, Record, Step, Target, Transcript
from .place import FILE_MODE, Place, State, difference
from .pump import FAULT, KEEP_BYTES
from .servers import Servers, http
from .steps import StepError
from .transcript import FORMAT
from .values import DanglingError, mismatch, resolve, resolve_inside
from .waiting import StopError, Waiting

EVENTS_LAST: Final = 4
"""How many times longer than an answer an event may take, while a run is on."""
AGAIN_TIMES: Final = 50
"""How often a request is sent at most because of ``retry`` or ``until``."""
AGAIN_SECONDS: Final = 0.04
SERVE: Final = ["serve", "--stdio"]
"""How a command line ends that another launch can be made of."""
KILL_SECONDS: Final = 5.0


def play(
    case: Case,
    target: Target,
    calibration: Calibration | None = None,
    keep: int = KEEP_BYTES,
    start: processes.Start = processes.start,
) -> Transcript:
    """Play a case on a child of its own in a home of its own.

    ``keep`` bounds the bytes of output that are kept of a child, ``start`` is how it is started. Raises ``OSError``
    when there is no room for a home; whatever the child does, or whether it can be started at all, is in the
    transcript. A case that writes in the working directory gets one of its own, whatever the target names.
    """
    writes = any(step.args.get("in") == "cwd" for step in case.steps if step.kind == "write")
    place = Place(target.home, None if writes else target.cwd)
    try:
        return _Play(case, target, calibration or Calibration(), place, keep, start).run()
    finally:
        place.remove()


class _Play(Waiting):
    """One case on its way."""

    def __init__(
        self, case: Case, target: Target, calibration: Calibration, place: Place, keep: int, start: processes.Start
    ) -> None:
        super().__init__(calibration)
        self.case, self.target, self.place, self.keep, self.start = case, target, place, keep, start
        self.child: Child | None = None
        self.closed = False
        self.servers = Servers()
        self._records: list[Record] = []
        self._state: State = {}
        self._argv = list(target.argv)
        self._streams: dict[str, str] = {}
        self._handlers: dict[str, Callable[[Step, Child], None]] = {
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
            "close": self._close,
            "signal": lambda step, child: child.signal(step.args["signal"]),
            "kill": lambda step, child: child.signal("KILL"),
            "hangup": lambda step, child: child.hang_up(),
            "pipe_bytes": self._pipe,
            "home": self._home,
            "home_has": self._home,
            "home_lacks": self._home,
            "serve": lambda step, child: self._serve(step),
            "heard": self._heard,
            "reading": lambda step, child: child.read(step.args["reading"]),
            "read_bytes": lambda step, child: child.read_slowly(step.args["read_bytes"], step.args["every_ms"]),
            "exit": self._exit,
            "pause_ms": lambda step, child: time.sleep(step.args["pause_ms"] / 1000),
            "restart": self._restart,
        }

    def run(self) -> Transcript:
        """All steps, and the end."""
        try:
            for step in self.case.steps:
                try:
                    self._step(step)
                except StopError as why:
                    self._mark(*(str(mark).replace("{}", str(step.number)) for mark in why.args))
                    break
            self._finish("complete")
        finally:
            if self.child is not None:
                self.child.end()
            self.servers.close()
        return Transcript(tuple(self._records))

    def _step(self, step: Step) -> None:
        if step.kind in ("write", "delete"):
            self._file(step)
            return
        if step.kind == "listen":
            self.servers.listen(step.args["listen"])
            return
        if step.kind == "launch":
            self._launch(step)
        child = self.open()
        child.mark(f"step {step.number}")
        if step.kind in self._handlers:  # the others only compare what came
            self._handlers[step.kind](step, child)

    def _launch(self, step: Step) -> None:
        """Have the child started with other arguments behind ``serve``, or other streams."""
        how: dict[str, Any] = step.args["launch"]
        if {"args", "add"} & set(how):
            if self._argv[-len(SERVE) :] != SERVE:
                self.open()
                raise StopError("skipped {}")
            self._argv = [*self._argv[:-1], *how.get("args", SERVE[1:]), *how.get("add", ())]
        self._streams = {key: how[key] for key in ("stdin", "stdout") if key in how}

    def _file(self, step: Step) -> None:
        """Change the home; the child may not run yet."""
        try:
            path = resolve_inside(step.args[step.kind], self.seen.lookup)
            text = resolve_inside(step.args.get("text", ""), self.seen.lookup)
        except DanglingError as error:
            raise StopError(f"missing {error}", "skipped {}") from None
        if step.kind == "delete":
            self.place.delete(path)
        else:
            args = step.args
            data = bytes.fromhex(args["hex"]) if "hex" in args else self.place.filled(text, self.servers.ports).encode()
            data = repeated(data, args.get("count", 1))
            self.place.write(path, data, args.get("mode", FILE_MODE), args.get("in", "home"))

    # the child

    def open(self) -> Child:
        """The child, started when it is first needed: files may be written before."""
        if self.child is None:
            self._header()
            self._state = self.place.state()
            environ = {"MC_HOME": str(self.place.home), **self.target.environ}
            program, *rest = self._argv
            argv = [abspath(program) if "/" in program else program, *rest]  # it runs in another directory
            try:
                self.child = Child(
                    argv,
                    cwd=str(self.place.cwd),
                    environ=environ,
                    first=len(self._records) + 1,
                    keep=self.keep,
                    start=self.start,
                    **self._streams,
                )
            except OSError as error:
                raise StopError(f"never started: {error.strerror or error}", "gave up {}") from None
        return self.child

    def _header(self) -> None:
        measured = self.calibration
        header = {
            "transcript": FORMAT,
            "case": self.case.id,
            "argv": self._argv,
            "platform": sys.platform,
            "limits_ms": {
                "answer": measured.answer_ms,
                "start": measured.start_ms,
                "margin": measured.margin_ms,
                "end": self.end_ms,
            },
            "capabilities": sorted(self.target.capabilities),
            "prompts": sorted(self.target.prompts),
            "fixtures": sorted(self.target.fixtures),
        }
        record = Record(len(self._records) + 1, "header", value=header)
        self._records.append(record)
        self.seen.feed([record])
        self.seen.last = record.number

    def _mark(self, *texts: str) -> None:
        for text in texts:
            if self.child is not None:
                self.child.mark(text)
            else:
                self._records.append(Record(len(self._records) + 1, "mark", value=text))

    def _finish(self, end: str) -> None:
        """Close the child's input, await its end, kill what is left, and write the footer."""
        if not self._records and self.child is None:
            try:
                self.open()
            except StopError as why:
                self._mark(str(why.args[0]))
        left, t = 0, None
        if (child := self.child) is not None:
            waited = self.closed and self.patience_over
            if not self.closed:
                child.close_input()
            if not waited and not child.exited:
                self.wait(lambda: child.exited, self.end_ms)
            if not child.exited:
                child.mark("killed")
                child.mark("gave up 0")
                child.signal("KILL")
                child.wait_exit(KILL_SECONDS)
            left = child.end()
            t = child.now()
            self._records += child.records()
        if any(each.kind == "mark" and str(each.value).startswith(FAULT) for each in self._records):
            end = "cut"
        footer = Record(len(self._records) + 1, "footer", t, value={"end": end, "left": left})
        self._records.append(footer)

    def _restart(self, step: Step, child: Child) -> None:
        self._finish("restart")
        self._argv, self._streams = list(self.target.argv), {}
        if "cwd" in step.args:
            self.place.move()
        if "home" in step.args:
            self.place.renew()
        self.child, self.closed, self.fed, self.patience_over = None, False, 0, False
        self.seen.restart()
        self.open().mark(f"step {step.number}")

    # steps

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

    def _home(self, step: Step, child: Child) -> None:
        """Look at the files, and note what was found."""
        if step.kind == "home":
            wrong = difference(self._state, self.place.state())
        else:
            tops = {path.partition("/")[2] for path in self._state}  # what the child found is not its doing
            found = [
                each for each in self.place.has(step.args[step.kind]) if each not in tops or step.kind == "home_has"
            ]
            lacks = step.kind == "home_lacks"
            wrong = ", ".join(found) if lacks else "" if found else f"no {step.args[step.kind]}"
        child.mark(f"home {step.number} " + (f"fails: {wrong}" if wrong else "holds"))

    def _serve(self, step: Step) -> None:
        """Answer the next caller of a server, or hold it."""
        args = step.args
        body = repeated(args.get("text", "").encode(), args.get("count", 1))
        body = args.get("head", "").encode() + body + args.get("tail", "").encode()
        said = None if "hold" in args else http(args.get("status", 200), body)
        if not self.servers.serve(args["serve"], said, self.answer_ms(step)) and "optional" not in args:
            raise StopError(f"nobody called {args['serve']}", "skipped {}")

    def _heard(self, step: Step, child: Child) -> None:
        """Count the callers of a server, and note what was found."""
        calls = self.servers.heard(step.args["heard"])
        good = step.args.get("least", 0) <= len(calls) <= step.args.get("most", len(calls))
        child.mark(f"heard {step.number} " + ("holds" if good else f"fails: {len(calls)} requests {calls[:3]}"))

    def _await(self, step: Step, child: Child) -> None:
        patience = self.answer_ms(step)
        if step.kind == "event" and self.seen.running:
            patience = max(patience, EVENTS_LAST * self.calibration.answer_ms)
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

    def _barrier(self, step: Step, child: Child) -> None:
        """Ask something and wait for its answer; once the input is closed, wait for the end of output."""
        self.look()
        if not self.closed and self.seen.end is None:
            child.send(barrier(step))
        self.find(step, self.end_ms if self.closed else self.answer_ms(step))

    def _close(self, step: Step, child: Child) -> None:
        self.closed = True
        child.close_input()

    def _exit(self, step: Step, child: Child) -> None:
        within: int = step.args.get("within_ms", 0)
        self.find(step, max(self.end_ms, within + self.calibration.answer_ms))
