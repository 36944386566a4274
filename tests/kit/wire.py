"""What a client may rely on in the frames of one child, checked frame by frame without the tables or the core."""

import json
from typing import Any

ENVELOPE = {"protocol", "version", "type", "instance_id", "seq"}


class Wire:
    """Reads the frames of one child in order; raises AssertionError at the first that the contract does not allow."""

    def __init__(self) -> None:
        self.seq = 0
        self.instance: str | None = None
        self.asked: dict[str, str] = {}
        self.answered: set[str] = set()
        self.run: str | None = None
        self.stored = False
        self.finished: set[str] = set()
        self.deltas: dict[str, int] = {}
        self.parts: dict[str, int] = {}
        self.stopping = False

    def ask(self, id_: str, method: str) -> None:
        """A request was sent. One that repeats an id gets an answer of its own."""
        assert id_ not in self.asked, "the harness does not repeat ids"
        self.asked[id_] = method

    def read(self, line: bytes) -> dict[str, Any]:
        """One line of the child."""
        assert line.endswith(b"\n")
        assert len(line) <= 65536
        frame: dict[str, Any] = json.loads(line)
        assert line == json.dumps(frame, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
        assert frame["seq"] == self.seq + 1
        assert self.instance in (None, frame["instance_id"])
        self.seq, self.instance = frame["seq"], frame["instance_id"]
        keys = set(frame) - ENVELOPE
        if frame["type"] == "response":
            assert keys in ({"id", "result"}, {"id", "error"})
            self._answer(frame)
        else:
            assert keys == {"event", "data"}
            self._event(frame["event"], frame["data"])
        return frame

    def _answer(self, frame: dict[str, Any]) -> None:
        id_ = frame["id"]
        if id_ is None:
            assert frame["error"]["code"] in ("invalid_request", "invalid_frame", "incomplete_frame", "frame_too_large")
            return
        assert id_ in self.asked
        assert id_ not in self.answered
        self.answered.add(id_)
        if "error" in frame:
            assert list(frame["error"]) == ["code"]
        elif self.asked[id_] == "turn.start":
            assert self.run is None
            self.run, self.stored, self.deltas, self.parts = frame["result"]["run_id"], False, {}, {}
            assert self.run not in self.finished
        elif self.asked[id_] == "shutdown":
            self.stopping = True

    def _event(self, name: str, data: dict[str, Any]) -> None:
        assert data["run_id"] == self.run, "an event outside its run"
        if name == "input.persisted":
            assert not self.stored
            self.stored = True
        elif name == "message.delta":
            assert self.stored
            assert data["part"] > self.deltas.get(data["message_id"], -1)
            self.deltas[data["message_id"]] = data["part"]
        elif name == "message.reconcile":
            assert self.stored
            assert data["part"] == self.parts.get(data["message_id"], 0)
            self.parts[data["message_id"]] = 0 if data["last_part"] else data["part"] + 1
        elif name == "run.finished":
            assert data["persistence"] in (("durable", "degraded") if self.stored else ("not_started",))
            assert not any(self.parts.values()), "a reconciliation was left open"
            assert (data["error_code"] is None) or data["outcome"] != "completed"
            assert self.run is not None
            self.finished.add(self.run)
            self.run = None
        else:
            assert self.stored or name == "diagnostic"
