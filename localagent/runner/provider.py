"""The runner interface: what answers a prompt, and what it may do while it does.

A runner is the whole agent behind one turn: it asks a model, calls tools, asks again, until it has nothing more to
say. It never touches the wire or the store; everything it does goes through its :class:`Stage`, which records and
shows it in the right order. :mod:`.scripted` is one runner; those with real models implement the same protocol.

Returning from ``run`` completes the turn. :class:`ProviderError` fails it with a code, any other exception fails it
with ``execution_failed``, :class:`~.sink.Cancelled` stops it. A runner may swallow none of the three that a stage
raises (the call after would raise it again), and needs to clean up only what it owns itself.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from localagent.protocol.codes import Code


class TurnFailure(Exception):  # noqa: N818 - says what becomes of the turn
    """The turn fails with ``code``. ``summary`` is for the user; it is cleaned, redacted and cut where it is shown."""

    def __init__(self, code: Code, summary: str = "") -> None:
        super().__init__(summary or code.value)
        self.code, self.summary = code, summary


class ProviderError(TurnFailure):
    """Raised by a runner that cannot go on: its provider refused, failed or sent nonsense."""

    def __init__(self, summary: str, code: Code = Code.EXECUTION_FAILED) -> None:
        super().__init__(code, summary)


class ToolCall(Struct, frozen=True):
    """A tool call of the model. ``id`` tells it from the turn's other calls and stays off the wire.

    ``approval`` is what the user is asked before the tool runs; None lets it run without a question.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    approval: str | None = None


class ToolResult(Struct, frozen=True):
    """What a tool call came to, as the model and the store get it. ``denied``: it never ran (APPR-07 to APPR-09)."""

    success: bool
    content: str
    metadata: Mapping[str, Any] = {}
    denied: bool = False


class Usage(Struct, frozen=True):
    """Tokens of a turn, as the provider counted them; None where it did not say."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    total: int | None = None
    reasoning_tokens: int | None = None


Work = Callable[[], ToolResult]
"""Runs a tool. An exception is a failed result; ``Cancelled`` stops the turn."""


class Stage(Protocol):
    """All that a runner may do during its turn, from the turn's own thread.

    Every method raises :class:`~.sink.Cancelled` once the turn was told to stop, :class:`~.sink.Undeliverable` once
    nobody can be told anything any more, and :class:`TurnFailure` once the turn has failed (a bound was passed, or a
    required record could not be stored).
    """

    def text(self, piece: str) -> None:
        """Say the next piece of the answer, of any size."""
        ...

    def summary(self, text: str, item_id: str | None = None, *, from_provider: bool = True) -> None:
        """Give a reasoning summary. One that the provider did not make is raw reasoning and kept nowhere."""
        ...

    def tools(self, calls: Sequence[tuple[ToolCall, Work]]) -> list[ToolResult]:
        """Carry out the tool calls of one model message, in order. A denied one is not run (D63)."""
        ...

    def note(self, code: str, text: str) -> None:
        """Warn the user; ``code`` is a label of the ID grammar (EVT-39)."""
        ...

    def usage(self, usage: Usage) -> None:
        """Report the tokens of the turn; the last report stands."""
        ...

    def wait(self, seconds: float) -> None:
        """Let time pass. This is the only way to: it ends at once when the turn is told to stop."""
        ...


class Runner(Protocol):
    """Answers prompts, one turn at a time."""

    def run(self, prompt: str, stage: Stage) -> None:
        """Answer ``prompt``. Called after ``input.persisted`` has been taken by the protocol loop (EVT-12)."""
        ...
