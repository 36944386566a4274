"""Contents that the contract leaves open are held against nobody; their neighbours that it excludes still are."""

from typing import Any

import pytest

from tests.observe import traces as t
from tests.observe.traces import RUN, SELECTION, Trace, Write

HIGH = {**SELECTION, "requested_effort": "max"}
NEW = {**SELECTION, "revision": "sel-2"}
NEWER = {**SELECTION, "revision": "sel-3"}
CREATED = {"session_id": "s1", "durable": False, "revision": "h-1", "notices": []}
OPENED = {"session_id": "s2", "durable": True, "revision": "h-2", "notices": []}
LEGACY = {"eligibility": "available", "notices": ["cwd_unverified"]}
ACCEPTED = {"run_id": RUN, "accepted": True}
BELL = [t.TOOL["name"]]
FIXED = {"schema_version": 1, "registration": "startup_only"}


def _init(*names: str, tools: dict[str, Any] | None = None, **extensions: Any) -> Write:
    """Initialize with other descriptors, and another ``client_tools``."""
    params: dict[str, Any] = {"client_tools": [t.TOOL]} if "client.tools" in names else {}
    told = t.initialized(*names)
    more = {key.replace("_", "."): each for key, each in extensions.items()}
    told["extensions"] = told.get("extensions", {}) | more
    told |= {"client_tools": tools} if tools else {}
    return lambda w: w.ask("initialize", required_capabilities=list(names), **params).result(told)


def _starting(w: Trace) -> Trace:
    return w.ask("initialize", id="i", required_capabilities=[])


def _told(w: Trace, selection: Any = SELECTION, session: str | None = "s1", **changed: Any) -> Trace:
    """A status."""
    return w.ask("status", id=f"s{next(w.numbers)}").result(
        t.status(session_id=session, selection=selection, **changed)
    )


def _failed(w: Trace, **data: Any) -> Trace:
    return w.started().finished("failed", **{"persistence": "not_started", "revision": "h-1", **data})


def _chosen(w: Trace) -> Trace:
    """A session, its selection, and a catalog."""
    return _told(w.attached().ask("model.catalog").result(t.catalog()), NEW)


def _select(w: Trace, **params: Any) -> Trace:
    guards = {"session_id": "s1", "selection_revision": "sel-2", "catalog_revision": "c-1"}
    return w.ask("selection.set", id="set", **{**guards, "provider": "p", "model": "m", **params})


def _work(w: Trace, method: str, *names: str, **params: Any) -> Trace:
    """An operation under way, in a session whose selection was seen."""
    return _told(w.attached(*names), NEW).ask(method, id="work", **params)


def _title(title: str) -> Write:
    return lambda w: w.ready().ask("session.list").result(t.listing(t.listed(title=title)))


def _scanned(w: Trace, then: str, **params: Any) -> Trace:
    w.ready("session.discover").ask("session.discover").result(t.scan(next_cursor="k"))
    w.ask("session.discover", revision="l-1", cursor="k").result(t.scan(revision=then, next_cursor="m"))
    return w.ask("session.discover", **{"revision": then, "cursor": "m", **params})


def _called(timeout: int) -> Write:
    return lambda w: w.running("client.tools").call(timeout_ms=timeout)


def _sixteen(w: Trace) -> Trace:
    w.running("client.tools")
    for i in range(16):
        w.call(f"7a3d2f64-0b1e-4c8f-9f39-2f5b8a6c1d{i:02}")
    return w


LEFT_OPEN: dict[str, Write] = {
    # a failed input append (BASE-OP-184)
    "the revision stays": lambda w: (
        _failed(w).ask("history.page", session_id="s1", revision="h-1").result(t.history())),
    "the revision stays, and its cursors": lambda w: (
        w.attached().ask("history.page", session_id="s1", revision="h-1")
        .result(t.history(next_cursor="k", complete=False))
        .ask("turn.start", session_id="s1", prompt="x").result(ACCEPTED)
        .finished("failed", persistence="not_started", revision="h-1")
        .ask("history.page", session_id="s1", revision="h-1", cursor="k").result(t.history())),
    "a fresh revision": lambda w: (
        _failed(w, revision="h-2").ask("history.page", session_id="s1", revision="h-1").error("stale_revision")),
    "no revision": lambda w: (
        _failed(w, revision=None).ask("history.page", session_id="s1", revision="h-1").error("stale_revision")),
    # efforts (BASE-OP-140, BASE-OP-139)
    "no effort for a saved one that is not permitted": lambda w: _told(w.ready(), {**HIGH, "effective_effort": None},
                                                                       None),
    "default for a saved one that is not permitted": lambda w: _told(w.ready(), HIGH, None),
    # the time that remains (CT-OP-20)
    "the time that remains of a call": _called(4990),
    "hardly any time": _called(1),
    # descriptors (EXT-OP-02, BASE-OP-46, CT-OP-02, CT-OP-03)
    "a descriptor of operation.cancel": _init("operation.cancel", operation_cancel={"targets": 1}),
    "a descriptor of a catalog with status": _init("model.catalog.status", "model.refresh",
                                                   model_catalog_status={"providers": 32}),
    "one more limit of client tools": _init("client.tools", tools={"tools": BELL, "limits": t.TOOL_LIMITS | {"x": 1}},
                                            client_tools={**FIXED, "tools": BELL, "limits": t.TOOL_LIMITS | {"x": 1}}),
    "other keys in the descriptor": _init("client.tools", client_tools={**FIXED, "names": BELL,
                                                                        "bounds": t.TOOL_LIMITS}),
    "limits right in the descriptor": _init("client.tools", client_tools={**FIXED, "names": BELL, **t.TOOL_LIMITS}),
    # discovery (EXT-OP-08)
    "another revision with each page of a scan": lambda w: _scanned(w, "l-2").result(t.scan(revision="l-3")),
    "the first revision is stale then": lambda w: _scanned(w, "l-2", revision="l-1").error("stale_revision"),
    # listings (BASE-OP-132)
    "the attached session, unverified, is available": lambda w: (
        _opened(w.ready()).ask("session.list").result(t.listing(t.listed("s2", **LEGACY)))),
    "the attached session, unverified": lambda w: (
        _opened(w.ready()).ask("session.list")
        .result(t.listing(t.listed("s2", **{**LEGACY, "eligibility": "cwd_unverified"})))),
    # titles (BASE-OP-134)
    "50 code points": _title("x" * 50),
    "50 clusters of two": _title("e\u0301" * 50),
    "32 flags, 64 code points": _title("\U0001f1eb\U0001f1f7" * 32),
    "a family counts once": _title("\U0001f468\u200d\U0001f469\u200d\U0001f466" + "x" * 49),
    # the selection revision (BASE-OP-154, EXT-OP-33, BASE-OP-144, SEL-98)
    "a turn refused with stale_selection": lambda w: _told(
        _told(w.attached(), NEW).ask("turn.start", session_id="s1", prompt="x").error("stale_selection"), NEWER),
    "a refresh": lambda w: _told(
        _work(w, "model.refresh", "model.refresh", provider="p").result(t.refreshed()), NEWER),
    "a refresh that leaves it": lambda w: _told(
        _work(w, "model.refresh", "model.refresh", provider="p").result(t.refreshed()), NEW),
    "a refresh that was cancelled": lambda w: _told(
        _work(w, "model.refresh", "model.refresh", "operation.cancel", provider="p")
        .ask("operation.cancel", request_id="work").result({"state": "cancelling", "request_id": "work"})
        .error("operation_cancelled", "work"), NEWER),
    "selected again, nothing written": lambda w: _told(
        _select(_chosen(w)).result(t.selected(selection=NEW, history_revision="h-1"))
        .ask("history.page", session_id="s1", revision="h-1").result(t.history()), NEW),
    "selected again, anew": lambda w: _told(_select(_chosen(w)).result(t.selected(selection=NEWER)), NEWER),
    # a status ahead of the answer (ENV-25, ENV-26)
    "idle before initialize is answered": lambda w: (
        _told(_starting(w), session=None).result(t.initialized(), "i")),
    "starting, then idle, before initialize is answered": lambda w: (
        _told(_starting(w).ask("status").result(t.status("starting")), session=None).result(t.initialized(), "i")),
    "failed before initialize is answered": lambda w: (
        _starting(w).ask("status").result(t.status("failed", readiness="startup_failed"))
        .error("startup_failed", "i")),
    "created before it is answered": lambda w: _told(
        _told(w.ready().ask("session.create", id="c"), NEW).result(CREATED, "c"), NEW),
    "opened before it is answered": lambda w: _told(
        _told(_work(w, "session.open", session_id="s2"), NEWER, "s2").result(OPENED, "work"), NEWER, "s2"),
    "opened, the selection not yet": lambda w: _told(
        _told(_work(w, "session.open", session_id="s2"), NEW, "s2").result(OPENED, "work"), NEWER, "s2"),
    "opened again before it is answered": lambda w: _told(
        _told(_work(w, "session.open", session_id="s1"), NEWER).result({**CREATED, "revision": "h-2"}, "work"), NEWER),
    "still the earlier one": lambda w: _told(
        _told(_work(w, "session.open", session_id="s2"), NEW).result(OPENED, "work"), NEWER, "s2"),
    "selected before it is answered": lambda w: _told(
        _told(_select(_chosen(w)), NEWER).result(t.selected(selection=NEWER), "set"), NEWER),
    "a catalog observed before it is answered": lambda w: _told(
        _told(_work(w, "model.catalog"), NEWER).result(t.catalog(), "work"), NEWER),
    "a refresh admitted before it is answered": lambda w: _told(
        _told(_work(w, "model.refresh", "model.refresh", provider="p"), NEWER).result(t.refreshed(), "work"), NEWER),
    "efforts found changed before the turn has failed": lambda w: _told(
        _told(_told(w.attached(), NEW).ask("turn.start", session_id="s1", prompt="x").result(ACCEPTED), NEWER,
              state="running", run_id=RUN)
        .finished("failed", persistence="not_started", revision="h-3", error_code="stale_selection"), NEWER),
    "a cancelled opening may have been told": lambda w: _told(
        _told(_work(w, "session.open", "operation.cancel", session_id="s2"), NEWER, "s2")
        .ask("operation.cancel", request_id="work").result({"state": "cancelling", "request_id": "work"})
        .error("operation_cancelled", "work"), NEW),
    # calls
    "a call while a result is under way": lambda w: (
        _sixteen(w).deliver("7a3d2f64-0b1e-4c8f-9f39-2f5b8a6c1d00").call("7a3d2f64-0b1e-4c8f-9f39-2f5b8a6c1d16")
        .result({"accepted": True})),
    # what initialize requires (BASE-OP-73, BASE-OP-74), and a scan that is over (EXT-OP-11)
    "nothing required": lambda w: w.ask("initialize", required_capabilities=[]).error("invalid_params"),
    "one name seventeen times, refused": lambda w: w.ask("initialize", required_capabilities=["status"] * 17)
    .error("invalid_params"),
    "one name seventeen times, accepted": lambda w: w.ask("initialize", required_capabilities=["status"] * 17)
    .result(t.initialized()),
    "a scan gone on with behind its change": lambda w: _scanned(w, "l-1").error("stale_revision")
    .ask("session.discover", revision="l-1", cursor="m").error("invalid_params"),
}  # fmt: skip


def _opened(w: Trace) -> Trace:
    return w.ask("session.open", session_id="s2").result(OPENED)


@pytest.mark.parametrize("name", LEFT_OPEN)
def test_what_is_left_open_is_held_against_nobody(name: str) -> None:
    trace = Trace()
    LEFT_OPEN[name](trace)
    assert [each for each in trace.findings if not each.reading] == []


EXCLUDED: list[tuple[str, Write]] = [
    # a failed input append
    ("EVT-52", lambda w: w.attached().ask("session.open", session_id="s1").result({**CREATED, "revision": "h-2"})
     .ask("turn.start", session_id="s1", prompt="x").result(ACCEPTED)
     .finished("failed", persistence="not_started", revision="h-1")),
    ("EVT-52", lambda w: w.running().finished("failed", revision="h-1")),
    # efforts
    ("SEL-13", lambda w: _told(w.ready(), {**SELECTION, "effective_effort": None}, None)),
    ("SEL-15", lambda w: _told(w.ready(), {**HIGH, "effort_support": "unknown", "permitted_efforts": ["default"]},
                               None)),
    # the time of a call
    ("CT-39", _called(5001)),
    ("CT-39", _called(30000)),
    # descriptors
    ("EXT-REFRESH-53", _init("session.discover", model_refresh=t.REFRESH)),
    ("CT-24", _init("client.tools", client_tools={"tools": BELL, "limits": t.TOOL_LIMITS})),
    ("CT-22", _init("client.tools", tools={"tools": BELL, "limits": {**t.TOOL_LIMITS, "tools": 31}})),
    ("CT-22", _init("client.tools", tools={"tools": BELL, "bounds": t.TOOL_LIMITS})),
    ("CT-25", _init("client.tools", client_tools={**FIXED, "tools": [], "limits": t.TOOL_LIMITS})),
    ("CT-26", _init("client.tools", client_tools={**FIXED, "tools": BELL, "limits": {**t.TOOL_LIMITS, "tools": 31}})),
    ("CT-26", _init("client.tools", tools={"tools": BELL, "limits": t.TOOL_LIMITS | {"x": 1}})),
    # what initialize requires
    ("ERR-10", lambda w: w.ask("initialize", required_capabilities=[*sorted(t.SIXTEEN), "tool.cards"])
     .result(t.initialized("tool.cards", *t.SIXTEEN))),
    # discovery
    ("ERR-10", lambda w: _scanned(w, "l-1").error("invalid_params")),
    ("EXT-DISC-41", lambda w: _scanned(w, "l-2", cursor="k").result(t.scan(revision="l-2"))),
    # listings
    ("LIST-29", lambda w: _opened(w.ready()).ask("session.list").result(t.listing(t.listed("s3", **LEGACY)))),
    ("LIST-44", lambda w: _opened(w.ready()).ask("session.list").result(t.listing(t.listed("s2", eligibility="busy")))),
    # titles
    ("LIST-19", _title("x" * 51)),
    ("LIST-19", _title("\u6f22" * 51)),
    ("LIST-19", _title("e\u0301" * 90)),
    # the selection revision
    ("SEL-24", lambda w: _told(
        _told(w.attached(), NEW).ask("turn.start", session_id="s9", prompt="x").error("stale_session"), NEWER)),
    ("SEL-24", lambda w: _told(_work(w, "session.list").result(t.listing(), "work"), NEWER)),
    ("SEL-22", lambda w: _select(_chosen(w), effort={"mode": "set", "value": "low"})
     .result(t.selected(selection={**NEW, "requested_effort": "low", "effective_effort": "low"}))),
    ("SEL-22", lambda w: _select(_chosen(w)).result(t.selected(selection=SELECTION))),
    ("SEL-22", lambda w: _told(_select(_chosen(w)), NEWER).result(t.selected(selection=NEW), "set")),
    # a status ahead of the answer
    ("STATUS-04", lambda w: _told(_starting(w), session=None).ask("status").result(t.status("starting"))),
    ("STATUS-18", lambda w: _told(_starting(w), session=None).error("startup_failed", "i").ask("status")
     .result(t.status("failed", readiness="startup_failed"))),
    ("STATUS-16", lambda w: _told(_work(w, "session.open", session_id="s2"), NEW, "s3")),
    ("STATUS-16", lambda w: _told(_work(w, "session.list"), NEW, "s2")),
    ("STATUS-16", lambda w: _told(w.ready().ask("status", id="early").ask("session.open", session_id="s2")
                                  .result(t.status(session_id="s2"), "early").result(OPENED), NEW, "s2")),
    ("STATUS-16", lambda w: _told(_told(_work(w, "session.open", session_id="s2"), NEW, "s2"), NEW)),
    ("STATUS-16", lambda w: _told(
        _told(_work(w, "session.open", session_id="s2"), NEW, "s2").error("session_busy", "work"), NEW)),
    ("STATUS-16", lambda w: _told(
        _told(_work(w, "session.open", session_id="s2"), NEW, "s2").error("session_busy", "work"), NEW, "s2")),
    ("STATUS-16", lambda w: _told(w.ready().ask("session.create", id="c"), NEW, "s7").result(CREATED, "c")),
    ("SEL-21", lambda w: _told(_work(w, "session.open", session_id="s2").result(OPENED), NEW, "s2")),
    ("SEL-24", lambda w: _told(_told(_work(w, "session.open", session_id="s2"), NEWER, "s2"), NEW, "s2")),
    ("SEL-21", lambda w: _told(
        _told(_work(w, "session.open", session_id="s2"), NEWER, "s2").result(OPENED, "work"), NEW, "s2")),
    ("SEL-24", lambda w: _told(
        _told(_work(w, "session.open", session_id="s2"), NEWER).error("session_busy", "work"), NEW)),
    ("SEL-24", lambda w: _told(w.running(), NEW, state="running", run_id=RUN)
     .ask("status").result(t.status("running", session_id="s1", run_id=RUN, selection=NEWER))),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "write"), EXCLUDED, ids=[f"{case[0]}-{i}" for i, case in enumerate(EXCLUDED)])
def test_what_is_excluded_is_found_once(clause: str, write: Write) -> None:
    trace = Trace()
    write(trace)
    assert [each.clauses[0] for each in trace.findings if not each.reading] == [clause], trace.findings


READINGS: dict[str, Write] = {
    "CT-OP-20": _called(4990),
    "EXT-OP-08": lambda w: (
        w.ready("session.discover")
        .ask("session.discover")
        .result(t.scan(next_cursor="k"))
        .ask("session.discover", revision="l-1", cursor="k")
        .result(t.scan(revision="l-2"))
    ),
}


@pytest.mark.parametrize("clause", READINGS)
def test_our_reading_is_told_all_the_same(clause: str) -> None:
    trace = Trace()
    READINGS[clause](trace)
    assert [(each.clauses[0], each.reading) for each in trace.findings] == [(clause, True)]
