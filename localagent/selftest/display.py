"""Faults of what is displayed and disclosed: text kept and told truly, nothing internal, nothing beside."""

import json
import os
from typing import Any

from msgspec.structs import replace

from .events import changing, sending
from .frames import rewriting
from .histories import paging, staleness_forgotten
from .mutant import fault
from .tools import around, bounds, put

_RUN = "5f0f8e0a-9f3c-4f5e-8d2b-7a6c5b4a3f2e"


def _lines_beside(name: str, line: Any) -> None:
    """Write what ``line`` makes of the data of an event, or nothing, before that event."""
    from localagent.core.connection import Connection
    from localagent.protocol.messages import EVENTS

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        beside = line(filled) if isinstance(filled, EVENTS[name]) else b""
        if beside:
            self.output.put(beside, now)
        original(self, filled, now)


@fault
def stored_records_passed_through() -> None:
    """What is stored of a run is written to the output as well, as it is stored."""
    from localagent.sessions.journal import Journal

    stored: list[bytes] = []

    @around(Journal, "append")
    def append(original: Any, self: Any, batch: Any, *rest: Any) -> Any:
        stored.append(batch.text)
        return original(self, batch, *rest)

    _lines_beside("input.persisted", lambda data: stored.pop())


@fault
def internal_events_written() -> None:
    """Before a delta the event of the provider that it came from is written."""
    _lines_beside("message.delta", lambda data: json.dumps({"type": "text_delta", "text": data.text}).encode() + b"\n")


@fault
def reasoning_told() -> None:
    """Raw reasoning is said as part of the answer."""
    from localagent.runner.stage import TurnStage

    @around(TurnStage, "summary")
    def summary(original: Any, self: Any, text: str, *rest: Any, **more: Any) -> None:
        original(self, text, *rest, **more)
        if not more.get("from_provider", True):
            self.text(text)


@fault
def output_frame_over() -> None:
    """A listing is a frame of 65,537 bytes."""
    from localagent.core import connection

    @around(connection, "encode")
    def encode(original: Any, frame: Any) -> bytes:
        line: bytes = original(frame)
        return b" " * (65_537 - len(line)) + line if b'"sessions":[' in line else line


@fault
def escapes_not_counted() -> None:
    """A part of an entry is as large as its text allows, however long that is as JSON."""
    from localagent.sessions import history

    around(history, "cut")(lambda original, text, raw, escaped: original(text, raw, 8 * raw))
    around(history.History, "_end")(lambda original, self, start: max(original(self, start), start + 1))


@fault
def summary_over() -> None:
    """The summary of an activity has 1,025 bytes."""
    changing("activity", lambda data: [replace(data, summary="x" * 1025)])


@fault
def activity_with_arguments() -> None:
    """An activity has a member with the arguments of the call."""
    rewriting(lambda frame: frame["data"].update(arguments={}) if frame.get("event") == "activity" else None)


@fault
def raw_params_in_a_name() -> None:
    """The name of an activity ends with the arguments as JSON."""
    from localagent.runner import recorder

    around(recorder, "_name")(lambda original, call: f"{call.name} {json.dumps(call.arguments)}")


@fault
def raw_results_in_a_summary() -> None:
    """The summary of an activity is the result as JSON."""
    changing("activity", lambda data: [replace(data, summary=json.dumps({"content": "notes.txt"}))])


@fault
def cards_for_everybody() -> None:
    """A card follows each activity though nobody has negotiated cards."""
    from localagent.protocol.events import ToolCard

    def change(data: Any) -> list[Any]:
        card = ToolCard(activity_id=data.activity_id, card={}, run_id=data.run_id, session_id=data.session_id)
        return [data, card]

    changing("activity", change)


@fault
def saved_cards_for_everybody() -> None:
    """Entries of activities have a card, null, though nobody has negotiated cards."""
    paging(lambda entries: [replace(each, tool_card=None) if each.kind == "activity" else each for each in entries])


@fault
def parts_counted_together() -> None:
    """The parts of a reconciliation are counted on from those of the deltas."""
    shown: dict[str, int] = {}

    def change(data: Any) -> list[Any]:
        from localagent.protocol.events import MessageDelta, MessageReconcile

        if isinstance(data, MessageDelta):
            shown[data.message_id] = data.part + 1
        return (
            [replace(data, part=data.part + shown.get(data.message_id, 0))]
            if isinstance(data, MessageReconcile)
            else [data]
        )

    sending(change)


@fault
def run_over_with_a_message() -> None:
    """A run is said to be over when its first message is whole."""
    from localagent.protocol.events import MessageReconcile, RunFinished

    told: set[str] = set()

    def change(data: Any) -> list[Any]:
        if isinstance(data, RunFinished):
            return [] if data.run_id in told else [data]
        if not isinstance(data, MessageReconcile) or not data.last_part or data.run_id in told:
            return [data]
        told.add(data.run_id)
        who: dict[str, Any] = {"run_id": data.run_id, "session_id": data.session_id}
        over = RunFinished(error_code=None, outcome="completed", persistence="durable", revision=None, **who)
        return [replace(data, partial=False), over]

    sending(change)


@fault
def cut_text_told_as_whole() -> None:
    """What a run says beyond its bound is left out, and the rest is told as whole."""
    from localagent.runner import recorder

    bounds(recorder, assistant_bytes=1000)
    changing("message.reconcile", lambda data: [replace(data, partial=False)])


@fault
def acknowledged_message_unknown() -> None:
    """input.persisted names a message that the history of its revision does not have, though pages of it are served."""
    staleness_forgotten()
    changing("input.persisted", lambda data: [replace(data, message_id="m999")])


@fault
def ids_of_each_page() -> None:
    """A page gives its messages ids that no other page has."""
    from itertools import count

    numbers = count(1)

    def change(entries: Any) -> Any:
        number = next(numbers)
        return [replace(each, message_id=f"{each.message_id}-{number}") for each in entries]

    paging(change)


def _listing(change: Any) -> None:
    """Let ``change`` make other entries of the entries of every scan."""
    from localagent.sessions.listing import _Scan

    @around(_Scan, "run")
    def run(original: Any, self: Any) -> Any:
        found = original(self)
        return found._replace(entries=tuple(change(found.entries)))


@fault
def listing_by_time() -> None:
    """A listing begins with the session that was used last."""
    _listing(lambda entries: sorted(entries, key=lambda each: each.updated_at or "", reverse=True))


@fault
def titles_generated() -> None:
    """A session without a title is listed with one that was made up."""
    _listing(lambda entries: [replace(each, title=each.title or f"Chat {each.session_id}") for each in entries])


@fault
def two_listings_at_once() -> None:
    """A listing can be continued after a fresh one."""
    from localagent.sessions.listing import Listing

    from .tools import unchecked

    unchecked("session.list/continuation", "SAME_LISTING")
    snapshots: dict[str, Any] = {}

    @around(Listing, "page")
    def page(original: Any, self: Any, revision: Any, *rest: Any) -> Any:
        self._snapshot = snapshots.get(revision, self._snapshot)
        given = original(self, revision, *rest)
        snapshots[given.revision] = self._snapshot
        return given


@fault
def listing_leaves_a_record() -> None:
    """A listing appends a record to every history that it shows."""
    from localagent.sessions.listing import Listing

    @around(Listing, "page")
    def page(original: Any, self: Any, *rest: Any) -> Any:
        given = original(self, *rest)
        with self._root.sessions() as directory:
            for each in given.sessions:
                record: dict[str, Any] = {"event_id": "9999", "event_type": "session_listed", "payload": {}}
                record |= {"timestamp": "2030-01-01T00:00:00Z", "session_id": each.session_id, "cwd": os.getcwd()}
                flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
                descriptor = os.open(f"{each.session_id}.jsonl", flags, dir_fd=directory)
                os.write(descriptor, json.dumps(record).encode() + b"\n")
                os.close(descriptor)
        return given


def turn_behind(kind: str) -> None:
    """Let a turn of nobody's be told behind each result of this kind."""
    from localagent.core.connection import Connection
    from localagent.core.fill import Answer
    from localagent.protocol import results
    from localagent.protocol.events import InputPersisted, RunFinished

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        original(self, filled, now)
        if isinstance(filled, Answer) and isinstance(filled.result, getattr(results, kind)):
            who: dict[str, Any] = {"run_id": _RUN, "session_id": self.facts.session_id or "nobody"}
            over: dict[str, Any] = {"error_code": None, "outcome": "completed", "persistence": "durable"}
            original(self, InputPersisted(message_id="m1", revision="again-1", **who), now)
            original(self, RunFinished(revision="again-2", **over, **who), now)


@fault
def listing_plays_a_turn() -> None:
    """A turn is played again while sessions are listed."""
    turn_behind("ListingPage")


@fault
def selection_configures() -> None:
    """selection.set takes a key, an address and a transport as well."""
    from localagent.protocol import codec

    @around(codec, "checked")
    def checked(original: Any, kind: Any, request: Any) -> Any:
        if request.method == "selection.set" and isinstance(request.params, dict):
            kept = {key: value for key, value in request.params.items() if key in kind.__struct_fields__}
            more = set(request.params) - set(kept)
            if more and more <= {"api_key", "base_url", "transport"}:
                request = codec.Request(request.id, request.method, kept, request.duplicate_inside)
        return original(kind, request)


@fault
def selection_plays_a_turn() -> None:
    """The last turn is played again with the model that was selected."""
    turn_behind("SelectionSaved")


@fault
def end_of_a_run_waits() -> None:
    """After a shutdown during a run the output waits until somebody takes it."""
    from localagent.core import connection
    from localagent.core.fill import Answer
    from localagent.core.output import OutputQueue
    from localagent.protocol.results import Stopping

    due, waits = OutputQueue.deadline, [False]

    @around(connection.Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        waits[0] |= isinstance(filled, Answer) and isinstance(filled.result, Stopping) and bool(self.facts.run.run_id)
        original(self, filled, now)

    put(OutputQueue, "deadline", property(lambda self: None if waits[0] else due.__get__(self)))
    bounds(connection, closing_ms=60_000)
