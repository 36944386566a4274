"""The rules of one run, for :mod:`.transcript`: its events, their order, what it asks of the client, how it ends."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .transcript_steps import Said

Fields = Mapping[str, Any]


class Violation(AssertionError):  # noqa: N818 - of the contract
    """The contract does not allow this step."""


def must(holds: object, why: str) -> None:
    """Raise :class:`Violation` unless the contract holds; ``why`` begins with the clause."""
    if not holds:
        raise Violation(why)


UUID: Final = re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}\Z")
APPROVAL_MS: Final = 60_000
EVENTS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    name: (said, frozenset(keys.split()))
    for name, said, keys in (
        ("input.persisted", "InputAppended", "durable message_id revision"),
        ("message.delta", "Delta", "message_id part text"),
        ("message.reconcile", "Reconcile", "last_part message_id part partial text"),
        ("activity", "ActivityChanged", "activity_id kind name state summary"),
        ("tool.card", "CardShown", "activity_id card last_part part"),
        ("approval.requested", "ApprovalWanted", "approval_id expires_in_ms summary"),
        ("diagnostic", "Note AppendFailed", "code summary"),
        ("client.tool.call", "CallWanted", "arguments call_id name subagent_id task_id timeout_ms"),
        ("client.tool.cancel", "", "call_id reason subagent_id task_id"),
        ("run.finished", "", "error_code outcome persistence revision"),
    )
}
"""Event -> the worker's word for it, and the keys of its data beside ``run_id`` and ``session_id`` (base 22)."""
ASKS: Final = {"ApprovalWanted": "approval_id", "CallWanted": "call_id"}
_CONSTANTS: Final[Fields] = {"durable": True, "expires_in_ms": APPROVAL_MS, "last_part": True, "part": 0}
_UNPROVOKED: Final = {"input.persisted", "diagnostic", "run.finished"}
"""Events that may come before the input is stored: they tell of no work of the provider's (EVT-12)."""


@dataclass(slots=True)
class Ask:
    """An approval or a client tool call that was put to the client."""

    expires: float
    open: bool = True
    noticed: bool = False


@dataclass(slots=True)
class Run:
    """An accepted run. ``word`` is its worker's first last word; a failed append of the input is one too."""

    id: str
    session_id: str
    job: int = 0
    persisted: bool = False
    degraded: bool = False
    finished: bool = False
    cancelled: bool = False
    undeliverable: bool = False
    word: str | None = None
    code: str | None = None
    revision: str | None = None
    selection: str | None = None
    asks: dict[tuple[str, str], Ask] = field(default_factory=dict)
    """Keyed by ``approval_id`` or ``call_id`` and the id."""
    deltas: dict[str, int] = field(default_factory=dict)
    parts: dict[str, int] = field(default_factory=dict)
    activities: dict[str, str] = field(default_factory=dict)
    cards: dict[str, str | None] = field(default_factory=dict)

    @property
    def decided(self) -> bool:
        """True when a cancellation changes nothing any more."""
        return bool(self.word) or self.undeliverable

    @property
    def asking(self) -> bool:
        """True while something may be asked of the client."""
        return self.persisted and not (self.finished or self.cancelled or self.decided)

    @property
    def outcome(self) -> str:
        """What ``run.finished`` must say (EVT-43, TURN-26, FLOW-13, BASE-OP-156, BASE-OP-159)."""
        if self.undeliverable:
            return "cancelled"
        if self.word == "completed":
            return "completed" if self.persisted else "failed"
        return "cancelled" if self.cancelled and self.word in ("stopped", None) else "failed"

    @property
    def persistence(self) -> str:
        """What ``run.finished`` may claim (EVT-44, EVT-51)."""
        return "degraded" if self.degraded else "durable" if self.persisted else "not_started"

    # the worker

    def hear(self, what: str, name: str, fields: Fields) -> None:
        """The worker said something while its job was on. Another kind's last word counts as ``failed``."""
        self.undeliverable |= what == "undeliverable"
        fails = name == "InputFailed" and (self.cancelled or not self.persisted)
        if self.word is None and (what == "done" or fails):
            ours = fields if name in ("TurnEnded", "InputFailed") else {}
            self.word = "unstored" if fails else ours.get("word", "failed")
            self.code, self.revision = ours.get("code"), ours.get("revision")
            self.selection = (ours.get("selection") or {}).get("revision")

    def owes(self, said: Said, before: bool) -> str | None:
        """The event that the worker's message must give, if any; ``before``: the input was stored already."""
        name = said.name
        if said.what == "gone":
            return "run.finished"
        if name == "InputAppended" and not before and not self.word:
            return "input.persisted"
        if (name == "AppendFailed" and before) or (name == "Note" and not self.undeliverable):
            return "diagnostic"
        if name == "Reconcile" and before and not self.undeliverable:
            return "message.reconcile"
        if name in ASKS and self.asking and (ASKS[name], said.fields[ASKS[name]]) not in self.asks:
            return "approval.requested" if name == "ApprovalWanted" else "client.tool.call"
        return None

    # events

    def event(self, name: str, data: Fields, said: tuple[str, Fields] | None, gone: bool) -> None:
        """Judge an event. ``said`` is the worker's event that this step is about, ``gone`` that the worker left."""
        words, keys = EVENTS[name]
        must(set(data) == keys | {"run_id", "session_id"}, f"base 22: keys of {name}")
        must((data["run_id"], data["session_id"]) == (self.id, self.session_id), f"EVT-01: ids of {name}")
        must(not self.finished, f"EVT-45: {name} behind run.finished")
        must(self.persisted or name in _UNPROVOKED, f"EVT-12: {name} before input.persisted")
        if name == "run.finished":
            must(gone, "EVT-46: run.finished comes with the worker's departure")
            self._finish(data)
        elif name == "client.tool.cancel":
            ask = self.asks.get(("call_id", data["call_id"]))
            must(ask and not ask.noticed, f"CT-128: {data['call_id']} ends once")
            assert ask is not None
            ask.noticed = True
        else:
            must(said and said[0] in words.split(), f"{name} was not said by the worker")
            assert said is not None
            for key in keys:
                must(data[key] == said[1].get(key, _CONSTANTS.get(key)), f"{name}: {key} is not what the worker said")
            self._told(said[0], data, said[1])

    def _told(self, name: str, data: Fields, fields: Fields) -> None:
        match name:
            case "InputAppended":
                must(not self.persisted, "EVT-11: input.persisted once")
                self.persisted = True
            case "AppendFailed":
                self.degraded = True
            case "Delta":
                must(not self.decided, "EVT-47: a delta behind the last word")
                must(data["message_id"] not in self.parts, "EVT-22: a delta inside a reconciliation")
                must(data["part"] > self.deltas.get(data["message_id"], -1), "EVT-17: delta parts increase")
                self.deltas[data["message_id"]] = data["part"]
            case "Reconcile":
                must(not self.undeliverable, "FLOW-13: reconciled although given up")
                must(data["part"] == self.parts.pop(data["message_id"], 0), "EVT-23: parts in order, from 0")
                if not data["last_part"]:
                    self.parts[data["message_id"]] = data["part"] + 1
            case "ActivityChanged":
                before, state = self.activities.get(data["activity_id"]), data["state"]
                legal = ("started",) if before is None else ("completed", "failed") if before == "started" else ()
                must(state in legal, f"BASE-OP-172: {state} behind {before}")
                self.activities[data["activity_id"]] = state
            case "CardShown":
                name, outcome = data["activity_id"], fields["outcome"]
                must(name in self.activities, "TC-162: a card follows its activity")
                must(name in self.cards or outcome is None, "TC-75: a card begins by running")
                must(self.cards.get(name) in (None, outcome), "TC-175, TC-176: a finished card keeps its outcome")
                self.cards[name] = outcome
            case "ApprovalWanted" | "CallWanted":
                key = ASKS[name], data[ASKS[name]]
                must(UUID.match(key[1]) and key not in self.asks, "EVT-37, CT-79: an id of its own")
                must(self.asking, "APPR-08, CT-OP-23: asked when nothing may be asked")
                self.asks[key] = Ask(fields["asked_at"] + fields.get("timeout_ms", APPROVAL_MS))

    def _finish(self, data: Fields) -> None:
        self.finished = True
        must(data["persistence"] == self.persistence, f"EVT-44: {data['persistence']}, but {self.persistence}")
        must(data["outcome"] == self.outcome, f"EVT-43: {data['outcome']}, but {self.outcome}")
        code = "output_unavailable" if self.undeliverable else None
        if self.outcome == "failed":
            code = self.code or "execution_failed"
        must(data["error_code"] == code, f"BASE-OP-155: error_code {data['error_code']}")
        must(data["revision"] == self.revision, "EVT-52: the fresh revision, if there is one")

    # what was asked, and its end

    def resolve(self, key: tuple[str, str], allows: bool, recorded: bool, late: bool) -> None:
        """Judge the answer that the worker gets: ``recorded`` says that the client has just answered this one so.

        ``late`` says that the worker has just asked: it is refused on the spot, whatever became of that id before.
        """
        ask = self.asks.get(key)
        if ask is None or not ask.open:
            must(late and not allows and not self.asking, f"APPR-03, CT-99: {key} is resolved once")
            return
        ask.open = False
        must(recorded or not allows, f"APPR-05, CT-110: {key} is granted by an answer alone")

    def lapsed(self, now: float) -> list[tuple[str, str]]:
        """What is pending although its time is over, or the client was told that it is, or nothing may be pending."""
        over = {key for key, ask in self.asks.items() if ask.expires <= now or ask.noticed or not self.asking}
        return [key for key in over if self.asks[key].open]
