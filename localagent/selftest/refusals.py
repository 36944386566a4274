"""Faults of admission: what is refused, with which code, and what a refusal does beside."""

from typing import Annotated, Any

from .mutant import fault
from .tools import around, instead_of, passed, put_field, put_item, unchecked


def _code(check: str, code: str) -> None:
    """Let a check of admission refuse with another code."""
    from statemachines import admission

    put_field(getattr(admission, check), "code", code)


# codes


@fault
def wrong_code_for_json() -> None:
    """A line that is no JSON is refused as invalid_params."""
    from localagent.core import connection
    from localagent.protocol.codes import Code

    @around(connection.Connection, "_refuse")
    def refuse(original: Any, self: Any, id_: Any, code: Any, failed: Any, now: float) -> Any:
        return original(self, id_, Code.INVALID_PARAMS if code is Code.INVALID_REQUEST else code, failed, now)


@fault
def wrong_code_for_structure() -> None:
    """A line that is nested too deep is refused as invalid_request."""
    from localagent.core import connection
    from localagent.protocol.codes import Code

    @around(connection.Connection, "_refuse")
    def refuse(original: Any, self: Any, id_: Any, code: Any, failed: Any, now: float) -> Any:
        return original(self, id_, Code.INVALID_REQUEST if code is Code.INVALID_FRAME else code, failed, now)


@fault
def wrong_code_for_a_used_id() -> None:
    """A used id is refused as invalid_request."""
    _code("NEW_ID", "invalid_request")


@fault
def wrong_code_for_a_method() -> None:
    """An unknown method is refused as unsupported_capability."""
    _code("KNOWN", "unsupported_capability")


@fault
def wrong_code_for_a_capability() -> None:
    """An unsupported capability is refused as invalid_params."""
    _code("SUPPORTED", "invalid_params")


@fault
def wrong_code_for_params() -> None:
    """Wrong params are refused as invalid_request."""
    _code("PARAMS", "invalid_request")


@fault
def wrong_code_before_initialize() -> None:
    """A session operation before initialize is refused as busy."""
    _code("STARTED", "busy")


@fault
def wrong_code_for_a_second_initialize() -> None:
    """A second initialize is refused as busy."""
    _code("UNINITIALIZED", "busy")


@fault
def wrong_code_for_another_session() -> None:
    """Another session than the attached one is refused as session_missing."""
    _code("SAME_SESSION", "session_missing")


@fault
def wrong_code_without_a_session() -> None:
    """What needs an attachment is refused as stale_session without one."""
    _code("ATTACHED", "stale_session")


@fault
def wrong_code_for_another_run() -> None:
    """A run that is not the active one is refused as operation_missing."""
    _code("SAME_RUN", "operation_missing")
    _code("RUN_ACTIVE", "operation_missing")


@fault
def wrong_code_for_an_operation() -> None:
    """A request that is not there to be cancelled is refused as stale_run."""
    _code("OPERATING", "stale_run")


@fault
def wrong_code_for_a_listing() -> None:
    """A continuation of no current listing is refused as stale_catalog."""
    _code("LISTING_CURRENT", "stale_catalog")
    _code("SAME_LISTING", "stale_catalog")


@fault
def wrong_code_for_a_selection() -> None:
    """A stale selection revision is refused as stale_revision."""
    _code("SAME_SELECTION", "stale_revision")


@fault
def wrong_code_for_a_catalog() -> None:
    """A continuation of no current catalog is refused as stale_revision."""
    _code("CATALOG_CURRENT", "stale_revision")
    _code("SAME_PAGES", "stale_revision")


@fault
def wrong_code_for_bad_settings() -> None:
    """Settings that cannot be read fail the startup with session_invalid."""
    from localagent.core.connection import Connection
    from localagent.core.worker import StartFailed, WorkerDone
    from localagent.protocol.codes import Code

    @around(Connection, "work")
    def work(original: Any, self: Any, message: Any, now: float) -> Any:
        if isinstance(message, WorkerDone) and isinstance(message.word, StartFailed):
            message = WorkerDone(message.job, StartFailed(Code.SESSION_INVALID))
        return original(self, message, now)


# silence and side effects


@fault
def unknown_method_ignored() -> None:
    """An unknown method is not answered."""
    from localagent.core import connection

    @around(connection.Connection, "_refuse")
    def refuse(original: Any, self: Any, id_: Any, code: Any, failed: Any, now: float) -> Any:
        return [] if code == "unsupported_method" else original(self, id_, code, failed, now)


@fault
def unknown_param_ignored() -> None:
    """Members of params that a method does not know are passed over."""
    from localagent.protocol import codec

    @around(codec, "checked")
    def checked(original: Any, kind: Any, request: Any) -> Any:
        if isinstance(request.params, dict):
            known = {name: request.params[name] for name in kind.__struct_fields__ if name in request.params}
            request = codec.Request(request.id, request.method, known, request.duplicate_inside)
        return original(kind, request)


@fault
def params_of_any_type() -> None:
    """Params that are no object count as empty ones."""
    from localagent.protocol import codec

    @around(codec, "checked")
    def checked(original: Any, kind: Any, request: Any) -> Any:
        if not isinstance(request.params, dict):
            request = codec.Request(request.id, request.method, {}, request.duplicate_inside)
        return original(kind, request)


@fault
def page_limit_zero() -> None:
    """A limit of 0 is accepted."""
    _limits(0, 100)


@fault
def page_limit_above() -> None:
    """A limit of 101 is accepted."""
    _limits(1, 101)


@fault
def page_limit_below() -> None:
    """A limit of 100 is refused."""
    _limits(1, 99)


def _limits(least: int, most: int) -> None:
    from msgspec import Meta

    from localagent.protocol.params import PageParams

    put_item(PageParams.__annotations__, "limit", Annotated[int, Meta(ge=least, le=most)])


@fault
def half_a_pair_accepted() -> None:
    """A revision without a cursor asks for a fresh snapshot."""
    from localagent.protocol import codec, params

    @around(codec, "checked")
    def checked(original: Any, kind: Any, request: Any) -> Any:
        given = request.params
        if kind is params.PageParams and isinstance(given, dict) and ("revision" in given) != ("cursor" in given):
            left = {name: value for name, value in given.items() if name not in ("revision", "cursor")}
            request = codec.Request(request.id, request.method, left, request.duplicate_inside)
        return original(kind, request)


@fault
def busy_ends_the_run() -> None:
    """A second turn that is refused as busy stops the first."""
    from localagent.core import connection
    from localagent.core.commands import CancelWorker

    @around(connection.Connection, "_refuse")
    def refuse(original: Any, self: Any, id_: Any, code: Any, failed: Any, now: float) -> Any:
        commands = original(self, id_, code, failed, now)
        return [*commands, CancelWorker(self.facts.run.job)] if code == "busy" and self.facts.run.job else commands


@fault
def selection_after_the_run() -> None:
    """A selection that was refused as busy is carried out when the run is over."""
    import json

    from msgspec import convert
    from msgspec.structs import replace

    from localagent.core.connection import Connection
    from localagent.core.worker import Selected
    from localagent.protocol.params import SelectionSetParams
    from localagent.shell.backend import LocalBackend

    refused: list[Any] = []

    @around(Connection, "_line")
    def line(original: Any, self: Any, line: bytes, now: float) -> Any:
        if b'"selection.set"' in line and self.facts.run.job:
            refused.append(convert(json.loads(line)["params"], SelectionSetParams))
        return original(self, line, now)

    @around(LocalBackend, "turn")
    def turn(original: Any, self: Any, command: Any, sink: Any) -> Any:
        ended = original(self, command, sink)
        handle = self._current()
        for asked in refused:
            done = self._models.select(asked, handle, self._opened_store(), lambda: False)
            if isinstance(done, Selected):
                ended = replace(ended, selection=done.selection, revision=handle.refresh())
        return ended


@fault
def listing_during_a_run() -> None:
    """session.list is served during a run."""
    unchecked("session.list", "NO_RUN")


@fault
def history_during_a_run() -> None:
    """history.page is not busy during a run."""
    unchecked("history.page", "NO_RUN")


@fault
def foreign_session_accepted() -> None:
    """turn.start does not look at the session it names."""
    passed("SAME_SESSION")


@fault
def foreign_run_cancelled() -> None:
    """turn.cancel cancels the active run, whichever it names."""
    passed("SAME_RUN")


@fault
def stale_selection_accepted() -> None:
    """selection.set does not look at the selection revision."""
    passed("SAME_SELECTION")


@fault
def foreign_operation_cancelled() -> None:
    """operation.cancel is acknowledged though nothing is on."""
    from localagent.protocol.results import Cancelling

    instead_of(
        "operation_missing",
        lambda self, request: (
            Cancelling(request_id=request.params["request_id"]) if request.method == "operation.cancel" else None
        ),
    )
