"""What a client may expect of its next request: the contract's own bookkeeping, without tables and core.

It knows base 19.4 (:mod:`tests.kit.admission_table`), what the checker has read off the transcript, and which
revisions are current, as base 23.6 tells it.
"""

from collections.abc import Mapping
from typing import Any

from localagent.core import worker
from tests.kit.admission_table import predict
from tests.kit.core_driver import SERVED, Driver
from tests.kit.transcript_steps import Request

ATTACHES = {"session.create", "session.open"}
SESSION = {"history.page", "selection.set", "turn.start"}
FRESH = {worker.Effect.FRESH, worker.Effect.FRESH_LAST, worker.Effect.REVISED}
STALE = {worker.Effect.CHANGED, worker.Effect.DROPPED}


class Expectations:
    """Follows one driver; tell it of every word before it is given."""

    def __init__(self, d: Driver) -> None:
        self.d = d
        self.negotiated: frozenset[str] = frozenset()
        self.startup = "startup_failed"
        self.selection: str | None = None
        self.current: dict[str, str | None] = {}
        self._seen: object = None

    @property
    def column(self) -> str:
        c = self.d.checker
        if c.phase != "ready":
            return c.phase
        return "run" if c.running else "worker" if c.operation else "idle"

    def of(self, method: str, params: Any, fine: bool) -> str:
        """A code, ``ok`` or ``none``."""
        self._notice()
        return predict(
            method,
            self.column,
            negotiated=self.negotiated,
            params=fine,
            faults=self._faults(method, params) if fine else (),
            startup=self.startup,
        )

    def admitted(self, method: str, params: Any) -> None:
        """A request was accepted."""
        self._notice()
        if method == "initialize":
            self.negotiated = frozenset(params["required_capabilities"])
        elif method == "model.refresh":
            self.current["catalog"] = None

    def startup_said(self, word: worker.LastWord) -> None:
        """The startup worker says its last word."""
        if isinstance(word, worker.Started):
            self.selection = word.selection.revision
        elif isinstance(word, worker.StartFailed):
            self.startup = str(word.code)

    def session_said(self, request: Request, word: worker.LastWord | None) -> None:
        """The session worker says its last word for ``request``, or leaves."""
        attaches, selects = request.method in ATTACHES, request.method == "selection.set"
        match word:
            case worker.SessionAttached() if attaches:
                self._attached(word.revision, word.selection)
            case worker.Selected() if selects:
                self._attached(word.history_revision, word.selection)
            case worker.Read() if not (attaches or selects):
                self.selection = word.selection.revision if word.selection else self.selection
                if word.trace and word.trace.effect in FRESH:
                    self.current[word.trace.snapshot] = word.trace.revision
            case worker.OperationFailed() | worker.OperationCancelled() if not attaches:
                if word.trace and word.trace.effect in STALE:
                    self.current[word.trace.snapshot] = None
            case _:
                pass

    def _notice(self) -> None:
        """A run that has finished leaves a history revision, or none."""
        run = self.d.checker.run
        if run is not None and run.finished and run is not self._seen:
            self._seen, self.current["history"] = run, run.revision
            self.selection = run.selection or self.selection

    def _attached(self, revision: str | None, selection: Any) -> None:
        self.current["history"], self.current["list"] = revision, None
        self.selection = selection.revision if selection else self.selection

    def _faults(self, method: str, params: Mapping[str, Any]) -> set[str]:
        c, faults = self.d.checker, set()
        revision = params.get("revision")
        if method in SESSION:
            faults.add("session_missing" if c.attached is None else "")
            faults.add("stale_session" if params["session_id"] != c.attached else "")
        if method == "history.page" and revision != self.current.get("history"):
            faults.add("stale_revision")
        if method == "session.list" and revision is not None and revision != self.current.get("list"):
            faults.add("stale_revision")
        if method.startswith("model.catalog") and revision is not None and revision != self.current.get("catalog"):
            faults.add("stale_catalog")
        if method == "selection.set":
            faults.add("stale_selection" if params["selection_revision"] != self.selection else "")
            faults.add("stale_catalog" if params["catalog_revision"] != self.current.get("catalog") else "")
        if method == "operation.cancel" and c.operation and params["request_id"] != c.operation.request.id:
            faults.add("operation_missing")
        if method == "initialize":
            names = params["required_capabilities"]
            faults.add("unsupported_capability" if not SERVED.issuperset(names) else "")
            faults.add("invalid_params" if ("client.tools" in names) != ("client_tools" in params) else "")
        return faults | self._of_the_run(method, params)

    def _of_the_run(self, method: str, params: Mapping[str, Any]) -> set[str]:
        run, code = self.d.checker.running, {"turn.cancel": "stale_run", "approval.answer": "stale_approval"}
        if run is None or (method not in code and method != "client.tool.result"):
            return set()
        same = (params["session_id"], params["run_id"]) == (run.session_id, run.id)
        if method != "turn.cancel":
            key = "approval_id" if method == "approval.answer" else "call_id"
            ask = run.asks.get((key, params[key]))
            same = same and ask is not None and ask.open and ask.expires > self.d.now
        if method == "client.tool.result":
            scope = (params["instance_id"], params["task_id"], params["subagent_id"])
            same = same and scope == (self.d.checker.instance, None, None)
        return set() if same else {code.get(method, "stale_client_tool_call")}
