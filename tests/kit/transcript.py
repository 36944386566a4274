"""What went in and what came out, step by step, and whether the contract allows it.

A transcript is plain data: each step is one thing given to the core of a backend, with the frames it queued and the
commands it gave. :class:`Checker` reads the steps as they come and raises ``Violation`` at the first one that the
contract does not allow. It uses neither the tables nor the core: what it believes of workers, sessions and runs
it has read off the frames and commands, as a client and a shell would.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from .reference_parser import judge
from .transcript_run import ASKS, UUID, Run, must
from .transcript_steps import Ended, Job, NextLine, Reported, Request, Said, Sent, Step, Took

MOST, IDS, PENDING, MS = 65_536, 4_096, 32, 2_000
EXIT: Final = {"drained": 0, "lost": 1}
AT_ONCE: Final = {"status", "shutdown", "turn.start", "turn.cancel", "approval.answer", "operation.cancel"}
SUCCESS: Final = {"session.create": "SessionAttached", "session.open": "SessionAttached", "selection.set": "Selected"}
"""Method -> the last word of its success; ``Read`` for all others."""


class Checker:
    """What a transcript has told so far. Feed it each step; ask :attr:`status` whether the end was reached."""

    def __init__(self) -> None:
        self.seq = 0
        self.instance: str | None = None
        self.pending: deque[tuple[bytes, float]] = deque()
        self.refusing = False
        self.asked: dict[str, Request] = {}
        self.phase = "uninitialized"
        self.attached: str | None = None
        self.jobs: dict[int, Job] = {}
        self.run: Run | None = None
        self.ended: str | None = None
        self.status: int | None = None
        self._written = 0
        self._partial = b""
        self._todo: deque[bytes | None] = deque()
        self._closing = self._cleaning = float("inf")

    @property
    def operation(self) -> Job | None:
        """The session worker that is on."""
        return next((job for job in self.jobs.values() if job.kind == "session" and job.on), None)

    @property
    def running(self) -> Run | None:
        """The run that is not finished."""
        return self.run if self.run and not self.run.finished else None

    def check(self, step: Step) -> None:
        """Judge one step and remember it."""
        must(self.status is None or not (step.frames or step.commands), "FLOW-20: nothing follows the exit")
        must(not (self.ended and step.frames), "FLOW-10: nothing is said once the output has ended")
        self._step, self._names = step, [command.name for command in step.commands]
        self._stopped, self._held = self.phase == "stopping", self.attached
        self._stored = bool(self.run and self.run.persisted)
        self._line: Request | None = None
        self._due: tuple[str | None, str] | None = None
        self._owed: Request | None = None
        self._resolved: list[tuple[str, str]] = []
        self._quiet = False
        if self.status is None:
            frames = [self._wire(frame) for frame in step.frames]
            self._given()
            for frame in frames:
                self._response(frame) if frame["type"] == "response" else self._event(frame)
            if "StartCleanup" in self._names:
                self._output_ends()
            for command in step.commands:
                _COMMANDS[command.name](self, command.fields)
            self._obligations([frame.get("event") for frame in frames])

    # the wire

    def _wire(self, frame: bytes) -> dict[str, Any]:
        self.pending.append((frame, self._step.at))
        must(len(frame) <= MOST and frame.endswith(b"\n") and frame.count(b"\n") == 1, "BOUND-02: one line")
        value: dict[str, Any] = json.loads(frame)
        written = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        must(written.encode() + b"\n" == frame, "D70: compact, keys alphabetical, UTF-8 unescaped")
        own = {"event", "data"} if value["type"] == "event" else {"id", "error" if "error" in value else "result"}
        must(set(value) == own | {"protocol", "version", "type", "instance_id", "seq"}, "ENV-15: exact keys")
        must((value["protocol"], value["version"]) == ("magi-code.local-agent", 1), "ENV-15: protocol, version")
        self.seq += 1
        must(value["seq"] == self.seq, "BASE-OP-43: seq counts all frames")
        self.instance = self.instance or value["instance_id"]
        must(value["instance_id"] == self.instance and UUID.match(self.instance), "ENV-32: one instance")
        return value

    def _took(self, data: bytes) -> None:
        while data:
            must(self.pending, "FLOW-03: the pipe takes frames, whole and in order")
            rest = self.pending[0][0][self._written :]
            must(rest.startswith(data[: len(rest)]), "FLOW-03: the pipe takes frames, whole and in order")
            self._written += min(len(data), len(rest))
            if len(data) >= len(rest):
                self.pending.popleft()
                self._written = 0
            data = data[len(rest) :]
        self.refusing &= bool(self.pending)

    # what was given

    def _given(self) -> None:
        match self._step.given:
            case Sent(data):
                self._feed(data)
            case NextLine():
                self._next()
            case Ended() if not self._stopped:
                self._due = (None, "incomplete_frame") if self._partial else None
                self._stop()
            case Said() as said:
                self._hear(said)
            case Took(data):
                self._took(data)
            case Reported("refused"):
                self.refusing = True
            case Ended():
                self._quiet = True

    def _feed(self, data: bytes) -> None:
        if self._stopped:
            self._quiet = True
            return
        *lines, self._partial = (self._partial + data).split(b"\n")
        long = next((i for i, line in enumerate((*lines, self._partial)) if len(line) > MOST), None)
        self._todo = deque(lines[:long])
        if long is not None:
            self._todo.append(None)
            self._partial = b""
        self._next()

    def _next(self) -> None:
        self._quiet = self._stopped or not self._todo
        if self._quiet:
            return
        line = self._todo.popleft()
        if line is None:
            self._due = (None, "frame_too_large")
        else:
            verdict = judge(line)
            if verdict.code is not None:
                self._due = (verdict.id, verdict.code)
            elif verdict.id in self.asked:
                self._due = (verdict.id, "duplicate_id")
            elif len(self.asked) == IDS:
                self._due = (verdict.id, "request_limit")
            else:
                read = json.loads(line)
                self._line = self.asked[read["id"]] = Request(read["id"], read["method"], read["params"])
        if self._due and self._due[1] in ("frame_too_large", "protocol_mismatch", "request_limit"):
            self._stop()

    def _stop(self) -> None:
        self.phase, self._closing = "stopping", self._step.at + MS
        if self.running and not self.running.decided:
            self.running.cancelled = True

    def _hear(self, said: Said) -> None:
        job = self.jobs.get(said.job)
        if job is None or not job.on:
            self._quiet = True
        elif job.kind == "turn":
            assert self.running is not None
            job.on = said.what != "gone"
            self.running.hear(said.what, said.name, said.fields)
        elif said.what in ("done", "gone"):
            job.on, self._owed = False, job.request
        else:
            self._quiet = True

    # frames

    def _response(self, frame: Mapping[str, Any]) -> None:
        id_, code = frame["id"], frame["error"]["code"] if "error" in frame else None
        must(code is None or set(frame["error"]) == {"code"}, "ENV-19: a code and nothing else")
        if self._due == (id_, code):
            self._due = None
            return
        request = self.asked.get(id_)
        must(self._due is None and request, f"ENV-22, ENV-23: {id_} {code} answers nothing that was read")
        assert request is not None
        must(not request.answered, f"ENV-24: {id_} is answered twice")
        request.answered, request.refused = True, code is not None
        if request is self._line:
            if code is None:
                self._result(request, frame["result"])
        elif request.method == "initialize":
            self._initialized(request, code)
        else:
            must(request is self._owed, f"ENV-24: {id_} is answered before its worker's word")
            self._operated(request, code, frame.get("result"))

    def _initialized(self, request: Request, code: str | None) -> None:
        said = self._step.given
        if request is not self._owed:
            must(self.phase == "stopping" and not self._stopped, "ENV-24: initialize is answered too early")
            must(code == "startup_cancelled", f"SHUT-09: {code} for a startup that was cancelled")
            return
        assert isinstance(said, Said)
        failure = said.fields["code"] if said.name == "StartFailed" else "startup_failed"
        must(code == (None if said.name == "Started" else failure), f"NEG-24: {code} for {said.name}")
        self.phase = "failed" if code else "ready"

    def _operated(self, request: Request, code: str | None, result: Any) -> None:
        job, said = request.job, self._step.given
        assert job is not None and isinstance(said, Said)  # noqa: PT018
        if said.name == SUCCESS.get(request.method, "Read"):
            must(code is None and result == said.fields["result"], f"ENV-24: {code} for a success")
            if said.name == "SessionAttached" and not self._stopped:
                self.attached = said.fields["session_id"]
        elif said.name == "OperationFailed":
            must(code == said.fields["code"], f"ENV-24: {code} is not what the worker said")
        else:
            left = said.name in ("OperationCancelled", "Started", "StartFailed", "TurnEnded", "")
            cancelled = left and job.cancelled  # it left with no word of a session worker's
            must(code and (code == "operation_cancelled") == cancelled, f"ERR-32: {code} for {said.name}")

    def _result(self, request: Request, result: Any) -> None:
        params, run, method = request.params, self.running, request.method
        if method == "status":
            state = "running" if run else "idle" if self.phase == "ready" else self.phase
            told = (result["state"], result["session_id"], result["run_id"])
            must(told == (state, self.attached, run.id if run else None), f"STATUS-15: {told}")
        elif method == "shutdown":
            must(result == {"state": "stopping"}, "SHUT-04")
            self._stop()
        elif method == "turn.start":
            must(self.phase == "ready" and not run and not self.operation, "TURN-14: one at a time")
            must(params["session_id"] == self.attached and UUID.match(result["run_id"]), "TURN-11, TURN-13")
            must(not self.run or self.run.id != result["run_id"], "TURN-11: a run has its own id")
            self.run = Run(result["run_id"], params["session_id"])
        elif method == "operation.cancel":
            target = self.operation
            must(target and target.request.id == params["request_id"] == result["request_id"], "EXT-CANCEL-12")
        else:
            must(method in AT_ONCE or method == "client.tool.result", f"ENV-26: {method} needs a worker")
            must(run and (params["session_id"], params["run_id"]) == (run.session_id, run.id), f"TURN-23: {method}")
            assert run is not None
            if method == "turn.cancel":
                run.cancelled |= not run.decided
                return
            key = "approval_id" if method == "approval.answer" else "call_id"
            ask = run.asks.get((key, params[key]))
            must(ask and ask.open and self._step.at < ask.expires, "APPR-04, CT-110: nothing is pending")
            request.recorded = True

    def _event(self, frame: Mapping[str, Any]) -> None:
        said = self._step.given
        must(self.run, f"EVT-45: {frame['event']} without a run")
        assert self.run is not None
        ours = said if isinstance(said, Said) and said.job == self.run.job else None
        event = (ours.name, ours.fields) if ours and ours.what == "event" else None
        self.run.event(frame["event"], frame["data"], event, bool(ours and ours.what == "gone"))

    # commands

    def _start(self, fields: Mapping[str, Any]) -> None:
        line, number, kind = self._line, fields["job"], fields["kind"]
        must(line and not line.job and self.phase != "stopping", "BOUND-35: a worker for no request")
        assert line is not None
        must(number > max(self.jobs, default=0), "a job has its own number")
        must(fields["method"] == line.method, "the worker learns its method")
        line.job = self.jobs[number] = Job(kind, line)
        if kind == "startup":
            must(line.method == "initialize" and self.phase == "uninitialized", "BOUND-34: one startup worker")
            self.phase = "starting"
            return
        others = [job for job in self.jobs.values() if job.on and job.kind != "startup" and job is not line.job]
        must(self.phase == "ready" and not others, "BOUND-35: one session or turn worker")
        must(fields["session_id"] == self.attached, "the worker learns what is attached")
        if kind == "turn":
            must(line.method == "turn.start" and line.answered and self.run, "TURN-10: answered, then started")
            assert self.run is not None
            must(fields["run_id"] == self.run.id, "TURN-11: the worker learns its run")
            self.run.job = number
        else:
            must(line.method not in AT_ONCE | {"initialize"}, f"ENV-26: {line.method} needs no session worker")

    def _cancel(self, fields: Mapping[str, Any]) -> None:
        job = self.jobs.get(fields["job"])
        must(job and job.on and not job.cancelled, "FLOW-23: a worker is cancelled once, while it works")
        assert job is not None
        asked = self._line and self._line.answered and self._line.method in ("turn.cancel", "operation.cancel")
        given_up = isinstance(self._step.given, Said) and self._step.given.what == "undeliverable"
        must(asked or given_up or self.phase == "stopping", "FLOW-23: cancelled without a cause")
        job.cancelled = True

    def _resolve(self, fields: Mapping[str, Any]) -> None:
        run, line, given = self.run, self._line, self._step.given
        must(run and fields["job"] == run.job, "APPR-03, CT-99: resolved for another run")
        assert run is not None
        key = "approval_id" if "approval_id" in fields else "call_id"
        allows = fields.get("allow") or fields.get("result") is not None
        recorded = line is not None and line.recorded and line.params.get(key) == fields[key]
        if line and recorded and key == "approval_id":
            must(allows == line.params["allow"], "APPR-03: as the client answered")
        late = isinstance(given, Said) and given.what == "event" and given.fields.get(key) == fields[key]
        run.resolve((key, fields[key]), bool(allows), recorded, late)
        self._resolved.append((key, fields[key]))

    def _release(self, fields: Mapping[str, Any]) -> None:
        which, given = fields["which"], self._step.given
        attaches = isinstance(given, Said) and given.name == "SessionAttached" and self._owed
        if which == "all":
            must(given == Reported("cleaned") and self.attached, "FLOW-26: leases go with the teardown")
            self.attached = None
        else:
            due = "new" if self._stopped else "previous" if self._held else None
            must(attaches and which == due, f"SESS-14, FLOW-24: {which} leases are let go")

    def _exit(self, fields: Mapping[str, Any]) -> None:
        last = self.ended and self._names[-1] == "Exit" and self._names.count("Exit") == 1
        must(last, "FLOW-20: the exit comes last, once, behind the output's end")
        due = self._step.given == Reported("cleaned") or self._step.at >= self._cleaning
        must(due, "BOUND-30: the exit waits for the cleanup")
        self.status = fields["status"]
        must(self.status == EXIT[self.ended or ""], f"D40, D41: status {self.status} although {self.ended}")

    def _output_ends(self) -> None:
        """The output has ended: drained, or lost for one of five reasons."""
        must(self.ended is None and self._names.count("StartCleanup") == 1, "FLOW-30: cleanup starts once")
        at, given, pressed = self._step.at, self._step.given, self.refusing or self._stopped
        closing, working = at >= self._closing, bool(self.running or self.operation)
        drained = self.phase == "stopping" and not self.pending and (not working or (closing and not self.running))
        overdue = given == Reported("time") and pressed and self.pending and self.pending[0][1] + MS <= at
        full = len(self.pending) >= PENDING and (pressed or self.phase == "stopping")
        lost = given == Reported("broke") or overdue or full or closing or _unwritable(given)
        must(drained or lost, "FLOW-20: the output ended without a cause")
        self.ended = "lost" if given == Reported("broke") or not drained else "drained"
        self._cleaning = at + MS
        self.pending.clear()
        if self.phase != "stopping":
            self._stop()

    # what a step owes

    def _obligations(self, events: list[str | None]) -> None:
        step, given, run = self._step, self._step.given, self.running
        must(not (self._quiet and (step.frames or step.commands)), "FLOW-15, ENV-24: nothing may come of this")
        self._freed()
        for job in self.jobs.values():
            stops = self.phase == "stopping" and not self._stopped and job.on and not job.cancelled
            must(not stops or (job.kind == "turn" and run and run.decided), f"FLOW-23: {job.request.id} goes on")
            job.on &= not (job.kind == "startup" and self.phase == "stopping")
        self._told()
        lapsed = self.run.lapsed(step.at if given == Reported("time") else float("-inf")) if self.run else []
        must(not lapsed, f"APPR-07: {lapsed} pending too long")
        if given == Reported("time"):
            must(self.ended or self._closing > step.at, "BOUND-29: the closing deadline passed")
            must(self.status is not None or self._cleaning > step.at, "BOUND-30: the cleanup wait passed")
        if self.ended:
            if isinstance(given, Said) and given.what == "gone" and run and not self._quiet:
                run.finished = True  # nobody can be told
            return
        pressed = self.refusing or self.phase == "stopping"
        must(len(self.pending) <= PENDING or not pressed, "BOUND-22: 32 frames at most")
        late = self.pending and self.pending[0][1] + MS <= step.at
        must(not (late and pressed and given == Reported("time")), "BOUND-27: the output deadline passed")
        must(self._due is None, f"ENV-24: {self._due} was due")
        must(not self._line or self._line.answered or self._line.job, "ENV-24: a request without an answer")
        must(not self._owed or self._owed.answered, "ENV-24: the worker's last word gives the answer")
        working = self.pending or self.operation or run
        must(working or self.phase != "stopping", "FLOW-20: drained, and nothing is outstanding")
        if isinstance(given, Said) and self.run and given.job == self.run.job and not self._quiet:
            owed = self.run.owes(given, self._stored)
            must(owed is None or owed in events, f"FLOW-05, EVT-45: {owed} was due")

    def _told(self) -> None:
        """Workers are told what concerns them, in the step that decided it."""
        given, line, run = self._step.given, self._line, self.running
        if line and line.recorded:
            key = "approval_id" if line.method == "approval.answer" else "call_id"
            must(self._resolved.count((key, line.params[key])) == 1, "APPR-02, CT-99: the worker gets the answer")
        if line and line.method == "operation.cancel" and line.answered and not line.refused:
            must(self.operation and self.operation.cancelled, "EXT-CANCEL-08: the worker is told")
        if run is None:
            return
        must(run.job in self.jobs or self.ended, "TURN-10: an accepted run has a worker")
        told = run.job not in self.jobs or self.jobs[run.job].cancelled
        must(
            told or not (run.cancelled or (run.undeliverable and not run.word)), "FLOW-13, FLOW-23: the worker is told"
        )
        if isinstance(given, Said) and given.name in ASKS and given.job == run.job and not run.asking:
            key = ASKS[given.name]
            must(self._resolved.count((key, given.fields[key])) == 1, "APPR-08: who asks too late is denied")

    def _freed(self) -> None:
        given = self._step.given
        if isinstance(given, Said) and given.name == "SessionAttached" and self._owed and self._owed.job:
            succeeds = SUCCESS.get(self._owed.method) == "SessionAttached"
            due = succeeds and ("new" if self._stopped else "previous" if self._held else None)
            let_go = [command.fields["which"] for command in self._step.commands if command.name == "ReleaseLeases"]
            must(let_go == ([due] if due else []), f"SESS-14, FLOW-24: {let_go} were let go")
        must(given != Reported("cleaned") or self.status is None or self.attached is None, "SESS-43: all leases go")


def _unwritable(given: object) -> bool:
    """True for a worker's message that no frame can carry (BASE-OP-69)."""
    if not isinstance(given, Said):
        return False
    text = json.dumps(dict(given.fields), ensure_ascii=False)
    return len(text) > MOST - 1_000 or any("\ud800" <= character <= "\udfff" for character in text)


_COMMANDS: Final[Mapping[str, Callable[[Checker, Mapping[str, Any]], None]]] = {
    "StartWorker": Checker._start,
    "CancelWorker": Checker._cancel,
    "ResolveApproval": Checker._resolve,
    "ResolveCall": Checker._resolve,
    "ReleaseLeases": Checker._release,
    "StartCleanup": lambda checker, fields: None,
    "Exit": Checker._exit,
}
