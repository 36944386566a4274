"""Hypothesis holds conversations with real children; the frames are judged twice.

By :mod:`tests.kit.wire`, which knows only what a client may rely on, and by the observer, which must find a row for
every frame. No step waits for a length of time: a conversation goes on when an answer or an event has come.
"""

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from localagent.observe import decode
from statemachines.observe import Observer
from tests.catalog.homes import Home
from tests.kit.child import Child, line
from tests.kit.profiles import examples
from tests.kit.wire import Wire

PROMPTS = st.sampled_from(
    ["hello", "APPROVAL", "PARALLEL", "TOOL", "BROKEN TOOL", "THINK", "SECRET", "WARN", "FAIL", "DISK"]
)
SCANS = ("session.list", "session.discover")
CATALOGS = ("model.catalog", "model.catalog.status")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("status"), st.none()),
        st.tuples(st.just("create"), st.none()),
        st.tuples(st.just("open"), st.sampled_from(["own", "missing", "bad id"])),
        st.tuples(st.just("page"), st.sampled_from(["own", "foreign"])),
        st.tuples(st.just("turn"), PROMPTS),
        st.tuples(st.just("cancelled turn"), st.sampled_from(["STALL", "SLOW", "APPROVAL"])),
        st.tuples(st.just("garbage"), st.sampled_from([b"\n", b"{}\n", b"\xff\n", b'{"id":1}\n', b"[[[[\n"])),
        st.tuples(st.just("unknown"), st.sampled_from(["no.such", "client.tool.result"])),
        st.tuples(st.just("scan"), st.sampled_from(SCANS)),
        st.tuples(st.just("cancelled"), st.sampled_from([*SCANS, *CATALOGS, "session.create"])),
        st.tuples(st.just("catalog"), st.sampled_from(CATALOGS)),
        st.tuples(st.just("select"), st.sampled_from(["bench/chat", "bench/embed", "bench/hidden", "scripted/demo"])),
    ),
    max_size=8,
)
CHOICES = [("bench", "chat"), ("bench", "embed"), ("bench", "plain"), ("gated", "vault"), ("scripted", "demo")]
ENDS = st.sampled_from(["shutdown", "end of input", "cut line"])


class Talk:
    """One conversation."""

    def __init__(self, child: Child) -> None:
        self.child, self.wire, self.observer = child, Wire(), Observer()
        self.session: str | None = None
        self.revision: str | None = None
        self.catalog: str | None = None
        self._count = 0

    def ask(self, method: str, **params: Any) -> str:
        self._count += 1
        id_ = f"r{self._count}"
        self.wire.ask(id_, method)
        data = line(id_, method, **params)
        self.observer.client(
            {"protocol": "magi-code.local-agent", "version": 1, "id": id_, "method": method, "params": params}
        )
        self.child.send(data)
        return id_

    def frame(self) -> dict[str, Any]:
        start = self.child.read_to
        frame = self.child.frame()
        told = self.wire.read(bytes(self.child.raw[start : self.child.read_to]))
        assert told == frame
        assert list(self.observer.backend(frame).findings) == []
        return frame

    def until(self, wanted: str) -> dict[str, Any]:
        while True:
            frame = self.frame()
            if frame.get("event") == "approval.requested":
                asked = {name: frame["data"][name] for name in ("session_id", "run_id", "approval_id")}
                self.ask("approval.answer", **asked, allow=True)
            if wanted in (frame.get("id"), frame.get("event")):
                return frame

    def do(self, step: str, what: Any) -> None:
        getattr(self, "do_" + step.replace(" ", "_"))(what)

    def do_status(self, _: None) -> dict[str, Any]:
        result: dict[str, Any] = self.until(self.ask("status"))["result"]
        return result

    def do_create(self, _: None) -> None:
        result = self.until(self.ask("session.create"))["result"]
        self.session, self.revision = result["session_id"], result["revision"]

    def do_open(self, what: str) -> None:
        ids = {"own": self.session or "none", "missing": "00000000-missing", "bad id": "../x"}
        answer = self.until(self.ask("session.open", session_id=ids[what]))
        if "result" in answer:
            self.revision = answer["result"]["revision"]

    def do_page(self, what: str) -> None:
        revision = self.revision if what == "own" and self.revision else "foreign"
        answer = self.until(self.ask("history.page", session_id=self.session or "none", revision=revision))
        assert ("result" in answer) == (self.session is not None and revision == self.revision)

    def do_turn(self, prompt: str) -> None:
        answer = self.until(self.ask("turn.start", session_id=self.session or "none", prompt=prompt))
        if "result" in answer:
            self.revision = self.until("run.finished")["data"]["revision"]

    def do_cancelled_turn(self, prompt: str) -> None:
        answer = self.until(self.ask("turn.start", session_id=self.session or "none", prompt=prompt))
        if "result" in answer:
            self.ask("turn.cancel", session_id=self.session, run_id=answer["result"]["run_id"])
            finished = self.until("run.finished")["data"]
            self.revision = finished["revision"]
            ends = (
                "completed" if self.do_status(None)["provider"] == "scripted" else "failed"
            )  # its runner is not built
            assert finished["outcome"] in ("cancelled", ends)

    def do_garbage(self, data: bytes) -> None:
        self.observer.client(*decode(data.decode(errors="replace")))
        self.child.send(data)
        while "error" not in (frame := self.frame()) or frame["id"] is not None:
            pass

    def do_scan(self, method: str) -> None:
        """Page through: the store is ours alone, so that nothing goes stale."""
        seen: list[str] = []
        place: dict[str, Any] = {}
        while True:
            page = self.until(self.ask(method, limit=1, **place))["result"]
            seen += [entry["session_id"] for entry in page["sessions"]]
            if page["complete"]:
                break
            place = {"revision": page["revision"], "cursor": page["next_cursor"]}
        assert len(set(seen)) == len(seen)

    def do_catalog(self, method: str) -> None:
        page = self.until(self.ask(method, limit=2))["result"]
        self.catalog = page["revision"]
        chosen = [(each["provider"], each["model"]) for each in page["choices"]]
        while not page["complete"]:
            page = self.until(self.ask(method, revision=self.catalog, cursor=page["next_cursor"]))["result"]
            chosen += [(each["provider"], each["model"]) for each in page["choices"]]
        assert chosen == CHOICES

    def do_select(self, choice: str) -> None:
        provider, _, model = choice.partition("/")
        before = self.do_status(None)
        guards = {"selection_revision": before["selection"]["revision"], "catalog_revision": self.catalog or "none"}
        names = {"session_id": self.session or "none", "provider": provider, "model": model}
        answer = self.until(self.ask("selection.set", **names, **guards, effort={"mode": "default"}))
        after = self.do_status(None)
        if "error" in answer:
            expected = (
                "session_missing" if self.session is None else "selection_invalid" if self.catalog else "stale_catalog"
            )
            assert answer["error"] == {"code": expected}
            assert after == before
        else:
            assert after["selection"] == answer["result"]["selection"]
            self.revision = answer["result"]["history_revision"]

    def do_cancelled(self, method: str) -> None:
        """Either wins: the request its result, or the cancellation."""
        asked = self.ask(method)
        cancel = self.ask("operation.cancel", request_id=asked)
        answers: dict[str, Any] = {}
        while len(answers) < 2:
            frame = self.frame()
            if frame.get("id") in (asked, cancel):
                answers[frame["id"]] = frame
        last = answers[asked]
        if method in CATALOGS:
            self.catalog = last["result"]["revision"] if "result" in last else None
        if "result" in last:
            if method == "session.create":
                self.session, self.revision = last["result"]["session_id"], last["result"]["revision"]
        else:
            assert last["error"] == {"code": "operation_cancelled"}
            assert answers[cancel]["result"] == {"request_id": asked, "state": "cancelling"}
        if "error" in answers[cancel]:
            assert answers[cancel]["error"] == {"code": "operation_missing"}

    def do_unknown(self, method: str) -> None:
        assert self.until(self.ask(method))["error"] == {"code": "unsupported_method"}

    def end(self, way: str) -> None:
        if way == "shutdown":
            self.until(self.ask("shutdown"))
        elif way == "cut line":
            self.child.send(b'{"protocol"')
        self.child.close_input()
        rest = self.child.rest()
        assert rest.count(b"\n") == (1 if way == "cut line" else 0)
        assert (self.child.wait(), self.child.stderr()) == (0, b"")


@settings(max_examples=examples(15, 300))
@given(STEPS, ENDS)
def test_any_conversation_with_a_real_child_is_sound(steps: list[tuple[str, Any]], way: str) -> None:
    with tempfile.TemporaryDirectory() as folder, Child(Home(Path(folder)).path) as child:
        talk = Talk(child)
        required = ["session.discover", "operation.cancel", "model.catalog.status"]
        talk.until(talk.ask("initialize", required_capabilities=required))
        for step, what in steps:
            talk.do(step, what)
        talk.end(way)
    assert not list(Path(folder).glob("home/sessions/.*.lock"))
