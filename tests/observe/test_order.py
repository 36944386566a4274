"""Frames that no row explains: the machine, its state and the clause are named; then the observer goes on."""

import pytest

from tests.observe import traces as t
from tests.observe.traces import APPROVAL, CALL, RUN, Trace, Write

OTHER = "0f0c7d2e-64a1-4f58-8f2d-0a9be3c45a10"
ATTACHED = {"session_id": "s1", "durable": False, "revision": "h-1", "notices": []}


def _starting(w: Trace) -> Trace:
    return w.ask("initialize", required_capabilities=[])


def _degraded(w: Trace) -> Trace:
    return w.running().event("diagnostic", code="storage", summary="append failed")


CASES: list[tuple[str, str, str, str, Write]] = [
    # events: the row that swallowed the input bears the clauses
    ("EVT-12", "run", "none", "message.delta", lambda w: w.attached().delta()),
    ("EVT-11", "run", "executing", "input.persisted", lambda w: w.running().persisted()),
    ("EVT-12", "run", "admitted", "message.delta", lambda w: w.started().delta()),
    ("EVT-12", "run", "finished", "message.delta", lambda w: w.running().whole().finished().delta()),
    ("EVT-12", "run", "finished", "message.reconcile", lambda w: w.running().whole().finished().whole()),
    ("EVT-45", "run", "finished", "approval.requested", lambda w: w.running().finished().approval()),
    ("EVT-45", "run", "finished", "run.finished", lambda w: w.running().finished().finished(revision="h-4")),
    ("EVT-47", "run", "executing", "run.finished completed", lambda w: w.running().whole().delta().finished()),
    ("EVT-44", "persistence", "unstored", "degraded", lambda w: w.started().finished("failed", persistence="degraded")),
    ("EVT-44", "persistence", "stored", "not_started", lambda w: w.running().finished(persistence="not_started")),
    ("EVT-44", "persistence", "unstored", "durable", lambda w: w.started().finished("failed")),
    ("EVT-43", "run", "executing", "run.finished cancelled", lambda w: w.running().finished("cancelled")),
    ("EVT-19", "message:m1", "reconciling", "message.delta", lambda w: (
        w.running().whole(last_part=False).delta())),
    ("BASE-OP-172", "activity:a1", "none", "activity completed", lambda w: w.running().activity("completed")),
    ("BASE-OP-172", "activity:a1", "failed", "activity completed", lambda w: (
        w.running().activity("started").activity("failed").activity("completed"))),
    ("EVT-37", f"approval:{APPROVAL}", "requested", "approval.requested", lambda w: w.running().approval().approval()),
    ("APPR-08", "run", "cancelling(user)", "approval.requested", lambda w: (
        w.running().cancel().result({"cancellation_requested": True}).approval())),
    ("TC-162", "activity:a1", "none", "tool.card", lambda w: w.running("tool.cards").carded(t.card())),
    ("TC-OP-14", "card:a1", "absent", "tool.card", lambda w: (
        w.running("tool.cards").activity("started").activity("completed").carded(t.card(0, "success")))),
    ("TC-172", "activity:a1", "started", "tool.card", lambda w: (
        w.running("tool.cards").activity("started").carded(t.card()).carded(t.card(1, "success")))),
    ("TC-175", "card:a1", "finished(unknown)", "tool.card", lambda w: (
        w.running("tool.cards").activity("started").carded(t.card()).carded(t.card(1, "unknown"))
        .carded(t.card(2, changes="none")))),
    ("TC-175", "card:a1", "finished(unknown)", "tool.card", lambda w: (
        w.running("tool.cards").activity("started").carded(t.card()).carded(t.card(1, "unknown"))
        .carded(t.card(2, "interrupted")))),
    ("CT-85", f"client_call:{CALL}", "published", "client.tool.call", lambda w: (
        w.running("client.tools").call().call())),
    ("CT-128", f"client_call:{CALL}", "accepted", "client.tool.cancel", lambda w: (
        w.running("client.tools").call().deliver().result({"accepted": True}).uncall("timeout"))),
    ("CT-128", f"client_call:{CALL}", "none", "client.tool.cancel", lambda w: (
        w.running("client.tools").uncall("timeout"))),
    # answers to nothing, out of turn, after the stop
    ("ENV-23", "connection", "ready", "no line", lambda w: w.ready().result(t.status(), id="r9")),
    ("ENV-23", "connection", "ready", "no line", lambda w: (
        w.ready().ask("status").result(t.status()).result(t.status()))),
    ("ENV-23", "connection", "ready", "no line", lambda w: w.ready().error("invalid_request", id=None)),
    ("ENV-25", "connection", "ready", "before the answer of status r2", lambda w: (
        w.ready().ask("status").ask("status").result(t.status()))),
    ("SHUT-05", "connection", "stopping", "after the connection stopped", lambda w: (
        w.ready().ask("shutdown").ask("status", id="q").result({"state": "stopping"}, id="r2")
        .result(t.status(), id="q"))),
    # results that a check forbids
    ("STATUS-02", "connection", "uninitialized", "not initialized", lambda w: w.ask("status").result(t.status())),
    ("NEG-25", "connection", "ready", "not uninitialized", lambda w: _starting(w.ready()).result(t.initialized())),
    ("SESS-01", "connection", "starting", "not started", lambda w: (
        _starting(w).ask("session.create").result(ATTACHED))),
    ("ERR-10", "operation", "idle", "not params valid", lambda w: (
        w.ready().ask("session.create", x=1).result(ATTACHED))),
    ("NEG-05", "operation", "idle", "negotiated", lambda w: w.ready().ask("session.discover").result(t.scan())),
    ("TURN-14", "operation", "working(attach)", "no work", lambda w: (
        w.attached().ask("session.create").ask("turn.start", session_id="s1", prompt="x", id="q")
        .result({"run_id": RUN, "accepted": True}, id="q"))),
    ("SESS-07", "run", "executing", "no run", lambda w: (
        w.running().ask("session.list").result(t.listing()))),
    ("HIST-06", "attachment", "none", "attached", lambda w: (
        w.ready().ask("turn.start", session_id="s1", prompt="x").result({"run_id": RUN, "accepted": True}))),
    ("HIST-07", "run", "none", "attached session named", lambda w: (
        w.attached().ask("turn.start", session_id="s2", prompt="x").result({"run_id": RUN, "accepted": True}))),
    ("HIST-05", "operation", "idle", "revision current", lambda w: (
        w.running().finished().ask("history.page", session_id="s1", revision="h-1")
        .result(t.history(revision="h-1")))),
    ("TURN-23", "run", "executing", "active run named", lambda w: (
        w.running().cancel(run_id=OTHER).result({"cancellation_requested": True}))),
    ("APPR-04", f"approval:{APPROVAL}", "allowed", "approval pending", lambda w: (
        w.running().approval().allow().result({"recorded": True}).allow().result({"recorded": True}))),
    ("CT-110", f"client_call:{CALL}", "expired", "call pending", lambda w: (
        w.running("client.tools").call().uncall("timeout").deliver().result({"accepted": True}))),
    ("ENV-47", "connection", "ready", "never seen", lambda w: (
        w.ready().ask("status", id="q").result(t.status()).ask("status", id="q").result(t.status()))),
    ("ENV-08", "connection", "uninitialized", "this protocol", lambda w: (
        w.line({"protocol": t.PROTOCOL, "version": 2, "id": "q", "method": "shutdown", "params": {}})
        .result({"state": "stopping"}, id="q"))),
    # refusals without ground
    ("NEG-25", "connection", "uninitialized", "although uninitialized", lambda w: (
        _starting(w).error("already_initialized"))),
    ("SESS-06", "operation", "idle", "although session worker free", lambda w: (
        w.ready().ask("session.create").error("busy"))),
    ("TURN-14", "operation", "idle", "although no work", lambda w: (
        w.ready().ask("turn.start", session_id="s1", prompt="x").error("busy"))),
    ("D22", "connection", "ready", "no answer to status", lambda w: w.ready().ask("status").error("execution_failed")),
    ("D01", "connection", "ready", "no answer to a line", lambda w: w.ready().line([1]).error("busy", id=None)),
    ("ERR-10", "operation", "idle", "although params valid", lambda w: (
        w.ready().ask("session.create").error("invalid_params"))),
    # workers
    ("SHUT-10", "operation", "working(read)", "cancelled", lambda w: (
        w.ready().ask("session.list").error("operation_cancelled"))),
    ("SHUT-09", "connection", "starting", "cancelled", lambda w: _starting(w).error("startup_cancelled")),
    ("ERR-20", "connection", "starting", "no outcome", lambda w: (
        _starting(w).ask("status", id="q").result(t.status("starting"), id="q").error("busy", id="r1"))),
    # the exit
    ("FLOW-18", "output", "draining", "exit status 0", lambda w: w.running().shut().exit()),
    ("FLOW-18", "output", "draining", "exit status 3", lambda w: w.ready().shut().exit(3)),
    ("FLOW-05", "connection", "ready", "status r2 was not answered", lambda w: (
        w.ready().ask("status").ask("shutdown").exit())),
    ("FLOW-05", "connection", "stopping", "was not sent", lambda w: (
        _starting(w).ask("shutdown", id="q").result({"state": "stopping"}, id="q").exit())),
]  # fmt: skip


@pytest.mark.parametrize(
    ("clause", "machine", "state", "what", "write"), CASES, ids=[f"{case[0]}-{i}" for i, case in enumerate(CASES)]
)
def test_what_no_row_explains_is_named_once(clause: str, machine: str, state: str, what: str, write: Write) -> None:
    trace = Trace()
    write(trace)
    found = [(each.clauses[0], each.machine, each.state, what in each.what) for each in trace.findings]
    assert found == [(clause, machine, state, True)], trace.findings
