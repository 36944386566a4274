"""The store: sessions are created and opened here, and each comes with its leases (SESS, LEASE-02)."""

import threading
import uuid

from localagent.protocol.codes import Code
from localagent.protocol.ids import is_session_id

from . import files
from .clock import SYSTEM, CancelCheck, Clock, never, proceed
from .errors import Held, StoreError, Unsafe
from .eventids import EventIds
from .handle import Desk, Handle
from .ownership import Ownership
from .paths import Root
from .worktree import main_worktree


class Store:
    """The sessions of one child: one root, one working directory.

    A child attaches one session at a time: it opens the next, and releases the one before when that has succeeded
    (LEASE-07, SESS-44). Both may be the same session, whose leases are then shared (BASE-OP-97).
    """

    def __init__(self, root: Root, cwd: str, clock: Clock = SYSTEM) -> None:
        """Take a prepared root and the canonical working directory. Touches nothing."""
        self._root, self._clock = root, clock
        self._desk = Desk(root, cwd, main_worktree(cwd), clock, EventIds(root, clock), _fresh_revision)
        self._mutex = threading.Lock()
        self._owned: dict[str, Ownership] = {}
        self._spoilt: set[str] = set()

    def create(self, cancelled: CancelCheck = never) -> Handle:
        """Attach a new lazy session: leases now, a file with its first append (SESS-21, SESS-22, LEASE-02).

        Raises Cancelled or StoreError: ``session_busy``, ``session_invalid`` (D79).
        """
        proceed(cancelled)
        return self._attach(self._own(str(uuid.uuid4()), stored=False), cancelled)

    def open(self, session_id: str, cancelled: CancelCheck = never) -> Handle:
        """Attach exactly the session ``session_id`` (SESS-31), which may be attached to this child already.

        Raises Cancelled or StoreError, the first that applies (BASE-OP-06): ``invalid_params``, ``session_missing``,
        ``session_busy``, ``session_invalid``, ``history_limit``, ``cwd_mismatch``. Then nothing has changed.
        """
        if not is_session_id(session_id):
            raise StoreError(Code.INVALID_PARAMS, "no session id")
        proceed(cancelled)
        with self._mutex:
            ownership = self._owned.get(session_id)
            shared = ownership is not None and ownership.share()
        if ownership is None or not shared:
            self._require_stored(session_id)
            ownership = self._own(session_id, stored=True)
        return self._attach(ownership, cancelled)

    def renew(self, now_ns: int) -> None:
        """Renew the leases of what is attached; called every second, from any thread (LEASE-04)."""
        with self._mutex:
            owned = list(self._owned.values())
        for ownership in owned:
            ownership.renew(now_ns)

    def _require_stored(self, session_id: str) -> None:
        try:
            with self._root.sessions() as directory:
                found = files.status(f"{session_id}.jsonl", directory)
        except (OSError, Unsafe) as fault:
            raise StoreError(Code.SESSION_INVALID, str(fault)) from None
        if found is None:
            raise StoreError(Code.SESSION_MISSING)

    def _own(self, session_id: str, stored: bool) -> Ownership:
        try:
            ownership = Ownership(self._root, session_id, self._clock, stored, session_id in self._spoilt)
        except Held as fault:
            raise StoreError(Code.SESSION_BUSY, str(fault)) from None
        except (OSError, Unsafe) as fault:
            raise StoreError(Code.SESSION_INVALID, str(fault)) from None
        with self._mutex:
            self._owned[session_id] = ownership
        return ownership

    def _attach(self, ownership: Ownership, cancelled: CancelCheck) -> Handle:
        handle = Handle(self._desk, ownership, self._let_go)
        try:
            handle.refresh(cancelled)
        except BaseException:
            handle.release()
            raise
        return handle

    def _let_go(self, ownership: Ownership) -> None:
        if ownership.release():
            with self._mutex:
                if self._owned.get(ownership.session_id) is ownership:
                    del self._owned[ownership.session_id]
                if ownership.spoilt:
                    self._spoilt.add(ownership.session_id)


def _fresh_revision() -> str:
    """32 characters, unlike any other (:data:`.history.REVISION_BYTES`)."""
    return uuid.uuid4().hex
