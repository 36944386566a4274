"""Faults of a refresh: what is asked of a provider and when, what is written, how it is cancelled."""

from typing import Any

from msgspec.structs import replace

from .frames import rewriting
from .mutant import fault
from .tools import answered, around, bounds, instead_of, passed, put, unchecked


def _refused_refreshes() -> list[bool]:
    """One more item for each refresh that is refused as busy."""
    from localagent.core import connection

    last, refused = [""], list[bool]()

    @around(connection, "parse")
    def parse(original: Any, line: bytes) -> Any:
        request = original(line)
        last[0] = request.method
        return request

    @around(connection.Connection, "_refuse")
    def refuse(original: Any, self: Any, id_: Any, code: Any, failed: Any, now: float) -> Any:
        if code == "busy" and last[0] == "model.refresh":
            refused.append(True)
        return original(self, id_, code, failed, now)

    return refused


@fault
def refused_refresh_succeeds() -> None:
    """A refresh that failed is said to have succeeded."""
    answered("model.refresh", lambda result: replace(result, outcome="refreshed", reason=None))


@fault
def refreshed_with_a_reason() -> None:
    """A refresh that succeeded has a reason to have failed."""
    answered("model.refresh", lambda result: replace(result, reason=result.reason or "remote_unavailable"))


@fault
def refresh_with_an_address() -> None:
    """The result of a refresh says where it asked, in a member of its own and as its error."""

    def change(frame: Any) -> None:
        if "selection_unchanged" in (frame.get("result") or {}):
            frame["result"].update(base_url="http://127.0.0.1:9/v1", catalog_error="not found: http://127.0.0.1:9/v1")

    rewriting(change)


@fault
def refresh_without_a_scan() -> None:
    """A refresh shows the catalog's revision from before, and that one stays good."""
    from localagent.catalog.catalog import Catalog

    last = [""]

    @around(Catalog, "_begin")
    def begin(original: Any, self: Any, selected: Any, cancelled: Any) -> Any:
        snapshot = original(self, selected, cancelled)
        last[0] = snapshot.revision
        return snapshot

    put(Catalog, "abandon", lambda self: None)
    put(Catalog, "renew", lambda self, selected, cancelled: last[0])
    put(Catalog, "_compare", lambda self, known, cancelled: None)


@fault
def catalogs_stay_good() -> None:
    """A revision of the catalog that a refresh has made stale is taken all the same."""
    from localagent.catalog.catalog import Catalog

    unchecked("selection.set", "CATALOG_CURRENT", "SAME_CATALOG")
    put(Catalog, "abandon", lambda self: None)
    put(Catalog, "_known", lambda self, revision: self._snapshot)
    put(Catalog, "_compare", lambda self, known, cancelled: None)


@fault
def refresh_writes_nothing() -> None:
    """A refresh that succeeded has not written the cache."""
    from localagent.catalog.refresh import Refresher

    put(Refresher, "_write", lambda self, name, data, cancelled: None)


@fault
def failed_refresh_empties_the_cache() -> None:
    """A refresh that failed, or was cancelled, empties the cache that was there."""
    from localagent.catalog.refresh import Refresher
    from localagent.catalog.remote import RefreshFault
    from localagent.sessions.clock import never
    from localagent.sessions.errors import Cancelled

    @around(Refresher, "_replace")
    def replaced(original: Any, self: Any, provider: Any, cancelled: Any, told: Any) -> None:
        try:
            original(self, provider, cancelled, told)
        except (RefreshFault, Cancelled):
            self._write(f"{provider.id}.json", b"{}", never)
            raise


@fault
def empty_catalog_written() -> None:
    """An answer without models is good, and is written."""
    from localagent.catalog import answers
    from localagent.catalog.document import Judged
    from localagent.catalog.remote import RefreshFault

    put(answers, "judge", lambda data, provider: Judged("available"))

    @around(answers, "entries")
    def entries(original: Any, models: Any, provider: Any, before: Any) -> Any:
        try:
            return original(models, provider, before)
        except RefreshFault as why:
            if why.reason != "empty_catalog":
                raise
            return []


def _refresh_bounds(**changed: int) -> None:
    from localagent.catalog import answers
    from localagent.protocol.limits import LIMITS

    put(answers, "LIMITS", replace(LIMITS, refresh=replace(LIMITS.refresh, **changed)))


@fault
def refresh_of_any_number() -> None:
    """A refresh writes as many models as the provider tells."""
    _refresh_bounds(models=1_000_000)


@fault
def refresh_of_any_size() -> None:
    """A refresh writes a cache of any size."""
    _refresh_bounds(cache_bytes=1 << 30)


@fault
def refresh_of_any_body() -> None:
    """A refresh reads an answer to its end, however long it is."""
    from localagent.catalog import remote

    around(remote, "_body")(lambda original, answer, most, received: original(answer, 1 << 30, received))


@fault
def refresh_enables_models() -> None:
    """What a refresh has found is offered, whether it is enabled or not."""
    from localagent.catalog import choices

    put(choices, "_enabled", lambda cached: sorted(cached.judged.entries, key=lambda each: each.model.encode()))


@fault
def refresh_changes_the_settings() -> None:
    """A refresh makes another model the one to start with."""
    import os
    from pathlib import Path

    from localagent.catalog.refresh import Refresher

    @around(Refresher, "_write")
    def write(original: Any, self: Any, name: str, data: bytes, cancelled: Any) -> None:
        original(self, name, data, cancelled)
        settings = Path(os.environ["MC_HOME"], "settings.json")
        settings.write_text(settings.read_text().replace('"model": "tiny-chat"', '"model": "tiny-new"'))


@fault
def refresh_selects_a_model() -> None:
    """After a refresh another model is selected."""
    refreshed = [False]

    def change(frame: Any) -> None:
        result = frame.get("result")
        if isinstance(result, dict):
            refreshed[0] = refreshed[0] or "selection_unchanged" in result
            if refreshed[0] and result.get("selection"):
                result["selection"]["model"] = "tiny-new"

    rewriting(change)


@fault
def refresh_on_the_protocol_loop() -> None:
    """A refresh is done where lines are read."""
    from localagent.shell.workers import Workers

    @around(Workers, "start")
    def start(original: Any, self: Any, command: Any) -> None:
        if command.method == "model.refresh":
            put(self, "_spawn", lambda job, body: body())
        original(self, command)


@fault
def others_cancelled_during_a_refresh() -> None:
    """What finds the worker busy is told that it was cancelled."""
    from localagent.protocol.codes import Code

    instead_of("busy", lambda self, request: Code.OPERATION_CANCELLED)


@fault
def busy_request_answered_again() -> None:
    """What was refused as busy is answered once more when the worker is free."""
    from localagent.core.connection import Connection
    from localagent.core.fill import Answer
    from localagent.protocol.codes import Code

    refused = list[str]()

    @around(Connection, "_refuse")
    def refuse(original: Any, self: Any, id_: Any, code: Any, failed: Any, now: float) -> Any:
        commands = original(self, id_, code, failed, now)
        if code == "busy":
            refused.append(id_)
        return commands

    @around(Connection, "_send")
    def send(original: Any, self: Any, filled: Any, now: float) -> None:
        original(self, filled, now)
        while refused and isinstance(filled, Answer) and filled.result == "operation_cancelled":
            original(self, Answer(refused.pop(), Code.OPERATION_CANCELLED), now)


@fault
def second_refresh_cancels_the_first() -> None:
    """A second refresh is refused as busy, and stops the first."""
    from localagent.core.commands import CancelWorker
    from localagent.core.connection import Connection

    @around(Connection, "_refuse")
    def refuse(original: Any, self: Any, id_: Any, refused: Any, failed: Any, now: float) -> Any:
        commands = original(self, id_, refused, failed, now)
        job = self.facts.operation.job
        return [*commands, CancelWorker(job)] if refused == "busy" and job else commands


@fault
def second_refresh_queued() -> None:
    """A second refresh is refused as busy, and done before the next operation."""
    from localagent.sessions.clock import never
    from localagent.shell import catalogs
    from localagent.shell.backend import LocalBackend

    queued, work = _refused_refreshes(), list[Any]()

    @around(catalogs, "refresh")
    def refresh(original: Any, *args: Any) -> Any:
        work[:] = [lambda: original(*args[:-1], never)]
        return original(*args)

    @around(LocalBackend, "session")
    def session(original: Any, self: Any, command: Any, token: Any) -> Any:
        while queued and work:
            queued.pop()
            work[0]()
        return original(self, command, token)


@fault
def second_refresh_on_its_own() -> None:
    """A second refresh is refused as busy, and made when the first is over, beside what comes then."""
    import threading

    from localagent.sessions.clock import never
    from localagent.shell import catalogs

    queued = _refused_refreshes()

    @around(catalogs, "refresh")
    def refresh(original: Any, *args: Any) -> Any:
        try:
            return original(*args)
        finally:
            if queued:
                threading.Thread(target=original, args=(*args[:-1], never), daemon=True).start()


@fault
def refresh_deaf() -> None:
    """A refresh does not look whether it was cancelled."""
    from localagent.sessions.clock import never
    from localagent.shell import catalogs

    around(catalogs, "refresh")(lambda original, *args: original(*args[:-1], never))


@fault
def cancelled_refresh_written() -> None:
    """A refresh that was cancelled goes on to its end, and says then that it was cancelled."""
    from localagent.sessions.clock import never, proceed
    from localagent.shell import catalogs

    @around(catalogs, "refresh")
    def refresh(original: Any, *args: Any) -> Any:
        done = original(*args[:-1], never)
        proceed(args[-1])
        return done


@fault
def cancelled_refresh_has_failed() -> None:
    """A refresh that was cancelled is answered as one that found its provider unavailable."""
    from localagent.core.worker import Read
    from localagent.protocol.results import Refreshed
    from localagent.sessions.errors import Cancelled
    from localagent.shell import catalogs

    @around(catalogs, "refresh")
    def refresh(original: Any, models: Any, snapshot: Any, command: Any, cancelled: Any) -> Any:
        try:
            return original(models, snapshot, command, cancelled)
        except Cancelled:
            failed = Refreshed(
                catalog_error="catalog_unavailable",
                catalog_revision=None,
                outcome="failed",
                provider=command.params.provider,
                reason="remote_unavailable",
            )
            return Read(failed, None)


@fault
def refresh_deaf_while_asking() -> None:
    """A refresh looks whether it was cancelled when the provider has answered, and not before."""
    from localagent.catalog import remote

    put(remote, "proceed", lambda cancelled: None)


@fault
def end_waits_for_a_refresh() -> None:
    """The worker of a refresh takes a minute to be done, and the end of the child waits for it."""
    import time

    from localagent.core import connection
    from localagent.shell.workers import Workers

    bounds(connection, cleanup_ms=600_000)

    @around(Workers, "_run")
    def run(original: Any, self: Any, command: Any, token: Any) -> None:
        original(self, command, token)
        if command.method == "model.refresh":
            time.sleep(60)


@fault
def nothing_answered_behind_a_cancellation() -> None:
    """After operation.cancel nothing is read for a while."""
    import time

    from localagent.shell.workers import Workers

    @around(Workers, "cancel")
    def cancel(original: Any, self: Any, command: Any) -> None:
        original(self, command)
        time.sleep(20)


@fault
def any_operation_cancelled() -> None:
    """operation.cancel cancels what is on, whatever it names."""
    passed("SAME_REQUEST")


@fault
def acknowledgement_of_another_shape() -> None:
    """operation.cancel says that it has cancelled, and what."""

    def change(frame: dict[str, Any]) -> None:
        if (frame.get("result") or {}).get("state") == "cancelling":
            frame["result"].update(state="cancelled", method="model.refresh")

    rewriting(change)


@fault
def extensions_in_another_envelope() -> None:
    """The answer to a refresh, and the errors of operation.cancel, have another version."""

    def change(frame: Any) -> None:
        if "selection_unchanged" in (frame.get("result") or {}) or frame.get("error") == {"code": "operation_missing"}:
            frame["version"] = "1"

    rewriting(change)


@fault
def extensions_unready_after_a_failure() -> None:
    """After a failed startup the extensions are not initialized."""
    from localagent.protocol.codes import Code

    asked = ("session.discover", "model.catalog.status", "model.refresh")
    instead_of("configuration_invalid", lambda self, request: Code.NOT_INITIALIZED if request.method in asked else None)
