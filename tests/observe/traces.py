"""A small language for hand-written traces: what a sound backend would say, unless a test says otherwise."""

import itertools
from collections.abc import Callable
from typing import Any, Self

from statemachines.observe import Explanation, Finding, Line, Observer

PROTOCOL = "magi-code.local-agent"
INSTANCE = "5c0f3a55-9a2b-4d0e-8f0b-6c2a7f1e9d10"
RUN = "c4c2b9de-0b57-4f1c-9b2c-9f4e5b7d3a21"
APPROVAL = "b81f0c95-3d47-4a16-8d6e-94c7e0a2f502"
CALL = "7a3d2f64-0b1e-4c8f-9f39-2f5b8a6c1d01"
SIXTEEN = [
    "initialize", "status", "shutdown", "session.create", "session.open", "session.list", "model.catalog",
    "selection.set", "history.page", "turn.start", "turn.cancel", "approval.answer", "session.discover",
    "model.catalog.status", "model.refresh", "operation.cancel",
]  # fmt: skip
LIMITS = {
    "discovery_page_bytes": 32768, "discovery_page_entries": 100, "discovery_directory_entries": 4096,
    "discovery_sessions": 256, "discovery_session_bytes": 8388608, "discovery_session_lines": 10000,
    "discovery_scan_bytes": 67108864, "discovery_scan_lines": 100000, "discovery_scan_ms": 2000,
    "discovery_title_bytes": 256, "catalog_page_bytes": 32768, "catalog_page_entries": 100, "catalog_providers": 32,
    "catalog_models": 2048, "catalog_file_bytes": 1048576, "catalog_scan_bytes": 8388608,
    "catalog_snapshot_bytes": 1048576, "catalog_string_bytes": 256, "catalog_scan_ms": 2000,
    "selection_append_bytes": 4096,
}  # fmt: skip
TOOL_LIMITS = {
    "tools": 32, "name_bytes": 64, "description_bytes": 2048, "registry_bytes": 32768, "schema_bytes": 8192,
    "schema_depth": 16, "arguments_bytes": 16384, "result_bytes": 32768, "pending_calls": 16,
    "default_timeout_ms": 30000, "min_timeout_ms": 1000, "max_timeout_ms": 300000,
}  # fmt: skip
CARDS = {
    "schema_version": 1, "event": "tool.card", "history_field": "tool_card", "snapshot_parts": 1, "card_bytes": 16384,
    "core_bytes": 2048, "cards_per_run": 4096, "snapshots_per_run": 16384, "run_snapshot_bytes": 33554432,
    "retained_card_bytes": 8388608, "blocks_per_card": 16, "rows_per_block": 32, "diff_lines_per_block": 128,
    "children_per_block": 32, "children_depth": 8, "string_bytes": 1024, "title_bytes": 256, "metadata_bytes": 512,
    "preview_bytes": 4096,
}  # fmt: skip
DISCOVER = {
    "consistency": "provisional_until_complete", "ordering": "directory", "step_directory_entries": 256,
    "step_lines": 10000, "step_bytes": 8388608, "record_bytes": 8388608, "step_ms": 2000, "page_entries": 100,
    "page_bytes": 32768,
}  # fmt: skip
REFRESH = {"providers_per_request": 1, "cache_bytes": 1048576, "models": 2048, "preferences": "unchanged"}
TOOL = {"name": "client__bell", "description": "Ring.", "input_schema": {"type": "object"}, "timeout_ms": 5000}
SELECTION = {
    "revision": "sel-1", "provider": "p", "model": "m", "requested_effort": "default", "effective_effort": "default",
    "effort_support": "supported", "permitted_efforts": ["default", "low"],
}  # fmt: skip


def status(state: str = "idle", **changed: Any) -> dict[str, Any]:
    """A status object that agrees with its state."""
    ready = state in ("idle", "running")
    told = {
        "state": state, "readiness": "initializing" if state == "starting" else "ready",
        "provider": "p" if ready else None, "model": "m" if ready else None, "context_id": "c" * 64 if ready else None,
        "session_id": None, "run_id": None, "selection": SELECTION if ready else None,
    }  # fmt: skip
    return {**told, **changed}


def initialized(*names: str) -> dict[str, Any]:
    """The result of an initialization that required these names."""
    more = [each for each in ("tool.cards", "client.tools") if each in names]
    result: dict[str, Any] = {"capabilities": [*SIXTEEN, *more], "limits": LIMITS, "status": status()}
    tools = {"tools": [TOOL["name"]], "limits": TOOL_LIMITS}
    known = {
        "session.discover": DISCOVER, "model.refresh": REFRESH, "tool.cards": CARDS,
        "client.tools": {"schema_version": 1, "registration": "startup_only", **tools},
    }  # fmt: skip
    extensions = {name: known[name] for name in known if name in names}
    if extensions:
        result["extensions"] = extensions
    if "client.tools" in names:
        result["client_tools"] = tools
    return result


def entry(id: str = "e1", **changed: Any) -> dict[str, Any]:  # noqa: A002
    """One part of a history entry."""
    return {"message_id": id, "kind": "user", "text": "t", "partial": False, "part": 0, "last_part": True, **changed}


def history(*entries: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A page of history, the last one unless it has a cursor."""
    page = {"session_id": "s1", "revision": "h-1", "entries": list(entries), "next_cursor": None, "complete": True}
    return {**page, **changed}


def listed(id: str = "s1", **changed: Any) -> dict[str, Any]:  # noqa: A002
    """One entry of a listing."""
    return {"session_id": id, "title": None, "updated_at": None, "eligibility": "available", "notices": [], **changed}


def listing(*entries: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A page of a listing, the last one unless it has a cursor."""
    complete = changed.get("next_cursor") is None
    page = {"revision": "l-1", "sessions": list(entries), "next_cursor": None, "complete": complete, "notices": []}
    return {**page, **changed}


def scan(*entries: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A page of a discovery."""
    page = listing(*entries, **changed)
    done = bool(page["complete"])
    page |= {"consistency": "provisional_until_complete", "progress": "complete" if done else "page_entries"}
    return {**page, "recovery": "none" if done else "continue_cursor", **changed}


def choice(provider: str = "p", model: str = "m", **changed: Any) -> dict[str, Any]:
    """One choice of a catalog."""
    told = {"selection_id": "d" * 64, "provider": provider, "model": model, "provider_name": None, "model_name": None}
    more = {"availability": "available", "effort_support": "supported", "permitted_efforts": ["default"]}
    return {**told, **more, **changed}


def catalog(*choices: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A page of a catalog."""
    complete = changed.get("next_cursor") is None
    page = {"revision": "c-1", "choices": list(choices), "next_cursor": None, "complete": complete, "notices": []}
    return {**page, "source": "cache_only", **changed}


def providers(*each: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """A page of ``model.catalog.status``."""
    return {**catalog(**changed), "configuration_reload": "restart_child", "providers": list(each)}


def provider(name: str = "p", **changed: Any) -> dict[str, Any]:
    """One provider of it."""
    told = {"provider": name, "catalog_status": "available", "authentication": "ready", "relevant": True}
    return {**told, "recovery": "none", **changed}


def refreshed(**changed: Any) -> dict[str, Any]:
    """A result of ``model.refresh``."""
    told = {"provider": "p", "outcome": "refreshed", "reason": None, "catalog_revision": "c-9", "catalog_error": None}
    fixed = {"recovery": "reload_catalog", "configuration_reload": "restart_child", "selection_unchanged": True}
    return {**told, **fixed, **changed}


def selected(**changed: Any) -> dict[str, Any]:
    """A result of ``selection.set``."""
    told = {"session_id": "s1", "selection": {**SELECTION, "revision": "sel-2"}, "catalog_revision": "c-1"}
    return {**told, "scope": "session", "durable": True, "history_revision": "h-9", "notices": [], **changed}


def card(revision: int = 0, outcome: str | None = None, **changed: Any) -> dict[str, Any]:
    """A live card of activity ``a1``."""
    protection = {"decision": "not_reported", "summary": None}
    metadata = {"tool_name": "read", "resource_path": None, "working_directory": None, "public_protection": protection}
    told = {
        "schema_version": 1, "card_id": "a1", "activity_id": "a1", "parent_activity_id": None, "parent_state": "root",
        "task_id": None, "tool_kind": "read", "state": "finished" if outcome else "running", "outcome": outcome,
        "changes": "not_applicable", "revision": revision, "origin": "live", "title": "Read",
        "detail": {"availability": "complete", "reason": None}, "metadata": metadata, "blocks": [], "omissions": [],
    }  # fmt: skip
    return {**told, **changed}


Given = tuple[str, Any, Line]
"""``client``, ``backend``, ``closed`` or ``exit``; the frame or the status; what is known of the line."""


class Trace:
    """A conversation being written and observed at once."""

    def __init__(self) -> None:
        self.observer = Observer()
        self.told: list[Explanation] = []
        self.given: list[Given] = []
        """What was observed, so that a test can observe it again, changed."""
        self.seq = itertools.count(1)
        self.numbers = itertools.count(1)
        self.last = ""

    @property
    def findings(self) -> list[Finding]:
        """Everything found so far."""
        return self.observer.findings

    @property
    def clauses(self) -> list[str]:
        """The first clause of every finding, in order."""
        return [finding.clauses[0] for finding in self.findings]

    def states(self, *names: str) -> dict[str, str]:
        """The likeliest states of some instances."""
        return {name: str(self.observer.world[name].value) for name in names}

    # the client

    def ask(self, method: str, id: str | None = None, **params: Any) -> Self:  # noqa: A002 - the wire's name
        """Send a request; dots in names are written as in the protocol."""
        self.last = id or f"r{next(self.numbers)}"
        return self.line({"protocol": PROTOCOL, "version": 1, "id": self.last, "method": method, "params": params})

    def line(self, frame: object, line: Line | None = None) -> Self:
        """Send anything."""
        self.given.append(("client", frame, line or Line()))
        self.told.append(self.observer.client(frame, line or Line()))
        return self

    def close(self, *, inside: bool = False) -> Self:
        """End the input."""
        self.given.append(("closed", inside, Line()))
        self.told.append(self.observer.client_closed(inside_frame=inside))
        return self

    # the backend

    def saw(self, frame: object, line: Line | None = None) -> Self:
        """Anything at all."""
        self.given.append(("backend", frame, line or Line()))
        self.told.append(self.observer.backend(frame, line or Line()))
        return self

    def frame(self, line: Line | None = None, **keys: Any) -> Self:
        """Any frame."""
        envelope = {"protocol": PROTOCOL, "version": 1, "instance_id": INSTANCE, "seq": next(self.seq)}
        return self.saw({**envelope, **keys}, line)

    def result(self, result: Any, id: str | None = None, **keys: Any) -> Self:  # noqa: A002
        """Answer the last request, or the one named."""
        return self.frame(**{"type": "response", "id": id or self.last, "result": result, **keys})

    def error(self, code: str, id: str | None = "", **keys: Any) -> Self:  # noqa: A002
        """Refuse the last request, or the one named; None is a null id."""
        return self.frame(**{"type": "response", "id": self.last if id == "" else id, "error": {"code": code}, **keys})

    def event(self, name: str, /, run: str = RUN, session: str = "s1", **data: Any) -> Self:
        """An event of the run."""
        return self.frame(type="event", event=name, data={"session_id": session, "run_id": run, **data})

    def exit(self, status: int = 0) -> Self:
        """End the process, and the trace."""
        self.given.append(("exit", status, Line()))
        self.told.append(self.observer.exited(status))
        self.told.append(self.observer.finish())
        return self

    # longer sentences

    def ready(self, *names: str) -> Self:
        """Initialize, and be ready."""
        params: dict[str, Any] = {"required_capabilities": list(names)}
        if "client.tools" in names:
            params["client_tools"] = [TOOL]
        return self.ask("initialize", **params).result(initialized(*names))

    def attached(self, *names: str, session: str = "s1") -> Self:
        """Be ready, and have a session."""
        self.ready(*names).ask("session.create")
        return self.result({"session_id": session, "durable": False, "revision": "h-1", "notices": []})

    def started(self, *names: str) -> Self:
        """Have a session, and a run that is admitted."""
        self.attached(*names).ask("turn.start", session_id="s1", prompt="hello")
        return self.result({"run_id": RUN, "accepted": True})

    def running(self, *names: str) -> Self:
        """Have a run whose input is stored."""
        return self.started(*names).persisted()

    def persisted(self) -> Self:
        """``input.persisted``."""
        return self.event("input.persisted", message_id="u-1", durable=True, revision="h-2")

    def delta(self, text: str = "hi", part: int = 0, message: str = "m1") -> Self:
        """``message.delta``."""
        return self.event("message.delta", message_id=message, part=part, text=text)

    def whole(self, text: str = "hi", *, partial: bool = False, message: str = "m1", **data: Any) -> Self:
        """``message.reconcile`` in one part."""
        told = {"message_id": message, "part": 0, "text": text, "last_part": True, "partial": partial, **data}
        return self.event("message.reconcile", **told)

    def activity(self, state: str, id: str = "a1", **data: Any) -> Self:  # noqa: A002
        """``activity``."""
        told = {"activity_id": id, "kind": "tool", "state": state, "name": "read x", "summary": state, **data}
        return self.event("activity", **told)

    def approval(self, id: str = APPROVAL, **data: Any) -> Self:  # noqa: A002
        """``approval.requested``."""
        return self.event(
            "approval.requested", **{"approval_id": id, "summary": "run x", "expires_in_ms": 60000, **data}
        )

    def carded(self, card: dict[str, Any], **data: Any) -> Self:
        """``tool.card``."""
        told = {"activity_id": "a1", "part": 0, "last_part": True, "card": card, **data}
        return self.event("tool.card", **told)

    def call(self, id: str = CALL, **data: Any) -> Self:  # noqa: A002
        """``client.tool.call``."""
        who = {"call_id": id, "task_id": None, "subagent_id": None}
        return self.event(
            "client.tool.call", **{**who, "name": TOOL["name"], "arguments": {}, "timeout_ms": 5000, **data}
        )

    def uncall(self, reason: str, id: str = CALL, **data: Any) -> Self:  # noqa: A002
        """``client.tool.cancel``."""
        who = {"call_id": id, "task_id": None, "subagent_id": None}
        return self.event("client.tool.cancel", **{**who, "reason": reason, **data})

    def deliver(self, id: str = CALL, **params: Any) -> Self:  # noqa: A002
        """Send ``client.tool.result``."""
        who = {"instance_id": INSTANCE, "session_id": "s1", "run_id": RUN, "call_id": id}
        told = {**who, "task_id": None, "subagent_id": None, "status": "success", "text": "ok", **params}
        return self.ask("client.tool.result", **told)

    def allow(self, id: str = APPROVAL, *, allow: bool = True, **params: Any) -> Self:  # noqa: A002
        """Send ``approval.answer``."""
        return self.ask(
            "approval.answer", **{"session_id": "s1", "run_id": RUN, "approval_id": id, "allow": allow, **params}
        )

    def cancel(self, **params: Any) -> Self:
        """Send ``turn.cancel``."""
        return self.ask("turn.cancel", **{"session_id": "s1", "run_id": RUN, **params})

    def finished(self, outcome: str = "completed", **data: Any) -> Self:
        """``run.finished``."""
        code = {"completed": None, "cancelled": None, "failed": "execution_failed"}[outcome]
        told = {"outcome": outcome, "persistence": "durable", "revision": "h-3", "error_code": code, **data}
        return self.event("run.finished", **told)

    def shut(self) -> Self:
        """Shut down, and be told so."""
        return self.ask("shutdown").result({"state": "stopping"})


Write = Callable[[Trace], object]
