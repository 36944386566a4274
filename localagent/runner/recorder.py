"""What a turn shows and stores: the segments of its answer and its activities, each at the right moment.

A segment is the text between two records that history shows by themselves (tool calls, a reasoning summary, a
diagnostic), so that live events and history agree on what one message is. Its text is cleaned and redacted as it
comes, leaves as deltas, and goes to the scribe in the same form. Where a segment ends it is reconciled, before the
activity that ends it starts; at the end of the turn each segment is reconciled once more (D60, D61).

The recorder never raises what the sink raises: once an event was undeliverable it falls silent (``lost``) and goes on
writing. It raises :class:`.provider.TurnFailure` when the turn cannot go on, and keeps it in ``failure``, whatever the
runner makes of it.
"""

import contextlib
from collections.abc import Callable, Sequence
from typing import Final, Literal, NoReturn, ParamSpec

from msgspec import Struct
from msgspec.structs import asdict

from localagent.protocol.codes import Code
from localagent.protocol.limits import LIMITS
from localagent.sessions.labels import label
from localagent.sessions.records import Draft
from localagent.text.clean import scrub
from localagent.text.cut import fit, live_parts, utf8
from localagent.text.redact import shown
from localagent.text.stream import DeltaStream

from .provider import ToolCall, ToolResult, TurnFailure, Usage
from .scribe import Handle, Later, Scribe
from .sink import Sink, Undeliverable

P = ParamSpec("P")

OUTPUT_BYTES: Final = 1024 * 1024
"""A longer last segment stands in its chunk records alone, so that no record nears the 8 MiB of REC-07."""

INTERRUPTED: Final = ToolResult(success=False, content="The turn ended before this call did; its effects may stay.")
"""The result of a call that has none when the turn ends (TURN-22)."""

TOO_LONG: Final = "The answer is longer than 8 MiB."
TOO_MANY_SEGMENTS: Final = "The answer has more than 512 segments."
TOO_MANY_CALLS: Final = "The turn calls more than 4,096 tools."
LONG_ID: Final = "The provider gave a tool call an identity of more than 1,024 bytes."


class Activity(Struct, frozen=True):
    """A tool call in progress: its identity and name on the wire, and the call."""

    activity_id: str
    name: str
    call: ToolCall


class _Segment(Struct, frozen=True):
    message_id: str
    text: str


class _Growing:
    """A segment that is still being said. ``shown`` are its deltas, within the bound of the run."""

    __slots__ = ("message_id", "shown", "stream")

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.stream = DeltaStream()
        self.shown: list[str] = []


class Recorder:
    """Records one turn."""

    def __init__(
        self,
        handle: Handle,
        sink: Sink,
        new_id: Callable[[], str],
        clock: Callable[[], float],
        later: Later | None = None,
    ) -> None:
        self._sink, self._new_id = sink, new_id
        self._scribe = Scribe(handle, lambda summary: self._tell(sink.append_failed, summary), clock, later)
        self._open: _Growing | None = None
        self._segments: list[_Segment] = []
        self._accepted = 0
        self._authoritative = 0
        """Bytes of text that came, and bytes that the segments have: neither may pass the bound (BOUND-12)."""
        self._full = False
        self._activities = 0
        self._pending: list[Activity] = []
        self.usage: Usage | None = None
        self.failure: TurnFailure | None = None
        self.lost = False

    # text

    def text(self, piece: str) -> None:
        """Accept text. Raises TurnFailure where it passes a bound; what lies within is kept (EVT-28 to EVT-30)."""
        piece = piece if piece.isascii() else scrub(piece)
        segment = self._open or self._begin_segment()
        self._accepted += utf8(piece)
        for part in segment.stream.feed(piece):
            self._show(segment, part)
        if self._full or self._accepted > LIMITS.assistant_bytes:
            self._fail(TurnFailure(Code.CONTENT_LIMIT, TOO_LONG))

    def _begin_segment(self) -> _Growing:
        if len(self._segments) >= LIMITS.assistant_segments:
            self._fail(TurnFailure(Code.CONTENT_LIMIT, TOO_MANY_SEGMENTS))
        self._open = _Growing(self._new_id())
        return self._open

    def _show(self, segment: _Growing, text: str) -> None:
        admitted = self._admit(segment, text)
        if admitted:
            self._tell(self._sink.delta, segment.message_id, admitted)

    def _admit(self, segment: _Growing, text: str) -> str:
        """Add redacted text to the segment, as much as the run has room for, and return that."""
        room = LIMITS.assistant_bytes - self._authoritative
        size = utf8(text)
        if self._full or size > room:
            text = "" if self._full else text[: fit(text, 0, room)]
            size, self._full = utf8(text), True
        self._authoritative += size
        if text:
            segment.shown.append(text)
            self._scribe.say(text)
        return text

    def _close_segment(self) -> _Segment | None:
        """End the segment: show what was held, or take the rest of a muted one. None if it has no text."""
        growing, self._open = self._open, None
        if growing is None:
            return None
        for part in growing.stream.finish():
            self._show(growing, part)
        text = "".join(growing.shown)
        if growing.stream.muted:  # its deltas are the beginning of its text
            text += self._admit(growing, growing.stream.reconciled()[len(text) :])
        self._scribe.end_segment()
        if self._full:
            self.failure = self.failure or TurnFailure(Code.CONTENT_LIMIT, TOO_LONG)
        if not text:
            return None
        self._segments.append(_Segment(growing.message_id, text))
        return self._segments[-1]

    def _end_segment(self) -> None:
        segment = self._close_segment()
        if segment is not None:
            self._reconcile(segment, partial=True)
        if self.failure is not None:
            raise self.failure

    def _reconcile(self, segment: _Segment, partial: bool) -> None:
        parts = live_parts(segment.text)
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            self._tell(self._sink.reconcile, segment.message_id, number, part, last, partial)

    def keep_time(self, wait_ms: float) -> None:
        """Let no chunk record become overdue while the turn waits."""
        self._scribe.keep_time(wait_ms)

    # what stands between segments

    def summary(self, text: str, item_id: str | None) -> None:
        """Store a reasoning summary of the provider; there is no event for it."""
        self._end_segment()
        item = {} if item_id is None else {"item_id": item_id}
        self._scribe.optional(Draft("reasoning_summary", {"provider_summary": True, "text": text, **item}))

    def note(self, code: str, text: str) -> None:
        """Store and show a diagnostic."""
        self._end_segment()
        self._scribe.optional(Draft("diagnostic", {"category": code, "level": "warning", "message": text}))
        self.diagnose(code, text)

    def diagnose(self, code: str, text: str) -> None:
        """Show a diagnostic."""
        self._tell(self._sink.diagnostic, str(code), brief(text))

    def begin(self, calls: Sequence[ToolCall]) -> list[Activity]:
        """Settle the text so far, store the calls, show that they started. Only then may they be dispatched."""
        if self._activities + len(calls) > LIMITS.activities:
            self._fail(TurnFailure(Code.CONTENT_LIMIT, TOO_MANY_CALLS))
        if any(utf8(call.id) > LIMITS.activity_id_bytes for call in calls):
            self._fail(TurnFailure(Code.EXECUTION_FAILED, LONG_ID))
        self._activities += len(calls)
        self._end_segment()
        self._require(*map(_tool_call, calls))
        activities = [Activity(self._new_id(), _name(call), call) for call in calls]
        self._pending += activities
        for activity in activities:
            self._show_activity(activity, "started", "started")
        return activities

    def end(self, activity: Activity, result: ToolResult) -> None:
        """Store the result of a call and show that it ended."""
        self._pending.remove(activity)
        try:
            self._require(_tool_result(activity.call, result))
        finally:
            state: Literal["completed", "failed"] = "completed" if result.success else "failed"
            self._show_activity(activity, state, "denied" if result.denied else state)

    def _show_activity(self, activity: Activity, state: Literal["started", "completed", "failed"], text: str) -> None:
        self._tell(self._sink.activity, activity.activity_id, "tool", state, activity.name, text)

    # the end of the turn

    def end_text(self) -> str:
        """End the last segment and return its text; empty when something else came after it."""
        segment = self._close_segment()
        return segment.text if segment is not None else ""

    def interrupt(self) -> None:
        """Give every call that is still open a result, and end its activity."""
        cut_short, self._pending = self._pending, []
        if cut_short:
            with contextlib.suppress(TurnFailure):  # it stands in `failure`
                self._require(*(_tool_result(activity.call, INTERRUPTED) for activity in cut_short))
            for activity in cut_short:
                self._show_activity(activity, "failed", "interrupted")

    def reconcile_all(self, partial: bool) -> None:
        """Reconcile every segment for the last time."""
        for segment in self._segments:
            self._reconcile(segment, partial)

    def complete(self, text: str) -> None:
        """Store that the turn was answered; ``text`` is that of the last segment."""
        usage = None if self.usage is None else asdict(self.usage)
        said = {"text": text} if utf8(text) <= OUTPUT_BYTES else {}
        self._scribe.close(Draft("assistant_output", {"usage": usage, **said}))

    def give_up(self, status: Literal["cancelled", "failed"], text: str, why: str) -> None:
        """Store that the turn was not answered to its end."""
        said = text if utf8(text) <= OUTPUT_BYTES else ""
        error = {"error_summary": brief(why)} if status == "failed" else {}
        self._scribe.close(Draft("turn_status", {"assistant_text": said, "status": status, **error}))

    # common to all

    def _require(self, *drafts: Draft) -> None:
        try:
            self._scribe.required(*drafts)
        except TurnFailure as failure:
            self._fail(failure)

    def _fail(self, failure: TurnFailure) -> NoReturn:
        self.failure = self.failure or failure
        raise self.failure

    def _tell(self, event: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        if not self.lost:
            try:
                event(*args, **kwargs)
            except Undeliverable:
                self.lost = True


def brief(text: str) -> str:
    """Make foreign text fit for a summary (BOUND-11, CRED-13)."""
    return shown(scrub(text))


def _name(call: ToolCall) -> str:
    """Its label, as history calls it (D75), but no longer than a summary."""
    name = scrub(label(call.name, call.arguments))
    return name[: fit(name, 0, LIMITS.summary_bytes)]


def _tool_call(call: ToolCall) -> Draft:
    return Draft("tool_call", {"arguments": call.arguments, "id": call.id, "name": call.name})


def _tool_result(call: ToolCall, result: ToolResult) -> Draft:
    inner = {
        "content": result.content,
        "metadata": result.metadata,
        "success": result.success,
        "tool_name": call.name,
    }
    return Draft("tool_result", {"call_id": call.id, "result": inner})
