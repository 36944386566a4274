"""Where a case is played: its children, one after the other, their homes, the servers they may call, the records.

What marks are made here says :mod:`.play`.
"""

import sys
from errno import EAGAIN, EMFILE, ENFILE, ENOMEM
from os.path import abspath
from typing import Any, Final

from . import processes
from .driver import Child
from .lines import repeated
from .model import Calibration, Case, Record, Step, Target
from .place import FILE_MODE, Place, State, difference
from .pump import FAULT
from .servers import Servers, http
from .transcript import FORMAT
from .values import DanglingError, resolve_inside
from .waiting import StopError, Waiting

SERVE: Final = ["serve", "--stdio"]
"""How a command line ends that another launch can be made of."""
KILL_SECONDS: Final = 5.0
_OURS: Final = frozenset({EAGAIN, EMFILE, ENFILE, ENOMEM})
"""What the system says when it has no room for one more process: no fault of the target's."""


class Stage(Waiting):
    """The child at hand, what it lives in, and the records so far."""

    def __init__(
        self, case: Case, target: Target, calibration: Calibration, place: Place, keep: int, start: processes.Start
    ) -> None:
        super().__init__(calibration)
        self.case, self.target, self.place, self.keep, self.start = case, target, place, keep, start
        self.child: Child | None = None
        self.closed = False
        self.servers = Servers()
        self.records: list[Record] = []
        self._state: State = {}
        self._written: dict[str, bytes] = {}
        """By path in the home, what the case wrote there last."""
        self._argv = list(target.argv)
        self._streams: dict[str, str] = {}

    # children

    def open(self) -> Child:
        """The child, started when it is first needed: files may be written before. Raises ``OSError``."""
        if self.child is None:
            self._header()
            self._state = self.place.state()
            environ = {**self.target.environ, "MC_HOME": str(self.place.home)}
            program, *rest = self._argv
            argv = [abspath(program) if "/" in program else program, *rest]  # it runs in another directory
            try:
                self.child = Child(
                    argv,
                    cwd=str(self.place.cwd),
                    environ=environ,
                    first=len(self.records) + 1,
                    keep=self.keep,
                    start=self.start,
                    **self._streams,
                )
            except OSError as error:
                if error.errno in _OURS:
                    raise
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
        record = Record(len(self.records) + 1, "header", value=header)
        self.records.append(record)
        self.seen.feed([record])
        self.seen.last = record.number

    def mark(self, *texts: str) -> None:
        """Note something down, whether there is a child or not."""
        for text in texts:
            if self.child is not None:
                self.child.mark(text)
            else:
                self.records.append(Record(len(self.records) + 1, "mark", value=text))

    def finish(self, end: str) -> None:
        """Close the child's input, await its end, kill what is left, and write the footer."""
        if not self.records and self.child is None:
            try:
                self.open()
            except StopError as why:
                self.mark(str(why.args[0]))
        left, t = 0, None
        if (child := self.child) is not None:
            waited = self.closed and self.patience_over
            if not self.closed:
                child.close_input()
            if not waited and not child.exited:
                self.wait(lambda: child.exited, self.end_ms, ends=True)
            if not child.exited:
                child.mark("killed")
                child.mark("gave up 0")
                child.signal("KILL")
                child.wait_exit(KILL_SECONDS)
            left = child.end()
            t = child.now()
            self.records += child.records()
        if any(each.kind == "mark" and str(each.value).startswith(FAULT) for each in self.records):
            end = "cut"
        footer = Record(len(self.records) + 1, "footer", t, value={"end": end, "left": left})
        self.records.append(footer)

    def restart(self, step: Step, child: Child) -> None:
        """End the child, and start another one."""
        self.finish("restart")
        self._argv, self._streams = list(self.target.argv), {}
        if "cwd" in step.args:
            self.place.move()
        if "home" in step.args:
            self.place.renew()
        self.child, self.closed, self.fed, self.patience_over = None, False, 0, False
        self.seen.restart()
        self.open().mark(f"step {step.number}")

    def launch(self, step: Step) -> None:
        """Have the child started with other arguments behind ``serve``, or other streams."""
        how: dict[str, Any] = step.args["launch"]
        if {"args", "add"} & set(how):
            if self._argv[-len(SERVE) :] != SERVE:
                self.open()
                raise StopError("skipped {}")
            self._argv = [*self._argv[:-1], *how.get("args", SERVE[1:]), *how.get("add", ())]
        self._streams = {key: how[key] for key in ("stdin", "stdout") if key in how}

    # files and servers

    def file(self, step: Step) -> None:
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
            self._written[path] = data

    def home(self, step: Step, child: Child) -> None:
        """Look at the files, and note what was found."""
        if step.kind == "home":
            wrong = difference(self._state, self.place.state())
        elif step.kind == "home_same":
            path: str = step.args["home_same"]
            wrong = "" if self.place.read(path) == self._written[path] else f"{path} is another, or gone"
        else:
            tops = {path.partition("/")[2] for path in self._state}  # what the child found is not its doing
            there = self.place.has(step.args[step.kind])
            made = [each for each in there if each not in tops]
            if "new" in step.args and there and not made:
                return  # whether the child would have made it nobody can see
            found = made if step.kind == "home_lacks" or "new" in step.args else there
            lacks = step.kind == "home_lacks"
            wrong = ", ".join(found) if lacks else "" if found else f"no {step.args[step.kind]}"
        child.mark(f"home {step.number} " + (f"fails: {wrong}" if wrong else "holds"))

    def serve(self, step: Step) -> None:
        """Answer the next caller of a server, or hold it."""
        args = step.args
        body = repeated(args.get("text", "").encode(), args.get("count", 1))
        body = args.get("head", "").encode() + body + args.get("tail", "").encode()
        said = None if "hold" in args else http(args.get("status", 200), body)
        if not self.servers.serve(args["serve"], said, self.answer_ms(step)) and "optional" not in args:
            raise StopError(f"nobody called {args['serve']}", "skipped {}")

    def heard(self, step: Step, child: Child) -> None:
        """Count the callers of a server, and note what was found."""
        calls = self.servers.heard(step.args["heard"])
        good = step.args.get("least", 0) <= len(calls) <= step.args.get("most", len(calls))
        child.mark(f"heard {step.number} " + ("holds" if good else f"fails: {len(calls)} requests {calls[:3]}"))
