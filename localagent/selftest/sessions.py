"""Faults of sessions and of the listing."""

import os
from typing import Any

from .mutant import fault
from .tools import answered, around, bounds, failing, put, put_item, unchecked


@fault
def create_gives_the_same_session() -> None:
    """A second session.create gives the session of the first."""
    from localagent.sessions.store import Store

    made: list[Any] = []

    @around(Store, "create")
    def create(original: Any, self: Any, *rest: Any) -> Any:
        if made and made[0]._ownership.share():
            return self._attach(made[0]._ownership, *rest)
        made[:] = [original(self, *rest)]
        return made[0]


@fault
def create_claims_to_be_durable() -> None:
    """A created session is said to be durable."""
    from msgspec.structs import replace

    answered("session.create", lambda result: replace(result, durable=True))


@fault
def create_with_a_notice() -> None:
    """A created session has a notice."""
    from msgspec.structs import replace

    answered("session.create", lambda result: replace(result, notices=("cwd_unverified",)))


@fault
def create_writes_a_file() -> None:
    """A created session is stored at once."""
    from localagent.sessions.store import Store

    @around(Store, "create")
    def create(original: Any, self: Any, *rest: Any) -> Any:
        handle = original(self, *rest)
        with self._root.sessions() as directory:
            flags = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC
            os.close(os.open(f"{handle.session_id}.jsonl", flags, 0o600, dir_fd=directory))
        return handle


@fault
def open_takes_a_prefix() -> None:
    """session.open opens the session whose id begins so."""
    from localagent.sessions.store import Store

    @around(Store, "open")
    def open_(original: Any, self: Any, session_id: str, *rest: Any) -> Any:
        with self._root.sessions() as directory:
            stored = sorted(name.removesuffix(".jsonl") for name in os.listdir(directory) if name.endswith(".jsonl"))
        found = [*self._owned, *stored]
        exact = session_id if session_id in found else None
        return original(self, exact or next((each for each in found if each.startswith(session_id)), session_id), *rest)


@fault
def open_creates_what_is_missing() -> None:
    """session.open of a session that does not exist makes one."""
    from localagent.sessions.errors import StoreError
    from localagent.sessions.store import Store

    @around(Store, "open")
    def open_(original: Any, self: Any, session_id: str, *rest: Any) -> Any:
        try:
            return original(self, session_id, *rest)
        except StoreError as refused:
            if refused.code != "session_missing":
                raise
            return self.create(*rest)


@fault
def path_cut_to_its_last_part() -> None:
    """An id that is a path opens the session that its last part names."""
    from localagent.protocol import params
    from localagent.sessions.store import Store

    put_item(params.SessionOpenParams.__annotations__, "session_id", str)
    around(Store, "open")(lambda original, self, session_id, *rest: original(self, os.path.basename(session_id), *rest))


@fault
def failed_open_loses_the_attachment() -> None:
    """After an open that failed nothing is attached."""
    from localagent.core.connection import Connection
    from localagent.core.worker import OperationFailed, WorkerDone

    @around(Connection, "work")
    def work(original: Any, self: Any, message: Any, now: float) -> Any:
        commands = original(self, message, now)
        failed = isinstance(message, WorkerDone) and isinstance(message.word, OperationFailed)
        if failed and self.facts.operation.method == "session.open":
            self.facts.session_id = None
        return commands


@fault
def open_does_not_attach() -> None:
    """session.open shows the session but stays with the one before."""
    from localagent.core import effects
    from statemachines.attachment import AttachmentInput

    attached = effects._FOLLOW[AttachmentInput.JOINT_ATTACHED_LAZY]

    def follow(move: Any, moment: Any) -> None:
        if moment.facts.session_id is None:
            attached(move, moment)

    put_item(effects._FOLLOW, AttachmentInput.JOINT_ATTACHED_LAZY, follow)
    put_item(effects._FOLLOW, AttachmentInput.JOINT_ATTACHED_DURABLE, follow)


@fault
def foreign_workspace_opened() -> None:
    """The recorded directories of a session are not looked at."""
    from localagent.sessions.handle import Handle

    put(Handle, "_verify_workspace", lambda self, facts, cancelled: None)


@fault
def leases_ignored() -> None:
    """A session that is held elsewhere is opened all the same."""
    from localagent.sessions import leases
    from localagent.sessions.errors import Held

    @around(leases, "take")
    def take(original: Any, sessions: Any, name: str, clock: Any) -> Any:
        try:
            return original(sessions, name, clock)
        except Held:
            with sessions() as directory:
                for left in [each for each in os.listdir(directory) if each.endswith(".lock") and name in each]:
                    os.unlink(left, dir_fd=directory)
            return original(sessions, name, clock)


@fault
def loose_mode_accepted() -> None:
    """A history that others may read is opened."""
    from localagent.sessions import files

    put(files, "require_trusted", lambda found: None)


@fault
def wrong_code_for_a_missing_session() -> None:
    """A session that does not exist is session_invalid."""
    failing("session_missing", "session_invalid")


@fault
def wrong_code_for_a_damaged_session() -> None:
    """A damaged history is session_missing."""
    failing("session_invalid", "session_missing")


@fault
def wrong_code_for_another_workspace() -> None:
    """A history of another directory is session_missing."""
    failing("cwd_mismatch", "session_missing")


@fault
def wrong_code_for_a_held_session() -> None:
    """A session that is held elsewhere is session_invalid."""
    failing("session_busy", "session_invalid")


# the listing


@fault
def listing_not_sorted() -> None:
    """The listing is in descending order."""
    from localagent.sessions import listing

    around(listing._Scan, "run")(lambda original, self: _turned(original(self)))


def _turned(found: Any) -> Any:
    return found._replace(entries=found.entries[::-1])


@fault
def listing_without_bounds() -> None:
    """A page of the listing has any number of entries."""
    from localagent.sessions import listing

    put(listing._Snapshot, "_end", lambda self, start, limit: len(self.found.entries))


@fault
def listing_over_by_one() -> None:
    """A page of the listing has one entry more than asked for."""
    from localagent.sessions import listing

    bounds(listing, discovery_page_entries=101)
    around(listing._Snapshot, "_end")(lambda original, self, start, limit: original(self, start, limit + 1))


@fault
def listing_ends_early() -> None:
    """A listing of several pages ends with its first."""
    from localagent.sessions import listing

    around(listing._Snapshot, "_page")(lambda original, self, start, end: _last(original(self, start, end)))


def _last(page: Any) -> Any:
    from msgspec.structs import replace

    return replace(page, complete=True, next_cursor=None)


@fault
def listing_never_stale() -> None:
    """A listing goes on though the store has changed."""
    from localagent.sessions import listing

    around(listing._Scan, "run")(lambda original, self: original(self)._replace(fingerprint=b""))


@fault
def listing_cursor_of_any_revision() -> None:
    """A cursor of the listing continues it under any revision."""
    from localagent.sessions.listing import Listing

    unchecked("session.list/continuation", "SAME_LISTING")

    @around(Listing, "page")
    def page(original: Any, self: Any, revision: Any, cursor: Any, *rest: Any) -> Any:
        return original(self, self.revision if revision is not None else None, cursor, *rest)


@fault
def busy_not_shown() -> None:
    """A listing shows held sessions as available."""
    from localagent.sessions import listing

    put(listing._Inventory, "busy", lambda self, session_id: False)


@fault
def unverified_not_shown() -> None:
    """A listing shows sessions without a directory as available."""
    from localagent.sessions import sketch

    @around(sketch.Sketch, "entry")
    def entry(original: Any, self: Any, busy: bool) -> Any:
        self._verified = True
        return original(self, busy)


@fault
def foreign_sessions_listed() -> None:
    """A listing shows sessions of other directories."""
    from localagent.sessions import listing

    put(listing, "paths", _Anywhere)


class _Anywhere:
    @staticmethod
    def is_same_directory(recorded: str, cwd: str) -> bool:
        return True


@fault
def omission_not_told() -> None:
    """A listing does not tell that it left damaged sessions out."""
    from localagent.sessions import listing

    put(listing, "OMITTED", ())


@fault
def title_missing() -> None:
    """A listing shows no titles."""
    from localagent.sessions import sketch

    put(sketch, "recorded_title", lambda kind, payload: None)


@fault
def oldest_time_shown() -> None:
    """A listing shows an odd time."""
    from localagent.sessions import sketch

    put(sketch.Sketch, "_updated_at", lambda self: "2001-02-03T04:05:06Z")


@fault
def listing_ceiling_missing() -> None:
    """A listing of more than 256 sessions is served."""
    from localagent.sessions import listing

    bounds(listing, discovery_sessions=10_000)


# discovery


@fault
def discovery_cursor_used_twice() -> None:
    """A cursor of a discovery works again."""
    from localagent.sessions.discovery import Discovery

    pages: dict[Any, Any] = {}

    @around(Discovery, "page")
    def page(original: Any, self: Any, revision: Any, cursor: Any, *rest: Any) -> Any:
        known = pages.get((revision, cursor))
        if known is not None and cursor is not None:
            return known
        pages[revision, cursor] = original(self, revision, cursor, *rest)
        return pages[revision, cursor]


@fault
def discovery_says_complete() -> None:
    """A discovery says complete on every page."""
    from msgspec.structs import replace

    answered("session.discover", lambda result: replace(result, complete=True))
