"""Who may write a session: the writer and the active lease, held together for as long as it is attached (LEASE-02)."""

import threading
from typing import Final

from . import leases
from .clock import Clock
from .paths import Root

ROLES: Final = ("writer", "active")


class Ownership:
    """Both leases of one session. Handles share it: when a session is opened anew, the old handle goes after the new.

    ``stored`` tells that its file was seen or written by this child: from then on a file that is gone is missing
    (SESS-35). ``spoilt`` tells that this child must not append to it any more (REC-32, LEASE-04).
    """

    def __init__(self, root: Root, session_id: str, clock: Clock, stored: bool, spoilt: bool) -> None:
        """Take both leases or neither. Raises Held, Unsafe or OSError."""
        self.session_id = session_id
        self.stored = stored
        self.spoilt = spoilt
        self.appending = threading.Lock()  # the append mutex of REC-30
        self._shares = 1
        self._mutex = threading.Lock()
        self._leases: list[leases.Lease] = []
        try:
            for role in ROLES:
                self._leases.append(leases.take(root.sessions, f"{session_id}.{role}", clock))
        except BaseException:
            self._let_go()
            raise

    def share(self) -> bool:
        """Become one more holder; False when there is none left to share with."""
        with self._mutex:
            if self._shares:
                self._shares += 1
            return self._shares > 0

    def release(self) -> bool:
        """Stop being a holder; the last one removes the leases (LEASE-07). True for the last one."""
        with self._mutex:
            self._shares -= 1
            if self._shares:
                return False
        self._let_go()
        return True

    def renew(self, now_ns: int) -> None:
        """Renew both leases (LEASE-04); if one is lost, nothing is appended any more."""
        for lease in self._leases:
            if not lease.renew(now_ns):
                self.spoilt = True

    def stands_in(self, directory: int) -> bool:
        """Tell whether both leases are held and stand in the open ``directory``."""
        for lease in self._leases:
            if not lease.stands_in(directory):
                self.spoilt = True
        return not self.spoilt

    def _let_go(self) -> None:
        for lease in reversed(self._leases):
            lease.release()
