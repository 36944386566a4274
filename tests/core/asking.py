"""Requests for every method: params that name what is current, params that are bad; and the places to ask from."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from localagent.core import worker
from localagent.protocol import results
from localagent.protocol.codes import Code
from tests.kit.core_driver import EXTENDED, SELECTION, TOOL, Driver, listed, uuid
from tests.kit.transcript_steps import Request

APPROVAL, CALL, FOREIGN = uuid(0xA), uuid(0xC), uuid(0xF)
WRONG: Final = "wrong"
Params = dict[str, Any]


def catalog(revision: str = "c1", cursor: str | None = "k1") -> worker.Read:
    """A fresh catalog was read."""
    page = results.CatalogPage(choices=(), complete=cursor is None, next_cursor=cursor, notices=(), revision=revision)
    effect = worker.Effect.FRESH_LAST if cursor is None else worker.Effect.FRESH
    return worker.Read(page, worker.Traced("catalog", effect, revision))


READS: Final[Mapping[str, results.Output]] = {
    "session.list": listed().result,
    "session.discover": results.DiscoverPage(
        complete=True,
        next_cursor=None,
        notices=(),
        progress="complete",
        recovery="none",
        revision="d1",
        sessions=(),
    ),
    "model.catalog": catalog().result,
    "model.catalog.status": results.CatalogStatusPage(
        choices=(), complete=True, next_cursor=None, notices=(), providers=(), revision="c1"
    ),
    "model.refresh": results.Refreshed(
        catalog_error=None, catalog_revision="c2", outcome="refreshed", provider="p1", reason=None
    ),
    "history.page": results.HistoryPage(complete=True, entries=(), next_cursor=None, revision="h1", session_id="s1"),
}
"""Method -> a result that its worker may read."""


def selected(history: str | None = "h5") -> worker.Selected:
    """A selection was stored."""
    result = results.SelectionSaved(
        catalog_revision="c1", history_revision=history, notices=(), selection=SELECTION, session_id="s1"
    )
    return worker.Selected(result, SELECTION, history)


def approval(d: Driver, id_: str = APPROVAL) -> worker.ApprovalWanted:
    return worker.ApprovalWanted(id_, "may I?", d.now)


def call(d: Driver, id_: str = CALL, timeout_ms: int = 30_000) -> worker.CallWanted:
    return worker.CallWanted(id_, "client__pick", {"a": 1}, timeout_ms, d.now)


def good(method: str, d: Driver, *capabilities: str) -> Params:
    """Params that name what the child holds now; made-up names where it holds nothing."""
    facts, run = d.connection.facts, d.checker.run
    session = {"session_id": facts.session_id or "s1"}
    identity = {**session, "run_id": run.id if run else FOREIGN}
    tools = {"client_tools": [TOOL]} if "client.tools" in capabilities else {}
    operation = d.checker.operation
    selection = {
        "selection_revision": facts.selection.revision if facts.selection else "sel1",
        "catalog_revision": facts.revisions.get("catalog", "c1"),
    }
    made: Mapping[str, Params] = {
        "initialize": {"required_capabilities": list(capabilities), **tools},
        "session.open": {"session_id": "s2"},
        "history.page": {**session, "revision": facts.revisions.get("history") or "h1"},
        "selection.set": {**session, **selection, "provider": "p1", "model": "m1"},
        "turn.start": {**session, "prompt": "hello"},
        "turn.cancel": identity,
        "approval.answer": {**identity, "approval_id": APPROVAL, "allow": True},
        "model.refresh": {"provider": "p1"},
        "operation.cancel": {"request_id": operation.request.id if operation else "q1"},
        "client.tool.result": {
            **identity,
            "instance_id": facts.instance_id,
            "call_id": CALL,
            "task_id": None,
            "subagent_id": None,
            "status": "success",
            "text": "done",
        },
    }
    return made.get(method, {})


def bad(method: str, params: Params) -> list[object]:
    """What the method must call ``invalid_params``: good params spoiled, and what is no object at all."""
    first = next(iter(params), None)
    missing = {key: value for key, value in params.items() if key != first}
    spoiled: list[object] = [{**params, "extra": 1}, [], None, "{}", 7]
    if first is not None:
        spoiled += [missing, {**params, first: 1}, {**params, first: None}]
    elif method not in ("status", "shutdown", "session.create"):
        spoiled += [{"limit": 0}, {"limit": 101}, {"limit": 1.0}, {"limit": None}, {"revision": "r"}, {"cursor": "c"}]
    return spoiled


def retain(d: Driver, count: int) -> None:
    """As if so many requests had been answered before; ``test_bounds.test_ids`` does it by real ones."""
    for number in range(len(d.checker.asked), count):
        d.connection.facts.ids.add(f"s{number}")
        d.checker.asked[f"s{number}"] = Request(f"s{number}", "status", {}, answered=True)


def _ask(d: Driver, method: str) -> Driver:
    d.ask(method, good(method, d))
    return d


def _read_all(d: Driver) -> Driver:
    """Attached, with a listing and a catalog of which more pages are to come."""
    d.attach()
    _ask(d, "session.list").done(listed())
    _ask(d, "model.catalog").done(catalog())
    return d


def _asked(d: Driver) -> Driver:
    d.attach().executing()
    d.event(approval(d))
    d.event(call(d))
    return d


def _after(d: Driver, method: str) -> Driver:
    return _ask(_read_all(d), method)


def _cancelled(d: Driver) -> Driver:
    d.send(b"") if "operation.cancel" not in d.connection.facts.negotiated else _ask(d, "operation.cancel")
    return d


def _failed(d: Driver) -> Driver:
    d.ask("initialize", {"required_capabilities": []})
    d.done(worker.StartFailed(Code.MCP_UNAVAILABLE))
    return d


def _said(d: Driver, word: worker.LastWord) -> Driver:
    d.attach().executing().done(word)
    return d


def _over(d: Driver) -> Driver:
    _said(d, worker.TurnEnded("completed", revision="h3")).gone()
    return d


def _undeliverable(d: Driver) -> Driver:
    d.attach().executing().undeliverable()
    return d


def _shut(d: Driver) -> Driver:
    _after(d, "history.page").ask("shutdown")
    return d


def _ended(d: Driver) -> Driver:
    d.attach().executing().eof()
    return d


Build = Callable[[Driver], Driver]
READY_PLACES: Final[Mapping[str, tuple[str, Build]]] = {
    "nothing attached": ("idle", lambda d: d),
    "attached, everything read": ("idle", _read_all),
    "a run is over": ("idle", _over),
    "creating": ("worker", lambda d: _after(d, "session.create")),
    "opening": ("worker", lambda d: _after(d, "session.open")),
    "reading history": ("worker", lambda d: _after(d, "history.page")),
    "selecting": ("worker", lambda d: _after(d, "selection.set")),
    "reading, cancelled": ("worker", lambda d: _cancelled(_after(d, "session.list"))),
    "admitted": ("run", lambda d: d.attach().turn()),
    "executing": ("run", lambda d: d.attach().executing()),
    "asking": ("run", _asked),
    "run cancelled": ("run", lambda d: _ask(_asked(d), "turn.cancel")),
    "undeliverable": ("run", _undeliverable),
    "completed, not gone": ("run", lambda d: _said(d, worker.TurnEnded("completed"))),
    "failed, not gone": ("run", lambda d: _said(d, worker.TurnEnded("failed"))),
    "shut down while reading": ("stopping", _shut),
    "input ended during a run": ("stopping", _ended),
}
EARLY_PLACES: Final[Mapping[str, tuple[str, Build]]] = {
    "nothing said": ("uninitialized", lambda d: d),
    "startup failed": ("failed", _failed),
}


def at(place: str, *capabilities: str) -> Driver:
    """A connection brought to a place by real inputs."""
    if place in EARLY_PLACES:
        return EARLY_PLACES[place][1](Driver())
    d = Driver()
    if place == "starting":
        d.ask("initialize", good("initialize", d, *capabilities))
        return d
    return READY_PLACES[place][1](d.ready(*capabilities))


PLACES: Final = {
    **{place: column for place, (column, _) in EARLY_PLACES.items()},
    "starting": "starting",
    **{place: column for place, (column, _) in READY_PLACES.items()},
}
"""Place -> its column in base 19.4."""
ALL: Final = EXTENDED
