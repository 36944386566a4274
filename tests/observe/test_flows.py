"""Sound conversations: everything is explained, what is seen and what is inferred is told apart."""

import pytest

from statemachines.observe import Explanation, Line
from tests.observe import traces as t
from tests.observe.traces import APPROVAL, RUN, SELECTION, Trace, Write

OTHER = "0f0c7d2e-64a1-4f58-8f2d-0a9be3c45a10"
CANCELLED = {"cancellation_requested": True}
STOPPING = {"state": "stopping"}
_SELECT = {"selection_revision": "sel-5", "catalog_revision": "c-1"}


def _init(w: Trace, *names: str) -> Trace:
    return w.ask("initialize", required_capabilities=list(names))


def _moves(explanation: Explanation) -> list[tuple[str, str, bool]]:
    return [(step.instance, step.input.name, step.inferred) for step in explanation.steps]


def _selecting(w: Trace) -> Trace:
    w.attached().ask("model.catalog").result(t.catalog(t.choice()))
    w.ask("status").result(t.status(session_id="s1", selection={**SELECTION, "revision": "sel-5"}))
    return w.ask("selection.set", **_SELECT, session_id="s1", provider="p", model="m", effort={"mode": "keep"})


def _foreign(version: object) -> dict[str, object]:
    return {"protocol": t.PROTOCOL, "version": version, "id": "q", "method": "status", "params": {}}


SOUND: dict[str, Write] = {
    "an approval that is allowed": lambda w: (
        w.running().approval().allow().result({"recorded": True}).activity("started").activity("completed").finished()),
    "an approval that is denied": lambda w: (
        w.running().approval().allow(allow=False).result({"recorded": True}).finished("failed")),
    "an approval that expires": lambda w: (
        w.running().approval().allow().error("stale_approval").delta().whole().finished()),
    "an approval that the run's end voids": lambda w: w.running().approval().finished().allow().error("stale_approval"),
    "an approval named wrongly": lambda w: w.running().approval().allow(OTHER).error("stale_approval"),
    "an approval of another session": lambda w: w.running().approval().allow(session_id="s2").error("stale_session"),
    "a cancelled run": lambda w: (
        w.running().delta().cancel().result(CANCELLED).whole(partial=True).finished("cancelled")),
    "completed although cancelled": lambda w: w.running().cancel().result(CANCELLED).whole().finished(),
    "failed although cancelled": lambda w: w.running().cancel().result(CANCELLED).finished("failed"),
    "cancelled twice": lambda w: (
        w.running().cancel().result(CANCELLED).cancel().result(CANCELLED).finished("cancelled")),
    "acknowledged after it ended by itself": lambda w: w.running().cancel().finished().result(CANCELLED),
    "cancelled while finishing, and told stale": lambda w: w.running().cancel().error("stale_run").finished(),
    "cancelled before the input was stored": lambda w: (
        w.started().cancel().result(CANCELLED).finished("cancelled", persistence="not_started", revision=None)),
    "cancelled, the append came first": lambda w: (
        w.started().cancel().result(CANCELLED).persisted().finished("cancelled")),
    "an append of the input that failed": lambda w: w.started().finished("failed", persistence="not_started"),
    "a later append that failed": lambda w: (
        w.running().event("diagnostic", code="storage", summary="x").finished("failed", persistence="degraded")),
    "a diagnostic of another kind": lambda w: w.running().event("diagnostic", code="mcp", summary="x").finished(),
    "an undeliverable event": lambda w: w.running().delta().finished("cancelled", error_code="output_unavailable"),
    "an undeliverable event behind a reconciliation": lambda w: w.running().whole().finished(
        "cancelled", error_code="output_unavailable"),
    "an undeliverable event, told as failed": lambda w: w.running().delta().finished(
        "failed", error_code="output_unavailable"),
    "a segment in parts": lambda w: w.running().delta().whole(last_part=False).whole(part=1).finished(),
    "a status during a run": lambda w: w.running().ask("status").result(
        t.status("running", session_id="s1", run_id=RUN, selection={**SELECTION, "revision": "sel-2"})).finished(),
    "a status right after a run": lambda w: w.running().finished().ask("status").result(
        t.status("running", session_id="s1", run_id=RUN, selection={**SELECTION, "revision": "sel-2"})),
    "further keys of frames": lambda w: (
        w.ready().ask("session.list").result(t.listing(t.listed(), next_cursor="k"), extra=1)
        .ask("session.list", revision="l-1", cursor="k").result(t.listing(), extra=2)),
    "busy during a run": lambda w: w.running().ask("session.list").error("busy").finished(),
    "busy for a moment after a run": lambda w: (
        w.running().finished().ask("turn.start", session_id="s1", prompt="x").error("busy")),
    "a client tool call": lambda w: w.running("client.tools").call().deliver().result({"accepted": True}).finished(),
    "a client tool call that times out": lambda w: (
        w.running("client.tools").call().uncall("timeout").deliver().error("stale_client_tool_call").finished()),
    "a client tool call whose task was cancelled": lambda w: (
        w.running("client.tools").call().uncall("cancelled").finished()),
    "a client tool call that the run's end cancels": lambda w: (
        w.running("client.tools").call().uncall("run_finished").finished()),
    "a client tool call that turn.cancel cancels": lambda w: (
        w.running("client.tools").call().cancel().result(CANCELLED).uncall("cancelled").finished("cancelled")),
    "the cancel event before the acknowledgement": lambda w: (
        w.running("client.tools").call().cancel().uncall("cancelled").result(CANCELLED).finished("cancelled")),
    "a client tool call that shutdown cancels": lambda w: (
        w.running("client.tools").call().ask("shutdown").result(STOPPING).uncall("shutdown").finished("cancelled")
        .exit()),
    "a result that protection refuses": lambda w: (
        w.running("client.tools").call().deliver().error("invalid_params").deliver().result({"accepted": True})),
    "client.tool.result without negotiation": lambda w: w.running().deliver().error("unsupported_method"),
    "a card and its finish": lambda w: (
        w.running("tool.cards").activity("started").carded(t.card()).carded(t.card(1)).activity("completed")
        .carded(t.card(2, "success")).carded(t.card(4, "success")).finished()),
    "a card that is left unresolved": lambda w: (
        w.running("tool.cards").activity("started").carded(t.card()).carded(t.card(1, "interrupted"))
        .finished("failed")),
    "shutdown while starting": lambda w: (
        _init(w).ask("shutdown", id="q").result(STOPPING, id="q").error("startup_cancelled", id="r1").exit()),
    "shutdown while starting, the other way round": lambda w: (
        _init(w).ask("shutdown", id="q").error("startup_cancelled", id="r1").result(STOPPING, id="q").exit()),
    "shutdown during an operation": lambda w: (
        w.ready().ask("session.list").ask("shutdown", id="q").error("operation_cancelled", id="r2")
        .result(STOPPING, id="q").exit()),
    "shutdown, and the operation wins": lambda w: (
        w.ready().ask("session.list").ask("shutdown", id="q").result(STOPPING, id="q").result(t.listing(), id="r2")
        .exit()),
    "shutdown during an operation that does not end in time": lambda w: (
        w.ready().ask("session.list").ask("shutdown", id="q").result(STOPPING, id="q").exit()),
    "shutdown during a run": lambda w: (
        w.running().delta().ask("shutdown").result(STOPPING).whole(partial=True).finished("cancelled").exit()),
    "shutdown during a run that does not end": lambda w: w.running().ask("shutdown").result(STOPPING).exit(1),
    "requests behind shutdown": lambda w: (
        w.ready().ask("shutdown").ask("status", id="q").result(STOPPING, id="r2").ask("status", id="p").exit()),
    "bad params of shutdown": lambda w: w.ask("shutdown", now=True).error("invalid_params").shut().exit(),
    "shutdown at once": lambda w: w.shut().exit(),
    "end of input when idle": lambda w: w.ready().close().exit(),
    "end of input during a run, no terminal": lambda w: w.running().delta().close().exit(),
    "end of input during a run, terminal delivered": lambda w: w.running().close().finished("cancelled").exit(),
    "end of input during a run, status 1": lambda w: w.running().close().exit(1),
    "end of input during an operation": lambda w: (
        w.ready().ask("session.list").close().error("operation_cancelled").exit()),
    "end of input during an operation, no answer": lambda w: w.ready().ask("session.list").close().exit(),
    "end of input while starting": lambda w: _init(w).close().exit(),
    "end of input while starting, answered": lambda w: _init(w).close().error("startup_cancelled").exit(),
    "end of input inside a frame": lambda w: w.ready().close(inside=True).error("incomplete_frame", id=None).exit(),
    "end of input inside a frame while starting": lambda w: (
        _init(w).close(inside=True).error("startup_cancelled", id="r1").error("incomplete_frame", id=None).exit()),
    "end of input inside a frame, behind shutdown": lambda w: w.ready().shut().close(inside=True).exit(),
    "end of input inside a frame, behind shutdown, answered": lambda w: (
        w.ready().shut().close(inside=True).error("incomplete_frame", id=None).exit()),
    "end of input that nobody recorded": lambda w: w.running().delta().exit(),
    "output lost": lambda w: w.running().ask("status").exit(1),
    "output lost while stopping": lambda w: w.ready().shut().exit(1),
    "a launch that failed": lambda w: w.exit(2),
    "a signal": lambda w: w.running().exit(-9),
    "a trace that just ends": lambda w: w.running().ask("status"),
    "operation.cancel": lambda w: (
        w.ready("operation.cancel").ask("session.list", id="l").ask("operation.cancel", request_id="l")
        .result({"state": "cancelling", "request_id": "l"}).error("operation_cancelled", id="l")),
    "operation.cancel, answered last": lambda w: (
        w.ready("operation.cancel").ask("session.list", id="l").ask("operation.cancel", request_id="l")
        .error("operation_cancelled", id="l").result({"state": "cancelling", "request_id": "l"})),
    "operation.cancel that comes too late": lambda w: (
        w.ready("operation.cancel").ask("session.list", id="l").ask("operation.cancel", request_id="l")
        .result({"state": "cancelling", "request_id": "l"}).result(t.listing(), id="l")),
    "operation.cancel not negotiated": lambda w: (
        w.ask("operation.cancel", request_id="x").error("unsupported_capability")),
    "status while starting": lambda w: (
        _init(w).ask("status", id="q").result(t.status("starting"), id="q").result(t.initialized(), id="r1")),
    "status failed a moment early": lambda w: (
        _init(w).ask("status", id="q").result(t.status("failed", readiness="startup_failed"), id="q")
        .error("startup_failed", id="r1")),
    "a failed startup": lambda w: (
        _init(w).error("mcp_unavailable").ask("session.create").error("mcp_unavailable")
        .ask("status").result(t.status("failed", readiness="mcp_unavailable")).shut().exit()),
    "a second initialize": lambda w: _init(w.ready()).error("already_initialized"),
    "a corrected initialize": lambda w: (
        _init(_init(w, "no.such").error("unsupported_capability")).result(t.initialized())),
    "an unknown method before initialize": lambda w: w.ask("no.such").error("not_initialized"),
    "an unknown method": lambda w: w.ready().ask("no.such").error("unsupported_method"),
    "busy while starting": lambda w: _init(w).ask("model.catalog").error("busy"),
    "a capability that was not required": lambda w: w.ready().ask("session.list").error("unsupported_capability"),
    "a duplicate id, answered before the first": lambda w: (
        w.ready().ask("session.list", id="d").ask("status", id="d").error("duplicate_id").result(t.listing())),
    "a duplicate id afterwards": lambda w: w.ready().ask("status", id="d").result(t.status()).ask("status", id="d")
        .error(
        "duplicate_id"),
    "another version": lambda w: w.ready().line(_foreign(2)).error("protocol_mismatch", id="q").exit(),
    "another version, null id": lambda w: w.ready().line(_foreign(2)).error("protocol_mismatch", id=None).exit(),
    "an odd version": lambda w: w.ready().line(_foreign("1")).error("invalid_request", id=None).shut().exit(),
    "another version while starting": lambda w: (
        _init(w).line(_foreign(2)).error("protocol_mismatch", id="q").error("startup_cancelled", id="r1").exit()),
    "no JSON": lambda w: w.line(None, Line(3, broken=True)).error("invalid_request", id=None).shut().exit(),
    "broken framing": lambda w: w.line(None, Line(3, broken=True)).error("invalid_frame", id=None).shut().exit(),
    "too deep": lambda w: w.line([[]] * 2 and _deep(33)).error("invalid_frame", id=None).shut().exit(),
    "a number out of range": lambda w: (
        w.line({**_foreign(1), "params": {"x": float("inf")}}).error("invalid_request", id=None)),
    "a lone surrogate": lambda w: w.line({**_foreign(1), "params": {"x": "\ud800"}}).error("invalid_request", id=None),
    "params that are no object": lambda w: w.ready().line({**_foreign(1), "params": []}).error("invalid_params", "q"),
    "params that are no object, by the envelope": lambda w: (
        w.ready().line({**_foreign(1), "params": []}).error("invalid_request", None)),
    "cancelling without a session": lambda w: w.ready().cancel().error("session_missing"),
    "cancelling a run that is named oddly": lambda w: w.ready().cancel(run_id="x").error("invalid_params"),
    "a repeated key": lambda w: w.line(_foreign(1), Line(99, repeated="top")).error("invalid_request", id=None),
    "a repeated key in params": lambda w: (
        w.ready().line({**_foreign(1), "method": "session.list"}, Line(99, repeated="params"))
        .error("invalid_params", "q")),
    "a frame too large": lambda w: (
        w.ready().line(None, Line(65537, broken=True)).error("frame_too_large", id=None).exit()),
    "a bad method name": lambda w: w.line({**_foreign(1), "method": "a b"}).error("invalid_request", id="q"),
    "selecting a model": lambda w: _selecting(w).result(t.selected()).ask("status").result(
        t.status(session_id="s1", selection={**SELECTION, "revision": "sel-2"})),
    "selecting, refused by the worker": lambda w: _selecting(w).error("effort_unsupported"),
    "selecting, the selection has moved": lambda w: (
        _selecting(w).result(t.selected())
        .ask("selection.set", **_SELECT, session_id="s1", provider="p", model="m").error("stale_selection")),
    "refreshing": lambda w: (
        w.ready("model.refresh").ask("model.catalog").result(t.catalog(t.choice(), next_cursor="k"))
        .ask("model.refresh", provider="p").result(t.refreshed())
        .ask("model.catalog", revision="c-1", cursor="k").error("stale_catalog")),
    "a refresh that is cancelled": lambda w: (
        w.ready("model.refresh", "operation.cancel").ask("model.refresh", provider="p", id="m")
        .ask("operation.cancel", request_id="m").result({"state": "cancelling", "request_id": "m"})
        .error("operation_cancelled", id="m")),
    "catalog pages": lambda w: (
        w.ready("model.catalog.status").ask("model.catalog").result(t.catalog(t.choice("a"), next_cursor="k"))
        .ask("model.catalog.status", revision="c-1", cursor="k")

        .result(t.providers(t.provider(), choices=[t.choice("b")]))),
    "history pages": lambda w: (
        w.attached().ask("history.page", session_id="s1", revision="h-1")
        .result(t.history(t.entry(last_part=False), next_cursor="k", complete=False))
        .ask("history.page", session_id="s1", revision="h-1", cursor="k").result(t.history(t.entry(part=1)))),
    "history with cards": lambda w: (
        w.attached("tool.cards").ask("history.page", session_id="s1", revision="h-1").result(t.history(t.entry(
            "a1", kind="activity", tool_card=t.card(outcome="success", origin="saved"))))),
    "the acknowledgement's revision": lambda w: (
        w.running().finished().ask("history.page", session_id="s1", revision="h-2").error("stale_revision")),
    "a listing that was spoilt by an attach": lambda w: (
        w.ready().ask("session.list").result(t.listing(next_cursor="k")).ask("session.create")
        .result({"session_id": "s1", "durable": False, "revision": "h-1", "notices": []})
        .ask("session.list", revision="l-1", cursor="k").error("stale_revision")),
    "a cursor that was never issued": lambda w: (
        w.ready().ask("session.list", revision="l-1", cursor="k").error("invalid_params")),
    "a session that is missing": lambda w: w.ready().ask("session.open", session_id="s9").error("session_missing"),
    "a turn refused for its history": lambda w: (
        w.attached().ask("turn.start", session_id="s1", prompt="x").error("history_limit")),
    "a blank prompt": lambda w: w.attached().ask("turn.start", session_id="s1", prompt=" ").error("content_limit"),
    "a refusal that comes late": lambda w: (
        w.ready().ask("history.page", session_id="s1", revision="h-1", id="p").ask("status", id="q")
        .result(t.status(), id="q").error("session_missing", id="p").shut().exit()),
    "a refusal that comes late, when its ground has gone": lambda w: (
        w.running().ask("session.list", id="l").ask("status", id="q")
        .result(t.status("running", session_id="s1", run_id=RUN, selection={**SELECTION, "revision": "sel-2"}), id="q")
        .finished().error("busy", id="l").shut().exit()),
    "a startup that is ready before it sees the shutdown": lambda w: (
        _init(w).ask("shutdown", id="q").result(STOPPING, id="q").result(t.initialized(), id="r1").exit()),
    "a page of the acknowledged revision": lambda w: (
        w.running().finished().ask("history.page", session_id="s1", revision="h-2").result(t.history(revision="h-2"))
        .ask("history.page", session_id="s1", revision="h-3").result(t.history(revision="h-3"))),
    "requests sent ahead": lambda w: (
        _init(w).ask("session.create").ask("status", id="s").result(t.initialized(), id="r1")
        .result({"session_id": "s1", "durable": False, "revision": "h-1", "notices": []}, id="r2")
        .result(t.status(session_id="s1", selection={**SELECTION, "revision": "sel-2"}), id="s")),
}  # fmt: skip


def _deep(depth: int) -> object:
    value: object = 0
    for _ in range(depth):
        value = [value]
    return {**_foreign(1), "params": value}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_conversation_is_explained(name: str) -> None:
    trace = Trace()
    SOUND[name](trace)
    trace.told.append(trace.observer.finish())
    assert trace.findings == []


def test_what_no_frame_shows_is_marked() -> None:
    trace = Trace().running().whole().finished()
    assert _moves(trace.told[-1]) == [
        ("run", "WORKER_COMPLETED", True),
        ("run", "WORKER_GONE", False),
        ("history", "JOINT_STALE", False),
        ("history", "WORKER_REVISED", False),
    ]


def test_input_persisted_shows_the_append() -> None:
    moves = _moves(Trace().running().told[-1])
    assert ("run", "WORKER_INPUT_APPENDED", False) in moves
    assert all(not inferred for *_, inferred in moves)


def test_an_approval_refused_as_stale_has_expired() -> None:
    trace = Trace().running().approval().allow().error("stale_approval")
    assert _moves(trace.told[-1]) == [(f"approval:{APPROVAL}", "TIMER_EXPIRED", True)]
    assert trace.observer.guesses > 1  # or the run is over, or being cancelled: later frames decide
    trace.delta()  # which a run that is finishing may still send, though less likely
    assert trace.states(f"approval:{APPROVAL}", "run") == {f"approval:{APPROVAL}": "expired", "run": "executing"}


def test_an_undeliverable_event_is_inferred_from_the_code() -> None:
    trace = Trace().running().finished("cancelled", error_code="output_unavailable")
    assert _moves(trace.told[-1])[:3] == [
        ("channel", "WORKER_WAITS", True),
        ("channel", "WORKER_UNDELIVERABLE", True),
        ("run", "JOINT_UNDELIVERABLE", True),
    ]


def test_lost_output_is_inferred_from_the_status() -> None:
    trace = Trace().running().exit(1)
    told = next(each for each in trace.told if each.label == "exit status 1")
    assert all(step.inferred for step in told.steps)
    assert trace.states("output", "connection") == {"output": "lost", "connection": "closed"}


def test_a_line_of_the_client_is_explained_by_its_answer() -> None:
    trace = Trace().ready().ask("session.create")
    assert trace.told[-1].steps == ()
    trace.result({"session_id": "s1", "durable": False, "revision": "h-1", "notices": []})
    assert _moves(trace.told[-1])[0] == ("operation", "RECV_ATTACH", False)


def test_a_line_behind_shutdown_is_discarded_at_once() -> None:
    trace = Trace().ready().shut().ask("status")
    assert _moves(trace.told[-1]) == [("connection", "RECV_DISCARDED", False)]


def test_a_refusal_names_its_check() -> None:
    assert "refused: not run active (TURN-23)" in Trace().attached().cancel().error("stale_run").told[-1].notes


def test_the_word_of_the_backend_is_said_to_be_taken() -> None:
    trace = Trace().ready("model.refresh").ask("model.refresh", provider="q").error("invalid_params")
    assert "the backend's word is taken" in trace.told[-1].notes[0]


def test_a_gap_in_seq_is_no_fault_but_is_told() -> None:
    trace = Trace().ready().ask("status").result(t.status(), seq=5)
    assert trace.findings == []
    assert trace.told[-1].notes == ("seq skips from 1 to 5",)


def test_a_new_run_has_new_machines() -> None:
    trace = Trace().running().activity("started").whole().finished()
    trace.ask("turn.start", session_id="s1", prompt="x").result({"run_id": OTHER, "accepted": True})
    assert not [name for name in trace.observer.world if ":" in name]
    assert trace.states("run", "persistence") == {"run": "admitted", "persistence": "unstored"}


def test_the_end_of_a_trace_tells_what_is_open() -> None:
    trace = Trace().running().ask("status")
    assert trace.observer.finish().notes == ("open: status r4 was not answered", "open: run.finished was not sent")


def test_an_operation_that_outlasts_the_closing_deadline_is_told() -> None:
    trace = Trace().ready().ask("session.list").ask("shutdown", id="q").result(STOPPING, id="q").exit()
    assert ("output", "TIMER_CLOSING_CLEAN", True) in _moves(trace.told[-2])
    assert trace.told[-1].notes == (
        "session.list r2 was not answered: the closing deadline has passed (BASE-OP-61, D89)",
    )


def test_what_need_not_come_any_more_is_told_and_excused() -> None:
    trace = Trace().running().close().exit()
    assert trace.findings == []
    assert trace.told[-1].notes == ("excused: run.finished was not sent",)
