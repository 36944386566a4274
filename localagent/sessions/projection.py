"""Records to history entries (HISTP). Pure, and incremental: adding records one by one is all there is.

What is projected is a sequence of turns. Only the last turn can still change, so the entries of a turn are finished
(redacted, frozen, never touched again) when a record closes it, and :meth:`Projection.snapshot` closes the last one on
a copy. A snapshot therefore costs as much as the last turn, however long the session is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from msgspec import UNSET, Struct

from localagent.protocol.codes import Code
from localagent.protocol.ids import is_blank
from localagent.protocol.limits import MIB
from localagent.protocol.measure import utf8_bytes
from localagent.text.clean import clean
from localagent.text.redact import redact

from . import payloads
from .errors import BadRecord, StoreError
from .labels import label, same_tool
from .payloads import members, word
from .records import Record

Kind = Literal["user", "assistant", "reasoning_summary", "activity", "compaction", "diagnostic"]

TEXT_BYTES: Final = 8 * MIB  # HISTP-11
ENTRIES: Final = 10_000  # HISTP-11

_INTERRUPTED: Final = "Turn interrupted"
_ENDS: Final = {
    "incomplete": "Turn incomplete",
    "cancelled": "Turn cancelled",
    "canceled": "Turn cancelled",
    "failed": "Turn failed",
    "compaction_required": "Turn stopped: the context must be compacted",
}
_Identity = tuple[bool, str, str]
"""Of a call: nested or not, the parent call when nested, the call (HISTP-07)."""


class Entry(Struct, frozen=True):
    """A finished entry: cleaned, redacted, not yet cut into parts."""

    message_id: str
    kind: Kind
    text: str
    partial: bool


@dataclass(frozen=True, slots=True)
class Projected:
    """What a sequence of records projects to. Immutable: ``settled`` only grows, and ``count`` says how far to look."""

    settled: Sequence[Entry]
    count: int
    tail: tuple[Entry, ...]
    complete: bool

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries in order."""
        return (*self.settled[: self.count], *self.tail)


@dataclass(slots=True, eq=False)
class _Growing:
    """An entry of the last turn. ``redacted`` tells that its text has been through redaction, which is done once."""

    message_id: str
    kind: Kind
    pieces: list[str]
    partial: bool
    redacted: bool = False

    @property
    def text(self) -> str:
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0]

    def finished(self, partial: bool) -> Entry:
        return Entry(self.message_id, self.kind, self.text if self.redacted else redact(self.text), partial)


@dataclass(slots=True)
class _Turn:
    """The state of the current turn (HISTP-02)."""

    entries: list[_Growing] = field(default_factory=list)
    assistants: list[_Growing] = field(default_factory=list)
    asked: bool = False  # it has a `user` entry
    open: _Growing | None = None
    prior: list[str] = field(default_factory=list)
    answered: bool = False
    ended: bool = False
    unfinished: bool = False
    pending: dict[_Identity, tuple[str, str]] = field(default_factory=dict)  # name and label
    acts: dict[_Identity, _Growing] = field(default_factory=dict)
    spent: set[_Identity] = field(default_factory=set)  # identities whose next result adds an entry (HISTP-08)
    sums: dict[tuple[str, str], _Growing] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        """HISTP-06: nobody said how it ended, and something was begun."""
        return not self.ended and bool(self.pending or (not self.answered and (self.asked or self.assistants)))

    def closed(self, line: int) -> tuple[Entry, ...]:
        """The entries as closing leaves them (HISTP-06), where ``line`` is the last record of the turn."""
        whole = (self.ended or self.answered) and not (self.unfinished or self.interrupted)
        done = [each.finished(each.partial and not (whole and each.kind == "assistant")) for each in self.entries]
        if self.interrupted:
            done.append(Entry(f"m{line}.end", "diagnostic", _INTERRUPTED, True))
        return tuple(done)


class Projection:
    """The projection of a session, as far as its records were added."""

    def __init__(self) -> None:
        self._settled: list[Entry] = []
        self._complete = True
        self._turn = _Turn()
        self._line = 0  # the last record that was added
        self._added = 0  # entries that the record in hand has added
        self._text_bytes = 0
        self._count = 0  # entries, finished or not

    def add(self, record: Record) -> None:
        """Add the next record. Raises BadRecord (HISTP-10); the projection is then of no use any more."""
        self._added = 0
        effect = _EFFECTS.get(record.kind)
        if effect is not None:
            effect(self, record.payload)
        self._line += 1

    def snapshot(self) -> Projected:
        """Project what was added. Raises StoreError(``history_limit``) beyond 8 MiB or 10,000 entries (HISTP-11)."""
        interrupted = self._turn.interrupted
        text_bytes = self._text_bytes + (len(_INTERRUPTED) if interrupted else 0)
        if text_bytes > TEXT_BYTES or self._count + interrupted > ENTRIES:
            raise StoreError(Code.HISTORY_LIMIT, "too much text or too many entries")
        tail = self._turn.closed(self._line)
        return Projected(self._settled, len(self._settled), tail, self._complete and not interrupted)

    # the words of HISTP-03 to HISTP-06

    def _close(self) -> None:
        if self._turn.interrupted:
            self._complete = False
            self._count += 1
            self._text_bytes += len(_INTERRUPTED)
        if self._text_bytes <= TEXT_BYTES and self._count <= ENTRIES:  # beyond that nobody will see it
            self._settled.extend(self._turn.closed(self._line))
        self._turn = _Turn()

    def _add(self, kind: Kind, text: str, partial: bool = False, redacted: bool = False) -> _Growing:
        suffix = f".{self._added}" if self._added else ""
        entry = _Growing(f"m{self._line + 1}{suffix}", kind, [text], partial, redacted)
        self._added += 1
        self._count += 1
        self._text_bytes += utf8_bytes(text)
        self._turn.entries.append(entry)
        return entry

    def _set(self, entry: _Growing, text: str) -> None:
        self._text_bytes += utf8_bytes(text) - utf8_bytes(entry.text)
        entry.pieces[:] = [text]

    def _cut(self) -> None:
        if self._turn.open is not None:
            self._turn.prior.append(self._turn.open.text)
            self._turn.open = None

    def _say(self, text: str, *, replacing: bool) -> None:
        if not text:
            return
        if self._turn.open is None:
            self._turn.open = self._add("assistant", text, partial=True)
            self._turn.assistants.append(self._turn.open)
        elif replacing:
            self._set(self._turn.open, text)
        else:
            self._turn.open.pieces.append(text)
            self._text_bytes += utf8_bytes(text)

    # the effects of the table of HISTP-07

    def _user_input(self, payload: Any) -> None:
        self._close()
        if word(members(payload).get("origin")) not in payloads.HIDDEN_ORIGINS:
            self._add("user", clean(payloads.read(payload, payloads.UserInput).text))
            self._turn.asked = True

    def _compaction(self, payload: Any) -> None:
        self._close()
        self._add("compaction", clean(payloads.read(payload, payloads.Compaction).summary))

    def _assistant_chunk(self, payload: Any) -> None:
        self._say(clean(payloads.read(payload, payloads.AssistantChunk).text), replacing=False)

    def _assistant_output(self, payload: Any) -> None:
        turn = self._turn
        grown = turn.open.text if turn.open is not None else ""
        text = payloads.read(payload, payloads.AssistantOutput).text
        said = grown if text is UNSET else clean(text)
        prior = "".join(turn.prior)
        if prior and said.startswith(prior) and said.startswith(grown, len(prior)):
            said = said[len(prior) :]
        self._say(said, replacing=True)
        turn.answered = True
        turn.prior.clear()

    def _reasoning_summary(self, payload: Any) -> None:
        if members(payload).get("provider_summary") is not True:
            return
        summary = payloads.read(payload, payloads.ReasoningSummary)
        self._cut()
        identity = (word(summary.turn_id), word(summary.item_id))
        seen = self._turn.sums.get(identity) if isinstance(summary.item_id, str) else None
        if seen is not None:
            self._set(seen, clean(summary.text))
            return
        entry = self._add("reasoning_summary", clean(summary.text))
        if isinstance(summary.item_id, str):
            self._turn.sums[identity] = entry

    def _call(self, payload: Any, nested: bool) -> None:
        call = payloads.read(payload, payloads.ToolCall)
        turn = self._turn
        self._cut()
        called = label(call.name, call.arguments)
        entry = self._add("activity", f"{called}: started", partial=True, redacted=True)
        identity = (nested, word(call.parent_call_id) if nested else "", call.id)
        if identity in turn.acts:
            turn.spent.add(identity)
        else:
            turn.acts[identity] = entry
        turn.pending[identity] = (call.name, called)

    def _result(self, payload: Any, nested: bool) -> None:
        done = payloads.read(payload, payloads.ToolResult)
        turn, result = self._turn, done.result
        self._cut()
        identity = (nested, word(done.parent_call_id) if nested else "", word(done.call_id))
        call = turn.pending.pop(identity) if identity in turn.pending else None
        name, called = call or (result.tool_name, label(result.tool_name, None))
        if not same_tool(name, result.tool_name):
            raise BadRecord("a result of another tool than was called")
        text = f"{called}: {'completed' if result.success else 'failed'}"
        started = turn.acts.get(identity)
        if started is None or identity in turn.spent:
            self._add("activity", text, redacted=True)
        else:
            self._set(started, text)
            started.partial = False
        turn.spent.add(identity)

    def _turn_status(self, payload: Any) -> None:
        end = payloads.read(payload, payloads.TurnStatus)
        turn = self._turn
        turn.unfinished = end.status != "complete"
        if not turn.assistants:
            self._say(clean(word(end.assistant_text)), replacing=True)
        for entry in turn.assistants:
            entry.partial = turn.unfinished
        if turn.unfinished:
            self._add("diagnostic", _ENDS[end.status], partial=True)
            why = clean(word(end.error_summary)) if end.status == "failed" else ""
            if not is_blank(why):
                self._add("diagnostic", why, partial=True)
        turn.ended = True
        turn.pending.clear()

    def _diagnostic(self, payload: Any) -> None:
        self._note(payloads.read(payload, payloads.Diagnostic).message)

    def _warning(self, payload: Any) -> None:
        self._note(payloads.read(payload, payloads.CodeModeWarning).warning)

    def _note(self, text: Any) -> None:
        if text is not UNSET:
            self._cut()
            self._add("diagnostic", clean(text))


def _direct(effect: Callable[[Projection, Any, bool], None]) -> Callable[[Projection, Any], None]:
    return lambda projection, payload: effect(projection, payload, False)


def _nested(effect: Callable[[Projection, Any, bool], None]) -> Callable[[Projection, Any], None]:
    return lambda projection, payload: effect(projection, payload, True)


_P = Projection
_EFFECTS: Final[dict[str, Callable[[Projection, Any], None]]] = {
    "user_input": _P._user_input,
    "compaction": _P._compaction,
    "assistant_chunk": _P._assistant_chunk,
    "assistant_output": _P._assistant_output,
    "reasoning_summary": _P._reasoning_summary,
    "tool_call": _direct(_P._call),
    "code_mode_tool_call": _nested(_P._call),
    "tool_result": _direct(_P._result),
    "tool_display_result": _direct(_P._result),
    "code_mode_tool_result": _nested(_P._result),
    "turn_status": _P._turn_status,
    "diagnostic": _P._diagnostic,
    "hook_diagnostic": _P._diagnostic,
    "code_mode_warning": _P._warning,
}
"""Kinds that have an effect; anything else has none, and is valid (REC-10, REC-11)."""
