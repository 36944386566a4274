"""Faults of a run's events: which come, in which order, with what."""

from typing import Any

from msgspec.structs import replace

from .mutant import fault
from .tools import around, put


def sending(change: Any) -> None:
    """Let ``change`` say which event data become of each event's: a list."""
    from localagent.core.connection import Connection
    from localagent.protocol.results import Output

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        for each in change(filled) if isinstance(filled, Output) else (filled,):
            original(self, each, now)


def changing(name: str, change: Any) -> None:
    """Likewise for the events of one name only."""
    from localagent.protocol.messages import EVENTS

    kind = EVENTS[name]
    sending(lambda data: change(data) if isinstance(data, kind) else [data])


@fault
def finished_missing() -> None:
    """A run has no run.finished."""
    changing("run.finished", lambda data: [])


@fault
def finished_twice() -> None:
    """A run has two run.finished."""
    changing("run.finished", lambda data: [data, data])


def _after_the_end(name: str) -> None:
    """Let the last event of that name come again behind run.finished."""
    from localagent.protocol.events import RunFinished
    from localagent.protocol.messages import EVENTS

    last: list[Any] = []

    def change(data: Any) -> list[Any]:
        if isinstance(data, EVENTS[name]):
            last[:] = [data]
        return [data, *last] if isinstance(data, RunFinished) else [data]

    sending(change)


@fault
def delta_after_the_end() -> None:
    """A delta follows run.finished."""
    _after_the_end("message.delta")


@fault
def reconcile_after_the_end() -> None:
    """A reconciliation follows run.finished."""
    _after_the_end("message.reconcile")


@fault
def activity_after_the_end() -> None:
    """An activity follows run.finished."""
    _after_the_end("activity")


@fault
def persisted_missing() -> None:
    """A run has no input.persisted."""
    changing("input.persisted", lambda data: [])


@fault
def persisted_twice() -> None:
    """A run has two input.persisted."""
    changing("input.persisted", lambda data: [data, data])


@fault
def persisted_after_deltas() -> None:
    """input.persisted follows the first delta."""
    from localagent.protocol.events import InputPersisted, MessageDelta

    held: list[Any] = []

    def change(data: Any) -> list[Any]:
        if isinstance(data, InputPersisted):
            held[:] = [data]
            return []
        more, held[:] = (list(held), []) if isinstance(data, MessageDelta) else ([], held)
        return [data, *more]

    sending(change)


@fault
def persisted_not_durable() -> None:
    """input.persisted says that the input is not durable."""
    changing("input.persisted", lambda data: [replace(data, durable=False)])


@fault
def event_before_the_answer() -> None:
    """The first event of a run comes before the answer to turn.start."""
    from localagent.core import fill
    from localagent.core.connection import Connection
    from localagent.protocol.events import InputPersisted
    from localagent.protocol.results import TurnAccepted

    held: list[Any] = []

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        if isinstance(filled, fill.Answer) and isinstance(filled.result, TurnAccepted):
            held.append(filled)
            return
        original(self, filled, now)
        if held and isinstance(filled, InputPersisted):
            original(self, held.pop(), now)


@fault
def reconcile_appends() -> None:
    """A reconciliation holds only what deltas have not shown yet."""
    changing("message.reconcile", lambda data: [replace(data, text="")])


@fault
def reconcile_missing() -> None:
    """No segment is reconciled."""
    changing("message.reconcile", lambda data: [])


@fault
def reconcile_first_part_missing() -> None:
    """A reconciliation of several parts lacks the first."""
    changing("message.reconcile", lambda data: [] if data.part == 0 and not data.last_part else [data])


@fault
def reconcile_last_part_missing() -> None:
    """A reconciliation never says that it is whole."""
    changing("message.reconcile", lambda data: [replace(data, last_part=False)])


@fault
def reconcile_parts_from_one() -> None:
    """The parts of a reconciliation are counted from 1."""
    changing("message.reconcile", lambda data: [replace(data, part=data.part + 1)])


@fault
def reconcile_always_partial() -> None:
    """The last reconciliation of a completed run is partial."""
    changing("message.reconcile", lambda data: [replace(data, partial=True)])


@fault
def reconcile_chunk_over() -> None:
    """A part of a reconciliation has up to 4,001 bytes."""
    from localagent.runner import recorder

    around(recorder, "live_parts")(lambda original, text: original(text, 4001))


@fault
def delta_chunk_over() -> None:
    """A delta has up to 4,001 bytes."""
    from localagent.text import stream

    around(stream, "live_parts")(lambda original, text: original(text, 4001))


@fault
def events_of_another_run() -> None:
    """Events bear a run id that no turn.start has given."""
    foreign = "99999999-8888-4777-8666-555555555555"
    sending(lambda data: [replace(data, run_id=foreign)])


@fault
def events_of_another_session() -> None:
    """run.finished bears the id of another session."""
    changing("run.finished", lambda data: [replace(data, session_id="another")])


@fault
def unknown_event() -> None:
    """An event comes that the contract does not know."""
    from .frames import rewriting

    def change(frame: dict[str, Any]) -> None:
        if frame.get("event") == "message.delta":
            frame["event"] = "message.chunk"

    rewriting(change)


@fault
def outcome_unknown() -> None:
    """A run's outcome is ok."""
    changing("run.finished", lambda data: [replace(data, outcome="ok") if data.outcome == "completed" else data])


@fault
def persistence_wrong() -> None:
    """A stored run is reported as not stored."""
    changing("run.finished", lambda data: [replace(data, persistence="not_started")])


@fault
def degraded_told_as_durable() -> None:
    """A run that was not stored to its end is reported as durable."""
    changing(
        "run.finished", lambda data: [replace(data, persistence="durable") if data.persistence == "degraded" else data]
    )


@fault
def unsaved_input_degrades() -> None:
    """A run whose input was not stored is reported as degraded."""
    changing(
        "run.finished",
        lambda data: [replace(data, persistence="degraded") if data.persistence == "not_started" else data],
    )


@fault
def completed_with_a_code() -> None:
    """A completed run has an error code."""
    from localagent.protocol.codes import Code

    def change(data: Any) -> list[Any]:
        return [replace(data, error_code=Code.EXECUTION_FAILED) if data.outcome == "completed" else data]

    changing("run.finished", change)


@fault
def secrets_shown_live() -> None:
    """What is said is not redacted on its way to the screen."""
    from localagent.text import cut, stream

    def shown(self: Any, piece: str) -> list[str]:
        self._accepted.append(piece)
        return cut.live_parts(piece) if piece else []

    put(stream.DeltaStream, "feed", shown)
    put(stream.DeltaStream, "finish", lambda self: [])


@fault
def running_after_the_end() -> None:
    """status says running though the run is over."""
    from localagent.core import fill

    @around(fill, "status")
    def status(original: Any, facts: Any, engine: Any) -> Any:
        told = original(facts, engine)
        return replace(told, state="running", run_id=facts.run.run_id) if facts.run.run_id else told


@fault
def idle_during_a_run() -> None:
    """status says idle during a run."""
    from localagent.core import fill

    @around(fill, "status")
    def status(original: Any, facts: Any, engine: Any) -> Any:
        told = original(facts, engine)
        return replace(told, state="idle", run_id=None) if told.state == "running" else told


@fault
def run_without_its_id() -> None:
    """status says running without a run_id."""
    from localagent.core import fill

    around(fill, "status")(lambda original, facts, engine: replace(original(facts, engine), run_id=None))


@fault
def deltas_in_reverse() -> None:
    """The parts of a message's deltas decrease."""
    changing("message.delta", lambda data: [replace(data, part=1000 - data.part)])
