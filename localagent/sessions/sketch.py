"""What a listing shows of one history: its workspace, its newest moment, its last title. Pure, and constant in size.

A line is a record exactly when :func:`.records.parse` says so. Most lines spell their directories as the line before,
even that of the session before: a line that repeats, byte for byte, what was judged takes the fast way, which looks at
the other fields and decodes the payload. Moments in UTC compare as text, so that only the newest is ever read as one.
"""

import re
from collections.abc import Callable
from typing import Final

import msgspec

from localagent.protocol.results import ListingEntry

from . import instants, records
from .facts import recorded_title

_PLAIN: Final = r'[^"\\\x00-\x1f]*'  # the inside of a string without escapes
_head = re.compile(
    rb'\{"event_id":"[0-9a-f]{1,16}","event_type":"([a-z_]+)",'
    rb'"timestamp":"(([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}):[0-5][0-9](?:\.[0-9]+)?)Z",'
    rb'"session_id":"([A-Za-z0-9_-]+)",'
).match
_place = re.compile(rf'"cwd":"{_PLAIN}",(?:"session_path":(?:null|"{_PLAIN}"),)?"payload":'.encode()).match
_shortest = re.compile(rb"(?!0000)[^.]+(?:\.(?:[0-9]{3}){1,3}(?<!000))?").fullmatch
_SMALL: Final = 4096  # up to here a copy costs less than a view
_TITLED: Final = {b"session_title": "session_title", b"compaction": "compaction"}


class Elsewhere(Exception):  # noqa: N818 - says what was found
    """A history of another workspace: it is left out, and nobody is told (LIST-27, LIST-28, EXT-DISC-54)."""


class Workspace:
    """The working directory of this child, and the last recorded one that was found to be it (EXT-DISC-30)."""

    def __init__(self, same: Callable[[str], bool]) -> None:
        """``same`` asks the disk whether a recorded directory is the child's."""
        self._same = same
        self._last: str | None = None
        self.place = b""
        """How a line spelt it, from the member ``cwd`` to the payload; empty when none was judged."""

    def forget(self) -> None:
        """Ask the disk again from now on: a request does not rely on what an earlier one saw."""
        self._last, self.place = None, b""

    def require(self, recorded: str, line: bytes, at: int) -> None:
        """Raise Elsewhere unless ``recorded`` is this directory. ``line`` spells it from ``at``, if it is canonical."""
        if recorded != self._last:
            if not self._same(recorded):
                raise Elsewhere
            self._last = recorded
        spelt = _place(line, at)
        self.place = spelt[0] if spelt is not None else b""


class Sketch:
    """Takes the lines of one history and says what its entry is."""

    def __init__(self, session_id: str, workspace: Workspace) -> None:
        self.session_id = session_id
        self._owner = session_id.encode()
        self._workspace = workspace
        self._verified = False
        self._newest: int | None = None
        self._newest_text = b""
        """The newest of the moments that are spelt in UTC and compare as text."""
        self._minute = b""
        """The last minute that was found to exist."""
        self._title: str | None = None

    def add(self, line: bytes) -> None:
        """Add the next line, without its LF. Raises BadRecord, and Elsewhere at the first foreign directory."""
        head = _head(line)
        if head is None or not self._add_quickly(line, head):
            self._add_slowly(line.removesuffix(b"\r"), head)

    def _add_quickly(self, line: bytes, head: "re.Match[bytes]") -> bool:
        """Add a line like one before, and say so. Raises nothing: whatever is odd is for the slow way."""
        kind, moment, minute, owner = head.groups()
        place, at = self._workspace.place, head.end()
        if not place or owner != self._owner or not line.startswith(place, at) or not line.endswith(b"}"):
            return False
        if minute != self._minute and not self._exists(minute):
            return False
        try:
            text = (line if len(line) < _SMALL else memoryview(line))[at + len(place) : -1]
            payload = records.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return False
        if len(text) >= records.SHALLOW_BYTES and records.too_deep(line, payload, 1):
            return False
        self._verified = True
        if moment > self._newest_text:
            self._newest_text = moment
        if kind in _TITLED:
            self._title = recorded_title(_TITLED[kind], payload) or self._title
        return True

    def _exists(self, minute: bytes) -> bool:
        exists = instants.parse(f"{minute.decode()}:00Z") is not None
        if exists:
            self._minute = minute
        return exists

    def _add_slowly(self, line: bytes, head: "re.Match[bytes] | None") -> None:
        record = records.parse(line, self.session_id)
        if record.cwd:
            self._workspace.require(record.cwd, line, head.end() if head is not None else len(line))
            self._verified = True
        if head is not None:
            self._newest_text = max(self._newest_text, head[2])
        elif self._newest is None or record.instant > self._newest:
            self._newest = record.instant
        self._title = recorded_title(record.kind, record.payload) or self._title

    def entry(self, busy: bool) -> ListingEntry:
        """The entry, once all lines were added. ``busy`` outweighs ``cwd_unverified``, the notice stays (EXT-OP-20)."""
        return ListingEntry(
            eligibility="busy" if busy else "available" if self._verified else "cwd_unverified",
            notices=() if self._verified else ("cwd_unverified",),
            session_id=self.session_id,
            title=self._title,
            updated_at=self._updated_at(),
        )

    def _updated_at(self) -> str | None:
        """The newest moment in the shortest exact spelling, which most records have already (BASE-OP-133)."""
        spelt = f"{self._newest_text.decode()}Z"
        if self._newest is None and _shortest(self._newest_text):
            return spelt
        moments = [moment for moment in (self._newest, instants.parse(spelt)) if moment is not None]
        return instants.spell(max(moments)) if moments else None
