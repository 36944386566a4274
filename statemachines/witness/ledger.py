"""The ledger: what has been seen so far that later frames must agree with.

It remembers identities, revisions, cursors and the text bookkeeping of the run, never states: those are the machines'.
What a frame says is taken down as told, also where it was a fault, so that one fault is reported once.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from statemachines.witness.shapes import SIXTEEN, STARTUP_CODES, TYPES, WORKER_CODES

Data = Mapping[str, Any]

SNAPSHOT_OF: Final[Mapping[str, str]] = {
    "history.page": "history",
    "session.list": "list",
    "session.discover": "discover",
    "model.catalog": "catalog",
    "model.catalog.status": "catalog",
}
"""Paging method -> the machine of its snapshot."""

ATTACHES: Final = frozenset({"session.create", "session.open"})
BRINGS: Final = ATTACHES | {"selection.set", "model.catalog", "model.catalog.status", "model.refresh", "turn.start"}
"""Methods whose work may bring another selection revision; a ``status`` may tell it ahead of their answer (ENV-26)."""

ENVELOPE: Final = frozenset({"protocol", "version", "id", "method", "params"})
"""The five fields of a request (ENV-01)."""


@dataclass(frozen=True, slots=True)
class Line:
    """What is known of a line beside its JSON value."""

    size: int = 0
    """Bytes without the LF; 0 when not known."""
    broken: bool = False
    """It is not JSON, or not UTF-8; it has no value then."""
    repeated: str = ""
    """``top`` or ``params``: where a key occurs twice."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A line of the client, or the end of its input (``ends``: ``between`` or ``inside`` frames)."""

    number: int
    value: object = None
    """The JSON value of the line."""
    line: Line = Line()
    formed: bool = False
    """The five fields and both grammars are right: it has an identity, and it counts (D11)."""
    fresh: bool = True
    """The id was not seen before."""
    within: bool = True
    """At most 4,096 ids, this one included."""
    ends: str = ""

    @property
    def frame(self) -> Data:
        """The value, as far as it is an object."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def id(self) -> str:
        """The identity; empty where it cannot be recovered."""
        return str(self.frame["id"]) if self.formed else ""

    @property
    def method(self) -> str:
        """The method; empty where the line is no request."""
        return str(self.frame["method"]) if self.formed else ""

    @property
    def params(self) -> Data:
        """The params, as far as they are an object."""
        params = self.frame.get("params")
        return params if isinstance(params, dict) else {}

    def name(self, key: str) -> str | None:
        """A param that ought to be a name, or null; empty where it is anything else."""
        value = self.params.get(key)
        return value if value is None or isinstance(value, str) else ""

    @property
    def continues(self) -> bool:
        """True for a page of a snapshot that exists already."""
        return self.params.get("revision") is not None and self.params.get("cursor") is not None

    @property
    def label(self) -> str:
        """The line for people."""
        if self.ends:
            return f"end of input {self.ends} frames" if self.ends == "between" else "end of input inside a frame"
        return f"{self.method} {self.id}" if self.formed else "a line that is no request"


@dataclass(slots=True)
class Segment:
    """An assistant segment of the run."""

    delta: int = -1
    owing: bool = False
    """Text was shown that no reconciliation has replaced yet."""
    part: int = -1
    """The last part of the reconciliation under way; -1 when none is."""
    partial: bool | None = None
    size: int = 0
    """Bytes of the reconciliation, as far as it has come."""


@dataclass(slots=True)
class RunMemory:
    """What was seen of the run that began last."""

    known: list[tuple[str, str]] = field(default_factory=list)
    """(session, run) as the answer gave it; others were faults, told once."""
    segments: dict[str, Segment] = field(default_factory=dict)
    partial: bool | None = None
    """Of the reconciliation that came last (D61)."""
    activities: set[str] = field(default_factory=set)
    approvals: set[str] = field(default_factory=set)
    calls: dict[str, Data] = field(default_factory=dict)
    cards: dict[str, Data] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Its id; empty while there was no run."""
        return self.known[0][1] if self.known else ""


@dataclass(slots=True)
class Snapshot:
    """What a revision names: the cursors given out, each with the entry before it. None is the start."""

    revision: str = ""
    cursors: dict[str | None, Data | None] = field(default_factory=lambda: {None: None})


@dataclass(slots=True)
class Ledger:
    """Everything seen so far."""

    claimed: frozenset[str] = SIXTEEN
    """The base capabilities that the backend is held to."""
    instance: str = ""
    seq: int = 0
    told: str = ""
    """What the last frame was: an answer, an event."""
    ids: set[str] = field(default_factory=set)
    waiting: list[Asked] = field(default_factory=list)
    """Requests that were not answered yet, duplicates left out."""
    ready: bool = False
    """A status has told that startup is complete."""
    failed: str = ""
    """The startup failure code."""
    context: str = ""
    session: str = ""
    """The attached session."""
    arrived: str = ""
    """The session that a status told ahead of the answer that brings it."""
    durable: set[str] = field(default_factory=set)
    """Sessions that were acknowledged as stored."""
    selection: str = ""
    """The selection revision that was shown last."""
    chosen: Data = field(default_factory=dict)
    """The selection as it was first shown under that revision."""
    replaced: str | None = None
    """The revision before it, where a status told it ahead of the answer that brings it."""
    settled: bool = False
    """Since the selection revision was shown, nothing was seen that may rotate it."""
    outdated: dict[str, str] = field(default_factory=dict)
    """Selection revisions that were replaced, and the method whose result did that."""
    acknowledged: str = ""
    """The revision of the last ``input.persisted`` (D64)."""
    issued: set[str] = field(default_factory=set)
    """Every history and catalog revision."""
    snapshots: dict[str, Snapshot] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    run: RunMemory = field(default_factory=RunMemory)
    worked: bool = False
    """A run or a session operation has ended."""

    def snapshot(self, name: str) -> Snapshot:
        """The snapshot of that name, empty if none was seen."""
        return self.snapshots.setdefault(name, Snapshot())

    def ask(self, number: int, value: object, line: Line) -> Asked:
        """Take a line of the client down."""
        frame: Data = value if isinstance(value, dict) else {}
        named = TYPES["ID"](frame.get("id")) and TYPES["ID"](frame.get("method"))
        formed = named and set(frame) == ENVELOPE and not line.broken and line.repeated != "top"
        fresh = not formed or frame["id"] not in self.ids
        if formed:
            self.ids.add(frame["id"])
        asked = Asked(number, value, line, formed, fresh, not fresh or len(self.ids) <= 4096)
        if formed and fresh:
            self.waiting.append(asked)
        return asked

    def before(self, asked: Asked, methods: Collection[str]) -> list[Asked]:
        """What was sent before a request and is not answered yet, so that its work may be done (ENV-26)."""
        return [each for each in self.waiting if each.number < asked.number and each.method in methods]

    def note_event(self, event: str, data: Data, *, sound: bool) -> None:
        """Take an event down. A run nobody has heard of is one whose admission was missed, or misspelt."""
        who = (data["session_id"], data["run_id"])
        if who not in self.run.known and data["run_id"] not in self.runs - {self.run.id}:
            self.run.known.append(who)
        run = self.run
        match event:
            case "input.persisted":
                self.acknowledged = data["revision"]
                self.durable.add(data["session_id"])
            case "message.delta":
                segment = run.segments.setdefault(data["message_id"], Segment())
                segment.delta = max(segment.delta, data["part"])
                segment.owing = segment.owing or bool(data["text"].strip())  # blank text need not be kept (D62)
            case "message.reconcile":
                _reconcile(run.segments.setdefault(data["message_id"], Segment()), data)
                run.partial = data["partial"]
            case "activity":
                run.activities.add(data["activity_id"])
            case "approval.requested":
                run.approvals.add(data["approval_id"])
            case "tool.card" if sound:
                run.cards[data["activity_id"]] = data["card"]
            case "client.tool.call" if sound:
                run.calls[data["call_id"]] = data
                self.calls.add(data["call_id"])
            case "run.finished":
                self._revise(data["revision"])
                self.worked, self.settled = True, False

    def note_result(self, asked: Asked, result: Data) -> None:
        """Take the result of a request down."""
        self._answered(asked)
        match asked.method:
            case "initialize":
                self._show(asked, result["status"])
            case "status":
                self._show(asked, result)
            case "session.create" | "session.open":
                self.session, self.arrived, self.settled = result["session_id"], "", False
                self._outdate(asked.method)
                self._revise(result["revision"])
                if result["durable"]:
                    self.durable.add(self.session)
            case "model.refresh":
                self.snapshots["catalog"] = Snapshot(result["catalog_revision"] or "")
                self.issued.add(result["catalog_revision"] or "")
                self.settled = False  # it may be one of the guards of EXT-REFRESH-42 (EXT-OP-33)
            case "selection.set":
                selection = result["selection"]
                if selection["revision"] != self.selection or self.replaced is not None:
                    self._outdate(asked.method)
                self._choose(selection, ahead=False)
                self._revise(result["history_revision"])
                self.durable.add(result["session_id"])
            case "turn.start":
                self.session = asked.name("session_id") or ""
                self.begin(self.session, result["run_id"])
            case "history.page":
                self.session = asked.name("session_id") or ""
        if asked.method in BRINGS:
            self.replaced = None
        self.worked = self.worked or (asked.method in WORKER_CODES and asked.method != "initialize")

    def note_page(self, asked: Asked, result: Data) -> None:
        """Take a page of a snapshot down, if the result is one. It must be of a sound shape."""
        name = SNAPSHOT_OF.get(asked.method)
        if name is None:
            return
        if name != "history" and not asked.continues:
            self.snapshots[name] = Snapshot(result["revision"])
        snapshot = self.snapshot(name)
        asked_for = asked.name("revision")
        if name == "discover":
            snapshot.revision = result["revision"]  # which need not be the one before (EXT-OP-08)
        elif asked_for is not None and asked_for != self.acknowledged:  # which may still be served (D64)
            snapshot.revision = asked_for
        if name == "catalog":
            self.issued.add(result["revision"])
            self.settled = False
        entries = entries_of(result)
        last = entries[-1] if entries else snapshot.cursors.get(asked.name("cursor"))
        if name == "discover":
            snapshot.cursors = {}  # a cursor of a scan is good for one use (EXT-DISC-41)
        if result["next_cursor"] is not None:
            snapshot.cursors[result["next_cursor"]] = last

    def begin(self, session: str, run: str) -> None:
        """A run begins."""
        self.run = RunMemory([(session, run)])
        self.runs.add(run)

    def note_error(self, asked: Asked, code: str) -> None:
        """Take an error down."""
        self._answered(asked)
        if asked.method == "initialize" and code in STARTUP_CODES:
            self.failed = code
        elif asked.method == "model.refresh" and code == "operation_cancelled":
            self.snapshots["catalog"] = Snapshot()
        if not any(each.method in BRINGS for each in self.waiting):
            self.replaced = None
        if code == "operation_cancelled":  # its work may have been done (EXT-OP-25)
            self.arrived = ""
        if code == "operation_cancelled" or (asked.method, code) == ("turn.start", "stale_selection"):
            self.settled = False

    def _answered(self, asked: Asked) -> None:
        self.waiting = [each for each in self.waiting if each is not asked]

    def _show(self, asked: Asked, status: Data) -> None:
        self.ready = self.ready or status["state"] in ("idle", "running")
        self.context = status["context_id"] or self.context
        session, selection = status["session_id"] or "", status.get("selection")
        self.arrived = session if session != self.session and self.before(asked, ATTACHES) else ""
        if selection is not None:
            self._choose(selection, ahead=bool(self.before(asked, BRINGS)))

    def _choose(self, selection: Data, *, ahead: bool) -> None:
        if not ahead:
            self.replaced = None
        if selection["revision"] != self.selection:
            if ahead and self.replaced is None:
                self.replaced = self.selection
            self.selection, self.chosen = selection["revision"], selection
        self.settled = True

    def _outdate(self, method: str) -> None:
        """The selection revision is replaced: the one before, where the new one has been told ahead."""
        self.outdated[self.selection if self.replaced is None else self.replaced] = method
        self.replaced = None

    def _revise(self, revision: str | None) -> None:
        if revision is None or revision != self.snapshot("history").revision:  # it need not change (BASE-OP-184)
            self.snapshots["history"] = Snapshot(revision or "")
        self.issued.add(revision or "")


def _reconcile(segment: Segment, data: Data) -> None:
    size = len(data["text"].encode("utf-8", "surrogatepass"))
    segment.size = size if data["part"] == 0 else segment.size + size
    segment.partial = data["partial"]
    segment.part = -1 if data["last_part"] else data["part"]
    segment.owing = segment.owing and not data["last_part"]


def entries_of(result: Data) -> list[Data]:
    """The entries of a page of any kind."""
    return list(next((result[key] for key in ("entries", "sessions", "choices") if key in result), []))
