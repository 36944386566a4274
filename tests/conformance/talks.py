"""A small language for transcripts: what was sent and said, record by record, and what the judge makes of it."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from localagent.conformance import transcript
from localagent.conformance.cases import parse
from localagent.conformance.judge import judge
from localagent.conformance.model import Blame, Case, CheckResult, Transcript, Verdict
from tests.observe import traces as t

HEADER: dict[str, Any] = {
    "transcript": transcript.FORMAT,
    "case": None,
    "argv": ["x"],
    "platform": "linux",
    "limits_ms": {},
}
ENVELOPE = {"protocol": t.PROTOCOL, "version": 1}


def ask(method: str, id: str = "a", **params: Any) -> dict[str, Any]:  # noqa: A002 - the wire's name
    return {"dir": "client", "line": json.dumps({**ENVELOPE, "id": id, "method": method, "params": params}) + "\n"}


class Talk:
    """A transcript being written: a second passes between two records unless told otherwise."""

    def __init__(self, *, header: bool = True) -> None:
        self.records: list[dict[str, Any]] = [HEADER] if header else []
        self.now = 0.0
        self.seq = 0

    def add(self, after: float = 1.0, **record: Any) -> "Talk":
        self.now += after
        self.records.append({"t": self.now, **record})
        return self

    def ask(self, method: str, id: str = "a", after: float = 1.0, **params: Any) -> "Talk":  # noqa: A002
        return self.add(after, **ask(method, id, **params))

    def say(self, after: float = 1.0, **keys: Any) -> "Talk":
        self.seq += 1
        frame = {**ENVELOPE, "instance_id": t.INSTANCE, "seq": self.seq, **keys}
        return self.add(after, dir="backend", line=json.dumps(frame) + "\n")

    def result(self, result: Any, id: str | None = "a", after: float = 1.0) -> "Talk":  # noqa: A002
        return self.say(after, type="response", id=id, result=result)

    def error(self, code: str, id: str | None = "a", after: float = 1.0) -> "Talk":  # noqa: A002
        return self.say(after, type="response", id=id, error={"code": code})

    def event(self, name: str, /, **data: Any) -> "Talk":
        return self.say(type="event", event=name, data={"session_id": "s1", "run_id": t.RUN, **data})

    def ready(self) -> "Talk":
        return self.ask("initialize", "init", required_capabilities=[]).result(t.initialized(), "init")

    def attached(self) -> "Talk":
        told = {"session_id": "s1", "durable": False, "revision": "h-1", "notices": []}
        return self.ready().ask("session.create", "new").result(told, "new")

    def running(self) -> "Talk":
        self.attached().ask("turn.start", "t1", session_id="s1", prompt="x").result(
            {"run_id": t.RUN, "accepted": True}, "t1"
        )
        return self.event("input.persisted", message_id="u", durable=True, revision="h-2")

    def shut(self) -> "Talk":
        return self.ask("shutdown", "bye").result({"state": "stopping"}, "bye")

    def mark(self, *texts: str) -> "Talk":
        for text in texts:
            self.add(mark=text)
        return self

    def close(self, after: float = 1.0) -> "Talk":
        return self.add(after, dir="client", closed=True)

    def end(self, status: int = 0, after: float = 1.0, left: int = 0) -> "Talk":
        return self.add(eof="stdout").add(after, exit=status).add(end="complete", left=left)

    @property
    def transcript(self) -> Transcript:
        return transcript.read("".join(json.dumps(each) + "\n" for each in self.records).encode())


def judged(talk: Talk, case: Case | None = None, caps: frozenset[str] | None = None) -> dict[str, CheckResult]:
    return {each.check: each for each in judge(talk.transcript, case, caps)}


def bad(results: Iterable[CheckResult]) -> dict[str, CheckResult]:
    return {each.check: each for each in results if each.verdict in (Verdict.VIOLATED, Verdict.DEVIATION)}


def verdict(talk: Talk, check: str) -> tuple[Verdict, Blame]:
    found = judged(talk)[check]
    return found.verdict, found.blame


def case(steps: str, **keys: Any) -> Case:
    text = f'[[case]]\nid = "a.case"\ntitle = "A case"\ntier = 0\nclauses = ["STATUS-03"]\nsteps = [{steps}]\n'
    return replace(parse(text)[0], **keys)
