"""The stage that a runner gets: every method looks first whether the turn may go on, then asks the recorder."""

from collections.abc import Callable, Sequence
from typing import Final

from .provider import ToolCall, ToolResult, TurnFailure, Usage, Work
from .recorder import Activity, Recorder, brief
from .sink import Cancelled, Sink, Undeliverable

DENIED: Final = ToolResult(success=False, content="The user did not allow this call.", denied=True)
"""The result of a call whose approval was denied or expired; the turn goes on (D63)."""


class TurnStage:
    """Implements :class:`.provider.Stage`."""

    def __init__(self, recorder: Recorder, sink: Sink) -> None:
        self._recorder, self._sink = recorder, sink

    def check(self) -> None:
        """Raise whatever keeps the turn from going on."""
        if self._recorder.failure is not None:
            raise self._recorder.failure
        if self._recorder.lost:
            raise Undeliverable
        if self._sink.cancelled():
            raise Cancelled

    def text(self, piece: str) -> None:
        """Say the next piece of the answer."""
        self.check()
        self._recorder.text(piece)

    def summary(self, text: str, item_id: str | None = None, *, from_provider: bool = True) -> None:
        """Give a reasoning summary; only a provider's is kept (store section 2.3)."""
        self.check()
        if from_provider:
            self._recorder.summary(text, item_id)

    def tools(self, calls: Sequence[tuple[ToolCall, Work]]) -> list[ToolResult]:
        """Carry out the tool calls of one model message.

        All are shown as started and all questions asked (BASE-OP-178); then they run in order, each when it is allowed.
        """
        self.check()
        if not calls:
            return []
        activities = self._recorder.begin([call for call, _ in calls])
        answers = [self._ask(call) for call, _ in calls]
        return [
            self._carry_out(activity, answer, work)
            for activity, answer, (_, work) in zip(activities, answers, calls, strict=True)
        ]

    def note(self, code: str, text: str) -> None:
        """Warn the user."""
        self.check()
        self._recorder.note(code, text)

    def usage(self, usage: Usage) -> None:
        """Report the tokens of the turn."""
        self.check()
        self._recorder.usage = usage

    def wait(self, seconds: float) -> None:
        """Let time pass, and no chunk record with it."""
        self.check()
        self._recorder.keep_time(seconds * 1000)
        if self._sink.wait(seconds):
            raise Cancelled

    def _ask(self, call: ToolCall) -> Callable[[], bool]:
        if call.approval is None:
            return lambda: True
        self.check()
        return self._sink.approval(brief(call.approval))

    def _carry_out(self, activity: Activity, answer: Callable[[], bool], work: Work) -> ToolResult:
        self.check()
        allowed = answer()
        self.check()  # whoever cancels while a question is open has not denied the call, but ended the turn
        result = _outcome(work) if allowed else DENIED
        self._recorder.end(activity, result)
        return result


def _outcome(work: Work) -> ToolResult:
    """Run a tool. Its faults are results; what ends the turn is not its to keep."""
    try:
        return work()
    except (Cancelled, Undeliverable, TurnFailure):
        raise
    except Exception as fault:
        return ToolResult(success=False, content=f"The tool failed: {type(fault).__name__}.")
