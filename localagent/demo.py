"""The demonstration: a real backend over real pipes, every frame with the transition that it explains.

A whole conversation in a temporary home: a turn with a tool that asks for permission, streaming text, history, a
cancelled turn, the session opened again by a second child, and the store listed. What is printed beside a frame comes
from the observer, which knows only what crossed the pipes; what frames cannot show is marked as inferred.
"""

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TextIO

from localagent.observe import decode as decode_line
from localagent.observe import to_data
from localagent.protocol.names import CAPABILITIES
from statemachines.observe import Explanation, Observer, Source, Step
from statemachines.registry import MACHINES
from statemachines.step import machine_of

PAUSE_SECONDS: Final = 0.35
"""Between two frames with ``--slow``."""

_STILL_TO_COME: Final = "NEG-02"
"""The clause that asks for all sixteen capabilities. What is missing is said once, at the end."""

_ROWS: Final = sum(len(spec.rows) for spec in MACHINES.values())


class Printer:
    """Shows explanations as they come, for people or as JSON lines."""

    def __init__(self, out: TextIO, *, as_json: bool, slow: bool) -> None:
        self._out, self._json, self._slow = out, as_json, slow
        self._colour = not as_json and out.isatty() and not os.environ.get("NO_COLOR")
        self.taken: set[tuple[str, str, str]] = set()
        self.counts: Counter[str] = Counter()
        self.findings = 0
        self.missing: list[str] = []
        """Capabilities that the contract has and this backend not yet."""

    def title(self, text: str) -> None:
        """A heading between two parts of the conversation."""
        if not self._json:
            self._write(f"\n{self._paint(text, '1')}\n")

    def show(self, child: int, explanation: Explanation, frame: Any) -> None:
        """One frame and what it explains."""
        known = [finding for finding in explanation.findings if _STILL_TO_COME in finding.clauses]
        explanation = replace(explanation, findings=tuple(each for each in explanation.findings if each not in known))
        self.findings += len(explanation.findings)
        if known:
            served = set(frame["result"]["capabilities"])
            self.missing = [name for name in CAPABILITIES if name not in served]
        for step in explanation.steps:
            self.taken.add((machine_of(step.instance), step.source.name, step.input.name))
        if self._json:
            self._write(json.dumps({"child": child, **to_data(explanation), "line": frame}, ensure_ascii=False) + "\n")
        else:
            for line in self._lines(explanation):
                self._write(line + "\n")
        if self._slow:
            time.sleep(PAUSE_SECONDS)

    def close(self, seconds: float) -> None:
        """The table at the end."""
        summary = {
            "requests": self.counts["requests"],
            "answers": self.counts["answers"],
            "events": self.counts["events"],
            "transitions taken": len(self.taken),
            "transitions that exist": _ROWS,
            "findings": self.findings,
            "seconds": round(seconds, 2),
        }
        if self._json:
            self._write(json.dumps({"summary": {**summary, "not served yet": self.missing}}) + "\n")
            return
        self.title("Summary")
        for name, value in summary.items():
            self._write(f"  {name:<23} {value:>6}\n")
        if self.missing:
            self._write(f"  not served yet: {', '.join(self.missing)}\n")

    def _lines(self, explanation: Explanation) -> Iterator[str]:
        arrow, colour = {
            Source.CLIENT: (">", "36"),
            Source.BACKEND: ("<", "32"),
            Source.PROCESS: (".", "33"),
        }[explanation.source]
        head = self._paint(f"{arrow} {explanation.label[:44]:<44}", colour)
        for step in explanation.steps or (None,):
            yield f"{head}  {self._step(step)}".rstrip()
            head = " " * 46
        for finding in explanation.findings:
            yield f"{' ' * 48}{self._paint('FINDING ' + finding.what, '31')}"

    def _step(self, step: Step | None) -> str:
        if step is None:
            return ""
        name, _, label = step.instance.partition(":")
        instance = f"{name}:{label[:8]}" if label else name
        moved = f"{step.source.value} -> {step.dest.value}" if step.source is not step.dest else str(step.source.value)
        text = f"{'~' if step.inferred else ' '}{instance:<19} {moved:<38} {step.input.value:<34} {step.clauses[0]}"
        return self._paint(text, "2") if step.inferred else text

    def _paint(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._colour else text

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


class Child:
    """One backend process, and the observer of what crosses."""

    def __init__(self, number: int, printer: Printer, home: Path, cwd: Path) -> None:
        self._number, self._printer = number, printer
        self._ids = itertools.count(1)
        self._observer = Observer()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "localagent", "serve", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            env={**os.environ, "MC_HOME": str(home)},
        )

    def ask(self, method: str, **params: Any) -> str:
        """Send a request; its id."""
        id_ = f"r{next(self._ids)}"
        frame = {"protocol": "magi-code.local-agent", "version": 1, "id": id_, "method": method, "params": params}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(frame).encode() + b"\n")
        self._process.stdin.flush()
        self._printer.counts["requests"] += 1
        self._printer.show(self._number, self._observer.client(frame), frame)
        return id_

    def frames(self) -> Iterator[dict[str, Any]]:
        """The backend's frames, each shown as it comes."""
        assert self._process.stdout is not None
        for text in self._process.stdout:
            value, line = decode_line(text.decode())
            self._printer.counts["events" if "event" in value else "answers"] += 1
            self._printer.show(self._number, self._observer.backend(value, line), value)
            yield value

    def until(self, wanted: str) -> dict[str, Any]:
        """Read up to the answer with this id, or the event of this name. Raises RuntimeError when the child ends."""
        for frame in self.frames():
            if wanted in (frame.get("id"), frame.get("event")):
                return frame
        raise RuntimeError(f"the backend ended before {wanted}")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and read up to its answer; the result."""
        answer = self.until(self.ask(method, **params))
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['code']}")
        result: dict[str, Any] = answer["result"]
        return result

    def shut_down(self) -> None:
        """Ask the backend to stop, read the rest, and see it exit."""
        self.call("shutdown")
        for _ in self.frames():
            pass
        self._printer.show(self._number, self._observer.exited(self._process.wait()), None)

    def kill(self) -> None:
        """Leave nothing behind."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def demo(out: TextIO, *, as_json: bool = False, slow: bool = False) -> int:
    """Play the conversation; 0 when every frame was explained, 1 otherwise."""
    printer = Printer(out, as_json=as_json, slow=slow)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="localagent-demo-") as folder:
        home, cwd = Path(folder, "home"), Path(folder, "work")
        cwd.mkdir()
        children: list[Child] = []
        try:
            children.append(Child(1, printer, home, cwd))
            session = _first(children[0], printer)
            children.append(Child(2, printer, home, cwd))
            _second(children[1], printer, session)
        finally:
            for child in children:
                child.kill()
    printer.close(time.perf_counter() - begin)
    return 1 if printer.findings else 0


def _first(child: Child, printer: Printer) -> str:
    """A new session: a turn that asks, its history, a turn that is cancelled."""
    printer.title("A child starts, and a session")
    child.call("initialize", required_capabilities=["session.create", "turn.start", "history.page", "shutdown"])
    child.call("status")
    session: str = child.call("session.create")["session_id"]

    printer.title("A turn with a tool that needs permission")
    child.ask("turn.start", session_id=session, prompt="Please sort my notes. APPROVAL")
    asked = child.until("approval.requested")["data"]
    child.ask(
        "approval.answer", session_id=session, run_id=asked["run_id"], approval_id=asked["approval_id"], allow=True
    )
    finished = child.until("run.finished")["data"]
    child.call("history.page", session_id=session, revision=finished["revision"])

    printer.title("A turn that is cancelled while it streams")
    child.ask("turn.start", session_id=session, prompt="Tell me a long story. STALL")
    delta = child.until("message.delta")["data"]
    child.ask("turn.cancel", session_id=session, run_id=delta["run_id"])
    child.until("run.finished")
    child.shut_down()
    return session


def _second(child: Child, printer: Printer, session: str) -> None:
    """The session is still there for another child."""
    printer.title("A second child opens the session again")
    child.call("initialize", required_capabilities=["session.discover"])
    revision = child.call("session.open", session_id=session)["revision"]
    child.call("history.page", session_id=session, revision=revision)

    printer.title("What sessions there are, as a snapshot and as a scan")
    child.call("session.list")
    child.call("session.discover")
    child.shut_down()
