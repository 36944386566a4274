"""What the contract leaves to a backend is not held against it; its neighbour that the contract excludes still is."""

from typing import Any

import pytest

from tests.observe import traces as t
from tests.observe.traces import CALL, RUN, SELECTION, Trace, Write

CANCELLED = {"cancellation_requested": True}
STOPPING = {"state": "stopping"}
ACCEPTED = {"run_id": RUN, "accepted": True}
STALE = "stale_client_tool_call"


def _opened(w: Trace, session: str = "s1", revision: str = "h-1") -> Trace:
    told = {"session_id": session, "durable": True, "revision": revision, "notices": []}
    return w.ask("session.open", session_id=session).result(told)


def _paged(w: Trace, then: str) -> Trace:
    """A page of a listing, another opening, and the request of the next page."""
    _opened(w.ready()).ask("session.list").result(t.listing(next_cursor="k"))
    return _opened(w, then, "h-2").ask("session.list", revision="l-1", cursor="k")


def _diagnosed(w: Trace) -> Trace:
    return w.running().event("diagnostic", code="storage", summary="append failed")


def _calling(w: Trace) -> Trace:
    return w.running("client.tools").call()


def _acting(w: Trace, *states: str) -> Trace:
    w.running("tool.cards")
    for state in ("started", *states):
        w.activity(state)
    return w


def _both(w: Trace, method: str = "session.list", **params: Any) -> Trace:
    """``turn.start``, and another request right behind it."""
    return w.attached().ask("turn.start", id="turn", session_id="s1", prompt="x").ask(method, id="next", **params)


def _status(state: str, run: str | None) -> dict[str, Any]:
    return t.status(state, session_id="s1", run_id=run, selection={**SELECTION, "revision": "sel-2"})


LEFT_FREE: dict[str, Write] = {
    # persistence
    "degraded without a diagnostic": lambda w: w.running().finished("failed", persistence="degraded").shut().exit(),
    "completed and degraded": lambda w: w.running().whole().finished(persistence="degraded"),
    "cancelled and degraded": lambda w: (
        w.running().cancel().result(CANCELLED).finished("cancelled", persistence="degraded")),
    "beyond the bounds, and degraded": lambda w: w.running().finished(
        "failed", persistence="degraded", error_code="content_limit"),
    "degraded, told in advance": lambda w: _diagnosed(w).finished("failed", persistence="degraded"),
    # listings
    "the attached session opened again, then the page": lambda w: _paged(w, "s1").result(t.listing()),
    "the attached session opened again, then stale": lambda w: _paged(w, "s1").error("stale_revision"),
    "another session opened, then stale": lambda w: _paged(w, "s2").error("stale_revision"),
    # client tool calls
    "shutdown cancels a call as cancelled": lambda w: (
        _calling(w).ask("shutdown").result(STOPPING).uncall("cancelled").finished("cancelled").exit()),
    "turn.cancel cancels a call as run_finished": lambda w: (
        _calling(w).cancel().result(CANCELLED).uncall("run_finished").finished("cancelled")),
    "a call cancelled as shutdown, for no reason that is known": lambda w: _calling(w).uncall("shutdown").finished(),
    "a call that is pending when its run ends": lambda w: _calling(w).finished().shut().exit(),
    "a call that is pending when its run fails": lambda w: _calling(w).finished("failed"),
    "a call that is pending when its run is cancelled": lambda w: (
        _calling(w).cancel().result(CANCELLED).finished("cancelled").shut().exit()),
    "a call that is told cancelled when its run has ended": lambda w: _calling(w).finished().uncall("run_finished"),
    "two calls pending when their run ends": lambda w: (
        _calling(w).call("b81f0c95-3d47-4a16-8d6e-94c7e0a2f5aa").finished()),
    "a stale result before the cancel event": lambda w: (
        _calling(w).deliver().error(STALE).uncall("timeout").finished()),
    "a stale result, and the cancel event never comes": lambda w: _calling(w).deliver().error(STALE).delta().whole()
    .finished().shut().exit(),
    "a stale result before the event of another cancel": lambda w: (
        _calling(w).deliver().error(STALE).uncall("cancelled").delta().whole().finished()),
    # cards
    "a first card that is finished": lambda w: _acting(w, "completed").carded(t.card(0, "success")).finished(),
    "a first card that is finished, and more detail": lambda w: (
        _acting(w, "failed").carded(t.card(0, "failure")).carded(t.card(1, "failure")).finished("failed")),
    "unknown after completed": lambda w: (
        _acting(w).carded(t.card()).activity("completed").carded(t.card(1, "unknown")).finished()),
    "failure after completed": lambda w: (
        _acting(w).carded(t.card()).activity("completed").carded(t.card(1, "failure")).finished()),
    "interrupted after failed": lambda w: (
        _acting(w).carded(t.card()).activity("failed").carded(t.card(1, "interrupted")).finished("failed")),
    "a first card, running, behind the end": lambda w: (
        _acting(w, "completed").carded(t.card()).carded(t.card(1, "success")).finished()),
    # answers that overtake turn.start
    "busy while a turn is admitted": lambda w: (
        _both(w).error("busy", "next").result(ACCEPTED, "turn").persisted().finished()),
    "busy while a turn is admitted that is refused then": lambda w: (
        _both(w).error("busy", "next").error("history_limit", "turn").ask("session.list").result(t.listing())),
    "another turn while one is admitted": lambda w: (
        _both(w, "turn.start", session_id="s1", prompt="y").error("busy", "next").result(ACCEPTED, "turn").persisted()),
    "a status, idle, while a turn is admitted": lambda w: (
        _both(w, "status").result(_status("idle", None), "next").result(ACCEPTED, "turn").persisted().finished()),
    "a status, running, while a turn is admitted": lambda w: (
        _both(w, "status").result(_status("running", RUN), "next").result(ACCEPTED, "turn").persisted().finished()),
    "a refusal behind the answer to a status": lambda w: (
        w.ready().ask("turn.start", id="turn", session_id="s1", prompt="x").ask("status", id="s")
        .result(t.status(), "s").error("session_missing", "turn").shut().exit()),
    "a refusal of the preflight behind a listing": lambda w: (
        _both(w).result(t.listing(), "next").error("stale_selection", "turn").shut().exit()),
    "shutdown while a turn is admitted": lambda w: (
        _both(w, "shutdown").result(STOPPING, "next").result(ACCEPTED, "turn")
        .finished("cancelled", persistence="not_started", revision=None).exit()),
    # answers that what they cause overtakes
    "recorded behind the end of the run": lambda w: (
        w.running().approval().allow(allow=False).finished("failed").result({"recorded": True}).shut().exit()),
    "recorded behind the tool": lambda w: (
        w.running().approval().allow().activity("started").result({"recorded": True}).activity("completed").finished()),
    "stale behind the end of the run": lambda w: (
        w.running().approval().allow().finished().error("stale_approval").shut().exit()),
    "accepted behind the end of the run": lambda w: (
        _calling(w).deliver().finished().result({"accepted": True}).shut().exit()),
    # deltas
    "deltas behind stale_run": lambda w: (
        w.running().delta().cancel().error("stale_run").delta(part=1).whole().finished()),
    # cleanup
    "busy right after a first operation that failed": lambda w: (
        w.ready().ask("session.list").error("discovery_limit").ask("session.list").error("busy")),
    "busy right after a first operation that was cancelled": lambda w: (
        w.ready("operation.cancel").ask("session.list", id="l").ask("operation.cancel", request_id="l")
        .result({"state": "cancelling", "request_id": "l"}).error("operation_cancelled", id="l")
        .ask("session.create").error("busy")),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_FREE)
def test_what_the_contract_leaves_free_is_held_against_nobody(name: str) -> None:
    trace = Trace()
    LEFT_FREE[name](trace)
    trace.observer.finish()
    assert [each for each in trace.findings if not each.reading] == []


EXCLUDED: list[tuple[str, Write]] = [
    # persistence
    ("EVT-44", lambda w: w.started().finished("failed", persistence="degraded")),
    ("EVT-44", lambda w: w.running().finished(persistence="not_started")),
    # listings
    ("LIST-58", lambda w: _paged(w, "s2").result(t.listing())),
    ("LIST-58", lambda w: _opened(_opened(_opened(w.ready()).ask("session.list").result(t.listing(next_cursor="k")),
                                          "s2", "h-2"), "s1", "h-3")
     .ask("session.list", revision="l-1", cursor="k").result(t.listing())),
    # client tool calls
    ("CT-128", lambda w: _calling(w).uncall("timeout").uncall("timeout")),
    ("EVT-12", lambda w: _calling(w).finished().uncall("run_finished").uncall("run_finished")),
    ("CT-110", lambda w: _calling(w).deliver().error(STALE).deliver().result({"accepted": True})),
    ("CT-110", lambda w: _calling(w).deliver().result({"accepted": True}).deliver().result({"accepted": True})),
    ("CT-125", lambda w: _calling(w).uncall("bored")),
    # cards
    ("TC-162", lambda w: w.running("tool.cards").carded(t.card(0, "success"))),
    ("TC-172", lambda w: _acting(w).carded(t.card()).carded(t.card(1, "success"))),
    ("TC-172", lambda w: _acting(w).carded(t.card()).carded(t.card(1, "failure"))),
    ("TC-60", lambda w: _acting(w).carded(t.card()).activity("failed").carded(t.card(1, "success"))),
    ("TC-175", lambda w: (
        _acting(w).carded(t.card()).activity("completed").carded(t.card(1, "success")).carded(t.card(2, "unknown")))),
    ("TC-175", lambda w: (
        _acting(w).carded(t.card()).activity("completed").carded(t.card(1, "success")).carded(t.card(2)))),
    # answers that overtake turn.start
    ("SESS-07", lambda w: _both(w).result(t.listing(), "next").result(ACCEPTED, "turn")),
    ("EVT-03", lambda w: _both(w).error("busy", "next").persisted().result(ACCEPTED, "turn")),
    ("STATUS-15", lambda w: _both(w, "status").result(_status("idle", RUN), "next").result(ACCEPTED, "turn")),
    ("STATUS-15", lambda w: _both(w, "status").result(_status("running", None), "next").result(ACCEPTED, "turn")),
    ("TURN-14", lambda w: (
        _both(w, "turn.start", session_id="s1", prompt="y").result(ACCEPTED, "next")
        .result({**ACCEPTED, "run_id": CALL}, "turn"))),
    ("ERR-01", lambda w: _both(w).error("busy", "next").error("stale_run", "turn").ask("session.list")
     .result(t.listing())),
    # answers that what they cause overtakes
    ("APPR-04", lambda w: w.running().approval().allow().finished().result({"recorded": True}).allow()
     .result({"recorded": True})),
    ("APPR-04", lambda w: w.running().approval().finished().allow().result({"recorded": True})),
    ("FLOW-05", lambda w: w.running().approval().allow().finished().ask("shutdown", id="q").exit()),
    # deltas
    ("EVT-12", lambda w: w.running().delta().cancel().error("stale_run").whole().finished().delta(part=1)),
    # cleanup
    ("SESS-06", lambda w: w.ready().ask("session.list").error("busy")),
    ("SESS-06", lambda w: w.ready().ask("session.list", limit=0).error("invalid_params").ask("session.list")
     .error("busy")),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "write"), EXCLUDED, ids=[f"{case[0]}-{i}" for i, case in enumerate(EXCLUDED)])
def test_what_it_excludes_is_still_found(clause: str, write: Write) -> None:
    trace = Trace()
    write(trace)
    assert [each.clauses[0] for each in trace.findings if not each.reading] == [clause], trace.findings


READINGS: dict[str, Write] = {
    "TC-OP-14": lambda w: _acting(w, "completed").carded(t.card(0, "success")),
    "TC-OP-15": lambda w: _acting(w).carded(t.card()).activity("completed").carded(t.card(1, "unknown")),
    "CT-OP-23": lambda w: _calling(w).finished().shut().exit(),
}


@pytest.mark.parametrize("clause", READINGS)
def test_our_reading_is_told_all_the_same(clause: str) -> None:
    trace = Trace()
    READINGS[clause](trace)
    assert [(each.clauses[0], each.reading) for each in trace.findings] == [(clause, True)]


def test_a_delta_of_white_space_leaves_nothing_to_reconcile() -> None:
    trace = Trace().running().delta("\n\n")
    assert trace.states("message:m1") == {"message:m1": "none"}
    trace.delta(part=1)
    assert trace.states("message:m1") == {"message:m1": "streaming"}
    trace.whole().delta(" ", part=2)
    assert trace.states("message:m1") == {"message:m1": "reconciled"}


def test_a_stale_result_shows_that_the_call_has_ended() -> None:
    trace = _calling(Trace()).deliver().error(STALE)
    assert ("TIMER_EXPIRED", True) in [(step.input.name, step.inferred) for step in trace.told[-1].steps]
    assert trace.states(f"client_call:{CALL}") == {f"client_call:{CALL}": "expired"}


def test_the_reason_of_a_cancel_event_says_what_likely_ended_the_call() -> None:
    steps = _calling(Trace()).uncall("cancelled").told[-1].steps
    assert "WORKER_CALL_CANCELLED" in [step.input.name for step in steps]
