"""What the jobs do: startup, session requests and turns, on the store and the runner.

Everything here runs in worker threads and may block; heavy imports happen here, when they are needed. One session is
attached at a time. A successful attach takes the place of the one before, whose leases go when the core says so; an
attach that came too late is let go instead (D83).
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from localagent.core import worker
from localagent.core.commands import Leases, ReleaseLeases, StartWorker
from localagent.core.worker import Effect, Traced
from localagent.protocol.codes import Code
from localagent.protocol.params import (
    HistoryPageParams,
    PageParams,
    SelectionSetParams,
    SessionOpenParams,
    TurnStartParams,
)
from localagent.protocol.results import Attached, Selection
from localagent.runner import MODEL, PROVIDER

from .keeper import Keeper
from .turn import Turn
from .workers import Token

if TYPE_CHECKING:
    from localagent.runner.faults import FaultyHandle
    from localagent.runner.provider import Runner
    from localagent.runner.script import Script
    from localagent.sessions.discovery import Discovery
    from localagent.sessions.handle import Handle
    from localagent.sessions.inventory import Attachment
    from localagent.sessions.listing import Listing
    from localagent.sessions.paths import Root
    from localagent.sessions.store import Store
    from localagent.settings.snapshot import Choice, Snapshot

    from .models import Models

SERVED: Final = frozenset(
    {
        "initialize",
        "status",
        "shutdown",
        "session.create",
        "session.open",
        "session.list",
        "session.discover",
        "model.catalog",
        "model.catalog.status",
        "model.refresh",
        "operation.cancel",
        "selection.set",
        "history.page",
        "turn.start",
        "turn.cancel",
        "approval.answer",
    }
)
"""The capabilities that exist so far."""


class LocalBackend:
    """Implements :class:`localagent.shell.workers.Backend`."""

    def __init__(self, fresh_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._fresh_id, self._clock = fresh_id, clock
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        """Held while modules are imported here: two threads that import a package and a part of it, each in its own
        order, can trip over each other's locks, and one of them gets half a module."""
        self._place: tuple[Root, str] | None = None
        self._snapshot: Snapshot | None = None
        """What startup admitted; None until it has succeeded."""
        self._models: Models | None = None
        self._startup_revision = fresh_id()
        """The revision of the startup selection (SEL-03)."""
        self._store: Store | None = None
        self._script: Script | None = None
        self._keeper: Keeper | None = None
        self._listing: Listing | None = None
        self._discovery: Discovery | None = None
        self._attached: Handle | None = None
        self._previous: Handle | None = None
        self._attaches = 0

    # startup

    def startup(self, command: StartWorker, token: Token) -> worker.LastWord:
        """Prepare the store and admit everything that settings and their like say (START-11 to START-39); all of it
        local, no request is made. Nothing is kept of a startup that fails but what it may tell (BASE-OP-85)."""
        from localagent.sessions import paths
        from localagent.sessions.errors import Cancelled, StoreError
        from localagent.settings import load
        from localagent.settings.admit import admit
        from localagent.settings.faults import Inadmissible
        from localagent.settings.providers import Embedded

        context_id, choice = None, None
        try:
            root = paths.prepare(paths.locate(os.environ), cancelled=token.cancelled)
            cwd = paths.canonical(os.getcwd())
            context_id = paths.context_id(root, cwd)
            settings = load.settings(root, cwd, os.environ)
            script = _chosen_script(settings.localagent.script)
            embedded = Embedded(PROVIDER, MODEL)
            snapshot = admit(root, cwd, os.environ, embedded, settings=settings, cancelled=token.cancelled)
            choice = snapshot.choice
            if snapshot.mcp_servers:  # nobody here can connect them, and they are never left out in silence (START-36)
                raise StoreError(Code.MCP_UNAVAILABLE, "MCP servers cannot be connected yet")
        except StoreError as fault:
            if isinstance(fault, Inadmissible):
                choice = fault.choice
            return worker.StartFailed(fault.code, *_shown(choice), context_id)
        except Cancelled:
            return worker.StartFailed(Code.STARTUP_CANCELLED)
        except OSError:
            return worker.StartFailed(Code.STARTUP_FAILED)
        self._place, self._snapshot, self._script = (root, cwd), snapshot, script
        refreshable = frozenset(name for name, each in snapshot.providers.items() if each.kind != "scripted")
        return worker.Started(*_shown(choice), context_id, self._startup_selection(snapshot), refreshable)

    def warm_up(self) -> None:
        """Load what sessions and turns need, once the client has been told that the child is ready."""
        self._opened_store()
        self._opened_models()
        self._played_script()

    def _startup_selection(self, snapshot: "Snapshot") -> Selection:
        """The selection that the settings chose. Of the embedded provider all is known: it has no efforts (SEL-14)."""
        if snapshot.provider.kind != "scripted":
            return self._opened_models().selector.current.shown()
        return Selection(
            effective_effort=None,
            effort_support="unsupported",
            model=_shown(snapshot.choice)[1],
            permitted_efforts=("default",),
            provider=PROVIDER,
            requested_effort=snapshot.choice.effort,
            revision=self._startup_revision,
        )

    # session requests

    def session(self, command: StartWorker, token: Token) -> worker.LastWord:
        """Carry out a session request. Cancellation takes effect between bounded steps."""
        from localagent.sessions.errors import Cancelled, StoreError

        try:
            return self._SESSION[command.method](self, command, token)
        except StoreError as fault:
            changed = command.method == "history.page" and fault.code is Code.STALE_REVISION
            return worker.OperationFailed(fault.code, Traced("history", Effect.CHANGED) if changed else None)
        except Cancelled:
            return worker.OperationCancelled()

    def _create(self, command: StartWorker, token: Token) -> worker.LastWord:
        return self._attach(self._opened_store().create(token.cancelled), token)

    def _open(self, command: StartWorker, token: Token) -> worker.LastWord:
        session_id = cast(SessionOpenParams, command.params).session_id
        self._settled()  # it may be the one that was replaced a moment ago
        return self._attach(self._opened_store().open(session_id, token.cancelled), token)

    def _page(self, command: StartWorker, token: Token) -> worker.LastWord:
        params = cast(HistoryPageParams, command.params)
        page = self._current().page(params.revision, params.cursor, token.cancelled)
        return worker.Read(page, Traced("history", _effect(False, page.next_cursor)))

    def _list(self, command: StartWorker, token: Token) -> worker.LastWord:
        """A fresh listing that fails drops the one before; of a continuation only a change does (BASE-OP-127)."""
        from localagent.sessions.errors import Cancelled, StoreError

        params, listing = cast(PageParams, command.params), self._opened_listing()
        fresh = params.revision is None
        dropped = Traced("list", Effect.DROPPED) if fresh else None
        try:
            attachment = self._settled()
            page = listing.page(params.revision, params.cursor, params.limit, attachment, token.cancelled)
        except StoreError as fault:
            lost = not fresh and listing.revision is None
            return worker.OperationFailed(fault.code, Traced("list", Effect.CHANGED) if lost else dropped)
        except Cancelled:
            return worker.OperationCancelled(dropped)
        return worker.Read(page, Traced("list", _effect(fresh, page.next_cursor), page.revision))

    def _discover(self, command: StartWorker, token: Token) -> worker.LastWord:
        """Whatever fails, the scan is lost (EXT-DISC-48, EXT-DISC-49)."""
        from localagent.sessions.errors import Cancelled, StoreError

        params, discovery = cast(PageParams, command.params), self._opened_discovery()
        fresh = params.revision is None
        lost = Traced("discover", Effect.DROPPED if fresh else Effect.CHANGED)
        try:
            attachment = self._settled()
            page = discovery.page(params.revision, params.cursor, params.limit, attachment, token.cancelled)
        except StoreError as fault:
            return worker.OperationFailed(fault.code, lost)
        except Cancelled:
            discovery.abandon()
            return worker.OperationCancelled(lost)
        return worker.Read(page, Traced("discover", _effect(fresh, page.next_cursor), page.revision))

    def _catalog(self, command: StartWorker, token: Token) -> worker.LastWord:
        models = self._opened_models()
        with self._loading:
            from . import catalogs
        return catalogs.page(models, command, token.cancelled)

    def _refresh(self, command: StartWorker, token: Token) -> worker.LastWord:
        models = self._opened_models()
        with self._loading:
            from . import catalogs
        assert self._snapshot is not None, "models are served after startup only"
        return catalogs.refresh(models, self._snapshot, command, token.cancelled)

    def _select(self, command: StartWorker, token: Token) -> worker.LastWord:
        params = cast(SelectionSetParams, command.params)
        return self._opened_models().select(params, self._current(), self._opened_store(), token.cancelled)

    def _settled(self) -> "Attachment":
        """What is attached, once the leases of what was attached before are gone: they would look like another's."""
        from localagent.sessions.inventory import Attachment

        if self._keeper is not None:
            self._keeper.settle()
        with self._lock:
            session_id = self._attached.session_id if self._attached is not None else None
            return Attachment(session_id, self._attaches)

    _SESSION: Final[dict[str, Callable[["LocalBackend", StartWorker, Token], worker.LastWord]]] = {
        "session.create": _create,
        "session.open": _open,
        "session.list": _list,
        "session.discover": _discover,
        "history.page": _page,
        "model.catalog": _catalog,
        "model.catalog.status": _catalog,
        "model.refresh": _refresh,
        "selection.set": _select,
    }

    def _attach(self, handle: "Handle", token: Token) -> worker.SessionAttached:
        """Attach, with the selection that the session saved (SESS-36), or let the handle go: nothing has changed."""
        try:
            selection, notices = self._opened_models().attach(handle, token.cancelled)
        except BaseException:
            handle.release()
            raise
        with self._lock:
            self._previous, self._attached = self._attached, handle
            self._attaches += 1
        if self._keeper is not None:
            self._keeper.watch()
        revision = handle.revision or ""
        result = Attached(durable=handle.durable, notices=notices, revision=revision, session_id=handle.session_id)
        return worker.SessionAttached(result, handle.session_id, handle.durable, revision, selection)

    # turns

    def turn(self, command: StartWorker, sink: Turn) -> worker.TurnEnded | None:
        """Run a turn on the attached session, unless the efforts of its model have changed by now (SEL-26)."""
        with self._loading:
            from localagent.runner.faults import FaultyHandle
            from localagent.runner.turn import run_turn

            from .appender import Appender

        stale = self._opened_models().stale(self._current(), sink.cancelled)
        if stale is not None:
            return stale
        handle = FaultyHandle(self._current())
        runner = self._runner(handle)
        later = Appender(handle)
        try:
            prompt = cast(TurnStartParams, command.params).prompt
            ended = run_turn(prompt, handle, sink, runner, self._fresh_id, self._clock, later)
        finally:
            later.close()
        if ended.word == "failed" and not ended.input_stored:
            sink.input_failed(ended.revision)
        return worker.TurnEnded(ended.word, ended.code, ended.revision)

    def _runner(self, handle: "FaultyHandle") -> "Runner":
        """The runner of the selected provider. Only the embedded one has one that is built."""
        with self._loading:
            from localagent.runner.scripted import Scripted
            from localagent.runner.unbuilt import Unbuilt

        models = self._opened_models()
        if not models.is_embedded:
            return Unbuilt(models.provider)
        return Scripted(self._played_script(), self._clock, handle.fail_append)

    # leases and the end

    def release(self, command: ReleaseLeases) -> None:
        """Let leases go; the last ones right here, the others by the keeper."""
        with self._lock:
            going = [self._attached if command.which is Leases.NEW else self._previous]
            if command.which is Leases.NEW:
                self._attached, self._previous = self._previous, None
            elif command.which is Leases.PREVIOUS:
                self._previous = None
            else:
                going, self._attached, self._previous = [self._attached, self._previous], None, None
        for handle in going:
            if handle is None:
                continue
            if command.which is Leases.ALL or self._keeper is None:
                handle.release()
            else:
                self._keeper.hand(handle.release)

    def close(self) -> None:
        """Of the runtime only a scan that has not ended outlives its request; the workers are gone by now."""
        if self._discovery is not None:
            self._discovery.abandon()

    def _opened_store(self) -> "Store":
        with self._loading:
            from localagent.sessions.store import Store

            if self._store is None:
                self._store = Store(*self._opened_place())
                self._keeper = Keeper(self._store.renew)
            return self._store

    def _opened_models(self) -> "Models":
        with self._loading:
            from .models import Models

            if self._models is None:
                assert self._snapshot is not None, "what startup admitted is there once it has succeeded"
                self._models = Models(self._snapshot, self._fresh_id, self._startup_revision)
            return self._models

    def _opened_listing(self) -> "Listing":
        with self._loading:
            from localagent.sessions.listing import Listing

            if self._listing is None:
                self._listing = Listing(*self._opened_place(), self._fresh_id)
            return self._listing

    def _opened_discovery(self) -> "Discovery":
        with self._loading:
            from localagent.sessions.discovery import Discovery

            if self._discovery is None:
                self._discovery = Discovery(*self._opened_place(), self._fresh_id)
            return self._discovery

    def _opened_place(self) -> "tuple[Root, str]":
        assert self._place is not None, "sessions are served after startup only"
        return self._place

    def _played_script(self) -> "Script":
        with self._loading:
            from localagent.runner import script

            if self._script is None:
                self._script = script.built_in()
            return self._script

    def _current(self) -> "Handle":
        assert self._attached is not None, "admission has seen an attachment"
        return self._attached


def _effect(fresh: bool, next_cursor: str | None) -> Effect:
    """What a page did to the snapshot it belongs to."""
    if fresh:
        return Effect.FRESH_LAST if next_cursor is None else Effect.FRESH
    return Effect.LAST_PAGE if next_cursor is None else Effect.PAGE


def _shown(choice: "Choice | None") -> tuple[str | None, str | None]:
    """Provider and model as a status may name them (STATUS-07 to STATUS-09)."""
    if choice is None:
        return None, None
    if (choice.provider, choice.model) == (PROVIDER, MODEL):  # safe, and redaction takes a while to load
        return PROVIDER, MODEL
    from localagent.text.redact import shown_name

    return shown_name(choice.provider), shown_name(choice.model, whitespace=False)


def _chosen_script(path: str | None) -> "Script | None":
    """The script that the settings name, if they name one. Raises StoreError(``configuration_invalid``)."""
    from localagent.sessions.errors import StoreError

    if path is None:
        return None
    from localagent.runner import script

    try:
        return script.load(Path(path))
    except script.ScriptError as fault:
        raise StoreError(Code.CONFIGURATION_INVALID, str(fault)) from None
