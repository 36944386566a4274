"""What the records of a session say beside its history: directories, selection, title, time, scope. Pure.

One pass, record by record, as the projection: opening needs the directories, the selection and the scope, listings
need the title and the time.
"""

import re
from typing import Any, Final

from msgspec import Struct

from localagent.protocol.ids import is_blank
from localagent.protocol.limits import LIMITS
from localagent.protocol.measure import utf8_bytes
from localagent.protocol.results import Effort
from localagent.text.redact import redact, secret_like

from . import efforts, scope
from .errors import BadRecord
from .payloads import members, word
from .records import Record

_QUOTES: Final = "\"'\u2018\u2019\u201c\u201d"
_blanks = re.compile(rf"[{_QUOTES}\x00-\x1f\x7f-\x9f\s]+").sub


class Preferences(Struct, frozen=True):
    """A saved selection (REC-64). Whether it can be restored is a question of settings and catalogs."""

    provider: str
    model: str
    requested_effort: Effort


class Facts:
    """What the records that were added say."""

    def __init__(self) -> None:
        self.cwds: set[str] = set()
        """Every distinct working directory that is recorded (REC-63)."""
        self.newest: int | None = None
        """The greatest timestamp, in nanoseconds since 1970 (REC-62)."""
        self.title: str | None = None
        self.preferences: Preferences | None = None
        self.scope: scope.TaskScope | None = None
        self._first = True

    def add(self, record: Record) -> None:
        """Add the next record. Raises BadRecord for a scope that REC-12 refuses."""
        if record.cwd:
            self.cwds.add(record.cwd)
        if self.newest is None or record.instant > self.newest:
            self.newest = record.instant
        note = _NOTES.get(record.kind)
        if note is not None:
            note(self, members(record.payload))
        self._first = False

    def _session_title(self, payload: dict[str, Any]) -> None:
        self.title = recorded_title("session_title", payload) or self.title

    def _session_preferences(self, payload: dict[str, Any]) -> None:
        self.preferences = preferences(payload) or self.preferences

    def _user_input(self, payload: dict[str, Any]) -> None:
        if self.scope is None:
            if "task_scope_version" in payload:
                raise BadRecord("task_scope_version without a scope")
        elif payload.get("origin") == "steering" or payload.get("task_clarification") is True:
            self.scope.clarifications.append(word(payload.get("text")))

    def _task_scope(self, payload: dict[str, Any]) -> None:
        if self.scope is not None:
            raise BadRecord("a second task scope")
        self.scope = scope.read(payload)

    def _compaction(self, payload: dict[str, Any]) -> None:
        self.title = recorded_title("compaction", payload) or self.title
        self.preferences = preferences(payload.get("session_preferences")) or self.preferences
        if self._first and ("task_scope" in payload or "task_scope_version" in payload):  # later ones: REC-48
            if payload.get("task_scope_version") != 1:
                raise BadRecord("a task scope of another version")
            self._task_scope(members(payload.get("task_scope")))


_NOTES: Final = {
    "session_title": Facts._session_title,
    "session_preferences": Facts._session_preferences,
    "user_input": Facts._user_input,
    "task_scope": Facts._task_scope,
    "compaction": Facts._compaction,
}


def recorded_title(kind: str, payload: object) -> str | None:
    """Return the title that a record of this kind brings along, if it may be shown; the last one counts (REC-60)."""
    if kind == "session_title":
        return display_title(members(payload).get("title"))
    if kind == "compaction":
        return display_title(members(members(payload).get("aggregate")).get("latest_title"))
    return None


def preferences(value: object) -> Preferences | None:
    """Return a valid saved selection; an invalid one is skipped in silence (REC-64)."""
    saved = members(value)
    provider, model = word(saved.get("provider")), word(saved.get("model"))
    effort = efforts.from_file(saved.get("requested_thinking"))
    if is_blank(provider) or is_blank(model) or effort is None:
        return None
    return Preferences(provider, model, effort)


def display_title(stored: object) -> str | None:
    """Return a stored title as it may be shown, or None for one that may not (REC-60, D76)."""
    title = word(stored)
    if utf8_bytes(title) > LIMITS.discovery_title_bytes or any(map(secret_like, title.split())):
        return None
    return clean_title(title) or None


def clean_title(title: str) -> str:
    """Clean a title: redacted, quotes, controls and white space as single spaces, 50 characters (REC-61)."""
    return _blanks(" ", redact(title)).strip()[: LIMITS.title_characters]
