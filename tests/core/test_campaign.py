"""A long random walk over the connection: all methods, workers that behave and workers that do not, time, the pipe.

The checker judges every step, base 19.4 foretells every single request, and whatever was done the process can end.
"""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from localagent.core import worker
from localagent.protocol.codes import STARTUP_FAILURES, Code
from localagent.protocol.messages import EVENTS, RESULTS
from tests.kit import profiles
from tests.kit.admission_table import METHODS
from tests.kit.core_driver import SELECTION, STARTED, Driver, Out, attached, listed, pieces, request, uuid

from .asking import ALL, READS, Params, bad, good, selected
from .expectations import Expectations
from .runner import Runner

AT_ONCE = {"status", "shutdown", "turn.cancel", "approval.answer", "operation.cancel", "client.tool.result"}
QUIET = [method for method in METHODS if method != "shutdown"]
GARBAGE = (b"", b" ", b"{", b"{]", b"[]", b"null", b"\xff", b"{}" * 3, b"[" * 33 + b"]" * 33, b'"', b"\r")
PLACES = ("executing", "executing", "executing", "executing", "turn", "attached", "attached", "ready", "nothing")
HOW = ("well", "well", "well", "wrongly", "wrongly", "badly", "again", "unknown")
WRONG = {
    "session_id": "s9",
    "run_id": uuid(0xF),
    "revision": "r9",
    "selection_revision": "r9",
    "catalog_revision": "r9",
}
WRONG |= {"approval_id": uuid(0xF), "call_id": uuid(0xF), "instance_id": uuid(0xF), "task_id": "t9", "request_id": "q9"}
SESSION_CODES = (Code.SESSION_BUSY, Code.HISTORY_LIMIT, Code.STALE_REVISION, Code.STALE_CATALOG)
FOREIGN: tuple[worker.LastWord, ...] = (
    STARTED,
    worker.StartFailed(Code.STARTUP_FAILED),
    attached("s7"),
    listed("l7"),
    selected("h7"),
    worker.OperationFailed(Code.BUSY),
    worker.OperationCancelled(),
    worker.TurnEnded("completed", revision="h7"),
)
TRACES = (
    None,
    worker.Traced("list", worker.Effect.CHANGED),
    worker.Traced("list", worker.Effect.DROPPED),
    worker.Traced("catalog", worker.Effect.DROPPED),
    worker.Traced("history", worker.Effect.CHANGED),
)
READ_TRACES = (
    None,
    worker.Traced("list", worker.Effect.FRESH, "l1"),
    worker.Traced("list", worker.Effect.LAST_PAGE),
    worker.Traced("discover", worker.Effect.PAGE),
    worker.Traced("catalog", worker.Effect.FRESH_LAST, "c1"),
    worker.Traced("catalog", worker.Effect.REVISED, "c2"),
    worker.Traced("history", worker.Effect.PAGE),
)
indexes = st.integers(0, 15)
places = st.lists(st.integers(0, 300), max_size=3)


class Campaign(RuleBasedStateMachine):
    """Rules are what may happen next; what must come of it is said by others."""

    d: Driver
    expect: Expectations
    runner: Runner

    def __init__(self) -> None:
        super().__init__()
        self.names = 0
        self.rules_run = 0

    @initialize(place=st.sampled_from(PLACES), capabilities=st.sampled_from((ALL, ALL, ())))
    def begin(self, place: str, capabilities: tuple[str, ...]) -> None:
        d = self.d = Driver()
        self.expect, self.runner = Expectations(d), Runner(d)
        if place == "nothing":
            return
        self._ask("initialize", good("initialize", d, *capabilities))
        self._startup_says(STARTED)
        if place != "ready":
            self._ask("session.create", {})
            self._session_says(attached("s1", revision="h1"))
        if place in ("turn", "executing"):
            self._ask("turn.start", self._good("turn.start"))
        if place == "executing":
            self.runner.offer("appended", 0)
            self.runner.deliver(1)

    # the client

    @rule(how=st.sampled_from(HOW), method=st.sampled_from(QUIET), which=indexes, cuts=places)
    def asks(self, how: str, method: str, which: int, cuts: list[int]) -> None:
        params = self._good(method, *ALL[: which % 7])
        known = list(self.d.checker.asked)
        if how == "wrongly":
            params = self._wrong(method, params, which)
        if how == "badly":
            spoiled = bad(method, params)
            self._ask(method, spoiled[which % len(spoiled)], fine=False)
        elif how == "again" and known:
            self.d.send(request(known[which % len(known)], method, params))
        else:
            self._ask("no.such.method" if how == "unknown" else method, params, cuts)

    def _wrong(self, method: str, params: Params, which: int) -> Params:
        """Params that are good in form and name something that is not there, or not any more."""
        wrong = sorted(set(params) & set(WRONG))
        if wrong:
            key = wrong[which % len(wrong)]
            return params | {key: WRONG[key]}
        if method == "initialize":
            return {"required_capabilities": ["status", ("client.tools", "no.such")[which % 2]]}
        pages = ("session.list", "session.discover", "model.catalog", "model.catalog.status")
        return {"revision": ("l1", "c1", "l9")[which % 3], "cursor": "k1"} if method in pages else params

    @precondition(lambda self: self.d.checker.run and self.d.checker.run.asks)
    @rule(which=indexes)
    def answers(self, which: int) -> None:
        """An answer to something that was asked in this run; mostly to what is pending."""
        assert self.d.checker.run is not None
        asks = self.d.checker.run.asks
        pending = [key for key, ask in asks.items() if ask.open]
        key, id_ = pending[which % len(pending)] if pending and which < 12 else [*asks][which % len(asks)]
        method = "approval.answer" if key == "approval_id" else "client.tool.result"
        self._ask(method, self._good(method) | {key: id_} | ({"allow": which % 4 > 0} if key == "approval_id" else {}))

    @rule(methods=st.lists(st.sampled_from(QUIET), min_size=2, max_size=40), cuts=places)
    def writes_many_at_once(self, methods: list[str], cuts: list[int]) -> None:
        lines = b"".join(request(self._name(), each, self._good(each)) for each in methods)
        admitted = len(self.d.started)
        for piece in pieces(lines, cuts):
            self.d.send(piece)
        for each in self.d.started[admitted:]:
            self._admitted(each.method, msgspec.to_builtins(each.params))

    @rule(garbage=st.sampled_from(GARBAGE), end=st.booleans())
    def writes_garbage(self, garbage: bytes, end: bool) -> None:
        self.d.send(garbage + (b"\n" if end else b""))
        self.d.send(b"" if end else b"\n")

    # workers

    @precondition(lambda self: self.d.checker.phase == "starting")
    @rule(word=st.sampled_from([STARTED, STARTED, *map(worker.StartFailed, sorted(STARTUP_FAILURES)), *FOREIGN]))
    def startup_ends(self, word: worker.LastWord) -> None:
        self._startup_says(word)

    @precondition(lambda self: self.d.checker.operation)
    @rule(which=st.integers(0, 30), trace=st.sampled_from(TRACES))
    def session_worker_ends(self, which: int, trace: worker.Traced | None) -> None:
        operation = self.d.checker.operation
        assert operation is not None
        self.names += 1
        revision, method = f"h{self.names}", operation.request.method
        own: dict[str, worker.LastWord] = {
            "session.create": attached(f"s{which % 3}", revision=revision),
            "session.open": attached(f"s{which % 3}", bool(which % 2), revision),
            "selection.set": selected(revision if which % 4 else None),
        }
        success = own.get(method) or worker.Read(READS[method], READ_TRACES[which % len(READ_TRACES)])
        failures: list[worker.LastWord] = [
            *(worker.OperationFailed(code, trace) for code in SESSION_CODES),
            worker.OperationCancelled(trace),
        ]
        words: list[worker.LastWord] = [*failures, *FOREIGN, *[success] * 18]
        word = words[which]
        self._session_says(success if isinstance(word, worker.Read) and method in READS else word)

    @precondition(lambda self: self.d.checker.running)
    @rule(events=st.lists(Runner.events(), min_size=1, max_size=12), most=st.sampled_from([40, 40, 40, 1, 0]))
    def runner_goes_on(self, events: list[tuple[str, int]], most: int) -> None:
        for event in events:
            self.runner.offer(*event)
        self.runner.deliver(most)

    @precondition(lambda self: self.d.checker.running and self.d.checker.running.asking)
    @rule(kind=st.sampled_from(["ask", "call"]), n=st.integers(0, 5))
    def runner_asks(self, kind: str, n: int) -> None:
        self.runner.offer(kind, n)
        self.runner.deliver(40)

    @precondition(lambda self: self.d.checker.running and self.rules_run % 3 == 0)
    @rule(
        word=st.sampled_from(["completed", "failed", "stopped", "", "leaves"]), revision=st.sampled_from([None, "h8"])
    )
    def runner_ends(self, word: Any, revision: str | None) -> None:
        selection = msgspec.structs.replace(SELECTION, revision=f"sel-{revision}") if revision else None
        ended = worker.TurnEnded(word, None, revision, selection) if word not in ("", "leaves") else None
        self.runner.end(ended, leaves=bool(word))
        self.runner.deliver(40)

    @rule(event=Runner.events(), job=st.sampled_from([0, 0, 0, 1, 2, 3, 99]))
    def somebody_reports_out_of_place(self, event: tuple[str, int], job: int) -> None:
        self.d.event(self.runner.absurd(*event), job or (self.d.job if self.d.started else 7))

    @rule(word=st.sampled_from(FOREIGN), job=st.integers(0, 9), gone=st.booleans())
    def somebody_ends_out_of_place(self, word: worker.LastWord, job: int, gone: bool) -> None:
        known = self.d.checker.jobs.get(job)
        if known is not None and known.on and known.kind != "turn":
            return
        self.d.gone(job) if gone else self.d.done(word, job)

    @precondition(lambda self: self.rules_run % 4 == 0)
    @rule(job=st.integers(0, 9))
    def something_is_undeliverable(self, job: int) -> None:
        self.d.undeliverable(job)

    # time, the pipe, the end

    @rule(ms=st.sampled_from([0, 1, 20, 999, 999, 1_999, 2_000, 29_999, 60_000]))
    def time_passes(self, ms: int) -> None:
        self.d.wait(ms)
        due = self.d.connection.deadline()
        assert due is None or due > self.d.now or self.d.checker.status is not None
        self.runner.again()

    @rule(room=st.sampled_from([None, None, None, None, None, 0, 1, 100, 4_000]))
    def pipe_changes(self, room: int | None) -> None:
        self.d.take(room)
        self.runner.deliver(40)

    @precondition(lambda self: self.rules_run > 25)
    @rule(how=st.sampled_from(["shutdown", "eof", "cut", "mismatch", "oversize", "broken", "cleaned", "cleaned"]))
    def the_end_begins(self, how: str) -> None:
        if how == "shutdown":
            self._ask("shutdown", {})
        elif how in ("eof", "cut"):
            self.d.send(b"{" if how == "cut" else b"")
            self.d.eof()
        elif how == "mismatch":
            self.d.send(request(self._name(), "status", {}, version=2))
        elif how == "oversize":
            self.d.send(b"x" * 65_000)
            self.d.send(b"x" * 537)
        elif how == "broken":
            self.d.breaks()
        elif self.d.checker.ended and not (self.d.checker.operation or self.d.checker.running):
            self.d.cleaned()

    @invariant()
    def every_frame_is_of_its_struct(self) -> None:
        self.rules_run += 1
        for step in self.d.steps if hasattr(self, "d") else ():
            for frame in map(json.loads, step.frames):
                _validate(frame, self.d)
        if hasattr(self, "d"):
            self.d.steps.clear()

    def teardown(self) -> None:
        if hasattr(self, "d") and self.d.sound:
            status = self.d.finish()
            assert self.d.connection.closed
            assert status == {"drained": 0, "lost": 1}[self.d.checker.ended or ""]

    # what the rules share

    def _name(self) -> str:
        self.names += 1
        return f"r{self.names}"

    def _good(self, method: str, *capabilities: str) -> Params:
        """Good params, naming what is current by the contract's bookkeeping, not by the core's."""
        params, current, checker = good(method, self.d, *capabilities), self.expect.current, self.d.checker
        names = {"session_id": checker.attached, "instance_id": checker.instance, "revision": current.get("history")}
        names |= {"selection_revision": self.expect.selection, "catalog_revision": current.get("catalog")}
        return params | {key: names[key] or params[key] for key in names if key in params and method != "session.open"}

    def _ask(self, method: str, params: Any, cuts: Sequence[int] = (), fine: bool = True) -> None:
        """One request, in pieces; what comes of it was foretold."""
        outcome, line, out = self.expect.of(method, params, fine), request(self._name(), method, params), Out()
        for piece in pieces(line, cuts):
            sent = self.d.send(piece)
            out.frames += sent.frames
            out.commands += sent.commands
        if self.d.checker.ended == "lost":
            return
        mine = [code for id_, code in out.answers if id_ == f"r{self.names}"]
        starts = [each for each in out.commands if type(each).__name__ == "StartWorker"]
        if outcome == "ok":
            assert [type(code) for code in mine] == [dict] * (method in AT_ONCE or method == "turn.start"), mine
            assert len(starts) == (method not in AT_ONCE)
            if method == "status" and isinstance(mine[0], dict):
                assert (mine[0]["selection"] or {}).get("revision") == self.expect.selection
            self._admitted(method, params)
        else:
            assert (mine, starts) == ([] if outcome == "none" else [outcome], []), (method, params, self.expect.column)

    def _admitted(self, method: str, params: Params) -> None:
        self.expect.admitted(method, params)
        if method == "turn.start":
            self.runner = Runner(self.d)

    def _startup_says(self, word: worker.LastWord) -> None:
        self.expect.startup_said(word)
        self.d.done(word, 1)

    def _session_says(self, word: worker.LastWord) -> None:
        number, job = next((n, job) for n, job in self.d.checker.jobs.items() if job is self.d.checker.operation)
        self.expect.session_said(job.request, word)
        self.d.done(word, number)


def _validate(frame: dict[str, Any], d: Driver) -> None:
    if frame["type"] == "event":
        msgspec.convert(frame["data"], EVENTS[frame["event"]], strict=True)
    elif "result" in frame:
        msgspec.convert(frame["result"], RESULTS[d.checker.asked[frame["id"]].method], strict=True)
    else:
        Code(frame["error"]["code"])


TestCampaign = Campaign.TestCase
TestCampaign.settings = settings(
    max_examples=profiles.examples(300, 5_000), stateful_step_count=profiles.examples(40, 80)
)
