"""Every rule, broken once: the frame, the clause and the fault are named, and nothing else is."""

from functools import cache
from typing import Any

import pytest

from statemachines.observe import Line
from statemachines.witness.rules import RULES
from tests.observe import traces as t
from tests.observe.traces import RUN, SELECTION, Trace, Write

FOREIGN = "0f0c7d2e-64a1-4f58-8f2d-0a9be3c45a10"
BIG = "x" * 400


def _init(*names: str, **changed: Any) -> Write:
    """Answer ``initialize`` with something changed."""
    params: dict[str, Any] = {"required_capabilities": list(names)}
    if "client.tools" in names:
        params["client_tools"] = [t.TOOL]
    return lambda w: w.ask("initialize", **params).result({**t.initialized(*names), **changed})


def _status(state: str = "idle", **changed: Any) -> Write:
    """Answer ``status`` when ready."""
    return lambda w: w.ready().ask("status").result(t.status(state, **changed))


def _page(*entries: dict[str, Any], names: tuple[str, ...] = (), **changed: Any) -> Write:
    """Answer ``history.page``."""
    return lambda w: (
        w.attached(*names).ask("history.page", session_id="s1", revision="h-1").result(t.history(*entries, **changed))
    )


def _asked(method: str, result: Any, *names: str, **params: Any) -> Write:
    """Answer a request when ready."""
    return lambda w: w.ready(*names).ask(method, **params).result(result)


def _set(**changed: Any) -> Write:
    """Select a model."""
    params = {
        "session_id": "s1",
        "selection_revision": "sel-5",
        "catalog_revision": "c-1",
        "provider": "p",
        "model": "m",
    }

    def write(w: Trace) -> None:
        w.attached().ask("model.catalog").result(t.catalog())
        w.ask("status").result(t.status(session_id="s1", selection={**SELECTION, "revision": "sel-5"}))
        w.ask("selection.set", **params).result(t.selected(**changed))

    return write


def _carded(*cards: dict[str, Any], **data: Any) -> Write:
    """Show cards of an activity that has started."""

    def write(w: Trace) -> None:
        w.running("tool.cards").activity("started")
        for card in cards:
            w.carded(card, **data)

    return write


def _called(**data: Any) -> Write:
    """Publish a call."""
    return lambda w: w.running("client.tools").call(**data)


def _protected(decision: str) -> dict[str, Any]:
    metadata = t.card()["metadata"]
    return {**metadata, "public_protection": {"decision": decision, "summary": None}}


def _many_calls(w: Trace) -> None:
    w.running("client.tools")
    for i in range(17):
        w.call(f"7a3d2f64-0b1e-4c8f-9f39-2f5b8a6c1d{i:02}")


def _segments(w: Trace) -> None:
    w.running()
    for i in range(513):
        w.whole(message=f"m{i}")


def _activities(w: Trace) -> None:
    w.running().observer._ledger.run.activities.update(f"a{i}" for i in range(4096))  # as if they had been seen
    w.activity("started", id="a4096")


def _eight_mib(w: Trace) -> None:
    w.running()
    for part in range(2099):
        w.event("message.reconcile", message_id="m1", part=part, text="x" * 4000, last_part=False, partial=False)


OTHER_TOOL = {**t.TOOL, "name": "client__gong"}
OMISSION = {"subject": "rows", "reason": "redacted", "omitted_count": None}
UNPERMITTED = {**SELECTION, "effort_support": "unknown", "effective_effort": None}

CASES: list[tuple[str, str, Write]] = [
    # the envelope
    ("ENV-18", "another", lambda w: w.ask("initialize", required_capabilities=[]).result(t.initialized(), version=2)),
    ("ENV-33", "instance_id", lambda w: w.ready().ask("status").result(t.status(), instance_id=FOREIGN)),
    ("ENV-28", "first seq", lambda w: w.ask("initialize", required_capabilities=[]).result(t.initialized(), seq=2)),
    ("ENV-29", "seq", lambda w: w.ready().ask("status").result(t.status(), seq=1)),
    ("ERR-01", "KNOWN", lambda w: w.ready().ask("status").error("no_such_code")),
    # initialize and status
    ("NEG-02", "capabilities", _init(capabilities=t.SIXTEEN[1:])),
    ("NEG-03", "capabilities", _init(capabilities=[*t.SIXTEEN, "tool.cards"])),
    ("CT-21", "client.tools", _init("client.tools", capabilities=t.SIXTEEN)),
    ("NEG-03", "capabilities", _init(capabilities=[*t.SIXTEEN, "status"])),
    ("NEG-29", "limits", _init(limits={**t.LIMITS, "catalog_scan_ms": 1})),
    ("EXT-DISC-24", "values", _init("session.discover", extensions={"session.discover": {}})),
    ("TC-20", "tool.cards", _init(extensions={"tool.cards": t.CARDS})),
    ("CT-22", "registration", _init("client.tools", client_tools={"tools": ["client__gong"], "limits": t.TOOL_LIMITS})),
    ("CT-22", "registration", _init(client_tools={"tools": [], "limits": t.TOOL_LIMITS})),
    ("CT-25", "descriptor", _init("client.tools", extensions={"client.tools": {
        "schema_version": 1, "registration": "startup_only", "tools": [], "limits": t.TOOL_LIMITS}})),
    ("STATUS-06", "state", _status("failed", readiness="startup_failed")),
    ("STATUS-06", "readiness", _status(readiness="initializing")),
    ("STATUS-14", "no run", _status("running", run_id=RUN)),
    ("STATUS-15", "not it", lambda w: w.running().ask("status").result(
        t.status(session_id="s1", selection={**SELECTION, "revision": "sel-5"}))),
    ("STATUS-16", "session_id", _status(session_id="s9")),
    ("STATUS-16", "ahead", lambda w: (
        w.ready().ask("session.create").ask("status").result(t.status(session_id="s7"))
        .result({"session_id": "s1", "durable": False, "revision": "h-1", "notices": []}, "r2"))),
    ("STATUS-05", "pending", lambda w: (
        w.ask("initialize", required_capabilities=[]).ask("status").result(t.status("starting", provider="p")))),
    ("STATUS-11", "context_id", _status(context_id=None)),
    ("ENV-36", "context_id", _status(context_id="d" * 64)),
    ("SEL-03", "selection", _status(selection=None)),
    ("SEL-21", "selection revision", lambda w: w.attached().ask("status").result(t.status(session_id="s1"))),
    ("SEL-24", "selection revision", _status(selection={**SELECTION, "revision": "sel-7"})),
    ("SEL-13", "no effort", _status(selection={**SELECTION, "effective_effort": None})),
    ("SEL-17", "efforts", _status(selection=UNPERMITTED)),
    # sessions and history
    ("HIST-47", "issued before", lambda w: (
        w.attached().ask("session.open", session_id="s1")
        .result({"session_id": "s1", "durable": False, "revision": "h-1", "notices": []}))),
    ("SESS-31", "another session", _asked("session.open", {"session_id": "s2", "durable": True, "revision": "h-1",
                                                           "notices": []}, session_id="s1")),
    ("SESS-24", "lazy", lambda w: (
        w.running().finished().ask("session.open", session_id="s1")
        .result({"session_id": "s1", "durable": False, "revision": "h-4", "notices": []}))),
    ("HIST-04", "of another", _page(revision="h-2")),
    ("HIST-13", "next cursor", _page(t.entry(), next_cursor="k", complete=True)),
    ("HIST-26", "first part", _page(t.entry(part=1))),
    ("HIST-27", "contiguous", _page(t.entry(last_part=False), t.entry(part=2))),
    ("HIST-27", "inside a message", _page(t.entry(last_part=False))),
    ("TC-234", "tool_card", _page(t.entry(tool_card=None))),
    ("TC-235", "tool_card", _page(t.entry(kind="activity"), names=("tool.cards",))),
    ("TC-241", "saved", _page(t.entry(kind="activity", tool_card=t.card(outcome="success")),
                                  names=("tool.cards",))),
    ("BASE-OP-117", "partial", _page(t.entry(partial=True))),
    ("BOUND-16", "too large", _page(*(t.entry(f"e{i}", text=BIG) for i in range(90)))),
    ("BOUND-17", "too many", _page(*(t.entry(f"e{i}") for i in range(101)))),
    # listings and catalogs
    ("LIST-05", "another revision", lambda w: (
        w.ready().ask("session.list").result(t.listing(next_cursor="k"))
        .ask("session.list", revision="l-1", cursor="k").result(t.listing(revision="l-2")))),
    ("LIST-86", "disagree", _asked("session.list", t.listing(next_cursor="k", complete=True))),
    ("LIST-66", "too large", _asked("session.list", t.listing(*(
        t.listed(f"{i:03}" + "x" * 60, title="x" * 50, notices=["cwd_unverified"] * 8, eligibility="cwd_unverified")
        for i in range(100))))),
    ("LIST-67", "more entries", _asked("session.list", t.listing(t.listed("a"), t.listed("b")), limit=1)),
    ("LIST-14", "ascending", _asked("session.list", t.listing(t.listed("b"), t.listed("a")))),
    ("LIST-14", "ascending", lambda w: (
        w.ready().ask("session.list").result(t.listing(t.listed("b"), next_cursor="k"))
        .ask("session.list", revision="l-1", cursor="k").result(t.listing(t.listed("a"))))),
    ("LIST-29", "eligibility", _asked("session.list", t.listing(t.listed(eligibility="cwd_unverified")))),
    ("LIST-33", "without a file", lambda w: w.attached().ask("session.list").result(t.listing(t.listed("s1")))),
    ("EXT-OP-08", "another revision", lambda w: (
        w.ready("session.discover").ask("session.discover").result(t.scan(next_cursor="k"))
        .ask("session.discover", revision="l-1", cursor="k").result(t.scan(revision="l-2")))),
    ("EXT-OP-04", "progress", _asked("session.discover", t.scan(progress="page_entries"), "session.discover")),
    ("EXT-DISC-41", "cursor", lambda w: (
        w.ready("session.discover").ask("session.discover").result(t.scan(next_cursor="k"))
        .ask("session.discover", revision="l-1", cursor="q").result(t.scan()))),
    ("CAT-22", "twice", _asked("model.catalog", t.catalog(t.choice(), t.choice()))),
    ("CAT-49", "issued before", lambda w: (
        w.ready().ask("model.catalog").result(t.catalog()).ask("model.catalog").result(t.catalog()))),
    ("SEL-16", "default", _asked("model.catalog", t.catalog(t.choice(effort_support="unknown", permitted_efforts=[])))),
    ("EXT-STATUS-10", "32", _asked("model.catalog.status", t.providers(*(t.provider(f"p{i}") for i in range(33))),
                                   "model.catalog.status")),
    ("EXT-STATUS-26", "relevance", _asked("model.catalog.status", t.providers(t.provider(relevant=False)),
                                          "model.catalog.status")),
    ("EXT-REFRESH-15", "provider", _asked("model.refresh", t.refreshed(provider="q"), "model.refresh", provider="p")),
    ("EXT-REFRESH-17", "reason", _asked("model.refresh", t.refreshed(reason="rate_limited"), "model.refresh",
                                        provider="p")),
    ("EXT-REFRESH-47", "no error", _asked("model.refresh", t.refreshed(catalog_revision=None), "model.refresh",
                                          provider="p")),
    ("EXT-CANCEL-09", "another request", lambda w: (
        w.ready("operation.cancel").ask("session.list").ask("operation.cancel", request_id="r2")
        .result({"state": "cancelling", "request_id": "r9"}))),
    ("SEL-82", "another catalog", _set(catalog_revision="c-2")),
    ("SEL-64", "another model", _set(selection={**SELECTION, "revision": "sel-2", "model": "n"})),
    ("SEL-22", "fresh", _set(selection=SELECTION)),
    ("SEL-22", "fresh", _set(selection={**SELECTION, "revision": "sel-5", "requested_effort": "low"})),
    ("SEL-13", "no effort", _set(selection={**SELECTION, "revision": "sel-2", "effective_effort": None})),
    ("SEL-90", "history_revision", _set(history_revision=None)),
    # turns
    ("TURN-11", "used before", lambda w: (
        w.running().finished().ask("turn.start", session_id="s1", prompt="x")
        .result({"run_id": RUN, "accepted": True}))),
    ("EVT-01", "of the run", lambda w: w.running().event("diagnostic", session="s2", code="c", summary="")),
    ("EVT-17", "increase", lambda w: w.running().delta(part=1).delta(part=1)),
    ("EVT-23", "from 0", lambda w: w.running().whole(part=1)),
    ("BASE-OP-166", "partial", lambda w: w.running().whole(last_part=False).whole(part=1, partial=True)),
    ("BOUND-12", "8 MiB", _eight_mib),
    ("BOUND-13", "512", _segments),
    ("BOUND-14", "4,096", _activities),
    ("BOUND-26", "later", lambda w: w.running().approval(expires_in_ms=60001)),
    ("BASE-OP-155", "error_code", lambda w: w.running().finished(error_code="execution_failed")),
    ("BASE-OP-155", "error_code", lambda w: w.running().finished("failed", error_code=None)),
    ("EVT-29", "beyond its bounds", lambda w: w.running().whole().finished("failed", error_code="content_limit")),
    ("D61", "partial", lambda w: w.running().whole(partial=True).finished()),
    ("D61", "partial", lambda w: w.running().whole().finished("failed")),
    ("EVT-47", "not reconciled", lambda w: w.running().delta().finished("failed")),
    ("EVT-52", "issued before", lambda w: w.running().finished(revision="h-1")),
    # tool cards
    ("TC-18", "negotiated", lambda w: w.running().activity("started").carded(t.card())),
    ("TC-156", "one part", _carded(t.card(), part=1)),
    ("TC-37", "schema", _carded(t.card(schema_version=2))),
    ("TC-46", "ids", _carded(t.card(card_id="a2"))),
    ("TC-77", "live", _carded(t.card(origin="saved"))),
    ("TC-59", "state", _carded(t.card(state="finished"))),
    ("TC-54", "parent", _carded(t.card(parent_state="available"))),
    ("TC-85", "availability", _carded(t.card(detail={"availability": "truncated", "reason": None}))),
    ("TC-75", "revision", _carded(t.card(3))),
    ("TC-75", "revision", _carded(t.card(), t.card())),
    ("TC-176", "finished card", _carded(t.card(), t.card(1, "unknown"), t.card(2, "unknown", changes="none"))),
    ("TC-99", "decision", _carded(t.card(metadata=_protected("allowed")), t.card(1))),
    ("TC-132", "omissions", _carded(t.card(omissions=[OMISSION, OMISSION]))),
    ("TC-195", "too large", _carded(t.card(blocks=[{"type": "text", "text": BIG * 10}] * 9))),
    # client tools
    ("NEG-34", "negotiated", lambda w: w.running().call(name="client__x", timeout_ms=30000)),
    ("CT-79", "null", _called(task_id="t1")),
    ("CT-87", "registered", _called(name="client__gong", timeout_ms=30000)),
    ("CT-39", "longer", _called(timeout_ms=30000)),
    ("CT-OP-20", "remains", _called(timeout_ms=4999)),
    ("CT-65", "arguments", _called(arguments={str(i): BIG for i in range(50)})),
    ("CT-85", "used before", lambda w: (
        w.running("client.tools").call().deliver().result({"accepted": True}).finished()
        .ask("turn.start", session_id="s1", prompt="x").result({"run_id": FOREIGN, "accepted": True})
        .event("input.persisted", run=FOREIGN, message_id="u", durable=True, revision="h-4").call(run=FOREIGN))),
    ("CT-71", "16", _many_calls),
    ("CT-124", "identity", lambda w: w.running("client.tools").call().uncall("timeout", task_id="t", subagent_id="a")),
    # shapes
    ("FRAME-03", "no JSON object", lambda w: w.ready().saw(["a"])),
    ("FRAME-03", "twice", lambda w: w.ready().ask("status").frame(Line(99, repeated="top"), type="response", id="r2",
                                                                  result=t.status())),
    ("BOUND-02", "too large", lambda w: w.ready().ask("status").frame(Line(65536), type="response", id="r2",
                                                                      result=t.status())),
    ("ENV-15", "both", lambda w: w.ready().ask("status").result(t.status(), error={"code": "busy"})),
    ("ENV-32", "instance_id", lambda w: w.ready().ask("status").result(t.status(), instance_id="nobody")),
    ("ENV-16", "type", lambda w: w.ready().ask("status").result(t.status(), type="answer")),
    ("ENV-15", "result", lambda w: w.ready().ask("status").result([])),
    ("ENV-19", "unknown key text", lambda w: w.ready().ask("status").frame(
        type="response", id="r2", error={"code": "busy", "text": "no"})),
    ("EVT-02", "unknown", lambda w: w.running().event("title.changed", title="x")),
    ("EVT-14", "unknown key", lambda w: w.running().event("message.delta", message_id="m1", part=0, text="", more=1)),
    ("BOUND-10", "CHUNK", lambda w: w.running().delta("x" * 4001)),
    ("EVT-33", "state", lambda w: w.running().activity("paused")),
    ("TC-155", "card", lambda w: w.running("tool.cards").activity("started").carded(None)),  # type: ignore[arg-type]
    ("EVT-43", "outcome", lambda w: w.running().event(
        "run.finished", outcome="bogus", persistence="durable", revision=None, error_code=None)),
    ("BASE-OP-163", "data", lambda w: w.running().frame(type="event", event="diagnostic", data=1)),
    ("HIST-24", "kind", _page(t.entry(kind="title"))),
    ("STATUS-03", "lacks run_id", _asked("status", {k: v for k, v in t.status().items() if k != "run_id"})),
    ("SESS-20", "empty", _asked("session.create", {"session_id": "s1", "durable": False, "revision": "h-1",
                                                   "notices": ["cwd_unverified"]})),
    ("LIST-10", "not a list", _asked("session.list", t.listing(sessions=None))),
    ("LIST-10", "sessions[0]", _asked("session.list", t.listing("s1"))),  # type: ignore[arg-type]
    ("TC-105", "type", _carded(t.card(blocks=[{"type": "picture"}]))),
    # rules of which each demands one thing alone
    ("TC-21", "sixteen", _init("tool.cards", capabilities=[*t.SIXTEEN, "tool.cards", "status"])),
    ("NEG-28", "discovery", _init(limits={**t.LIMITS, "discovery_scan_ms": 1})),
    ("NEG-30", "selection_append_bytes", _init(limits={k: v for k, v in t.LIMITS.items() if "append" not in k})),
    ("EXT-DISC-23", "session.discover", _init("session.discover", extensions={})),
    ("EXT-REFRESH-53", "model.refresh", _init(extensions={"model.refresh": t.REFRESH})),
    ("CT-23", "client.tools", _init("client.tools", extensions={})),
    ("EXT-REFRESH-54", "values", _init("model.refresh", extensions={"model.refresh": {**t.REFRESH, "models": 1}})),
    ("TC-20", "values", _init("tool.cards", extensions={"tool.cards": {**t.CARDS, "card_bytes": 1}})),
    ("CT-24", "values", _init("client.tools", extensions={"client.tools": {
        "schema_version": 2, "registration": "startup_only", "tools": [t.TOOL["name"]], "limits": t.TOOL_LIMITS}})),
    ("CT-26", "limits", _init("client.tools", extensions={"client.tools": {
        "schema_version": 1, "registration": "startup_only", "tools": [t.TOOL["name"]]}})),
    ("CT-27", "another order", lambda w: (
        w.ask("initialize", required_capabilities=["client.tools"], client_tools=[t.TOOL, OTHER_TOOL])
        .result({**t.initialized("client.tools"),
                 "client_tools": {"tools": [OTHER_TOOL["name"], t.TOOL["name"]], "limits": t.TOOL_LIMITS},
                 "extensions": {"client.tools": {
                     "schema_version": 1, "registration": "startup_only",
                     "tools": [OTHER_TOOL["name"], t.TOOL["name"]], "limits": t.TOOL_LIMITS}}}))),
    ("SEL-02", "not ready", lambda w: (
        w.ask("initialize", required_capabilities=[]).ask("status")
        .result(t.status("starting", selection=SELECTION)))),
    ("SEL-22", "another selection", lambda w: (
        _set()(w), w.ask("status").result(t.status(session_id="s1", selection={**SELECTION, "revision": "sel-5"})))),
    ("SEL-14", "unsupported", _status(selection={**SELECTION, "effort_support": "unsupported",
                                                 "permitted_efforts": ["default"]})),
    ("SEL-15", "unknown", _status(selection={**SELECTION, "effort_support": "unknown",
                                             "permitted_efforts": ["default"]})),
    ("BASE-OP-138", "unsupported", _status(selection={**SELECTION, "effort_support": "unsupported",
                                                      "effective_effort": None, "permitted_efforts": ["low"]})),
    ("HIST-07", "another session", _page(session_id="s2")),
    ("TC-236", "must not be", _page(t.entry(tool_card=None), names=("tool.cards",))),
    ("LIST-44", "busy", lambda w: (
        w.running().finished().ask("session.list").result(t.listing(t.listed("s1", eligibility="busy"))))),
    ("CAT-21", "ascending", _asked("model.catalog", t.catalog(t.choice(model="n"), t.choice()))),
    ("EXT-REFRESH-18", "no reason", _asked("model.refresh", t.refreshed(outcome="failed"), "model.refresh",
                                           provider="p")),
    ("EXT-REFRESH-46", "there is a revision", _asked("model.refresh", t.refreshed(
        catalog_error="catalog_unavailable"), "model.refresh", provider="p")),
    ("SEL-78", "another session", _set(session_id="s2")),
    ("STATUS-04", "readiness", lambda w: (
        w.ask("initialize", required_capabilities=[]).ask("status").result(t.status("starting", readiness="ready")))),
    ("STATUS-18", "readiness", lambda w: (
        w.ask("initialize", required_capabilities=[]).error("startup_failed").ask("status")
        .result(t.status("failed", readiness="profile_invalid")))),
    ("EXT-DISC-28", "too large", _asked("session.discover", t.scan(*(
        t.listed(f"{i:03}" + "x" * 60, title="x" * 50, notices=["cwd_unverified"] * 8, eligibility="cwd_unverified")
        for i in range(100))), "session.discover")),
    ("EXT-DISC-28", "more entries", _asked("session.discover", t.scan(t.listed("a"), t.listed("b")), "session.discover",
                                           limit=1)),
    ("CAT-05", "another revision", lambda w: (
        w.ready().ask("model.catalog").result(t.catalog(next_cursor="k"))
        .ask("model.catalog", revision="c-1", cursor="k").result(t.catalog(revision="c-2")))),
    ("CAT-37", "disagree", _asked("model.catalog", t.catalog(next_cursor="k", complete=True))),
    ("CAT-52", "too large", _asked("model.catalog", t.catalog(*(
        t.choice(model=f"{i:03}" + "x" * 250) for i in range(100))))),
    ("CAT-53", "more entries", _asked("model.catalog", t.catalog(t.choice(), t.choice(model="n")), limit=1)),
    ("EXT-STATUS-13", "too large", _asked("model.catalog.status", {**t.providers(), "choices": [
        t.choice(model=f"{i:03}" + "x" * 250) for i in range(100)]}, "model.catalog.status")),
    ("EXT-STATUS-25", "relevance", _asked("model.catalog.status", t.providers(t.provider(
        authentication="not_checked")), "model.catalog.status")),
    ("TC-53", "root", _carded(t.card(parent_state="root", parent_activity_id="a0"))),
    ("TC-104", "16 blocks", _carded(t.card(blocks=[{"type": "text", "text": ""}] * 17))),
]  # fmt: skip


@cache
def observed(case: int) -> Trace:
    trace = Trace()
    CASES[case][2](trace)
    return trace


@pytest.mark.parametrize("case", range(len(CASES)), ids=[f"{clause}-{i}" for i, (clause, _, _) in enumerate(CASES)])
def test_a_fault_is_found_once(case: int) -> None:
    trace, (clause, fault, _) = observed(case), CASES[case]
    assert [(found.clauses[0], fault in found.what) for found in trace.findings] == [(clause, True)], trace.findings
    assert trace.findings[0].frame == len(trace.told)


TWICE: list[tuple[str, Write]] = [
    ("ENV-29 ENV-30", lambda w: w.running().ask("shutdown").result({"state": "stopping"}, seq=3)),
    ("NEG-29 TC-22", _init("tool.cards", limits={**t.LIMITS, "catalog_scan_ms": 1})),
    ("EVT-01 CT-78", lambda w: w.running("client.tools").call(session="s2")),
]
"""Faults that break two rules, one of which can never be broken alone."""


@pytest.mark.parametrize(("clauses", "write"), TWICE, ids=[clauses for clauses, _ in TWICE])
def test_two_rules_with_one_fault(clauses: str, write: Write) -> None:
    trace = Trace()
    write(trace)
    assert [found.clauses for found in trace.findings] == [(clause,) for clause in clauses.split()]


def test_every_rule_is_broken_by_a_case() -> None:
    broken = {clause for case in range(len(CASES)) for found in observed(case).findings for clause in found.clauses}
    broken |= {clause for clauses, _ in TWICE for clause in clauses.split()}
    assert {clause for rule in RULES for clause in rule.by.split()} - broken == set()
