"""A seam for faults: a session handle whose appends fail when a script or a test says so."""

from collections.abc import Sequence

from localagent.sessions.errors import AppendFailed, Outcome
from localagent.sessions.records import Draft

from .scribe import Handle, Receipt


class FaultyHandle:
    """Passes everything on to ``handle``, but fails appends as a full disk does: nothing has happened then."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._pass = 0
        self._fail = 0

    def fail_append(self, count: int = 1, after: int = 0) -> None:
        """Let ``after`` appends pass and the next ``count`` fail."""
        self._pass, self._fail = after, count

    def append(self, drafts: Sequence[Draft]) -> Receipt:
        """Append, or fail."""
        if self._pass or not self._fail:
            self._pass = max(self._pass - 1, 0)
            return self._handle.append(drafts)
        self._fail -= 1
        raise AppendFailed(Outcome.ROLLED_BACK, "scripted")

    def refresh(self) -> str:
        """Project what is stored."""
        return self._handle.refresh()
