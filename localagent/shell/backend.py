"""What the jobs do: startup, session requests and turns, on the store and the runner.

Everything here runs in worker threads and may block; heavy imports happen here, when they are needed. One session is
attached at a time. A successful attach takes the place of the one before, whose leases go when the core says so; an
attach that came too late is let go instead (D83).
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from localagent.core import worker
from localagent.core.commands import Leases, ReleaseLeases, StartWorker
from localagent.core.worker import Effect, Traced
from localagent.protocol.codes import Code
from localagent.protocol.params import HistoryPageParams, PageParams, SessionOpenParams, TurnStartParams
from localagent.protocol.results import Attached, Selection
from localagent.runner import MODEL, PROVIDER

from .keeper import Keeper
from .turn import Turn
from .workers import Token

if TYPE_CHECKING:
    from localagent.runner.script import Script
    from localagent.sessions.discovery import Discovery
    from localagent.sessions.handle import Handle
    from localagent.sessions.inventory import Attachment
    from localagent.sessions.listing import Listing
    from localagent.sessions.paths import Root
    from localagent.sessions.store import Store

SERVED: Final = frozenset(
    {
        "initialize",
        "status",
        "shutdown",
        "session.create",
        "session.open",
        "session.list",
        "session.discover",
        "operation.cancel",
        "history.page",
        "turn.start",
        "turn.cancel",
        "approval.answer",
    }
)
"""The capabilities that exist so far."""


class _Settings(msgspec.Struct):
    """The member ``localagent`` of ``settings.json``: which runner plays, and for ``scripted`` its script file."""

    runner: str = PROVIDER
    script: str | None = None


class _SettingsFile(msgspec.Struct):
    localagent: _Settings = msgspec.field(default_factory=_Settings)


class LocalBackend:
    """Implements :class:`localagent.shell.workers.Backend`."""

    def __init__(self, fresh_id: Callable[[], str], clock: Callable[[], float]) -> None:
        self._fresh_id, self._clock = fresh_id, clock
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        """Held while modules are imported here: two threads that import a package and a part of it, each in its own
        order, can trip over each other's locks, and one of them gets half a module."""
        self._place: tuple[Root, str] | None = None
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
        """Prepare the store and the embedded provider (START-11 to START-24); local, no request is made."""
        from localagent.sessions import paths
        from localagent.sessions.errors import Cancelled, StoreError

        try:
            root = paths.prepare(paths.locate(os.environ), cancelled=token.cancelled)
            cwd = paths.canonical(os.getcwd())
            self._script = _chosen_script(Path(root.path, paths.SETTINGS))
            self._place = root, cwd
            context_id = paths.context_id(root, cwd)
        except StoreError as fault:
            return worker.StartFailed(fault.code)
        except Cancelled:
            return worker.StartFailed(Code.STARTUP_CANCELLED)
        except OSError:
            return worker.StartFailed(Code.STARTUP_FAILED)
        return worker.Started(PROVIDER, MODEL, context_id, self._selection(PROVIDER, MODEL))

    def warm_up(self) -> None:
        """Load what sessions and turns need, once the client has been told that the child is ready."""
        self._opened_store()
        self._played_script()

    def _selection(self, provider: str, model: str) -> Selection:
        """The embedded provider knows no efforts (SEL-13, SEL-16)."""
        return Selection(
            effective_effort=None,
            effort_support="unsupported",
            model=model,
            permitted_efforts=("default",),
            provider=provider,
            requested_effort="default",
            revision=self._fresh_id(),
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
        return self._attach(self._opened_store().create(token.cancelled))

    def _open(self, command: StartWorker, token: Token) -> worker.LastWord:
        session_id = cast(SessionOpenParams, command.params).session_id
        return self._attach(self._opened_store().open(session_id, token.cancelled))

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
    }

    def _attach(self, handle: "Handle") -> worker.SessionAttached:
        with self._lock:
            self._previous, self._attached = self._attached, handle
            self._attaches += 1
        if self._keeper is not None:
            self._keeper.watch()
        revision = handle.revision or ""
        notices = cast(Any, handle.notices)
        result = Attached(durable=handle.durable, notices=notices, revision=revision, session_id=handle.session_id)
        selection = self._selection(PROVIDER, MODEL)
        return worker.SessionAttached(result, handle.session_id, handle.durable, revision, selection)

    # turns

    def turn(self, command: StartWorker, sink: Turn) -> worker.TurnEnded | None:
        """Run a turn on the attached session."""
        with self._loading:
            from localagent.runner.faults import FaultyHandle
            from localagent.runner.scripted import Scripted
            from localagent.runner.turn import run_turn

            from .appender import Appender

        handle = FaultyHandle(self._current())
        runner = Scripted(self._played_script(), self._clock, handle.fail_append)
        later = Appender(handle)
        try:
            prompt = cast(TurnStartParams, command.params).prompt
            ended = run_turn(prompt, handle, sink, runner, self._fresh_id, self._clock, later)
        finally:
            later.close()
        if ended.word == "failed" and not ended.input_stored:
            sink.input_failed(ended.revision)
        return worker.TurnEnded(ended.word, ended.code, ended.revision)

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


def _chosen_script(settings: Path) -> "Script | None":
    """The script that the settings name, if they name one. Raises StoreError(``configuration_invalid``)."""
    from localagent.sessions.errors import StoreError

    try:
        chosen = msgspec.json.decode(settings.read_bytes(), type=_SettingsFile).localagent
    except (msgspec.DecodeError, OSError) as fault:
        raise StoreError(Code.CONFIGURATION_INVALID, str(fault)) from None
    if chosen.runner != PROVIDER:
        raise StoreError(Code.CONFIGURATION_INVALID, f"no runner is called {chosen.runner}")
    if chosen.script is None:
        return None
    if not os.path.isabs(chosen.script):
        raise StoreError(Code.CONFIGURATION_INVALID, "the script's path is not absolute")
    from localagent.runner import script

    try:
        return script.load(Path(chosen.script))
    except script.ScriptError as fault:
        raise StoreError(Code.CONFIGURATION_INVALID, str(fault)) from None
